# Toolchain of the wheels: zig, which compiles for another glibc and another architecture than those of the host.
# tools/wheels.py sets the variables of the environment.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{HALOCLINE_WHEEL_MACHINE})
set(zig $ENV{HALOCLINE_WHEEL_ZIG})
set(target -target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.$ENV{HALOCLINE_WHEEL_GLIBC})
set(CMAKE_C_COMPILER ${zig} cc ${target})
set(CMAKE_CXX_COMPILER ${zig} c++ ${target})
# Checks of the compiler do not link. Linking them would make zig build its C++ library without optimization.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# nanobind uses stdio.h, which the headers of the stable ABI of Python do not include.
set(CMAKE_CXX_FLAGS_INIT "-include stdio.h")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
# zig has no OpenMP runtime. The wheel contains the OpenMP runtime of LLVM.
set(openmp $ENV{HALOCLINE_WHEEL_OPENMP})
set(OpenMP_CXX_FLAGS "-fopenmp -I${openmp}/include" CACHE STRING "")
set(OpenMP_CXX_LIB_NAMES omp CACHE STRING "")
set(OpenMP_omp_LIBRARY ${openmp}/lib/libomp.so CACHE FILEPATH "")
