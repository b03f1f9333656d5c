// Last launch of the reductions of a device: it merges the partial results of all thread blocks.
#pragma once

#ifndef HC_FINISH_THREADS
#define HC_FINISH_THREADS 256  // maximum number of threads per block
#endif

// Merge the n partial results of each of `count` reductions into its accumulator. The partial results of
// consecutive reductions are `stride` elements apart. If write_scalars is not 0, the kernel also writes the
// result to the scalar targets[r], unless that index is negative. Any number of thread blocks is valid, and
// up to `count` of them run in parallel.
HC_KERNEL hc_finish(HC_GLOBAL const hc_control* control, HC_GLOBAL const hc_partial* HC_RESTRICT partials,
                    hc_int64 n, hc_int64 stride, hc_int64 count, HC_GLOBAL const hc_int32* HC_RESTRICT kinds,
                    HC_GLOBAL const hc_int32* HC_RESTRICT targets,
                    HC_GLOBAL hc_accumulator* HC_RESTRICT accumulators, HC_GLOBAL double* HC_RESTRICT scalars,
                    hc_int64 write_scalars) {
  HC_SHARED hc_accumulator scratch[HC_SCRATCH(HC_FINISH_THREADS)];
  const hc_int64 thread = hc_thread_number();
  const hc_int64 end =
      control->skip != 0 ? 0 : count;  // no return may precede a barrier: see compile/printers/device.py
  for (hc_int64 r = hc_block(0); r < end; r += hc_blocks(0)) {
    hc_accumulator a;
    hc_reset(&a, kinds[r]);
    for (hc_int64 i = thread; i < n; i += hc_block_threads()) hc_accumulate(&a, partials[r * stride + i]);
    hc_int64 threads = hc_block_threads();
    do {  // as in hc_block_reduce, the first round has no test
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
