// Vectors for loops along a row that use values at neighbouring positions. The code assembles a shifted
// vector from two adjacent vectors instead of loading it across a cache line boundary. Rounding is the same
// as in scalar code.
#pragma once

#if defined(__AVX512F__)
#define HC_LANES_BYTES 64
#else
#define HC_LANES_BYTES 32  // two machine vectors if the machine has no vectors of this width
#endif

typedef double hc_lanes_double __attribute__((vector_size(HC_LANES_BYTES)));
typedef float hc_lanes_float __attribute__((vector_size(HC_LANES_BYTES)));

template <class T>
struct hc_lanes_of;
template <>
struct hc_lanes_of<double> {
  typedef hc_lanes_double type;
};
template <>
struct hc_lanes_of<float> {
  typedef hc_lanes_float type;
};

template <class T>
static inline typename hc_lanes_of<T>::type hc_lanes_load(const T* from) {
  typename hc_lanes_of<T>::type value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
static inline void hc_lanes_store(T* to, typename hc_lanes_of<T>::type value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// Return a vector with the same value in all lanes. Subtracting zero keeps the sign of a zero.
template <class T>
static inline typename hc_lanes_of<T>::type hc_lanes_all(T value) {
  return value - typename hc_lanes_of<T>::type{};
}

static inline hc_lanes_double hc_lanes_fma(hc_lanes_double a, hc_lanes_double b, hc_lanes_double c) {
#if defined(__AVX512F__) && !defined(__clang__)
  return (hc_lanes_double)__builtin_ia32_vfmaddpd512_mask(a, b, c, (unsigned char)-1, 4);
#elif defined(__FMA__) && !defined(__clang__)
  return (hc_lanes_double)__builtin_ia32_vfmaddpd256(a, b, c);
#else
  for (int n = 0; n < (int)(sizeof a / sizeof a[0]); ++n) c[n] = __builtin_fma(a[n], b[n], c[n]);
  return c;
#endif
}

static inline hc_lanes_float hc_lanes_fma(hc_lanes_float a, hc_lanes_float b, hc_lanes_float c) {
#if defined(__AVX512F__) && !defined(__clang__)
  return (hc_lanes_float)__builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4);
#elif defined(__FMA__) && !defined(__clang__)
  return (hc_lanes_float)__builtin_ia32_vfmaddps256(a, b, c);
#else
  for (int n = 0; n < (int)(sizeof a / sizeof a[0]); ++n) c[n] = __builtin_fmaf(a[n], b[n], c[n]);
  return c;
#endif
}

// Return the lanes of `lower` from number Step on, followed by the first lanes of `upper`.
#if defined(__AVX512F__) && !defined(__clang__)
// For a shuffle, g++ would use a permutation, which needs a register for the indices of each step.
template <int Step>
static inline hc_lanes_double hc_lanes_joined(hc_lanes_double lower, hc_lanes_double upper) {
  typedef long long bits __attribute__((vector_size(64)));
  return (hc_lanes_double)__builtin_ia32_alignq512_mask((bits)upper, (bits)lower, Step, bits{},
                                                        (unsigned char)-1);
}
template <int Step>
static inline hc_lanes_float hc_lanes_joined(hc_lanes_float lower, hc_lanes_float upper) {
  typedef int bits __attribute__((vector_size(64)));
  return (hc_lanes_float)__builtin_ia32_alignd512_mask((bits)upper, (bits)lower, Step, bits{},
                                                       (unsigned short)-1);
}
#else
template <int... Numbers>
struct hc_numbers {};
template <int Count, int... Numbers>
struct hc_count : hc_count<Count - 1, Count - 1, Numbers...> {};
template <int... Numbers>
struct hc_count<0, Numbers...> {
  typedef hc_numbers<Numbers...> type;
};
template <int Step, class V, int... Numbers>
static inline V hc_lanes_picked(V lower, V upper, hc_numbers<Numbers...>) {
  return __builtin_shufflevector(lower, upper, (Step + Numbers)...);
}
template <int Step, class V>
static inline V hc_lanes_joined(V lower, V upper) {
  return hc_lanes_picked<Step>(lower, upper, typename hc_count<(int)(sizeof(V) / sizeof(lower[0]))>::type{});
}
#endif

// Return the values Step positions further along the row than `centre`, from the neighbouring vectors.
template <int Step, class V>
static inline V hc_lanes_shifted(V before, V centre, V after) {
  constexpr int lanes = (int)(sizeof(V) / sizeof(before[0]));
  static_assert(-lanes <= Step && Step <= lanes && Step != 0);
  if constexpr (Step == -lanes)
    return before;
  else if constexpr (Step == lanes)
    return after;
  else if constexpr (Step < 0)
    return hc_lanes_joined<lanes + Step>(before, centre);
  else
    return hc_lanes_joined<Step>(centre, after);
}
