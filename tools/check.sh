#!/bin/sh
# Says what is missing to build Halocline with the Python given: check.sh PYTHON
python=$1
missing=
if ! command -v "$python" > /dev/null; then
  missing="python3 python3-venv python3-dev"
else
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Halocline needs Python 3.11 or newer, but $python is $("$python" -V); name another: make PYTHON=python3.12" >&2
    exit 1
  }
  "$python" -c 'import ensurepip, venv' 2> /dev/null || missing="$missing python3-venv"
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || missing="$missing python3-dev"
fi
command -v c++ > /dev/null || missing="$missing g++"
command -v cmake > /dev/null || missing="$missing cmake"
if [ -n "$missing" ]; then
  echo "Halocline cannot be built yet. Install what is missing: apt-get install$missing" >&2
  exit 1
fi
