// Versions of a function for several instruction sets.
#pragma once

// The dynamic linker selects the version for the processor. The attribute is for functions with loops whose
// calls are all inlined. A build for the instruction set of this machine needs one version only. In any case,
// the function itself is not inlined.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define HALOCLINE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define HALOCLINE_CLONES [[gnu::noinline]]
#endif
