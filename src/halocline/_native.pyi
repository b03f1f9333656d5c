"""The native engine of Halocline: executes plans, decides nothing."""

from collections.abc import Sequence
import os
from typing import Annotated, Final, overload

import numpy
from numpy.typing import NDArray


class OutOfMemory(MemoryError):
    pass

class Storage:
    """
    One array of one subdomain with its halo, in memory of its own: zeros that cost nothing until
    they are touched. Arrays have three axes; the last is contiguous in memory.

    Parameters
    ----------
    shape, lower, upper : three int
        Cells of the subdomain, halo layers below and above.
    itemsize : int
        8 for float64, 4 for float32.
    index : int
        Number of the field: equal cells of different numbers do not alias.
    shared : bool
        Whether other processes of the node can read it.
    sparse : bool
        Whether parts in the midst of it are never touched, and are to take no memory.

    Raises
    ------
    OutOfMemory
        With the bytes needed and available.
    """

    def __init__(self, shape: Sequence[int], lower: Sequence[int], upper: Sequence[int], itemsize: int, index: int = 0, shared: bool = False, sparse: bool = False) -> None: ...

    @staticmethod
    def attach(handle: tuple[tuple[int, int, int, int, bool], int, Sequence[int], Sequence[int], Sequence[int], Sequence[int], int]) -> Storage:
        """
        A view of another process's storage, to be read only; RuntimeError where it is out of reach.
        It follows no swap of that.
        """

    def handle(self) -> tuple[tuple[int, int, int, int, bool], int, list[int], list[int], list[int], list[int], int]:
        """
        Return the handle, plain numbers, by which another process of the node attaches it. It must be shared.
        """

    def view(self) -> NDArray:
        """
        The interior as an array without a copy. It keeps its memory, which is another's after a swap:
        take a new view after each run.
        """

    def whole(self) -> NDArray:
        """Like view(), with the halo: cell (0, 0, 0) is at `lower`."""

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
        """Bytes of memory taken, padding included."""

    def checksum(self, lo: Sequence[int], hi: Sequence[int], origin: Sequence[int], shape: Sequence[int], threads: int = 1) -> tuple[int, int]:
        """
        Hash of the bits of the cells in a box, and of their places in the global grid.

        Two 64-bit words. Added up modulo 2**64 over boxes, subdomains and ranks they are the hash of the
        whole field, whatever the decomposition. NaNs count as one value.

        Parameters
        ----------
        lo, hi : three int
            The box, in the subdomain's indices.
        origin, shape : three int
            Global index of cell (0, 0, 0), global shape.
        """

    def first_nonfinite(self, lo: Sequence[int], hi: Sequence[int], threads: int = 1) -> tuple[int, int, int] | None:
        """
        Index of the first cell of a box, in memory order, that is NaN or infinite; None where all are finite.
        """

class Streams:
    """
    Two arrays that threads sweep over, to measure what memory can do. Their pages are touched, and the
    threads started, before any pass.

    Parameters
    ----------
    threads : int
    bytes : int
        Of both arrays together.

    Raises
    ------
    OutOfMemory
        With the bytes needed and available.
    """

    def __init__(self, threads: int, bytes: int) -> None: ...

    def triad(self, passes: int) -> int:
        """
        Make passes of a += s * b; return the bytes that crossed memory, in three streams.
        """

    def copy(self, passes: int) -> int:
        """
        Make passes of a copy with streaming stores; return the bytes that crossed memory, in two streams.
        """

class Counters:
    """
    Numbers in shared memory that tell the processes of a node how far this one is, 54 for each of its
    subdomains.
    """

    def __init__(self, subdomains: int) -> None: ...

    @staticmethod
    def attach(handle: tuple[int, int, int, int, bool]) -> Counters:
        """Those of another process, to be read only."""

    def handle(self) -> tuple[int, int, int, int, bool]:
        """Return the handle by which another process of the node attaches them."""

class DeviceError(RuntimeError):
    pass

class Buffer:
    """Memory of a device; Device.allocate() makes it."""

    @property
    def bytes(self) -> int: ...

    @property
    def address(self) -> int:
        """Where MPI finds it; 0 where the interface has no addresses."""

class Event:
    """A place in a queue; Queue.record() makes it."""

    def done(self) -> bool:
        """
        Return True where all earlier work of its queue is done; DeviceError where some of it failed.
        """

    def wait(self) -> None:
        """Wait until it is done."""

class Graph:
    """Work that was recorded; Queue.end_capture() makes it."""

class Module:
    """Compiled code; Device.load() makes it."""

    def largest_group(self, kernel: str) -> int:
        """The most threads of a group that a kernel can run with."""

    def registers(self, kernel: str) -> int:
        """Registers of a thread; 0 where the device does not tell."""

    def spilled(self, kernel: str) -> int:
        """
        Bytes of a thread in the device's memory, which hold what registers could not.
        """

class Queue:
    """
    Work for a device, in order. Only wait() of events, finish() and the end of a queue wait for it; what
    is queued is kept alive until finish(), and arrays must not change before.
    """

    def upload(self, to: Buffer, array: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], offset: int = 0) -> None:
        """Copy an array to a buffer, from byte `offset` on."""

    def download(self, source: Buffer, array: Annotated[NDArray, dict(order='C', device='cpu')], offset: int = 0) -> None:
        """Fill an array from a buffer, from byte `offset` on."""

    def copy(self, to: Buffer, source: Buffer, bytes: int | None = None, to_offset: int = 0, source_offset: int = 0) -> None:
        """
        Copy between buffers: of this device, or from another device's to this one's. All of `source` where
        no number of bytes is given.
        """

    def clear(self, buffer: Buffer, bytes: int | None = None, offset: int = 0) -> None:
        """
        Set bytes to zero, to the end of the buffer where their number is not given.
        """

    def launch(self, module: Module, kernel: str, groups: Sequence[int], group: Sequence[int], arguments: list) -> None:
        """
        Run a kernel.

        Parameters
        ----------
        groups, group : three int
            Groups along x, y, z, and threads of each.
        arguments : list
            A Buffer, an int (64 bits), a float (64 bits), or the bytes of any other value.
        """

    def record(self) -> Event:
        """An event that is done when all that is queued now is."""

    def wait(self, event: Event) -> None:
        """Let what follows wait for an event, of any device of the interface."""

    def flush(self) -> None:
        """Let the device begin."""

    def finish(self) -> None:
        """Wait for all that is queued; DeviceError where something of it failed."""

    def begin_capture(self) -> None:
        """
        Record what is queued from now on, instead of running it; only where Device.captures.
        """

    def end_capture(self) -> Graph:
        """Return the recorded graph. Its buffers and modules must be kept alive."""

    def replay(self, graph: Graph) -> None:
        """Run what was recorded."""

class Device:
    """A device with memory of its own; devices() lists them."""

    @property
    def interface(self) -> str:
        """'cuda' or 'opencl'."""

    @property
    def index(self) -> int:
        """Number among those of the interface."""

    @property
    def name(self) -> str:
        """Of the model."""

    @property
    def driver(self) -> str:
        """Its version."""

    @property
    def platform(self) -> str:
        """OpenCL's: only devices of one reach each other's memory; '' for CUDA."""

    @property
    def identity(self) -> str:
        """The same in all processes of a node."""

    @property
    def architecture(self) -> str:
        """Target architecture of CUDA, as 'sm_90'; '' for OpenCL."""

    @property
    def memory(self) -> int:
        """Bytes."""

    @property
    def local_memory(self) -> int:
        """Bytes that the threads of a group can share."""

    @property
    def largest_group(self) -> int:
        """Threads."""

    @property
    def parameters(self) -> int:
        """Bytes that a kernel can be given."""

    @property
    def units(self) -> int:
        """Processors that run groups side by side."""

    @property
    def doubles(self) -> bool:
        """True where the device has float64 with fma, subnormals and NaNs."""

    @property
    def singles(self) -> bool:
        """
        True for float32 with fma, NaNs, and correctly rounded division and square root.
        """

    @property
    def free_memory(self) -> int:
        """Bytes that can still be allocated, as far as is told."""

    @property
    def captures(self) -> bool:
        """True where its queues record graphs."""

    def reaches(self, other: Device) -> bool:
        """Return True where its kernels can use the memory of another device."""

    def allocate(self, bytes: int) -> Buffer:
        """Zeroed memory; OutOfMemory where there is too little."""

    def pinned(self, bytes: int) -> NDArray[numpy.uint8]:
        """Bytes of the host's memory that the device copies from and to itself."""

    def queue(self, urgent: bool = False) -> Queue:
        """A new queue; what is in urgent ones goes first."""

    @overload
    def load(self, code: str, options: str = '') -> Module:
        """Compile OpenCL C; DeviceError with the compiler's words."""

    @overload
    def load(self, code: bytes) -> Module:
        """Load a cubin or PTX; DeviceError with the driver's words."""

    @property
    def shares(self) -> bool:
        """True where other processes of the node can use its memory."""

    def share(self, buffer: Buffer) -> bytes:
        """
        Return the handle by which another process attaches a buffer. The buffer must outlive that.
        """

    def attach(self, shared: bytes, bytes: int) -> Buffer:
        """Another process's buffer; DeviceError where it is out of reach."""

    def shared_event(self) -> Event:
        """An event that other processes can wait for."""

    def share_event(self, event: Event) -> bytes:
        """
        Return the handle by which another process attaches an event. The event must outlive that.
        """

    def attach_event(self, shared: bytes) -> Event:
        """Another process's event; DeviceError where it is out of reach."""

    def record(self, event: Event, queue: Queue) -> None:
        """Record a shared event: it is done when all that is queued now is."""

def devices(interface: str) -> list[Device]:
    """
    The devices of 'cuda' or 'opencl' that this process sees; none where there is no driver.
    """

def why_no_devices(interface: str) -> str:
    """
    Why there are no devices of 'cuda' or 'opencl'; '' where there are some.
    """

class Link:
    """
    One end of a message between devices of two processes of a node, without MPI.

    Parameters
    ----------
    device : Device
    receives : bool
        Whether messages come here, into memory of the device.
    bytes : int
        Of a message.
    counters : Counters
    first : int
        The first of its LINES lines in the counters, all zeros.

    Raises
    ------
    OutOfMemory, DeviceError
    """

    def __init__(self, device: Device, receives: bool, bytes: int, counters: Counters, first: int) -> None: ...

    def handle(self) -> bytes:
        """Return the handle for the other end."""

    def attach(self, through: Device, handle: bytes, counters: Counters, first: int) -> None:
        """
        See the other end, with its counters; through a device that reaches its memory. DeviceError where
        it is out of reach.
        """

    LINES: Final[int] = ...
    """Lines of counters of an end."""

class Subdomain:
    """
    One subdomain of a rank.

    Parameters
    ----------
    storages : list of Storage
        By number. Engines may share them.
    origin : three int
        Global index of cell (0, 0, 0).
    patches : int64 array (P, 9)
        lo, hi, top of each patch (hc_box), in memory order.
    owners : int32 array (P,)
        The thread that touches each patch first, and takes it before others' patches.
    counters, number : Counters, int
        Of this rank, and which of its subdomains this is there.
    """

    def __init__(self, storages: Sequence[Storage], origin: Sequence[int], patches: Annotated[NDArray[numpy.int64], dict(shape=(None, 9), order='C', device='cpu', writable=False)], owners: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], counters: Counters | None = None, number: int = 0) -> None: ...

class Neighbour:
    """
    A subdomain of another process of the node: views of its storages, by number, and its counters.
    """

    def __init__(self, rank: int, storages: Sequence[Storage], counters: Counters, number: int) -> None: ...

class Message:
    """
    Cells that go to, or come from, one subdomain in one sweep. Both sides list parts of equal shapes in the
    same order.

    Parameters
    ----------
    peer : int
        Rank at the other end; colocated on the host: number of the neighbour.
    tag : int
        The same at both ends. Colocated on the host: the direction, 0 to 26, another for each message
        between the two. By rma: the direction, and 27 times the number of the subdomain at the other end.
    parts : list of (storage number, lo, hi)
    sources : list of three int
        Of a colocated receive on the host: where each part begins in the sender's storage.
    method : {'mpi', 'gpu_aware', 'rma', 'colocated'}
        By MPI, by MPI between memory of devices, through mailboxes, or without MPI.
    packed : bool
        Else MPI takes the cells out of the fields and puts them there by derived datatypes, and devices
        copy them row by row.
    link : Link, optional
        This end of a colocated message between devices.
    """

    def __init__(self, peer: int, tag: int, parts: Sequence[tuple[int, Sequence[int], Sequence[int]]], sources: Sequence[Sequence[int]] = [], method: str = 'mpi', packed: bool = True, link: Link | None = None) -> None: ...

class Fill:
    """
    A boundary condition: `kernel` over the box of ghost cells from `lo` to `hi`. Neighbours in a
    list with one `axis` of 0, 1 or 2 may run side by side; otherwise each runs after the one before.
    """

    def __init__(self, kernel: str, operands: Sequence[int], lo: Sequence[int], hi: Sequence[int], axis: int = -1) -> None: ...

class Share:
    """
    Work of a sweep in one subdomain.

    Parameters
    ----------
    sends, receives : list of Message
        At most 64 and 32.
    copies : list of (storage, source lo, destination lo, extent, subdomain)
        From a subdomain of this rank, or around a periodic axis from this one.
    fills, rims : list of Fill
    needs : uint32 array (P,), default none
        Bit m: receives[m] must have arrived.
    needs_rims : bool array (P,), default none
    halo_boxes, halo_needs : int64 array (H, 9), uint32 array (H,)
        More work of the same sweep, with its halo kernel.
    """

    def __init__(self, sends: Sequence[Message] = [], receives: Sequence[Message] = [], copies: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[int], int]] = [], fills: Sequence[Fill] = [], rims: Sequence[Fill] = [], needs: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, needs_rims: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, halo_boxes: Annotated[NDArray[numpy.int64], dict(shape=(None, 9), order='C', device='cpu', writable=False)] | None = None, halo_needs: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Engine:
    """
    Runs the plan of one rank: operations in program order, with `threads` threads.

    Parameters
    ----------
    library : str
        File of the compiled kernels.
    subdomains : list of Subdomain
    scalars : float64 array
        Shared: the engine reads and writes it.
    shape : three int
        Global shape of the grid.
    spins : int
        How often a thread that waits looks again at once, before it sleeps in between.
    communicator : int or None
        Fortran handle. All its ranks must make their engines in the same order. None: one rank, and no
        call of MPI, ever.
    neighbours : list of Neighbour
        By number, for colocated messages.
    mailboxes : int
        For each message by one-sided communication; 0 where there is none on any rank.
    schedule : str
        Who runs which patch: 'static', its owner; 'dynamic', whoever comes first; 'guided', its owner, or
        who has run all of its own.
    """

    def __init__(self, library: str | os.PathLike, subdomains: Sequence[Subdomain], scalars: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], shape: Sequence[int], threads: int, spins: int, communicator: int | None, neighbours: Sequence[Neighbour] = [], mailboxes: int = 0, schedule: str = 'guided') -> None: ...

    def sweep(self, kernel: str, operands: Sequence[int], shares: Sequence[Share], reductions: Sequence[tuple[str, int]] = [], halo_kernel: str | None = None, swaps: Sequence[tuple[int, int]] = [], scratch_bytes: int = 0, backward: bool = False, in_place: bool = False) -> None:
        """
        Append a sweep: `kernel` over all patches.

        Copies, packing and sends start first, then the fills run; patches run when these are done and the
        messages they need have arrived. The rims of a subdomain run when all its messages have arrived,
        before the patches with needs_rims and before the halo boxes. When all is done the swaps exchange
        memory, and the reductions, over all threads and ranks, are written to their scalars.

        Parameters
        ----------
        operands : list of int
            Storage numbers.
        shares : list of Share
            By subdomain.
        reductions : list of (kind, scalar)
            Kind: 'sum', 'min', 'max', 'count' or 'value'.
        swaps : list of (storage, storage)
        scratch_bytes : int
            Per thread.
        backward : bool
            Threads run their patches in descending order: what the sweep before left in the cache comes first.
        in_place : bool
            The kernel overwrites cells that are sent: patches wait until the receivers have them.
        """

    @staticmethod
    def on_devices(library: str | os.PathLike, subdomains: Sequence[DeviceSubdomain], scalars: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], shape: Sequence[int], spins: int, communicator: int | None) -> Engine:
        """
        An engine whose subdomains (DeviceSubdomain) lie on devices: sweeps are appended with device_sweep().
        """

    def device_sweep(self, name: str, shares: Sequence[DeviceShare], reductions: Sequence[tuple[str, int]], swaps: Sequence[tuple[int, int]], scratch_bytes: int) -> None:
        """
        Append a sweep on devices, with a DeviceShare for each subdomain; see sweep().
        """

    def scalars(self, function: str) -> None:
        """Append a run of scalar statements."""

    def await_results(self) -> None:
        """
        Append a wait for the results of the last sweep with reductions: their scalars have old values before.
        """

    def stop(self, condition: str, reason: str) -> None:
        """
        Append a test that ends the run with `reason` where the condition holds.
        """

    def loop(self, until: str | None, limit: int | None, count: int, record: Sequence[int] = [], kernel: str = '', interval: int = 0) -> None:
        """
        Begin a loop over what is appended up to end().

        The scalar `count` is set to 0 and counts passes. Before each pass the loop ends where the condition
        `until` holds, or where `count` has reached the scalar `limit`. After each pass the scalars in `record`
        are appended to the history.

        Parameters
        ----------
        kernel : str
            Test of the loop on a device.
        interval : int
            The body is expected to run in one of so many passes of the loop around it; 0: not known.
            One device alone then queues passes around this loop, and waits only where the body runs.
        """

    def end(self) -> None:
        """End the innermost open loop."""

    def run(self, messages: bool = True, kernels: bool = True, traced: bool = False, overlap: bool = True, passes: int = 0, resumed: bool = False, ahead: bool = True, measured: bool = False, barriers: bool = False) -> dict:
        """
        Run all operations; collective. Other Python threads run meanwhile. Without messages or kernels
        the rest takes the time that it would take.

        Parameters
        ----------
        overlap : bool
            Whether patches that need no message run before all messages have come.
        passes : int
            Of an outermost loop after which the run pauses, where that goes on; 0: it does not pause.
        resumed : bool
            Go on where the run before has paused. Nothing may change between the two.
        ahead : bool
            Whether one device alone runs without waiting for the host.
        measured : bool
            Whether the time of each subdomain is measured.
        barriers : bool
            Whether devices finish and all ranks wait for each other after each sweep.

        Returns
        -------
        dict
            reason : 'completed', 'paused', 'interrupted' or the reason of a stop.
            loops : per loop 'condition', 'limit' or None where it did not end.
            stopped : whether a rank was asked to stop, also where that came too late to cut the run short;
                the same on all ranks. The request is spent.
            stopped_process : whether that was a signal, or `request_stop` of the module.
            history : float64 array (passes, len(record)) of the outermost loop that records.
            seconds, loop_seconds : the run and its outermost loops, the slowest rank's.
            compute, exchange, reduction : seconds of this rank's first thread; exchange is what is not hidden:
                packing, polling, waiting for messages; reduction is merging over ranks and waiting for it.
            graph_launches : how many times a device that runs ahead was given recorded passes.
            sweep_counts, sweep_seconds : executions and time of each sweep, in program order.
            subdomain_seconds : time of all threads in each subdomain, where measured, else 0.
            events : of a traced run, an array for each thread, one for all messages, and one for each of
                `lanes`, with rows of what was done (0 patch, 1 halo box, 2 boundary condition, 3 copy,
                4 packing, 5 unpacking, 6 reduction, 7 message, 8 send, 9 copy to the host, 10 copy from
                the host, 11 scalars, 12 the host queues work), sweep, patch or peer, tag of the message,
                begin and end in seconds of the run.
            lanes : of a traced run, the queues of devices: number of the subdomain, role ('computing',
                'packing', 'outgoing' or 'incoming'), and the direction of its messages or -1.
            clock_error : seconds by which times of devices may differ from those of the host.

        Raises
        ------
        RuntimeError
            On one rank. On several a failure ends all ranks, with 'rank R: reason' on standard error.
        """

    def progress(self) -> int:
        """
        Passes of the outermost loops so far; may be called from another thread during run().
        """

    def request_pause(self) -> None:
        """Ask all ranks to end the run between two passes of the outermost loop."""

def request_stop(signal: int = 0) -> None:
    """
    Ask the engines of this process to stop, at the same pass on all ranks, perhaps because of a signal.
    """

def forget_stop() -> bool:
    """
    Forget a request to stop that no run has followed yet; whether there was one.
    """

def note_signals(signals: Sequence[int]) -> None:
    """
    Let these signals be noted, for `noted_signal`. `signal.signal` takes them back.
    """

def noted_signal() -> int:
    """The last signal that was noted; 0 where none was."""

def forget_signal() -> None:
    """Forget the signal that was noted."""

def stopping_signal() -> int:
    """
    The signal of the last stop that all ranks have followed; 0 where it came from no signal.
    """

def stop_on_signals(signals: Sequence[int]) -> None:
    """
    Let these signals request a stop while run() holds the main thread; a second one ends the process.
    `signal.signal` takes them back.
    """

def mpi_library() -> str:
    """Path of the MPI library that native code is bound to."""

def has_mailboxes(communicator: int) -> bool:
    """
    Return True where one-sided communication has one memory (MPI_WIN_UNIFIED); collective.
    """

def shared_pages_are_huge() -> bool:
    """
    Return True where memory that processes share has huge pages (Linux 6.1 and later).
    """

def available_memory() -> int:
    """
    Bytes that all processes can still take: of the system, or of their control group's limit.
    """

def available_to_process() -> int:
    """
    Bytes that this process can still take: also of what its address space may grow to.
    """

def simd_width() -> int:
    """Bits of the widest vector registers of this machine."""

def openmp() -> tuple[int, int]:
    """
    The OpenMP version as a date (yyyymm) and the number of threads it takes by default.
    """

class DeviceStorage:
    """
    One array of one subdomain with its halo, in memory of a device: zeros at first.

    Parameters
    ----------
    device : Device
    shape, lower, upper : three int
        Cells of the subdomain, halo layers below and above.
    itemsize : int
        8 for float64, 4 for float32.

    Raises
    ------
    OutOfMemory
        With the bytes needed and available.
    """

    def __init__(self, device: Device, shape: Sequence[int], lower: Sequence[int], upper: Sequence[int], itemsize: int) -> None: ...

    def fetch(self) -> Storage:
        """A Storage with a copy of the cells, without halo."""

    def store(self, storage: Storage) -> None:
        """Take over the cells of a Storage of the same shape."""

    def read(self, module: Module, cells: Annotated[NDArray[numpy.int64], dict(shape=(None, 3), order='C', device='cpu', writable=False)]) -> bytes:
        """
        Return the bytes of the values of single cells, one after the other.

        Parameters
        ----------
        module : Module
            device_find.h, compiled for the device.
        cells : array of int64 (cells, 3)

        Raises
        ------
        ValueError
            A cell lies outside the storage.
        """

    @property
    def shape(self) -> tuple[int, int, int]: ...

    @property
    def itemsize(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Bytes of memory taken, padding included."""

class Search:
    """
    A search for values that are not finite, on the device where fields lie; it is queued, and not waited for.

    Parameters
    ----------
    module : Module
        device_find.h, compiled for the device.
    storages : list of DeviceStorage
        All on one device.
    boxes : list of lists of (three int, three int)
        Of each storage: where to look.

    Raises
    ------
    OutOfMemory, DeviceError
    """

    def __init__(self, module: Module, storages: Sequence[DeviceStorage], boxes: Sequence[Sequence[tuple[Sequence[int], Sequence[int]]]]) -> None: ...

    def found(self) -> list[bool]:
        """Wait for it: of each storage, whether a value is not finite."""

class DeviceSubdomain:
    """
    One subdomain of a rank, on a device.

    Parameters
    ----------
    device : Device
    module : Module
        The kernels, compiled for the device.
    storages : list of DeviceStorage
        By number. Engines may share them.
    scalars : int
        How many the program has.
    """

    def __init__(self, device: Device, module: Module, storages: Sequence[DeviceStorage], scalars: int) -> None: ...

class Launch:
    """
    A kernel over one box.

    Parameters
    ----------
    kernel : str
    operands : list of int
        Storage numbers.
    frame : list of int
        The members of hc_frame.
    groups, group : three int
        Groups along x, y, z, and threads of each.
    scratch, partials, layouts : bool
        Whether it takes scratch memory, a place for partial results, and the
        layouts of storages from memory.
    """

    def __init__(self, kernel: str, operands: Sequence[int], frame: Sequence[int], groups: Sequence[int], group: Sequence[int], scratch: bool, partials: bool, layouts: bool) -> None: ...

class Item:
    """
    A patch, or a box in the halo that is computed too.

    Parameters
    ----------
    needs : int
        Bit m: receives[m] must have arrived.
    rims : bool
        Whether the rims must have run.
    launches : list of Launch
        One after the other.
    halo : bool
        Whether it is a box in the halo.
    """

    def __init__(self, needs: int, rims: bool, launches: Sequence[Launch], halo: bool = False) -> None: ...

class DeviceShare:
    """
    Work of a sweep in one subdomain on a device.

    Parameters
    ----------
    sends, receives : list of Message
        At most 64 and 32.
    copies : list of (storage, source lo, destination lo, extent, subdomain)
    fills, rims : list of Launch
        Before the items; once all has arrived.
    items : list of Item
    partials : list of (kernel, reductions, groups)
        For each kernel that reduces: their numbers, and the groups of its launches.
    """

    def __init__(self, sends: Sequence[Message], receives: Sequence[Message], copies: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[int], int]], fills: Sequence[Launch], rims: Sequence[Launch], items: Sequence[Item], partials: Sequence[tuple[str, Sequence[int], int]]) -> None: ...

class Nvrtc:
    """
    NVIDIA's compiler of kernels as a library; it needs no device.

    Parameters
    ----------
    library : str
        Path, or a name that the loader finds.
    needed : list of str
        Libraries to load before it.

    Raises
    ------
    RuntimeError
        Where one cannot be loaded.
    """

    def __init__(self, library: str, needed: Sequence[str]) -> None: ...

    @property
    def version(self) -> tuple[int, int]: ...

    @property
    def architectures(self) -> list[int]:
        """Compute capabilities: 90 for sm_90."""

    def compile(self, source: str, name: str, options: Sequence[str]) -> tuple[bytes, str, str]:
        """
        Code (a cubin for a real architecture, else PTX), the error's name (empty without one) and the log.
        """

def apply(op: str, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], operands: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]]) -> None:
    """
    Apply an operation of generated kernels to each element of arrays of one length.
    """

class Accumulator:
    """Accumulator of one reduction, as those of generated kernels."""

    def __init__(self, kind: str) -> None: ...

    def deposit(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Add the values of an array."""

    def state(self) -> bytes:
        """The state, for `merge` on another rank."""

    def merge(self, state: bytes) -> None:
        """Add what another accumulator has taken."""

    def result(self) -> float:
        """The reduced number."""
