"""An OpenCL layer that makes calls fail."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from halocline import _native as native

Devices = list[native.Device]

# A layer between OpenCL's loader and the driver, which lets one kind of call fail. The numbers are those of
# the functions in the loader's table (cl_icd.h).
FAULTS = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CREATE_BUFFER = 14, GET_EVENT_INFO = 42, FINISH = 47, ENTRIES = 256 };
static void *mine[ENTRIES], *const *theirs;

static void *create_buffer(void *context, uint64_t flags, size_t bytes, void *host, int *error) {
  *error = -4;
  return 0;
}

// kernels fail after they have run
static int get_event_info(void *event, unsigned what, size_t bytes, void *to, size_t *needed) {
  int (*ask)(void *, unsigned, size_t, void *, size_t *) = theirs[GET_EVENT_INFO];
  int error = ask(event, what, bytes, to, needed), type = 0;
  ask(event, 0x11D1, sizeof type, &type, 0);
  if (error == 0 && what == 0x11D3 && type == 0x11F0 && *(int *)to == 0) *(int *)to = -5;
  return error;
}

static int finish(void *queue) { return -36; }

int clGetLayerInfo(unsigned what, size_t bytes, void *to, size_t *needed) {
  const unsigned version = 100;
  if (what != 0x4240) return -30;
  if (to) memcpy(to, &version, sizeof version);
  if (needed) *needed = sizeof version;
  return 0;
}

int clInitLayer(unsigned count, void *const *target, unsigned *mine_count, void *const **layer) {
  const char *fault = getenv("FAULT");
  theirs = target;
  memcpy(mine, target, sizeof(void *) * (count < ENTRIES ? count : ENTRIES));
  if (!strcmp(fault, "memory")) mine[CREATE_BUFFER] = create_buffer;
  if (!strcmp(fault, "kernel")) mine[GET_EVENT_INFO] = get_event_info;
  if (!strcmp(fault, "lost")) mine[FINISH] = finish;
  *mine_count = count < ENTRIES ? count : ENTRIES;
  *layer = mine;
  return 0;
}
"""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory, opencl: Devices) -> str:
    """Compile the layer and return its file."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "layer.c").write_text(FAULTS)
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler
    command = [compiler, "-shared", "-fPIC", "-w", "-o", folder / "layer.so", folder / "layer.c"]
    subprocess.run(command, check=True)
    return str(folder / "layer.so")
