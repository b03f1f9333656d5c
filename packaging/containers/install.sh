#!/bin/sh
# Install Halocline into /opt/halocline of an image of Debian: install.sh SOURCE [WHEEL [MARCH]]
#
# SOURCE is the source folder. WHEEL is a wheel in this folder; if it is empty, pip builds the source. MARCH is
# the instruction set of the engine.
set -eu
source=$1
wheel=${2:-}
march=${3:-x86-64-v3}

export DEBIAN_FRONTEND=noninteractive
apt-get update
# At run time, g++ compiles kernels. Only the build needs the headers of Python; pip downloads CMake.
apt-get install -y --no-install-recommends ca-certificates g++ python3-venv python3-dev
python3 -m venv /opt/halocline
# The package mpich is a dependency, so that the image contains MPICH.
if [ -n "$wheel" ]; then
  /opt/halocline/bin/pip install --no-cache-dir --constraint "$source/requirements.lock" "$source/$wheel"
else
  /opt/halocline/bin/pip install --no-cache-dir --constraint "$source/requirements.lock" \
    --config-settings=build-dir=/tmp/build --config-settings="cmake.define.HALOCLINE_MARCH=$march" "$source"
fi
apt-get purge -y --auto-remove python3-dev
rm -rf /var/lib/apt/lists/* /tmp/build
