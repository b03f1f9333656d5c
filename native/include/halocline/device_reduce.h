// Reductions on a device. Threads accumulate single values, thread blocks reduce them, and hc_finish merges
// the partial results of the blocks. The resulting accumulators have the same bytes as on the host, for any
// order, shape and number of thread blocks: docs/decisions/0001-reproducible-summation.md.
//
//
//   HC_SHARED hc_partial scratch[HC_SCRATCH(256)];     // for blocks of at most 256 threads
//   hc_partial sum;
//   hc_partial_reset(&sum, HC_SUM);
//   hc_sum_state state = hc_sum_begin(&sum);           // for sums only
//   for (...) hc_sum_put(&sum, &state, x);             // or hc_min_put(&partial, x), hc_max_put, ...
//   hc_block_reduce(HC_SUM, &sum, scratch, thread, hc_block_threads());
//   if (thread == 0) partials[frame.first_block + hc_block_number()] = sum;
//
// A thread block adds fewer than 2^24 summands: each adds at most 2^39 to a bin, and a bin has 63 bits.
#pragma once

// Partial result of a thread or of a thread block. The bins of a sum are those of hc_accumulator.
typedef struct {
  hc_int64 top;
  hc_int64 bins[HC_BINS];
  hc_int64 word;
} hc_partial;

HC_FUNCTION void hc_partial_reset(hc_partial* p, int kind) {
  p->top = HC_TOP_FIRST;
  p->bins[0] = p->bins[1] = p->bins[2] = 0;
  p->word = kind == HC_MIN     ? HC_KEY_INFINITY
            : kind == HC_MAX   ? ~HC_KEY_INFINITY
            : kind == HC_VALUE ? HC_INT64_MIN
                               : 0;
}

// Raise the highest bin to `top`. Bins below the third are dropped.
HC_FUNCTION void hc_partial_raise(hc_partial* p, hc_int64 top) {
  for (int k = 0; k < HC_BINS && p->top + k < top; ++k) {
    p->bins[2] = p->bins[1];
    p->bins[1] = p->bins[0];
    p->bins[0] = 0;
  }
  p->top = hc_max_index(p->top, top);
}

// Splitter of the summands of a thread, and the bits of the smallest |x| that it does not split.
typedef struct {
  double high, middle, low;
  hc_uint64 bound;
} hc_sum_state;

// Return the splitter for a highest bin. That of HC_TOP_LAST would overflow, so its summands are scaled by
// 2^-80, which is two bins. Its bound is 0, so that all of these summands take the path of hc_sum_put for
// summands of any size.
HC_FUNCTION hc_sum_state hc_sum_begin(const hc_partial* p) {
  const int last = p->top == HC_TOP_LAST;
  const hc_splitter s = hc_sum_splitter((int)p->top - (last ? 2 : 0));
  hc_sum_state state;
  state.high = s.high;
  state.middle = s.middle;
  state.low = s.low;
  state.bound = last ? 0 : hc_bin_limit((int)p->top) + 1;
  return state;
}

HC_FUNCTION void hc_sum_put(hc_partial* p, hc_sum_state* s, double x) {
  const hc_uint64 size = hc_bits(x) & (hc_uint64)HC_INT64_MAX;
  double y = x;
  if (size >= s->bound) {
    if (size >= (hc_uint64)HC_KEY_INFINITY) {
      p->word |= x > 0 ? HC_PLUS_INFINITY : x < 0 ? HC_MINUS_INFINITY : HC_MET_NAN;
      return;
    }
    int top = (int)p->top;
    while (top < HC_TOP_LAST && size > hc_bin_limit(top)) ++top;
    if (top > p->top) {
      hc_partial_raise(p, top);
      *s = hc_sum_begin(p);
    }
    if (p->top == HC_TOP_LAST) y = x * 0x1p-80;
  }
  double t = s->high + y;
  p->bins[0] += (hc_int64)(hc_bits(t) - hc_bits(s->high));
  y -= t - s->high;
  t = s->middle + y;
  p->bins[1] += (hc_int64)(hc_bits(t) - hc_bits(s->middle));
  y -= t - s->middle;
  t = s->low + y;
  p->bins[2] += (hc_int64)(hc_bits(t) - hc_bits(s->low));
}

HC_FUNCTION void hc_min_put(hc_partial* p, double x) {
  const hc_int64 key = x != x ? HC_INT64_MIN : hc_key(x);
  p->word = hc_min_index(p->word, key);
}

HC_FUNCTION void hc_max_put(hc_partial* p, double x) {
  const hc_int64 key = x != x ? HC_INT64_MAX : hc_key(x);
  p->word = hc_max_index(p->word, key);
}

HC_FUNCTION void hc_count_put(hc_partial* p, int condition) { p->word += condition != 0; }

// Add the value of a point. Only the thread of this point calls it, once.
HC_FUNCTION void hc_value_put(hc_partial* p, double x) { hc_max_put(p, x); }

HC_FUNCTION hc_int64 hc_word_merge(int kind, hc_int64 a, hc_int64 b) {
  return kind == HC_SUM     ? (a | b)
         : kind == HC_MIN   ? hc_min_index(a, b)
         : kind == HC_COUNT ? a + b
                            : hc_max_index(a, b);
}

HC_FUNCTION void hc_partial_merge(int kind, hc_partial* into, hc_partial from) {
  into->word = hc_word_merge(kind, into->word, from.word);
  if (kind != HC_SUM) return;
  hc_partial_raise(into, from.top);
  hc_partial_raise(&from, into->top);
  for (int k = 0; k < HC_BINS; ++k) into->bins[k] += from.bins[k];
}

// Elements of local memory for the reduction of a thread block of at most `threads` threads.
#define HC_SCRATCH(threads) (((threads) + 1) / 2)

// Reduce the partial results of a thread block into that of thread 0. All threads of the block call the
// function with their number, and may reuse `scratch` after it. The first round has no test: PoCL
// duplicates the code after a barrier that some threads might skip, and duplicates it again after the next
// reduction.
HC_FUNCTION void hc_block_reduce(int kind, hc_partial* p, HC_LOCAL hc_partial* scratch, hc_int64 thread,
                                 hc_int64 threads) {
  do {
    const hc_int64 lower = (threads + 1) / 2;
    if (thread >= lower && thread < threads) scratch[thread - lower] = *p;
    HC_BARRIER();
    if (thread < threads - lower) hc_partial_merge(kind, p, scratch[thread]);
    HC_BARRIER();
    threads = lower;
  } while (threads > 1);
}

// ------------------------------------------------------------------------------------ the last launch

// Add the partial result of a thread block to an accumulator, whose bins may exceed 63 bits.
HC_FUNCTION void hc_accumulate(hc_accumulator* a, hc_partial p) {
  if (a->kind == HC_SUM) {
    hc_sum_raise(a, (int)p.top);
    hc_partial_raise(&p, a->top);
    for (int k = 0; k < HC_BINS; ++k) hc_bin_add(a, k, (hc_uint64)p.bins[k], p.bins[k] >> 63);
  }
  a->word = hc_word_merge(a->kind, a->word, p.word);
}
