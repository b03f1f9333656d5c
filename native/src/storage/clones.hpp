// Versions of a function for several instruction sets.
#pragma once

// The dynamic linker selects the version for the processor. The attribute is for loops without calls that are
// not inlined. It is empty in a build for the instruction set of this machine, which needs one version only.
#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define HALOCLINE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define HALOCLINE_CLONES
#endif
