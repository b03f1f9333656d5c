// Versions of a function for several instruction sets.
#pragma once

// The dynamic linker selects the version for the processor. The attribute is for functions with loops whose
// calls are all inlined. A build for the instruction set of this machine needs one version only. Functions
// with this attribute are never inlined.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__) && (!defined(__clang__) || __clang_major__ >= 18)
#define HALOCLINE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define HALOCLINE_CLONES [[gnu::noinline]]
#endif
