#!/bin/sh
# Prints the Debian packages that are missing to build Halocline, and to run all of its tests:
# missing.sh PYTHON [tests]
python=$1
if ! command -v "$python" > /dev/null; then
  echo python3 python3-venv python3-dev
else
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Halocline needs Python 3.11 or newer, but $python is $("$python" -V); name another: make PYTHON=python3.12" >&2
    exit 1
  }
  "$python" -c 'import ensurepip, venv' 2> /dev/null || echo python3-venv
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || echo python3-dev
fi
command -v g++ > /dev/null || command -v c++ > /dev/null || echo g++
command -v cmake > /dev/null || echo cmake
if [ "$2" = tests ]; then # OpenCL devices without a GPU, and a compiler for AMD GPUs
  test -e "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}/pocl.icd" || echo pocl-opencl-icd
  "$python" -c 'import ctypes; ctypes.CDLL("libOpenCL.so.1")' 2> /dev/null || echo ocl-icd-libopencl1
  command -v clang-19 > /dev/null || echo clang-19
fi
