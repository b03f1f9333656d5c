// The last launch of a device's reductions: merges the partial results of all groups.
#pragma once

#ifndef HC_FINISH_THREADS
#define HC_FINISH_THREADS 256  // the most in a group
#endif

// Merges the n partial results of each of `count` reductions, those of one reduction `stride` apart from the
// next one's, into its accumulator. Where write_scalars is not 0, the result also goes to the scalar that
// targets[] names, unless that is negative. Any number of groups will do; `count` of them are side by side.
HC_KERNEL hc_finish(HC_GLOBAL const hc_control* control, HC_GLOBAL const hc_partial* HC_RESTRICT partials,
                    hc_int64 n, hc_int64 stride, hc_int64 count, HC_GLOBAL const hc_int32* HC_RESTRICT kinds,
                    HC_GLOBAL const hc_int32* HC_RESTRICT targets,
                    HC_GLOBAL hc_accumulator* HC_RESTRICT accumulators, HC_GLOBAL double* HC_RESTRICT scalars,
                    hc_int64 write_scalars) {
  HC_SHARED hc_accumulator scratch[HC_SCRATCH(HC_FINISH_THREADS)];
  const hc_int64 thread = hc_thread_number();
  const hc_int64 end =
      control->skip != 0 ? 0 : count;  // no return before barriers: see compile/printers/device.py
  for (hc_int64 r = hc_group(0); r < end; r += hc_groups(0)) {
    hc_accumulator a;
    hc_reset(&a, kinds[r]);
    for (hc_int64 i = thread; i < n; i += hc_group_threads()) hc_accumulate(&a, partials[r * stride + i]);
    hc_int64 threads = hc_group_threads();
    do {  // as in hc_group_reduce: no test before the first round
      const hc_int64 lower = HC_SCRATCH(threads);
      if (thread >= lower && thread < threads) scratch[thread - lower] = a;
      HC_BARRIER();
      if (thread < threads - lower) {
        const hc_accumulator other = scratch[thread];
        hc_merge(&a, &other);
      }
      HC_BARRIER();
      threads = lower;
    } while (threads > 1);
    if (thread == 0) {
      accumulators[r] = a;
      if (write_scalars != 0 && targets[r] >= 0) scalars[targets[r]] = hc_result(&a);
    }
  }
}
