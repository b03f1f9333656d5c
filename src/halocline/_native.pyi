"""
Native engine of Halocline, which executes plans and makes no decisions.
"""

from collections.abc import Sequence
import os
from typing import Annotated, Any, Final, overload

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


class OutOfMemory(MemoryError):
    pass

class Storage:
    """
    One array of one subdomain with its halo, in its own memory.

    The array is initially zero and uses no memory until it is touched. It has three axes; the last
    one is contiguous in memory.

    Parameters
    ----------
    shape, lower, upper : three int
        Cells of the subdomain; halo layers below and above.
    itemsize : int
        8 for float64, 4 for float32.
    index : int
        Number of the field. Fields with different numbers have different offsets within a page, so
        that equal cells do not alias.
    shared : bool
        True if other processes of the node can read the array.
    sparse : bool
        True if interior parts that are never touched must not use memory.

    Raises
    ------
    OutOfMemory
        With the required and the available bytes.
    """

    def __init__(self, shape: Sequence[int], lower: Sequence[int], upper: Sequence[int], itemsize: int, index: int = 0, shared: bool = False, sparse: bool = False) -> None: ...

    @staticmethod
    def attach(handle: tuple[tuple[int, int, int, int, bool], int, Sequence[int], Sequence[int], Sequence[int], Sequence[int], int]) -> Storage:
        """
        Return a read-only view of a storage of another process.

        The view does not follow swaps in that process. RuntimeError is raised if the memory is not
        accessible.
        """

    def handle(self) -> tuple[tuple[int, int, int, int, bool], int, list[int], list[int], list[int], list[int], int]:
        """
        Return the handle (plain numbers) by which another process of the node attaches the storage.

        The storage must be shared.
        """

    def view(self) -> NDArray:
        """
        Return the interior as an array without a copy.

        After a swap, the memory of this array belongs to another storage. Create a new view after each
        run.
        """

    def whole(self) -> NDArray:
        """
        Return an array like view(), with the halo: cell (0, 0, 0) has the index `lower`.
        """

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def lower(self) -> tuple[int, int, int]: ...

    @property
    def upper(self) -> tuple[int, int, int]: ...

    @property
    def itemsize(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Allocated memory in bytes, including padding."""

    def checksum(self, lo: Sequence[int], hi: Sequence[int], origin: Sequence[int], shape: Sequence[int], threads: int = 1) -> tuple[int, int]:
        """
        Return a hash of the bits of the cells in a box and of their positions in the global grid.

        The hash consists of two 64-bit words. Their sums modulo 2**64 over boxes, subdomains and ranks
        are the hash of the whole field, for any decomposition. All NaNs count as one value.

        Parameters
        ----------
        lo, hi : three int
            Box, in the indices of the subdomain.
        origin, shape : three int
            Global index of cell (0, 0, 0); global shape.
        """

    def first_nonfinite(self, lo: Sequence[int], hi: Sequence[int], threads: int = 1) -> tuple[int, int, int] | None:
        """
        Return the index of the first cell of a box, in memory order, that is NaN or infinite.

        The result is None if all cells are finite.
        """

class Streams:
    """
    Two arrays that threads read and write as streams, to measure memory bandwidth.

    The pages are touched and the threads are started before any pass.

    Parameters
    ----------
    threads : int
    bytes : int
        Size of both arrays together.

    Raises
    ------
    OutOfMemory
        With the required and the available bytes.
    """

    def __init__(self, threads: int, bytes: int) -> None: ...

    def triad(self, passes: int) -> int:
        """
        Run passes of a += s * b and return the transferred bytes of its three streams.
        """

    def copy(self, passes: int) -> int:
        """
        Run passes of a copy with streaming stores. Return the transferred bytes of its two streams.
        """

class Counters:
    """
    Progress counters of this process in shared memory. Each subdomain has 54 counters.
    """

    def __init__(self, subdomains: int) -> None: ...

    @staticmethod
    def attach(handle: tuple[int, int, int, int, bool]) -> Counters:
        """Return the counters of another process, which are read-only."""

    def handle(self) -> tuple[int, int, int, int, bool]:
        """
        Return the handle by which another process of the node attaches the counters.
        """

class DeviceError(RuntimeError):
    pass

class Buffer:
    """Memory of a device; Device.allocate() creates it."""

    @property
    def bytes(self) -> int: ...

    @property
    def address(self) -> int:
        """Address for MPI; 0 if the interface has no addresses."""

class Event:
    """Point in a queue; Queue.record() creates it."""

    def done(self) -> bool:
        """
        Return True if all earlier work of the queue is complete.

        DeviceError is raised if some of this work failed.
        """

    def wait(self) -> None:
        """Wait until the event is complete."""

class Graph:
    """Recorded work; Queue.end_capture() creates it."""

class Module:
    """Compiled code; Device.load() creates it."""

    def max_threads_per_block(self, kernel: str) -> int:
        """Return the maximum number of threads per thread block of a kernel."""

    def registers(self, kernel: str) -> int:
        """Return the registers per thread; 0 if the device does not report them."""

    def spilled(self, kernel: str) -> int:
        """
        Return the bytes of spilled registers per thread, which are stored in device memory.
        """

class Queue:
    """
    Work for a device, in order.

    Only Event.wait(), finish() and the deletion of a queue wait for the work.
    The queue keeps the queued objects alive until finish(). Arrays must not
    change before finish().
    """

    def upload(self, to: Buffer, array: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], offset: int = 0) -> None:
        """Copy an array to a buffer, from byte `offset` on."""

    def download(self, source: Buffer, array: Annotated[NDArray, dict(order='C', device='cpu')], offset: int = 0) -> None:
        """Fill an array from a buffer, from byte `offset` on."""

    def copy(self, to: Buffer, source: Buffer, bytes: int | None = None, to_offset: int = 0, source_offset: int = 0) -> None:
        """
        Copy between buffers of this device, or from another device to this one.

        By default, all bytes of `source` are copied.
        """

    def clear(self, buffer: Buffer, bytes: int | None = None, offset: int = 0) -> None:
        """Set bytes to zero, by default up to the end of the buffer."""

    def launch(self, module: Module, kernel: str, block_counts: Sequence[int], block_shape: Sequence[int], arguments: list) -> None:
        """
        Run a kernel.

        Parameters
        ----------
        block_counts, block_shape : three int
            Number of thread blocks along x, y, z; threads per block along x, y, z.
        arguments : list
            A Buffer, an int (64 bits), a float (64 bits), or the bytes of any other value.
        """

    def record(self) -> Event:
        """
        Return an event that is complete when all work queued so far is complete.
        """

    def wait(self, event: Event) -> None:
        """Make subsequent work wait for an event of any device of the interface."""

    def flush(self) -> None:
        """Make the device start the queued work."""

    def finish(self) -> None:
        """Wait for all queued work; DeviceError is raised if some of it failed."""

    def begin_capture(self) -> None:
        """
        Record subsequent work instead of running it. This requires Device.captures.
        """

    def end_capture(self) -> Graph:
        """Return the recorded graph. Its buffers and modules must be kept alive."""

    def replay(self, graph: Graph) -> None:
        """Run recorded work."""

class Device:
    """Device with its own memory; devices() lists all devices."""

    @property
    def interface(self) -> str:
        """'cuda' or 'opencl'."""

    @property
    def index(self) -> int:
        """Index among the devices of the interface."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def driver(self) -> str:
        """Version of the driver."""

    @property
    def platform(self) -> str:
        """
        OpenCL platform; '' for CUDA. Devices of one platform can copy from each other.
        """

    @property
    def identity(self) -> str:
        """Identity of the device, equal in all processes of a node."""

    @property
    def architecture(self) -> str:
        """Target architecture of CUDA, such as 'sm_90'; '' for OpenCL."""

    @property
    def memory(self) -> int:
        """Device memory in bytes."""

    @property
    def local_memory(self) -> int:
        """Maximum shared memory per thread block in bytes."""

    @property
    def max_threads_per_block(self) -> int:
        """Maximum number of threads per thread block."""

    @property
    def parameters(self) -> int:
        """Maximum size of the arguments of a kernel in bytes."""

    @property
    def units(self) -> int:
        """Number of multiprocessors or compute units."""

    @property
    def doubles(self) -> bool:
        """True if the device has float64 with fma, subnormals and NaNs."""

    @property
    def singles(self) -> bool:
        """
        True if float32 has fma, NaNs, and correctly rounded division and square root.
        """

    @property
    def free_memory(self) -> int:
        """Bytes that can still be allocated, as far as the device reports them."""

    @property
    def captures(self) -> bool:
        """True if the queues of the device can record graphs."""

    def reaches(self, other: Device) -> bool:
        """
        Return True if kernels of this device can access the memory of another device.
        """

    def allocate(self, bytes: int) -> Buffer:
        """Return zeroed memory; OutOfMemory is raised if there is too little."""

    def synchronize(self) -> None:
        """
        Wait for all work of this process on the device, including the work of other libraries.
        """

    def owner_of(self, address: int) -> int:
        """
        Return the index of the device whose memory contains an address, or -1 if there is none.
        """

    def pinned(self, bytes: int) -> NDArray[numpy.uint8]:
        """
        Return an array in pinned host memory, which the device accesses by DMA.
        """

    def queue(self, urgent: bool = False) -> Queue:
        """Return a new queue; work in urgent queues runs first."""

    @overload
    def load(self, code: str, options: str = '') -> Module:
        """Compile OpenCL C; DeviceError contains the message of the compiler."""

    @overload
    def load(self, code: bytes) -> Module:
        """Load a cubin or PTX; DeviceError contains the message of the driver."""

    @property
    def shares(self) -> bool:
        """True if other processes of the node can attach memory of the device."""

    def share(self, buffer: Buffer) -> bytes:
        """
        Return the handle by which another process attaches a buffer.

        The buffer must outlive its use by the other process.
        """

    def attach(self, shared: bytes, bytes: int) -> Buffer:
        """
        Return a buffer of another process; DeviceError is raised if it is not accessible.
        """

    def shared_event(self) -> Event:
        """Return a new event for which other processes can wait."""

    def share_event(self, event: Event) -> bytes:
        """
        Return the handle by which another process attaches an event.

        The event must outlive its use by the other process.
        """

    def attach_event(self, shared: bytes) -> Event:
        """
        Return an event of another process; DeviceError is raised if it is not accessible.
        """

    def record(self, event: Event, queue: Queue) -> None:
        """
        Record a shared event, which is complete when all work queued so far is complete.
        """

def devices(interface: str) -> list[Device]:
    """
    Return the visible devices of 'cuda' or 'opencl'. The list is empty without a driver.
    """

def why_no_devices(interface: str) -> str:
    """
    Return the reason why no device of 'cuda' or 'opencl' is visible; '' if there are devices.
    """

class Link:
    """
    One end of a message between devices of two processes of a node, without MPI.

    Parameters
    ----------
    device : Device
    receives : bool
        True if this end receives messages, into memory of the device.
    bytes : int
        Size of a message.
    counters : Counters
    first : int
        Index of the first of its LINES counter lines. These lines are initially zero.

    Raises
    ------
    OutOfMemory, DeviceError
    """

    def __init__(self, device: Device, receives: bool, bytes: int, counters: Counters, first: int) -> None: ...

    def handle(self) -> bytes:
        """Return the handle for the other end."""

    def attach(self, through: Device, handle: bytes, counters: Counters, first: int) -> None:
        """
        Attach the memory, the event and the counters of the other end.

        Access is through the device `through`. DeviceError is raised if the memory is not accessible.
        """

    LINES: Final[int] = ...
    """Number of counter lines per end."""

class Subdomain:
    """
    One subdomain of a rank.

    Parameters
    ----------
    storages : list of Storage
        Storages, in the order of their numbers. Several engines may share them.
    origin : three int
        Global index of cell (0, 0, 0).
    patches : int64 array (P, 9)
        lo, hi, top of each patch (hc_box), in memory order.
    owners : int32 array (P,)
        Thread of each patch. It touches the memory of the patch first, and runs the patch before
        patches of other threads.
    counters, number : Counters, int
        Counters of this rank, and index of this subdomain in the counters.
    """

    def __init__(self, storages: Sequence[Storage], origin: Sequence[int], patches: Annotated[NDArray[numpy.int64], dict(shape=(None, 9), order='C', device='cpu', writable=False)], owners: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], counters: Counters | None = None, number: int = 0) -> None: ...

class Neighbour:
    """
    Subdomain of another process of the node: views of its storages, and its counters.
    """

    def __init__(self, rank: int, storages: Sequence[Storage], counters: Counters, number: int) -> None: ...

class Message:
    """
    Message of one sweep: cells that are sent to another subdomain, or received from it.

    Sender and receiver list parts of equal shapes in the same order.

    Parameters
    ----------
    peer : int
        Rank of the other subdomain. For colocated messages on the host: index of the neighbour.
    tag : int
        MPI tag, equal for sender and receiver. For colocated messages on the host: the direction, 0 to
        26, which differs between all messages of a pair of subdomains. For rma: the direction plus 27
        times the number of the other subdomain.
    parts : list of (storage number, lo, hi)
    sources : list of three int
        For a colocated receive on the host: first cell of each part in the storage of the sender.
    method : {'mpi', 'gpu_aware', 'rma', 'colocated'}
        Transfer method: MPI from host memory, MPI from device memory, mailboxes of one-sided
        communication, or copies in shared memory or between devices without MPI.
    packed : bool
        If False, MPI accesses the cells in the fields by derived datatypes. Devices copy them row by
        row.
    link : Link, optional
        This end of a colocated message between devices.
    """

    def __init__(self, peer: int, tag: int, parts: Sequence[tuple[int, Sequence[int], Sequence[int]]], sources: Sequence[Sequence[int]] = [], method: str = 'mpi', packed: bool = True, link: Link | None = None) -> None: ...

class Fill:
    """
    Boundary fill: `kernel` on the box of ghost cells from `lo` to `hi`.

    Consecutive fills of a list with the same `axis` (0, 1 or 2) may run in parallel. Otherwise each
    fill runs after the previous one.
    """

    def __init__(self, kernel: str, operands: Sequence[int], lo: Sequence[int], hi: Sequence[int], axis: int = -1) -> None: ...

class Share:
    """
    Part of a sweep in one subdomain.

    Parameters
    ----------
    sends, receives : list of Message
        At most 64 and 32.
    copies : list of (storage, source lo, destination lo, extent, subdomain)
        Copies from another subdomain of this rank, or from this subdomain around a periodic axis.
    fills, rims : list of Fill
        Boundary fills that run before the patches, and those that run after all messages have arrived.
    needs : uint32 array (P,), default none
        Bit mask of each patch. If bit m is set, the patch waits for receives[m].
    needs_rims : bool array (P,), default none
        True for each patch that waits for the rims.
    halo_boxes, halo_needs : int64 array (H, 9), uint32 array (H,)
        Boxes that the halo kernel of the sweep computes, and their bit masks of receives.
    """

    def __init__(self, sends: Sequence[Message] = [], receives: Sequence[Message] = [], copies: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[int], int]] = [], fills: Sequence[Fill] = [], rims: Sequence[Fill] = [], needs: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, needs_rims: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, halo_boxes: Annotated[NDArray[numpy.int64], dict(shape=(None, 9), order='C', device='cpu', writable=False)] | None = None, halo_needs: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Engine:
    """
    Engine that runs the plan of one rank, in program order, with `threads` threads.

    Parameters
    ----------
    library : str
        Path of the compiled kernel library.
    subdomains : list of Subdomain
    scalars : float64 array
        Shared array that the engine reads and writes.
    shape : three int
        Global shape of the grid.
    spins : int
        Number of polls of a waiting thread before it sleeps between polls.
    communicator : int or None
        Fortran handle of an MPI communicator. All its ranks must create their engines in the same
        order. With None, the engine has one rank and does not call MPI.
    neighbours : list of Neighbour
        Subdomains of other processes for colocated messages, in the order of their numbers.
    mailboxes : int
        Number of mailboxes per one-sided message; 0 if no rank has one-sided messages.
    schedule : str
        Thread that runs a patch. 'static': the owner. 'dynamic': the next free thread. 'guided': the
        owner, or a thread that has completed its own patches.
    """

    def __init__(self, library: str | os.PathLike, subdomains: Sequence[Subdomain], scalars: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], shape: Sequence[int], threads: int, spins: int, communicator: int | None, neighbours: Sequence[Neighbour] = [], mailboxes: int = 0, schedule: str = 'guided') -> None: ...

    def sweep(self, kernel: str, operands: Sequence[int], shares: Sequence[Share], reductions: Sequence[tuple[str, int]] = [], halo_kernel: str | None = None, swaps: Sequence[tuple[int, int]] = [], scratch_bytes: int = 0, backward: bool = False, in_place: bool = False) -> None:
        """
        Append a sweep, which runs `kernel` on all patches.

        Copies, packing and sends start first, then the fills run. Patches run when these are complete
        and the required messages have arrived. The rims of a subdomain run when all its messages have
        arrived, before the patches with needs_rims and before the halo boxes. At the end, the swaps
        exchange memory, and the reductions over all threads and ranks are written to their scalars.

        Parameters
        ----------
        operands : list of int
            Storage numbers.
        shares : list of Share
            One per subdomain.
        reductions : list of (kind, scalar)
            Kind: 'sum', 'min', 'max', 'count' or 'value'.
        swaps : list of (storage, storage)
        scratch_bytes : int
            Bytes per thread.
        backward : bool
            True if threads run their patches in descending order. They then begin with data that the
            previous sweep left in the cache.
        in_place : bool
            True if the kernel overwrites cells that are sent. Patches then wait until the receivers
            have read these cells.
        """

    @staticmethod
    def on_devices(library: str | os.PathLike, subdomains: Sequence[DeviceSubdomain], scalars: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], shape: Sequence[int], spins: int, communicator: int | None) -> Engine:
        """
        Return an engine whose subdomains (DeviceSubdomain) are on devices.

        Sweeps are appended with device_sweep().
        """

    def device_sweep(self, name: str, shares: Sequence[DeviceShare], reductions: Sequence[tuple[str, int]], swaps: Sequence[tuple[int, int]], scratch_bytes: int) -> None:
        """
        Append a sweep on devices, with a DeviceShare for each subdomain; see sweep().
        """

    def constants(self, launches: Sequence[Sequence[Launch]]) -> None:
        """
        Set the kernels that run once at the start of each run, for each subdomain.

        They compute invariants that do not change during a run. `launches` contains a list of Launch
        for each subdomain.
        """

    def scalars(self, function: str) -> None:
        """Append a sequence of scalar statements."""

    def await_results(self) -> None:
        """
        Append a wait for the results of the last sweep with reductions.

        Before this wait, the scalars of these reductions still have their old values.
        """

    def stop(self, condition: str, reason: str) -> None:
        """Append a test that ends the run with `reason` if the condition holds."""

    def loop(self, until: str | None, limit: int | None, count: int, record: Sequence[int] = [], kernel: str = '', interval: int = 0) -> None:
        """
        Begin a loop over the operations that are appended up to end().

        The scalar `count` is set to 0 and counts the passes. Before each pass, the loop ends if the
        condition `until` holds or `count` has reached the scalar `limit`. After each pass, the scalars
        in `record` are appended to the history.

        Parameters
        ----------
        kernel : str
            Kernel that tests the conditions of the loop on a device.
        interval : int
            Expected number of passes of the outer loop between two executions of this loop; 0 if
            unknown. A single device queues passes of the outer loop on the assumption that this loop
            ends before its first pass, and waits only if the body runs.
        """

    def end(self) -> None:
        """End the innermost open loop."""

    def run(self, messages: bool = True, kernels: bool = True, traced: bool = False, overlap: bool = True, passes: int = 0, resumed: bool = False, asynchronous: bool = True, measured: bool = False, barriers: bool = False) -> dict:
        """
        Run all operations; collective. Other Python threads run in the meantime.

        If `messages` or `kernels` is False, the run omits this part, to measure the time of the rest.

        Parameters
        ----------
        overlap : bool
            True if patches that need no message run before all messages have arrived.
        passes : int
            Number of passes of an outermost loop after which the run pauses, if the loop continues; 0: no
            pause.
        resumed : bool
            True if the run continues after the pause of the previous run. Fields and scalars must not
            change between the two runs.
        asynchronous : bool
            True if a single device runs asynchronously, without waiting for the host.
        measured : bool
            True if the time of each subdomain is measured.
        barriers : bool
            True if devices finish and all ranks wait for each other after each sweep.

        Returns
        -------
        dict
            reason : 'completed', 'paused', 'interrupted' or the reason of a stop.
            loops : for each loop 'condition' or 'limit', or None if the loop did not end.
            stopped : True if any rank received a stop request, even if too late to shorten the run.
                The value is equal on all ranks. The request is cleared.
            stopped_process : True if the request came from a signal or from `request_stop`.
            history : float64 array (passes, len(record)) of the outermost loop that records.
            seconds, loop_seconds : times of the run and of its outermost loops, maximum over the ranks.
            compute, exchange, reduction : seconds of the first thread of this rank. `exchange` is the
                time that computation does not hide: packing, polling, waiting for messages. `reduction`
                is the time of the merge over ranks, including the wait for it.
            graph_launches : number of launches of recorded graphs in an asynchronous run of a device.
            sweep_counts, sweep_seconds : executions and time of each sweep, in program order.
            subdomain_seconds : kernel time of all threads in each subdomain if measured, otherwise 0.
            events : in a traced run, one array for each thread, one for all messages, and one for each
                of `lanes`. The columns are activity, sweep, patch or peer, tag of the message, begin
                and end in seconds of the run. Activities: 0 patch, 1 halo box, 2 boundary condition, 3 copy,
                4 packing, 5 unpacking, 6 reduction, 7 message, 8 send, 9 copy to the host, 10 copy from
                the host, 11 scalars, 12 the host queues work.
            lanes : in a traced run, the queues of devices: number of the subdomain, role ('computing',
                'packing', 'outgoing' or 'incoming'), and the direction of the messages or -1.
            clock_error : maximum error of the times of devices relative to the host, in seconds.

        Raises
        ------
        RuntimeError
            The run fails, and there is only one rank. With several ranks, a failure ends all ranks, with
            'rank R: reason' on standard error.
        """

    def progress(self) -> int:
        """
        Return the passes of the outermost loops so far.

        Another thread may call this function during run().
        """

    def request_pause(self) -> None:
        """
        Request the end of the run on all ranks, between two passes of the outermost loop.
        """

def request_stop(signal: int = 0) -> None:
    """
    Request a stop of the engines of this process, at the same pass on all ranks.

    A `signal` other than 0 is recorded as the cause.
    """

def forget_stop() -> bool:
    """
    Clear a stop request that no run has processed yet. Return True if there was a request.
    """

def note_signals(signals: Sequence[int]) -> None:
    """
    Install handlers that record these signals for `noted_signal`.

    `signal.signal` restores other handlers.
    """

def noted_signal() -> int:
    """Return the last recorded signal, or 0 if there is none."""

def forget_signal() -> None:
    """Clear the recorded signal."""

def stopping_signal() -> int:
    """
    Return the signal that caused the last stop, or 0 if the cause was not a signal.
    """

def stop_on_signals(signals: Sequence[int]) -> None:
    """
    Install handlers by which these signals request a stop, also while run() occupies the main thread.

    A second signal ends the process. `signal.signal` restores other handlers.
    """

def load_mpi(library: str) -> None:
    """
    Use an MPI library, whose ABI is that of the MPI standard, of MPICH or of Open MPI.

    Raises RuntimeError if the file is no such library, or if the engine uses another one.
    """

def mpi_library() -> str:
    """Return the path of the MPI library in use; empty if there is none."""

def has_mailboxes(communicator: int) -> bool:
    """
    Return True if one-sided communication has one memory (MPI_WIN_UNIFIED); collective.
    """

def shared_pages_are_huge() -> bool:
    """
    Return True if memory that processes share has huge pages (Linux 6.1 and later).
    """

def available_memory() -> int:
    """
    Return the bytes that all processes can still allocate, limited by the system and the control group.
    """

def available_to_process() -> int:
    """
    Return the bytes that this process can still allocate, limited also by its address space.
    """

def simd_width() -> int:
    """Return the bits of the widest vector registers of this machine."""

def openmp() -> tuple[int, int]:
    """
    Return the OpenMP version as a date (yyyymm) and the default number of threads.
    """

class DeviceStorage:
    """
    One array of one subdomain with its halo, in device memory, initially zero.

    Parameters
    ----------
    device : Device
    shape, lower, upper : three int
        Cells of the subdomain; halo layers below and above.
    itemsize : int
        8 for float64, 4 for float32.

    Raises
    ------
    OutOfMemory
        With the required and the available bytes.
    """

    def __init__(self, device: Device, shape: Sequence[int], lower: Sequence[int], upper: Sequence[int], itemsize: int) -> None: ...

    def fetch(self) -> Storage:
        """Return a Storage with a copy of the cells, without halo."""

    def store(self, storage: Storage) -> None:
        """Copy the cells of a Storage of the same shape to the device."""

    def read(self, module: Module, cells: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)]) -> bytes:
        """
        Return the values of single cells as contiguous bytes.

        Parameters
        ----------
        module : Module
            Compiled code of device_find.h.
        cells : array of int64 (cells, 3)

        Raises
        ------
        ValueError
            A cell is outside the storage.
        """

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def itemsize(self) -> int: ...

    @property
    def layout(self) -> list[int]:
        """
        Element of cell (0, 0, 0), and strides of the first two axes in elements.
        """

    @property
    def bytes(self) -> int:
        """Allocated memory in bytes, including padding."""

class Search:
    """
    Search for non-finite values in fields, on their device. The constructor does not wait.

    Parameters
    ----------
    module : Module
        Compiled code of device_find.h.
    storages : list of DeviceStorage
        Storages of one device.
    boxes : list of lists of (three int, three int)
        Boxes to search, for each storage.

    Raises
    ------
    OutOfMemory, DeviceError
    """

    def __init__(self, module: Module, storages: Sequence[DeviceStorage], boxes: Sequence[Sequence[tuple[Sequence[int], Sequence[int]]]]) -> None: ...

    def has_nonfinite(self) -> list[bool]:
        """
        Wait for the search and return, for each storage, True if a value is not finite.
        """

class DeviceSubdomain:
    """
    One subdomain of a rank, on a device.

    Parameters
    ----------
    device : Device
    module : Module
        Kernels, compiled for the device.
    storages : list of DeviceStorage
        Storages, in the order of their numbers. Several engines may share them.
    scalars : int
        Number of scalars of the program.
    """

    def __init__(self, device: Device, module: Module, storages: Sequence[DeviceStorage], scalars: int) -> None: ...

class Launch:
    """
    Launch of a kernel over one box.

    Parameters
    ----------
    kernel : str
    operands : list of int
        Storage numbers.
    frame : list of int
        Members of the struct hc_frame, in order.
    block_counts, block_shape : three int
        Number of thread blocks along x, y, z; threads per block along x, y, z.
    scratch, partials, layouts : bool
        True if the kernel takes a pointer to scratch memory, to partial results of reductions, and to
        the layouts of its storages.
    invariants : (str, int)
        Symbol and number of the values in constant memory that the kernel computes or reads. The number
        is 0 if there are none.
    walls : list of seven int
        Members of the struct hc_wall, in order, for each wall whose ghosts the kernel fills.
    tile_bytes : int
        Bytes of shared memory per thread block for planes of fields.
    """

    def __init__(self, kernel: str, operands: Sequence[int], frame: Sequence[int], block_counts: Sequence[int], block_shape: Sequence[int], scratch: bool, partials: bool, layouts: bool, invariants: tuple[str, int], walls: Sequence[Sequence[int]] = [], tile_bytes: int = 0) -> None: ...

class Item:
    """
    Patch, or box of halo cells that the sweep also computes.

    Parameters
    ----------
    needs : int
        Bit mask. If bit m is set, the item waits for receives[m].
    rims : bool
        True if the item waits for the rims.
    launches : list of Launch
        Launches in sequence.
    halo : bool
        True for a box in the halo.
    """

    def __init__(self, needs: int, rims: bool, launches: Sequence[Launch], halo: bool = False) -> None: ...

class DeviceShare:
    """
    Part of a sweep in one subdomain on a device.

    Parameters
    ----------
    sends, receives : list of Message
        At most 64 and 32.
    copies : list of (storage, source lo, destination lo, extent, subdomain)
    invariants : list of Launch
        Kernels that compute invariants, before all other kernels.
    fills, rims : list of Launch
        Boundary fills that run before the items. Rims are the boundary fills that run after all
        messages have arrived.
    items : list of Item
    partials : list of (kernel, reductions, total_blocks)
        For each kernel with reductions: its name, the numbers of its reductions, and the total number
        of thread blocks of its launches.
    """

    def __init__(self, sends: Sequence[Message], receives: Sequence[Message], copies: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[int], int]], invariants: Sequence[Launch], fills: Sequence[Launch], rims: Sequence[Launch], items: Sequence[Item], partials: Sequence[tuple[str, Sequence[int], int]]) -> None: ...

def device_view(storage: DeviceStorage, axes: int) -> Any:
    """
    Return the cells of a DeviceStorage of a CUDA device as an array with DLPack, without a copy.

    The array has the last `axes` axes. It keeps the memory alive. After a swap, the memory belongs to
    another storage.
    """

def device_copy(storage: DeviceStorage, module: Module, axes: int) -> Any:
    """
    Return a contiguous copy of the cells of a DeviceStorage, in memory of the same CUDA device.

    Parameters
    ----------
    storage : DeviceStorage
    module : Module
        Compiled code of device_copy.h.
    axes : int
        Number of axes of the array.
    """

def assign_from_device(storage: DeviceStorage, module: Module, lo: Sequence[int], hi: Sequence[int], address: int, strides: Sequence[int]) -> None:
    """
    Set the cells of a box of a DeviceStorage to elements in memory of the same device, and wait.

    Parameters
    ----------
    storage : DeviceStorage
    module : Module
        Compiled code of device_copy.h.
    lo, hi : three int
        Box, in the indices of the subdomain.
    address : int
        Address of the element of cell `lo`.
    strides : three int
        Strides in elements.

    Raises
    ------
    ValueError
        The box is outside the storage, or the interface of the device has no addresses.
    DeviceError
    """

def array_facts(capsule: Annotated[NDArray, dict(writable=False)]) -> tuple[int, list[int], list[int], str, int, CapsuleType]:
    """
    Return facts about the array of a DLPack capsule, which is used up.

    The facts are address, shape, strides in elements, dtype, bytes per element, and owner. The memory
    remains valid as long as the owner exists. TypeError is raised for any other object.
    """

def mark_copied(capsule: object) -> None:
    """
    Set the flag of a versioned DLPack capsule which says that its consumer alone owns the memory.
    """

class Nvrtc:
    """
    NVRTC, the CUDA compiler of NVIDIA as a library. It requires no device.

    Parameters
    ----------
    library : str
        Path, or a name that the loader finds.
    needed : list of str
        Libraries to load first.

    Raises
    ------
    RuntimeError
        A library cannot be loaded.
    """

    def __init__(self, library: str, needed: Sequence[str]) -> None: ...

    @property
    def version(self) -> tuple[int, int]: ...

    @property
    def architectures(self) -> list[int]:
        """Compute capabilities: 90 for sm_90."""

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str, str]:
        """
        Return the code (a cubin for a real architecture, otherwise PTX), the error name and the log.

        The error name is empty on success.
        """

def apply(op: str, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], operands: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None:
    """
    Apply an operation of generated kernels to each element of arrays of equal length.
    """

class Accumulator:
    """Accumulator of one reduction, as in generated kernels."""

    def __init__(self, kind: str) -> None: ...

    def deposit(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Add the values of an array."""

    def state(self) -> bytes:
        """Return the state, for `merge` on another rank."""

    def merge(self, state: bytes) -> None:
        """Merge the state of another accumulator into this one."""

    def result(self) -> float:
        """Return the reduced number."""
