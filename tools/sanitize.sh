#!/bin/bash
# Builds native code under sanitizers and runs its tests: sanitize.sh PYTHON
#
# address and undefined with g++, the Python module with its devices too; thread with clang, whose OpenMP runtime tells the sanitizer through
# Archer what threads wait for (without that, every barrier of OpenMP looks like a race).
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")

if ! ls native/tests/test_*.cpp > /dev/null 2>&1; then
  echo "there are no native tests in native/tests" >&2
  exit 1
fi

build() { # folder, sanitizers, compilers
  cmake -S . -B "build/$1" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHALOCLINE_TESTS=ON \
    -DHALOCLINE_SANITIZE="$2" -DCMAKE_C_COMPILER="$3" -DCMAKE_CXX_COMPILER="$4" \
    -DPython_EXECUTABLE="$python" > "build/$1.log" || { cat "build/$1.log"; exit 1; }
  cmake --build "build/$1" -j "$(nproc)"
}

# MPICH keeps some memory until the process ends; UCX replaces malloc's helpers, which only the sanitizer may.
export UCX_MEM_EVENTS=no
export LSAN_OPTIONS=suppressions=$PWD/tools/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1

mkdir -p build
build address address,undefined gcc g++
ctest --test-dir build/address --output-on-failure

# Devices: the driver of CUDA that the tests bring, and PoCL where it is installed. The interpreter is that
# beneath the environment, which would find the module that it was installed with.
site=$PWD/build/address/site
rm -rf "$site"
mkdir "$site"
cp -rs "$PWD/src/halocline" "$site"
ln -s "$PWD"/build/address/_native*.so "$site/halocline"
prefix=$("$python" -c 'import sys; print(sys.prefix)')
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
base=$("$python" -c 'import sys; print(sys._base_executable)')
# the interpreter and OpenCL's compiler keep memory until the process ends
env PATH="$prefix/bin:$PATH" PYTHONPATH="$site:$packages" LD_LIBRARY_PATH="$prefix/lib:${LD_LIBRARY_PATH:-}" \
  LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 \
  "$base" -m pytest -q -p no:cacheprovider -m "not long" tests/devices/test_cuda.py tests/devices/test_cuda_runs.py \
  tests/devices/test_opencl.py tests/devices/test_exchange.py tests/devices/test_kernels.py tests/devices/test_runs.py

# What the thread sanitizer needs: clang, its run-time library, and Archer, which comes with libomp.
find_archer() { archer=$(ls /usr/lib/llvm-*/lib/libarcher.so 2> /dev/null | tail -1); }
find_runtime() { ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-*.a > /dev/null 2>&1; }
if ! command -v clang++ > /dev/null || ! find_archer || ! find_runtime; then
  if [ "$(id -u)" != 0 ]; then
    echo "the thread sanitizer needs clang, libomp, Archer and compiler-rt:" \
      "apt-get install --install-recommends clang libomp-dev" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends clang libomp-dev llvm > /dev/null
  version=$(clang++ -dumpversion)
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "libclang-rt-${version%%.*}-dev" > /dev/null
  find_archer
fi
export OMP_TOOL_LIBRARIES=$archer
export TSAN_OPTIONS=suppressions=$PWD/tools/races.txt:ignore_noninstrumented_modules=1
build thread thread clang clang++
ctest --test-dir build/thread --output-on-failure
