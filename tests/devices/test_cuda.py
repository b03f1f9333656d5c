"""CUDA devices through the engine: the real devices of this machine, or a stand-in for the driver.

The tests run under mpiexec, so that the stand-in does not affect the processes of other tests.
"""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuda_standin
import halocline as hc
from halocline import _native as native
from halocline.compile.nvrtc import compile_cuda
from halocline.run.devices.devices import finder
from halocline.run.ranks.mpi import world
from halocline.study.measuring import overlap
from hang import HANG
from loops import some
from many_invariants import CONSTANT, constant_simulation, constant_steps, weighted_steps

pytestmark = pytest.mark.ranks(1, alone="file")  # only the processes of these tests use the stand-in

SLOW = 20_000_000  # steps of add_slowly(): some ten milliseconds

KERNELS = """
struct frame { long long shape[3]; double factor; };

extern "C" __global__ void number(long long *out, const frame f) {
  const long long x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                  z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * f.shape[1] + y) * f.shape[0] + x] =
      1000000LL * (blockIdx.z * 10000 + blockIdx.y * 100 + blockIdx.x)
      + threadIdx.z * 10000 + threadIdx.y * 100 + threadIdx.x;
}

extern "C" __global__ void combine(double *out, const double *x, const long long n, const double a,
                                   const float b, const frame f) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = fma(x[i], a, (double)b) + f.factor * f.shape[2];
}

extern "C" __global__ void __launch_bounds__(64) sum_of_block(long long *sums, const long long *x) {
  __shared__ long long shared[64];
  const int t = threadIdx.x, threads = blockDim.x;
  shared[t] = x[blockIdx.x * threads + t];
  __syncthreads();
  for (int reach = 1; reach < threads; reach *= 2) {
    const long long other = t + reach < threads ? shared[t + reach] : 0;
    __syncthreads();
    shared[t] += other;
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = shared[0];
}

extern "C" __global__ void parted(int *x) {
  if (threadIdx.x == 1) return;
  __syncthreads();
  x[threadIdx.x] = 1;
}

extern "C" __global__ void count(int *total, unsigned long long *greatest) {
  atomicAdd(total, 1);
  atomicMax(greatest, blockIdx.x * 1000ULL + threadIdx.x);
}

// takes its time, then adds: who does not wait for it sees what was before
extern "C" __global__ void add_slowly(long long *x, const long long steps) {
  unsigned long long state = 88172645463325252ULL;
  for (long long n = 0; n < steps; ++n) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; }
  x[blockIdx.x] += state != 0;
}

extern "C" __global__ void twice_plus(long long *x, const long long plus) { x[0] = 2 * x[0] + plus; }

extern "C" __global__ void stray(double *x, const long long n) { x[n] = 1; }

extern "C" __global__ void bits(long long *out, const double *x) {
  const double a = x[0], b = x[1], c = x[2];
  out[0] = __double_as_longlong(a * b + c);
  out[1] = __double_as_longlong(fma(a, b, c));
  out[2] = __double_as_longlong(a / b);
  out[3] = __double_as_longlong(sqrt(a));
  out[4] = __double_as_longlong(x[3] * 0.5);
}
"""


@pytest.fixture(scope="module")
def standin() -> ctypes.CDLL | None:
    """Return the stand-in for the driver, or None on a machine with real devices.

    Two devices of the stand-in can access each other's memory.
    """
    return None if cuda_standin.real_devices() else cuda_standin.load(2, memory=256 << 20, delay=200)


@pytest.fixture(scope="module")
def cuda(standin: ctypes.CDLL | None) -> list[native.Device]:
    devices = native.devices("cuda")
    assert devices, native.why_no_devices("cuda")
    assert all((device.name == cuda_standin.NAME) == (standin is not None) for device in devices)
    return devices


@pytest.fixture(scope="module")
def modules(cuda: list[native.Device]) -> list[native.Module]:
    return [device.load(compile_cuda(KERNELS, device.architecture).read_bytes()) for device in cuda]


@pytest.fixture
def pair(cuda: list[native.Device]) -> list[native.Device]:
    if len(cuda) < 2:
        pytest.skip("this machine has one CUDA device")
    return cuda[:2]


def frame(shape: tuple[int, int, int], factor: float = 0.0) -> bytes:
    return struct.pack("qqqd", *shape, factor)


def filled(device: native.Device, array: np.ndarray) -> native.Buffer:
    buffer, queue = device.allocate(array.nbytes), device.queue()
    queue.upload(buffer, array)
    queue.finish()
    return buffer


def contents(device: native.Device, buffer: native.Buffer, dtype: Any = np.int64) -> np.ndarray:
    array = np.full(buffer.bytes, 0xEE, np.uint8)
    queue = device.queue()
    queue.download(buffer, array)
    queue.finish()
    return array.view(dtype)


def in_another_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        cwd=Path(__file__).parents[1] / "support",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def only_with(standin: ctypes.CDLL | None) -> ctypes.CDLL:
    if standin is None:
        pytest.skip("only the stand-in fails when it is asked to")
    return standin


# -- devices and memory ------------------------------------------------------------------------------


def test_devices_are_described(cuda):
    assert native.why_no_devices("cuda") == ""
    for index, device in enumerate(cuda):
        assert (device.interface, device.index) == ("cuda", index)
        assert device.platform == ""
        assert device.identity.startswith(("GPU-", "MIG-"))
        assert len(device.identity) == 40
        assert device.architecture.startswith("sm_")
        assert device.driver.startswith("CUDA ")
        assert 0 < device.free_memory <= device.memory
        assert device.local_memory >= 48 << 10
        assert device.max_threads_per_block == 1024
        assert device.units >= 1
        assert device.doubles
        assert device.captures
    assert len({device.identity for device in cuda}) == len(cuda)


def test_memory_is_zeroed_and_counted(cuda):
    device = cuda[0]
    before = device.free_memory
    buffer = device.allocate(32 << 20)
    assert buffer.bytes == 32 << 20
    assert buffer.address != 0
    assert before - device.free_memory >= 32 << 20
    assert not contents(device, buffer).any()
    del buffer
    assert device.free_memory >= before - (1 << 20)
    assert device.allocate(0).bytes == 0


def test_parts_of_a_buffer_can_be_copied(cuda):
    device = cuda[0]
    x = np.arange(1000, dtype=np.int64)
    buffer, queue = filled(device, x), device.queue()
    queue.upload(buffer, x[:10] + 5000, offset=80)
    queue.clear(buffer, bytes=16, offset=400)
    part = np.zeros(3, np.int64)
    queue.download(buffer, part, offset=88)
    queue.finish()
    expected = x.copy()
    expected[10:20] = x[:10] + 5000
    expected[50:52] = 0
    assert (contents(device, buffer) == expected).all()
    assert (part == expected[11:14]).all()


def test_copies_out_of_bounds_are_rejected(cuda):
    device = cuda[0]
    buffer, other, queue = device.allocate(64), device.allocate(32), device.queue()
    with pytest.raises(IndexError, match=r"cuda:0.*bytes 8 to 72 of a buffer of 64 bytes"):
        queue.upload(buffer, np.zeros(8), offset=8)
    with pytest.raises(IndexError, match="bytes 0 to 64 of a buffer of 32 bytes"):
        queue.copy(other, buffer)
    with pytest.raises(IndexError):
        queue.download(buffer, np.zeros(9))
    with pytest.raises(IndexError):
        queue.clear(buffer, bytes=2**64 - 1, offset=16)
    queue.finish()


def test_too_large_allocations_are_reported(cuda):
    device = cuda[0]
    size = device.memory + (1 << 30)
    with pytest.raises(MemoryError) as raised:
        device.allocate(size)
    assert "cuda:0" in str(raised.value)
    assert f"needs {size} bytes" in str(raised.value)
    assert "are available" in str(raised.value)
    assert contents(device, filled(device, np.ones(4)), float).all()  # the device still works


def test_pinned_memory_is_accessible_to_the_host(cuda):
    device = cuda[0]
    memory = device.pinned(800)
    x = memory.view(np.int64)
    x[:] = np.arange(100)
    buffer, queue = device.allocate(800), device.queue()
    queue.upload(buffer, x)
    queue.finish()
    x[:] = 0
    queue.download(buffer, x)
    queue.finish()
    assert (x == np.arange(100)).all()


# -- kernels -----------------------------------------------------------------------------------------


def test_blocks_and_threads_are_numbered_along_three_axes(cuda, modules):
    block_counts, block_shape = (3, 2, 4), (4, 5, 2)
    shape = tuple(a * b for a, b in zip(block_counts, block_shape, strict=True))
    for device, module in some(zip(cuda, modules, strict=True)):
        out, queue = device.allocate(8 * int(np.prod(shape))), device.queue()
        queue.launch(module, "number", block_counts, block_shape, [out, frame(shape)])
        queue.finish()
        z, y, x = np.meshgrid(*(np.arange(n) for n in shape[::-1]), indexing="ij")
        expected = 1000000 * (z // 2 * 10000 + y // 5 * 100 + x // 4) + z % 2 * 10000 + y % 5 * 100 + x % 4
        assert (contents(device, out) == expected.ravel()).all()


def test_kernels_accept_arguments_of_every_size(cuda, modules):
    device = cuda[0]
    x = np.random.default_rng(1).random(1000)
    source, out, queue = filled(device, x), device.allocate(8000), device.queue()
    arguments = [out, source, 999, 4.0, struct.pack("f", 0.5), frame((1, 2, 3), 0.25)]
    queue.launch(modules[0], "combine", (8, 1, 1), (128, 1, 1), arguments)
    queue.finish()
    result = contents(device, out, float)
    assert (result[:999] == 4 * x[:999] + 0.5 + 0.75).all()
    assert result[999] == 0


def test_threads_of_a_block_share_memory_and_synchronise(cuda, modules):
    device = cuda[0]
    x = np.random.default_rng(2).integers(-(2**40), 2**40, 64 * 9)
    source, sums, queue = filled(device, x), device.allocate(72), device.queue()
    queue.launch(modules[0], "sum_of_block", (9, 1, 1), (64, 1, 1), [sums, source])
    queue.finish()
    assert (contents(device, sums) == x.reshape(9, 64).sum(axis=1)).all()


def test_atomic_operations(cuda, modules):
    device = cuda[0]
    total, greatest, queue = device.allocate(4), device.allocate(8), device.queue()
    queue.launch(modules[0], "count", (10, 1, 1), (100, 1, 1), [total, greatest])
    queue.finish()
    assert contents(device, total, np.int32)[0] == 1000
    assert contents(device, greatest)[0] == 9099


def test_arithmetic_has_the_bits_of_the_host(cuda, modules):
    device = cuda[0]
    x = np.array([1 + 2.0**-30, 1 + 2.0**-29, -1.0, 5e-324 * 3])
    source, out, queue = filled(device, x), device.allocate(40), device.queue()
    queue.launch(modules[0], "bits", (1, 1, 1), (1, 1, 1), [out, source])
    queue.finish()
    result = contents(device, out, float)
    assert result[0] == x[0] * x[1] - 1  # rounded twice
    assert result[1] == 2.0**-30 + 2.0**-29 + 2.0**-59  # once
    assert result[0] != result[1]
    assert result[2] == x[0] / x[1]
    assert result[3] == np.sqrt(x[0])
    assert result[4] == 5e-324 * 2  # a subnormal, and a tie to even


def test_limits_of_a_kernel_are_known(cuda, modules, standin):
    device, module, queue = cuda[0], modules[0], cuda[0].queue()
    assert (
        module.max_threads_per_block("sum_of_block") == 64
        if standin
        else module.max_threads_per_block("sum_of_block") >= 64
    )
    assert module.registers("number") >= (0 if standin else 8)
    assert module.spilled("number") == 0
    sums, x = device.allocate(8), device.allocate(8 * 2048)
    with pytest.raises(native.DeviceError) as raised:
        queue.launch(module, "sum_of_block", (1, 1, 1), (2048, 1, 1), [sums, x])
    assert "1 x 1 x 1 thread blocks of 2048 x 1 x 1 threads of kernel sum_of_block" in str(raised.value)
    queue.finish()


def test_mismatched_arguments_are_rejected(cuda, modules, standin):
    if standin is None and int(cuda[0].driver.split()[1].replace(".", "")) < 124:
        pytest.skip("drivers tell the sizes of parameters since CUDA 12.4")
    queue, x = cuda[0].queue(), cuda[0].allocate(8)
    with pytest.raises(ValueError, match="kernel twice_plus: 1 arguments, expected 2"):
        queue.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x])
    with pytest.raises(ValueError, match="kernel twice_plus: argument 1 has 4 bytes, expected 8"):
        queue.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, struct.pack("i", 1)])
    queue.finish()


def test_invalid_code_is_rejected(cuda, modules):
    with pytest.raises(native.DeviceError, match=r"cuda:0 .*has no kernel nothing"):
        modules[0].max_threads_per_block("nothing")
    with pytest.raises(native.DeviceError, match=r"cuda:0 .*loading code.*for sm_"):
        cuda[0].load(b"no code at all")
    with pytest.raises(ValueError, match="options '-O3'"):
        cuda[0].load("code", "-O3")


def test_modules_may_have_kernels_of_equal_names(cuda):
    device, queue = cuda[0], cuda[0].queue()
    x = device.allocate(16)
    for value in (1, 2):
        rest = "" if value == 1 else ", const int unused, const double more"
        source = '#define K extern "C" __global__ void __launch_bounds__((4) * (8), 2)\n'
        source += f"K same(long long *x{rest}) {{ x[{value - 1}] = {value}; }}"
        module = device.load(compile_cuda(source, device.architecture).read_bytes())
        arguments = [x] if value == 1 else [x, struct.pack("i", 0), 0.0]
        assert module.max_threads_per_block("same") >= 32
        queue.launch(module, "same", (1, 1, 1), (1, 1, 1), arguments)
    queue.finish()
    assert contents(device, x).tolist() == [1, 2]


# -- order -------------------------------------------------------------------------------------------


def test_queued_kernels_run_in_order(cuda, modules):
    device = cuda[0]
    x, queue = device.allocate(8), device.queue(urgent=True)
    expected = 0
    for n in range(50):
        queue.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, n % 3])
        expected = (2 * expected + n % 3) % 2**64
    queue.finish()
    assert contents(device, x).view(np.uint64)[0] == expected


def test_events_order_queues(cuda, modules):
    device = cuda[0]
    x, y = device.allocate(8), device.allocate(8)
    first, second = device.queue(), device.queue(urgent=True)
    for n in range(5):
        first.launch(modules[0], "add_slowly", (1, 1, 1), (1, 1, 1), [x, SLOW // 10])
        done = first.record()
        second.wait(done)
        second.copy(y, x)
        copied = second.record()
        first.wait(copied)  # otherwise the next addition may overtake the copy
        copied.wait()
        assert copied.done()
        assert done.done()
        assert contents(device, y)[0] == n + 1


def test_an_event_completes_after_its_work(cuda, modules):
    device = cuda[0]
    x, queue = device.allocate(8), device.queue()
    queue.launch(modules[0], "add_slowly", (1, 1, 1), (1, 1, 1), [x, SLOW])
    event = queue.record()
    begin = time.monotonic()
    assert not event.done()
    event.wait()
    assert time.monotonic() > begin
    assert event.done()


def test_events_are_reused(cuda, standin):
    device = cuda[0]
    queue = device.queue()
    for _ in range(3):
        queue.record().wait()
    before = held(standin)[2] if standin else 0
    for _ in range(100):
        queue.record().wait()
    assert (held(standin)[2] if standin else 0) == before


def test_copies_between_devices(pair, modules):
    x = np.random.default_rng(3).random(10000)
    source, target = filled(pair[0], x), pair[1].allocate(x.nbytes)
    first, second = pair[0].queue(), pair[1].queue()
    first.launch(modules[0], "combine", (100, 1, 1), (100, 1, 1),
                 [source, source, 10000, 2.0, struct.pack("f", 0), frame((0, 0, 0))])  # fmt: skip
    second.wait(first.record())
    second.copy(target, source, bytes=40000, to_offset=8, source_offset=16)
    second.finish()
    result = contents(pair[1], target, float)
    assert (result[1:5001] == 2 * x[2:5002]).all()
    assert not result[5001:].any()


def test_kernels_access_memory_of_peer_devices(pair, modules):
    if not pair[1].reaches(pair[0]):
        pytest.skip("the devices do not reach each other")
    assert pair[1].reaches(pair[0])  # a second time too
    assert pair[0].reaches(pair[0])
    x, out = filled(pair[0], np.arange(100.0)), pair[1].allocate(800)
    queue = pair[1].queue()
    queue.launch(modules[1], "combine", (1, 1, 1), (100, 1, 1),
                 [out, x, 100, 3.0, struct.pack("f", 1), frame((0, 0, 0))])  # fmt: skip
    queue.finish()
    assert (contents(pair[1], out, float) == 3 * np.arange(100) + 1).all()


# -- graphs ------------------------------------------------------------------------------------------


def test_a_graph_of_two_queues_can_be_replayed(cuda, modules):
    device = cuda[0]
    x, y, z = (device.allocate(8) for _ in range(3))
    first, second = device.queue(), device.queue()
    first.begin_capture()
    first.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, 1])
    second.wait(first.record())
    second.launch(modules[0], "add_slowly", (1, 1, 1), (1, 1, 1), [y, SLOW // 20])
    first.copy(z, x)
    first.wait(second.record())
    first.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [y, 0])
    graph = first.end_capture()
    assert [contents(device, buffer)[0] for buffer in (x, y, z)] == [0, 0, 0]  # nothing ran yet
    for _ in range(4):
        first.replay(graph)
    first.finish()
    assert [contents(device, buffer)[0] for buffer in (x, y, z)] == [15, 30, 15]
    second.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, 0])  # out of the graph again
    second.finish()
    assert contents(device, x)[0] == 30


def test_a_graph_with_an_open_queue_is_rejected(cuda, modules):
    device = cuda[0]
    x, first, second = device.allocate(8), device.queue(), device.queue()
    first.begin_capture()
    second.wait(first.record())
    second.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, 1])
    with pytest.raises(
        native.DeviceError, match=r"recording a graph failed: CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
    ):
        first.end_capture()
    for queue in (first, second):
        queue.launch(modules[0], "twice_plus", (1, 1, 1), (1, 1, 1), [x, 1])
        queue.finish()
    assert contents(device, x)[0] == 3


def test_waiting_during_graph_capture_is_rejected(cuda):
    queue = cuda[0].queue()
    queue.begin_capture()
    with pytest.raises(native.DeviceError, match="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        queue.finish()
    with pytest.raises(native.DeviceError, match="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        queue.end_capture()
    queue.finish()


# -- errors ------------------------------------------------------------------------------------------


def test_a_kernel_that_fails_ends_the_use_of_the_device(cuda, tmp_path):
    code = f"""
import sys
import cuda_standin
import numpy as np
if not cuda_standin.real_devices(): cuda_standin.load(2)
from halocline import _native as native
from halocline.compile.nvrtc import compile_cuda
from halocline.run.devices.devices import finder
device, *others = native.devices("cuda")
module = device.load(compile_cuda({KERNELS!r}, device.architecture).read_bytes())
x, queue, graph_queue = device.allocate(64), device.queue(), device.queue()
event = queue.record()
queue.launch(module, "stray", (1, 1, 1), (1, 1, 1), [x, 1 << 36])
for call in (queue.finish, lambda: device.allocate(8), event.done, event.wait, queue.finish, device.queue):
    try:
        call()
        print("no error from", call)
    except native.DeviceError as error:
        assert str(error).startswith("device cuda:0 ("), error
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error), error
        assert "Restart the process" in str(error), error
        print("told")
del event, queue, graph_queue, x, module  # destructors say nothing
for other in others:
    other.allocate(8)
print("end")
"""
    assert in_another_process(code).split() == ["told"] * 6 + ["end"]


def test_the_standin_detects_a_barrier_missed_by_threads(cuda, standin):
    only_with(standin)
    code = f"""
import cuda_standin
cuda_standin.load(1)
from halocline import _native as native
from halocline.compile.nvrtc import compile_cuda
from halocline.run.devices.devices import finder
(device,) = native.devices("cuda")
module = device.load(compile_cuda({KERNELS!r}, "sm_90").read_bytes())
x, queue = device.allocate(8), device.queue()
queue.launch(module, "parted", (1, 1, 1), (2, 1, 1), [x])
try:
    queue.finish()
except native.DeviceError as error:
    print(error)
"""
    assert "CUDA_ERROR_LAUNCH_FAILED" in in_another_process(code)


def test_access_to_memory_of_a_device_without_peer_access_is_reported(cuda, standin):
    only_with(standin)
    code = f"""
import cuda_standin
cuda_standin.load(2, peers=0)
from halocline import _native as native
from halocline.compile.nvrtc import compile_cuda
from halocline.run.devices.devices import finder
here, there = native.devices("cuda")
assert not here.reaches(there)
x, y, queue = there.allocate(8), here.allocate(8), here.queue()
queue.copy(y, x)  # by the host
queue.finish()
module = here.load(compile_cuda({KERNELS!r}, "sm_90").read_bytes())
queue.launch(module, "twice_plus", (1, 1, 1), (1, 1, 1), [x, 1])
try:
    queue.finish()
except native.DeviceError as error:
    print(error)
"""
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in in_another_process(code)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (2, "use more devices or a smaller grid"),
        (46, "another process uses the device exclusively"),
        (214, "the hardware of the device failed"),
        (702, "watchdog"),
        (719, "compute-sanitizer"),
        (999, "the device is lost. Restart the process; Xid messages in dmesg"),
        (12345, "CUDA error 12345"),
    ],
)
def test_errors_include_a_remedy(cuda, standin, status, message):
    queue = cuda[0].queue()
    only_with(standin).halocline_standin_fail(b"cuStreamSynchronize", status)
    with pytest.raises(native.DeviceError, match="queued work failed") as raised:
        queue.finish()
    assert message in str(raised.value)
    assert cuda_standin.NAME in str(raised.value)
    queue.finish()


def test_errors_of_single_calls_leak_nothing(cuda, modules, standin):
    only_with(standin)
    device, x, queue = cuda[0], cuda[0].allocate(8), cuda[0].queue()
    code = compile_cuda(KERNELS, device.architecture).read_bytes()

    def record() -> None:
        queue.begin_capture()
        queue.clear(x)
        queue.end_capture()

    calls: dict[bytes, Callable[[], object]] = {
        b"cuMemAlloc_v2": lambda: device.allocate(8),
        b"cuMemsetD8Async": lambda: device.allocate(8),
        b"cuMemHostAlloc": lambda: device.pinned(8),
        b"cuMemGetInfo_v2": lambda: device.free_memory,
        b"cuStreamCreateWithPriority": device.queue,
        b"cuEventRecord": queue.record,
        b"cuEventCreate": device.shared_event,
        b"cuModuleLoadDataEx": lambda: device.load(code),
        b"cuFuncGetAttribute": lambda: device.load(code).max_threads_per_block("number"),
        b"cuIpcGetMemHandle": lambda: device.share(x),
        b"cuGraphInstantiateWithFlags": record,
    }
    for call in (queue.record, record):  # leaves an event to be used again
        call()
    for function, call in calls.items():
        gc.collect()
        before = held(standin)
        standin.halocline_standin_fail(function, 801)
        with pytest.raises(native.DeviceError, match=r"device cuda:0 .* failed: CUDA error 801"):
            call()
        gc.collect()
        assert held(standin) == before, function
    queue.finish()


def held(standin: ctypes.CDLL) -> list[int]:
    """Return the driver objects that this process holds: memory, queues, events, modules and graphs."""
    counts = (ctypes.c_size_t * 5)()
    standin.halocline_standin_held(counts)
    return list(counts)


def test_all_resources_are_released(cuda, standin):
    def use(device: native.Device) -> None:
        module = device.load(compile_cuda(KERNELS, device.architecture).read_bytes())
        x, pinned, queue = device.allocate(8), device.pinned(8), device.queue()
        queue.upload(x, pinned)
        queue.begin_capture()
        queue.launch(module, "twice_plus", (1, 1, 1), (1, 1, 1), [x, 1])
        queue.replay(queue.end_capture())
        device.record(device.shared_event(), queue)
        queue.wait(queue.record())
        queue.finish()

    use(cuda[0])  # leaves one event to be used again
    gc.collect()
    before = held(only_with(standin))
    for _ in range(3):
        use(cuda[0])
    gc.collect()
    assert held(standin) == before


# -- processes ---------------------------------------------------------------------------------------


def exchange(comm: Any, value: Any) -> Any:
    return comm.sendrecv(value, dest=1 - comm.rank, source=1 - comm.rank)


@pytest.mark.ranks(2)
def test_processes_share_memory_and_events(cuda, modules):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    device, module = cuda[comm.rank % len(cuda)], modules[comm.rank % len(cuda)]
    assert device.shares
    memory, event, queue = filled(device, np.arange(1000)), device.shared_event(), device.queue()
    with pytest.raises(native.DeviceError, match="access to an object that another process shares"):
        device.attach(device.share(memory), memory.bytes)  # memory of the process itself
    peer_memory = device.attach(exchange(comm, device.share(memory)), memory.bytes)
    their_event = device.attach_event(exchange(comm, device.share_event(event)))
    for n in range(5):
        queue.launch(module, "add_slowly", (1000, 1, 1), (1, 1, 1), [memory, SLOW // 100000])
        device.record(event, queue)
        comm.barrier()  # the record of this step is made
        queue.wait(their_event)
        result, copy = np.zeros(1000, np.int64), device.allocate(8000)
        queue.copy(copy, peer_memory)
        queue.download(copy, result)
        queue.finish()
        assert (result == np.arange(1000) + n + 1).all()
        comm.barrier()  # all have read
    del peer_memory, their_event
    gc.collect()
    comm.barrier()  # the owner must keep shared memory until it is detached


@pytest.mark.ranks(2, alone=True)
def test_processes_without_shared_memory_are_reported():
    if cuda_standin.real_devices():
        pytest.skip("only the stand-in keeps processes apart")
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    cuda_standin.load(2, ipc=0)
    device = native.devices("cuda")[0]
    x, event = device.allocate(8), device.shared_event()
    peer_memory, their_event = exchange(comm, device.share(x)), exchange(comm, device.share_event(event))
    with pytest.raises(native.DeviceError, match="containers"):
        device.attach(peer_memory, 8)
    with pytest.raises(native.DeviceError, match="containers"):
        device.attach_event(their_event)
    with pytest.raises(ValueError, match="a handle of 3 bytes, expected 64"):
        device.attach(b"abc", 8)
    comm.barrier()


def test_values_in_constant_memory_change_with_time(cuda, standin):
    """Each subdomain has symbols of its own, since one subdomain may be a step behind another one."""
    expected, loads = weighted_steps("cpu"), []
    for subdomains in (1, 1, 2):  # the first run also loads modules for later runs
        functions = ("cuModuleLoadDataEx", "cuModuleGetGlobal_v2")
        before = [calls(standin, function) for function in functions] if standin else []
        assert weighted_steps("cuda:0", subdomains_per_rank=subdomains) == expected
        if standin:
            loaded, symbols = (calls(standin, f) - n for f, n in zip(functions, before, strict=True))
            assert symbols == 3 * subdomains  # one for each RK3 stage
            loads.append(loaded)
    assert not standin or loads[1:] == [1, 2]


@pytest.mark.parametrize("way", [{}, {"subdomains_per_rank": 2}, {"patch": 7}])
def test_constant_values_are_those_of_the_current_run(cuda, way):
    """Graphs of passes do not contain the kernels that compute constant values."""
    assert constant_steps("cuda:0", **way) == constant_steps("cpu")


def test_constant_values_are_computed_once_per_run(cuda, standin):
    if not standin:
        pytest.skip("a driver does not count its calls")
    sim = constant_simulation("cuda:0", dt=1.0)
    copies = []
    for steps in (8, 8, 16):
        before = calls(standin, "cuMemcpyDtoDAsync_v2")
        sim.run(steps=steps)
        copies.append(calls(standin, "cuMemcpyDtoDAsync_v2") - before)
    # copies to the changing symbol in steps that are not launched as graphs: proportional to the steps
    changing = copies[2] - copies[1]
    assert copies[1] - changing == CONSTANT


@pytest.mark.ranks(1, 2)
def test_runs_have_the_bits_of_the_cpu(cuda, standin):
    def run(device: str) -> np.ndarray:
        grid = hc.Grid((20, 17, 33), extent=(1.0, 1.0, 1.0), periodic=(True, False, True))
        field = grid.field("T", boundary=hc.Value(0.25))

        def heat(T, kappa):
            return {T: kappa * hc.laplacian(T) - T * T}

        options = {"parameters": {"kappa": 0.1}, "scheme": hc.RK3(), "order": 2, "dt": 1e-4, "device": device}
        simulation = hc.Simulation(grid, heat, **options)
        simulation[field] = lambda x, y, z: np.exp(-50 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2))
        before = held(standin)[0] if standin else 0
        simulation.run(steps=5)
        if standin:
            assert (held(standin)[0] > before) == (device == "cuda")  # the kernel did run in that process
        return np.array(simulation[field])

    expected = run("cpu")
    assert np.isfinite(expected).all()
    assert (run("cuda").view(np.int64) == expected.view(np.int64)).all()


def test_nonfinite_values_are_located(cuda):
    shape = (2, 3, 70)
    host = native.Storage(shape, (0, 0, 0), (0, 0, 0), 4)
    host.view()[1, 2, 69] = np.nan
    fields = [native.DeviceStorage(cuda[0], shape, (1, 1, 1), (1, 1, 1), 4) for _ in range(3)]
    fields[1].store(host)
    boxes = [[((0, 0, 0), upto)] for upto in (shape, shape, (2, 3, 69))]
    assert native.Search(finder(cuda[0]), fields, boxes).has_nonfinite() == [False, True, False]
    assert native.Search(finder(cuda[0]), fields[1:2], boxes[2:]).has_nonfinite() == [False]


WAITS = ("cuStreamSynchronize", "cuEventSynchronize")


def calls(standin: ctypes.CDLL, function: str) -> int:
    """Return the number of calls of a driver function in this process."""
    standin.halocline_standin_calls.restype = ctypes.c_size_t
    count: int = standin.halocline_standin_calls(function.encode())
    return count


def test_the_host_queues_graphs_of_steps_without_waiting(cuda, standin):
    """The number of waits and launches of the host does not depend on the number of steps."""
    only_with(standin)
    bench = overlap.heat((16, 16, 32), device="cuda:0")
    call_counts = []
    for passes in (16, 16, 160):  # the engine records passes in the first run
        bench.passes = passes
        bench.run()  # sets the number of passes, which the next run uses too
        before = {name: calls(standin, name) for name in (*WAITS, "cuLaunchKernel")}
        report = bench.prepared.engine.run()
        call_counts.append({name: calls(standin, name) - count for name, count in before.items()})
        least = passes // 2  # after two passes both buffers of the field have their first roles again
        assert least <= report["graph_launches"] <= least + 4  # several graphs run concurrently
    assert call_counts[1] == call_counts[2]
    assert sum(call_counts[2][name] for name in WAITS) <= 4


@pytest.mark.parametrize("names", ["uv", "uvw", "uvwxyzabc"])
def test_passes_whose_buffers_rotate_are_graphs(cuda, standin, names):
    """A graph contains the passes after which all buffers have their first roles; nine are too many."""
    only_with(standin)

    def result(device: str) -> tuple[list[list[float]], int]:
        grid = hc.Grid((24,), periodic=True)
        first, *followers = fields = [grid.field(name) for name in names]

        @hc.program
        def program() -> None:
            with hc.loop(limit=180):
                hc.assign({first: first[1] + fields[-1] / 4, **dict(zip(followers, fields, strict=False))})

        sim = hc.Simulation(grid, program, device=device, threads=1)
        for number, field in enumerate(fields):
            sim[field] = np.arange(24.0) + number
        launches = 0
        for _ in range(3):  # the first runs record graphs
            before = calls(standin, "cuGraphLaunch")
            sim.run()
            launches = calls(standin, "cuGraphLaunch") - before
        return [sim[field].tolist() for field in fields], launches

    (expected, _), (values, launches) = result("cpu"), result("cuda:0")
    assert values == expected
    least = 180 // len(names) if len(names) <= 8 else 0
    assert least <= launches <= (least + 4 if least else 0)


@pytest.mark.ranks(1, 2)
def test_packing_is_queued_first_in_streams_of_higher_priority(cuda, standin):
    """Packing precedes the long kernels of patches, since other ranks wait for its messages."""
    only_with(standin)
    standin.halocline_standin_launches.restype = ctypes.c_char_p
    bench = overlap.heat((16, 16, 32), device="cuda")
    bench.passes = 1
    for _ in range(5):
        standin.halocline_standin_launches()
        bench.run()
        lines = standin.halocline_standin_launches().decode().split("\n")[:-1]
        launches = [line.split(" ") for line in lines]
        moves = [name == "hc_move_pieces" for _, name in launches]
        assert {int(priority) for (priority, _), move in zip(launches, moves, strict=True) if move} == {-5}
        assert {int(priority) for (priority, _), move in zip(launches, moves, strict=True) if not move} == {0}
        first_patch = moves.index(False)
        # the halos between two subdomains of one process, or the messages to the other process
        assert first_patch >= 2 // world().size, lines


LIST = """
from halocline import _native as native
print([(d.index, d.identity) for d in native.devices("cuda")], native.why_no_devices("cuda"))
"""


def test_one_device_has_one_identity_in_all_processes(cuda, standin):
    only_with(standin)
    output = in_another_process(LIST, CUDA_VISIBLE_DEVICES="1", **cuda_standin.environment(2))
    assert output.strip() == str([(0, cuda[1].identity)])


def test_the_reason_for_missing_devices_is_reported(tmp_path):
    if not cuda_standin.real_devices():
        assert "[] no CUDA driver: libcuda.so.1" in in_another_process(LIST)
    output = in_another_process(LIST, CUDA_VISIBLE_DEVICES="-1", **cuda_standin.environment(2))
    assert "[] no CUDA device (CUDA_VISIBLE_DEVICES is '-1'): CUDA_ERROR_NO_DEVICE" in output
    old = tmp_path / "libcuda.so.1"
    subprocess.run(
        ["g++", "-x", "c", "-shared", "-fPIC", "-", "-o", str(old)],
        input="int cuInit;",
        text=True,
        check=True,
    )
    output = in_another_process(LIST, LD_LIBRARY_PATH=str(tmp_path))
    assert "[] the CUDA driver is too old: it has no cuDriverGetVersion. Install a driver for" in output


def test_the_driver_is_loaded_only_on_demand():
    code = "import halocline, os; print('libcuda' in open(f'/proc/{os.getpid()}/maps').read())"
    assert in_another_process(code, **cuda_standin.environment(2)) == "False\n"
