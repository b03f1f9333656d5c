"""Devices through the engine, on two OpenCL devices that compute on the processor."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline import _native as native
from halocline.run.devices.devices import finder
from hang import HANG
from loops import some

Devices = list[native.Device]

KERNELS = """
typedef struct { long shape[3]; double factor; } frame;

kernel void number(global long *out, const frame f) {
  const long n = (get_global_id(2) * f.shape[1] + get_global_id(1)) * f.shape[0] + get_global_id(0);
  out[n] = 1000000 * (get_group_id(2) * 10000 + get_group_id(1) * 100 + get_group_id(0))
         + get_local_id(2) * 10000 + get_local_id(1) * 100 + get_local_id(0);
}

kernel void combine(global double *out, global const double *x, const long n, const double a, const float b,
                    const frame f) {
  const long i = get_global_id(0);
  if (i < n) out[i] = x[i] * a + b + f.factor * f.shape[2];
}

kernel void sum_of_block(global long *sums, global const long *x) {
  local long shared[64];
  const int t = get_local_id(0), threads = get_local_size(0);
  shared[t] = x[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = 1; reach < threads; reach *= 2) {
    const long other = t + reach < threads ? shared[t + reach] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[t] += other;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) sums[get_group_id(0)] = shared[0];
}

// takes its time, then adds: who does not wait for it sees what was before
kernel void add_slowly(global long *x, const long steps) {
  ulong state = 88172645463325252UL;
  for (long n = 0; n < steps; ++n) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; }
  x[get_global_id(0)] += state != 0;
}
"""
SLOW = 20_000_000  # steps of add_slowly(): some ten milliseconds


@pytest.fixture(scope="module")
def modules(opencl: Devices) -> list[native.Module]:
    return [device.load(KERNELS) for device in opencl]


def frame(shape: tuple[int, int, int], factor: float = 0.0) -> bytes:
    return struct.pack("qqqd", *shape, factor)


def contents(device: native.Device, buffer: native.Buffer) -> bytes:
    array = np.full(buffer.bytes, 0xEE, np.uint8)
    queue = device.queue()
    queue.download(buffer, array)
    queue.finish()
    return array.tobytes()


def in_another_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"from halocline import _native as native\n{code}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- available devices -------------------------------------------------------------------------------


def test_devices_describe_themselves(opencl: Devices):
    for device in opencl:
        assert device.interface == "opencl"
        assert native.devices("opencl")[device.index].identity == device.identity
        assert device.name
        assert device.platform == opencl[0].platform != ""
        assert device.identity.startswith(f"{device.platform}: {device.name} #")
        assert device.driver
        assert device.architecture == ""
        assert device.doubles
        assert device.units >= 1
        assert device.max_threads_per_block >= 64
        assert device.local_memory >= 16 << 10
        assert device.memory >= 64 << 20
        assert not device.captures
    assert len({device.identity for device in opencl}) == len(opencl)
    assert native.why_no_devices("opencl") == ""


def test_another_process_finds_the_same_devices(opencl: Devices):
    code = "import json; print(json.dumps([d.identity for d in native.devices('opencl')]))"
    assert json.loads(in_another_process(code)) == [d.identity for d in native.devices("opencl")]


WHY = "print(len(native.devices('opencl')), native.why_no_devices('opencl'))"


def test_a_missing_driver_is_reported(tmp_path: Path, opencl: Devices):
    output = in_another_process(WHY, OCL_ICD_VENDORS=str(tmp_path))
    assert output.startswith("0 OpenCL has no platform: install a driver")


def test_a_missing_loader_is_reported(tmp_path: Path):
    (tmp_path / "libOpenCL.so.1").write_text("no library")
    output = in_another_process(WHY, LD_LIBRARY_PATH=str(tmp_path))
    assert output.startswith("0 the OpenCL loader cannot be loaded (")
    assert "install it" in output


def test_an_unknown_interface_is_reported():
    for function in (native.devices, native.why_no_devices):
        with pytest.raises(ValueError, match="'vulkan', expected 'cuda' or 'opencl'"):
            function("vulkan")


# -- memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7, 64, 100, 4096, 1_000_001])
def test_new_memory_is_zero(opencl: Devices, size: int):
    for device in some(opencl):
        for _ in range(2):  # also if memory was in use before
            buffer = device.allocate(size)
            assert buffer.bytes == size
            assert contents(device, buffer) == bytes(size)
            queue = device.queue()
            queue.upload(buffer, np.full(size, 0xFF, np.uint8))
            queue.finish()
            del buffer


SIZE = 96
places = st.integers(0, SIZE - 1)
operation = st.tuples(
    st.sampled_from(["upload", "copy", "clear", "download"]),
    st.integers(0, 3),  # the target buffer, two on each device
    st.integers(0, 3),  # the source buffer
    places,
    places,
    st.integers(0, SIZE),
)


@settings(max_examples=60)
@given(operations=st.lists(operation, min_size=1, max_size=12))
def test_copies_agree_with_numpy(opencl: Devices, operations: list[tuple[str, int, int, int, int, int]]):
    """Copies in one queue of each device, ordered by events, have the results of NumPy."""
    queues = [device.queue() for device in opencl]
    buffers = [opencl[n // 2].allocate(SIZE) for n in range(4)]
    expected = [np.zeros(SIZE, np.uint8) for _ in buffers]
    downloads = []
    last = None
    for step, (kind, to, source, at, source_at, size) in enumerate(operations):
        queue = queues[to // 2]
        if last is not None:
            queue.wait(last)
        size = min(size, SIZE - at)
        if kind == "upload":
            array = np.arange(step, step + size).astype(np.uint8)
            queue.upload(buffers[to], array, at)
            expected[to][at : at + size] = array
        elif kind == "copy" and to != source:
            size = min(size, SIZE - source_at)
            queue.copy(buffers[to], buffers[source], size, at, source_at)
            expected[to][at : at + size] = expected[source][source_at : source_at + size]
        elif kind == "clear":
            queue.clear(buffers[to], size, at)
            expected[to][at : at + size] = 0
        elif kind == "download":
            array = np.zeros(size, np.uint8)
            queue.download(buffers[to], array, at)
            downloads.append((array, expected[to][at : at + size].copy()))
        last = queue.record()
    for queue in queues:
        queue.finish()
    for array, values in downloads:
        np.testing.assert_array_equal(array, values)
    for n, (buffer, values) in enumerate(zip(buffers, expected, strict=True)):
        assert contents(opencl[n // 2], buffer) == values.tobytes()


def test_pinned_memory_can_be_copied(opencl: Devices):
    pinned = [device.pinned(80).view(np.float64) for device in opencl]
    buffer = opencl[0].allocate(80)
    pinned[0][:] = np.arange(10)
    for device, array in zip(opencl, pinned, strict=True):
        queue = device.queue()
        queue.upload(buffer, pinned[0])
        queue.download(buffer, array)
        queue.finish()
    np.testing.assert_array_equal(pinned[1], np.arange(10))


def test_queued_buffers_stay_alive(opencl: Devices):
    result = np.zeros(1 << 16, np.int64)
    queue = opencl[0].queue()
    source, target = opencl[0].allocate(result.nbytes), opencl[0].allocate(result.nbytes)
    module = opencl[0].load(KERNELS)
    queue.launch(module, "add_slowly", (1, 1, 1), (1, 1, 1), [source, SLOW])
    queue.upload(source, np.arange(result.size))
    queue.copy(target, source)
    queue.download(target, result)
    del source, target, module
    queue.finish()
    np.testing.assert_array_equal(result, np.arange(result.size))


def test_a_destroyed_queue_waits_for_its_commands(opencl: Devices, modules: list[native.Module]):
    buffer, result = opencl[0].allocate(8), np.zeros(1, np.int64)
    queue = opencl[0].queue()
    queue.launch(modules[0], "add_slowly", (1, 1, 1), (1, 1, 1), [buffer, SLOW])
    queue.download(buffer, result)
    del queue
    assert result[0] == 1


def test_free_memory_decreases_by_allocations(opencl: Devices):
    before = [device.free_memory for device in opencl]
    buffer = opencl[0].allocate(1 << 20)
    assert [device.free_memory for device in opencl] == [before[0] - (1 << 20), before[1]]
    del buffer
    assert [device.free_memory for device in opencl] == before


def test_too_little_memory_is_reported(opencl: Devices):
    device = opencl[1]
    size = device.free_memory + 1
    with pytest.raises(
        MemoryError, match=rf"OpenCL device {device.index} \(.*needs {size} bytes.*only"
    ) as caught:
        device.allocate(size)
    assert isinstance(caught.value, native.OutOfMemory)
    assert str(device.free_memory) in str(caught.value)
    assert str(caught.value).endswith("available: use more devices, a smaller grid or float32")


def test_an_offset_outside_a_buffer_is_reported(opencl: Devices):
    buffer, other, queue = opencl[0].allocate(80), opencl[0].allocate(40), opencl[0].queue()
    outside = "expected a range within it"
    with pytest.raises(ValueError, match=f"bytes 8 to 88 of a buffer of 80 bytes, {outside}"):
        queue.upload(buffer, np.zeros(10), 8)
    with pytest.raises(ValueError, match=outside):
        queue.download(buffer, np.zeros(11))
    with pytest.raises(ValueError, match=outside):
        queue.copy(other, buffer)
    with pytest.raises(ValueError, match=outside):
        queue.copy(buffer, other, 8, 0, 2**64 - 4)
    with pytest.raises(ValueError, match=outside):
        queue.clear(buffer, 1, 80)


def test_an_unsuitable_array_is_rejected(opencl: Devices):
    buffer, queue = opencl[0].allocate(80), opencl[0].queue()
    for array in (np.zeros(20)[::2], np.frombuffer(bytes(80)), [0.0] * 10):
        with pytest.raises(TypeError):
            queue.download(buffer, array)


# -- fields ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("shape", [(3, 400, 1000), (1, 1, 1_200_000), (400, 1, 5), (1, 3000, 400)])
def test_fields_are_copied_in_parts(opencl: Devices, shape: tuple[int, int, int], itemsize: int):
    host = native.Storage(shape, (0, 0, 0), (0, 0, 0), itemsize)
    host.view()[...] = np.random.default_rng(1).uniform(size=shape)
    field = native.DeviceStorage(opencl[0], shape, (1, 0, 2), (0, 2, 1), itemsize)
    field.store(host)
    assert np.array_equal(field.fetch().view(), host.view())


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_values_are_located(opencl: Devices, itemsize: int, bad: float):
    shape, boxes = (5, 9, 700), [((0, 0, 0), (2, 9, 700)), ((3, 1, 40), (5, 9, 699)), ((2, 2, 2), (2, 9, 9))]
    host = native.Storage(shape, (0, 0, 0), (0, 0, 0), itemsize)
    fields = [native.DeviceStorage(opencl[1], shape, (1, 2, 3), (3, 2, 1), itemsize) for _ in range(2)]
    cells = [(0, 0, 0), (1, 8, 699), (3, 1, 40), (4, 8, 698), (2, 4, 5), (3, 0, 40), (4, 8, 699), (3, 5, 39)]
    for number, cell in enumerate(cells):
        host.view()[...] = np.finfo(np.float32).max
        host.view()[cell] = bad
        fields[1].store(host)
        result = native.Search(finder(opencl[1]), fields, [boxes, boxes]).has_nonfinite()
        assert result == [False, number < 4], cell


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_single_cells_are_read(opencl: Devices, dtype: str):
    shape, itemsize = (3, 5, 300), np.dtype(dtype).itemsize
    host = native.Storage(shape, (0, 0, 0), (0, 0, 0), itemsize)
    field = native.DeviceStorage(opencl[1], shape, (1, 2, 3), (3, 2, 1), itemsize)
    draw = np.random.default_rng(2)
    host.view()[...] = draw.uniform(size=shape)
    field.store(host)
    cells = np.stack([draw.integers(n, size=1000) for n in shape], axis=1)
    result = np.frombuffer(field.read(finder(opencl[1]), cells), dtype)
    np.testing.assert_array_equal(result, host.view()[tuple(cells.T)])
    assert field.read(finder(opencl[1]), cells[:0]) == b""
    with pytest.raises(ValueError, match=r"cell .*301\) is not within storage of shape \(3, 5, 300\)"):
        field.read(finder(opencl[1]), np.array([[0, 0, 301]]))


def test_an_invalid_search_is_reported(opencl: Devices):
    field = native.DeviceStorage(opencl[0], (2, 3, 4), (0, 0, 0), (0, 0, 0), 8)
    with pytest.raises(ValueError, match=r"box .*5\) is not within storage of shape \(2, 3, 4\)"):
        native.Search(finder(opencl[0]), [field], [[((0, 0, 0), (2, 3, 5))]])
    with pytest.raises(ValueError, match="boxes for 2 storages, expected boxes for 1"):
        native.Search(finder(opencl[0]), [field], [[], []])


# -- kernels -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block_counts", "block_shape"),
    [((3, 1, 1), (8, 1, 1)), ((2, 3, 4), (4, 2, 1)), ((1, 1, 1), (1, 3, 5)), ((5, 4, 3), (1,) * 3)],
)
def test_blocks_have_three_axes(
    opencl: Devices, modules: list[native.Module], block_counts: tuple[int, ...], block_shape: tuple[int, ...]
):
    x, y, z = shape = tuple(a * b for a, b in zip(block_counts, block_shape, strict=True))
    k, j, i = np.meshgrid(np.arange(z), np.arange(y), np.arange(x), indexing="ij")
    a, b, c = block_shape
    of_block = (k // c) * 10000 + (j // b) * 100 + i // a
    expected = 1000000 * of_block + (k % c) * 10000 + (j % b) * 100 + i % a
    for device, module in some(zip(opencl, modules, strict=True)):
        result = np.zeros((z, y, x), np.int64)
        buffer, queue = device.allocate(result.nbytes), device.queue()
        queue.launch(module, "number", block_counts, block_shape, [buffer, frame(shape)])
        queue.download(buffer, result)
        queue.finish()
        np.testing.assert_array_equal(result, expected)


def test_kernel_arguments_are_buffers_and_values(opencl: Devices, modules: list[native.Module]):
    x = np.arange(-18.0, 19.0) / 8  # exact in any order of operations
    for device, module in some(zip(opencl, modules, strict=True)):
        result = np.zeros(40)
        source, target, queue = device.allocate(x.nbytes), device.allocate(result.nbytes), device.queue()
        queue.upload(source, x)
        arguments = [target, source, x.size, 0.25, np.float32(1.5).tobytes(), frame((0, 0, 3), 2.0)]
        queue.launch(module, "combine", (5, 1, 1), (8, 1, 1), arguments)
        arguments[3] = 1e9  # a launch reads its arguments at once
        queue.download(target, result)
        queue.finish()
        np.testing.assert_array_equal(result, np.append(x * 0.25 + 7.5, [0, 0, 0]))


@pytest.mark.parametrize("threads", [1, 2, 7, 32, 64])
def test_threads_of_a_block_share_memory(opencl: Devices, modules: list[native.Module], threads: int):
    x = np.random.default_rng(threads).integers(-1000, 1000, (50, threads))
    for device, module in some(zip(opencl, modules, strict=True)):
        assert module.max_threads_per_block("sum_of_block") >= threads
        sums = np.zeros(50, np.int64)
        source, target, queue = device.allocate(x.nbytes), device.allocate(sums.nbytes), device.queue()
        queue.upload(source, x)
        queue.launch(module, "sum_of_block", (50, 1, 1), (threads, 1, 1), [target, source])
        queue.download(target, sums)
        queue.finish()
        np.testing.assert_array_equal(sums, x.sum(axis=1))


def test_a_launch_without_blocks_does_nothing(opencl: Devices, modules: list[native.Module]):
    buffer, queue = opencl[0].allocate(8), opencl[0].queue()
    queue.launch(modules[0], "add_slowly", (0, 1, 1), (1, 1, 1), [buffer, 1])
    queue.finish()
    assert contents(opencl[0], buffer) == bytes(8)


def test_options_reach_the_compiler(opencl: Devices):
    module = opencl[0].load("kernel void put(global long *x) { *x = VALUE; }", "-D VALUE=42")
    buffer, queue = opencl[0].allocate(8), opencl[0].queue()
    queue.launch(module, "put", (1, 1, 1), (1, 1, 1), [buffer])
    queue.finish()
    assert contents(opencl[0], buffer) == struct.pack("q", 42)


def test_a_compilation_error_contains_the_compiler_log(opencl: Devices):
    with pytest.raises(
        native.DeviceError, match=r"does not compile with options '-D A=1 -cl-std=CL1\.2'"
    ) as caught:
        opencl[0].load("kernel void f(global long *x) {\n  *x = no_such_name;\n}", "-D A=1")
    assert str(caught.value).startswith(f"OpenCL device {opencl[0].index} (")
    assert "no_such_name" in str(caught.value)
    assert "2:8" in str(caught.value)


def test_an_invalid_launch_is_reported(opencl: Devices, modules: list[native.Module]):
    device, module = opencl[0], modules[0]
    buffer, queue = device.allocate(8), device.queue()
    one = (1, 1, 1)
    with pytest.raises(native.DeviceError, match="the code has no kernel twirl"):
        queue.launch(module, "twirl", one, one, [])
    with pytest.raises(ValueError, match="kernel add_slowly received 1 arguments, expected 2"):
        queue.launch(module, "add_slowly", one, one, [buffer])
    with pytest.raises(
        ValueError, match="argument 1 of a kernel is 'x', expected a Buffer, int, float or bytes"
    ):
        queue.launch(module, "add_slowly", one, one, [buffer, "x"])
    with pytest.raises(
        native.DeviceError, match=r"kernel add_slowly failed with CL_INVALID_WORK.*use fewer threads"
    ):
        queue.launch(module, "add_slowly", one, (device.max_threads_per_block + 1, 1, 1), [buffer, 1])
    with pytest.raises(ValueError, match="a kernel of another device"):
        queue.launch(modules[1], "add_slowly", one, one, [buffer, 1])
    queue.launch(module, "add_slowly", one, one, [buffer, 1])  # the queue still works
    queue.finish()
    assert contents(device, buffer) == struct.pack("q", 1)


def test_graphs_are_rejected(opencl: Devices):
    with pytest.raises(RuntimeError, match="does not support graphs"):
        opencl[0].queue().begin_capture()


# -- events ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("urgent", [False, True])
def test_events_order_queues_of_several_devices(opencl: Devices, modules: list[native.Module], urgent: bool):
    """Two devices add to a number in turn, slowly, and copy it to each other."""
    queues = [device.queue(urgent) for device in opencl]
    buffers = [device.allocate(8) for device in opencl]
    hops, source = 6, 0
    for _ in range(hops):
        queues[source].launch(
            modules[source], "add_slowly", (1, 1, 1), (1, 1, 1), [buffers[source], SLOW // 4]
        )
        target = 1 - source
        queues[target].wait(queues[source].record())
        queues[target].copy(buffers[target], buffers[source])
        queues[source].wait(queues[target].record())
        source = target
    result = np.zeros(1, np.int64)
    queues[source].download(buffers[source], result)
    queues[source].finish()
    assert result[0] == hops


def test_events_order_queues_of_one_device(opencl: Devices, modules: list[native.Module]):
    device = opencl[0]
    first, second = device.queue(), device.queue(urgent=True)
    buffer, result = device.allocate(8), np.zeros(1, np.int64)
    first.launch(modules[0], "add_slowly", (1, 1, 1), (1, 1, 1), [buffer, SLOW])
    second.wait(first.record())
    second.download(buffer, result)
    second.finish()
    assert result[0] == 1


def test_an_event_completes_after_all_previous_commands(opencl: Devices, modules: list[native.Module]):
    for wait in (False, True):
        buffer, result = opencl[1].allocate(8), np.zeros(1, np.int64)
        queue = opencl[1].queue()
        queue.launch(modules[1], "add_slowly", (1, 1, 1), (1, 1, 1), [buffer, SLOW])
        queue.download(buffer, result)
        event = queue.record()
        if wait:
            event.wait()
            assert result[0] == 1
        end = time.monotonic() + HANG
        while not event.done():
            assert time.monotonic() < end, "the event is never done"
        assert result[0] == 1
        event.wait()  # returns at once
        queue.finish()


# -- failures ----------------------------------------------------------------------------------------

AFTER_A_KERNEL = """
device = native.devices("opencl")[0]
module = device.load("kernel void put(global long *x) { *x = 1; }")
buffer, queue = device.allocate(8), device.queue()
queue.launch(module, "put", (1, 1, 1), (1, 1, 1), [buffer])
event = queue.record()
for ask in (event.wait, event.done, queue.finish, queue.finish):
    try:
        print(ask())
    except native.DeviceError as error:
        print(error)
"""


def test_a_kernel_failure_is_raised_by_all_waiting_calls(faults: str):
    lines = in_another_process(AFTER_A_KERNEL, OPENCL_LAYERS=faults, FAULT="kernel").splitlines()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("OpenCL device 0 (")
        assert "kernel put failed with CL_OUT_OF_RESOURCES (-5): a kernel has failed" in line


def test_exhausted_device_memory_is_reported(faults: str):
    code = """
device = native.devices("opencl")[0]
for allocate in (device.allocate, device.pinned):
    try:
        allocate(4096)
    except native.OutOfMemory as error:
        print(error)
print(device.free_memory == device.memory)
"""
    lines = in_another_process(code, OPENCL_LAYERS=faults, FAULT="memory").splitlines()
    assert lines[0].startswith("a buffer on OpenCL device 0 (")
    assert lines[1].startswith("pinned memory for OpenCL device 0 (")
    assert all("needs 4096 bytes" in line for line in lines[:2])
    assert lines[2] == "True"


def test_a_lost_device_is_reported(faults: str):
    code = """
try:
    native.devices("opencl")[0].allocate(8)
except native.DeviceError as error:
    print(error)
"""
    output = in_another_process(code, OPENCL_LAYERS=faults, FAULT="lost")
    assert "initialization of memory failed with CL_INVALID_COMMAND_QUEUE (-36): the device is lost" in output
