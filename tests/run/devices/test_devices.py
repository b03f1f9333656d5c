"""Choice of devices, their memory, and their required capabilities."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from device_commands import SIDES, Devices, heat
from halocline import _native as native
from halocline.errors import InputError, RunError
from halocline.explanation.device import planned_devices
from halocline.plan.box import Box
from halocline.plan.devices import DeviceChoice
from halocline.plan.rank import FieldPlan
from halocline.run.devices.devices import (
    OnDevice,
    check_dtypes,
    check_memory,
    select_local_devices,
    storage_bytes,
    storage_layout,
    subdomain_bytes,
    summary,
)
from halocline.run.domain.execution import Execution

# -- runs ----------------------------------------------------------------------------------------------------


def test_the_devices_of_a_run_are_described():
    def on(device: str, name: str) -> OnDevice:
        return OnDevice(0, 0, device, name, "1")

    assert summary([on("cuda:0", "A")] * 3) == "device cuda:0 (A)"
    devices = [on("opencl:0", "A"), on("opencl:1", "B"), on("opencl:2", "A")]
    assert summary(devices) == "devices opencl:0, opencl:2 (A), opencl:1 (B)"


@pytest.mark.ranks(2)
@pytest.mark.usefixtures("opencl")
def test_ranks_report_the_same_devices_and_must_choose_the_same(monkeypatch: pytest.MonkeyPatch):
    from halocline.run.ranks.mpi import world

    comm = world()
    sim = heat(device="opencl")
    assert comm.allgather(sim.devices) == [sim.devices] * 2
    assert [place.device for place in sim.devices] == SIDES
    monkeypatch.setenv("HALOCLINE_DEVICE", ("opencl", "cpu")[comm.rank])
    with pytest.raises(InputError, match=r"the device is not the same on ranks 0 and 1: .*HALOCLINE_DEVICE"):
        heat()


# -- choice of devices ---------------------------------------------------------------------------------------


def test_the_environment_selects_devices_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HALOCLINE_DEVICE", raising=False)
    assert Execution().devices == DeviceChoice("cpu")
    monkeypatch.setenv("HALOCLINE_DEVICE", "cuda:1")
    assert Execution().devices == DeviceChoice("cuda", (1,))
    assert Execution(device="cpu").device == "cpu"
    monkeypatch.setenv("HALOCLINE_DEVICE", "")
    assert Execution().device == "cpu"
    monkeypatch.setenv("HALOCLINE_DEVICE", "gpu")
    with pytest.raises(InputError, match=r"^HALOCLINE_DEVICE: device 'gpu': 'gpu' is not an interface"):
        Execution()


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the devices by four OpenCL devices of two platforms; the last one has no float64."""
    platforms = ("GPUs", "GPUs", "PoCL", "GPUs")
    devices = [
        SimpleNamespace(
            interface="opencl",
            index=n,
            platform=platform,
            name=f"model {n}",
            doubles=n < 3,
            free_memory=10**9,
        )
        for n, platform in enumerate(platforms)
    ]
    stand_in = SimpleNamespace(devices=lambda interface: devices, why_no_devices=lambda interface: "")
    monkeypatch.setattr("halocline.run.devices.devices.native", lambda: stand_in)
    monkeypatch.setattr("halocline.explanation.device.native", lambda: stand_in)


@pytest.mark.usefixtures("made_up")
def test_devices_of_different_platforms_are_not_mixed():
    assert [device.index for device in select_local_devices(DeviceChoice("opencl", (1, 0)))] == [1, 0]
    for refuse in (select_local_devices, lambda choice: planned_devices(choice, 1)):
        with pytest.raises(
            InputError, match=r"opencl:0 belongs to the platform GPUs, but opencl:2 to PoCL\. Select "
        ):
            refuse(DeviceChoice("opencl", (0, 2)))
    assert planned_devices(DeviceChoice("opencl"), 1)[0] == (("opencl:0", "opencl:1", "opencl:3"),)
    assert planned_devices(DeviceChoice("opencl", (0, 9)), 1)[1] == "not on this machine: opencl:9"


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("text", ["opencl", "opencl:3"])
def test_a_device_without_float64_is_rejected_with_a_remedy(text: str):
    """The device is rejected for float32 fields too, since scalars and sums are float64."""
    with pytest.raises(
        InputError,
        match=r"^HALOCLINE_DEVICE: device opencl:3 \(model 3\) has no float64 with fma, "
        r"which sums over the grid require\. Choose another device, or cpu\.$",
    ):
        select_local_devices(DeviceChoice.parse(text), "HALOCLINE_DEVICE")


# -- memory and failures -------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(data=st.data())
def test_the_memory_of_a_field_is_known_before_allocation(opencl: Devices, data: st.DataObject):
    shape = data.draw(st.tuples(*[st.integers(1, 40)] * 3))
    lower, upper = (data.draw(st.tuples(*[st.integers(0, 20)] * 3)) for _ in range(2))
    itemsize = data.draw(st.sampled_from((4, 8)))
    owned = Box((0, 0, 0), shape)
    storage = owned.grow(list(zip(lower, upper, strict=True)))
    planned = FieldPlan("u", "float32" if itemsize == 4 else "float64", owned, storage, 0)
    native_storage = native.DeviceStorage(opencl[0], shape, lower, upper, itemsize)
    assert storage_bytes(planned) == native_storage.bytes
    assert storage_layout(planned) == tuple(native_storage.layout)


def test_memory_is_checked_for_all_ranks_on_a_device():
    device = SimpleNamespace(interface="opencl", index=1, name="small", free_memory=5 * 10**9)
    check_memory(device, 5 * 10**9, 1)
    check_memory(device, 2 * 10**9, 2)
    with pytest.raises(
        RunError, match=r"^device opencl:1 \(small\): the 2 ranks that share it need 6.0 GB, "
    ):
        check_memory(device, 3 * 10**9, 2)
    with pytest.raises(RunError, match=r"but only 5\.0 GB are free. Use more devices, a smaller grid or f"):
        check_memory(device, 6 * 10**9, 1)


def test_the_memory_check_includes_messages():
    owned, storage = Box((0, 0), (8, 16)), Box((-1, -1), (9, 17))
    field = FieldPlan(name="u", dtype="float64", owned=owned, storage=storage, bytes=10 * 18 * 8)
    sent = SimpleNamespace(scratch_bytes=1000, sends=[SimpleNamespace(bytes=64)], receives=[])
    received = SimpleNamespace(scratch_bytes=500, sends=[], receives=[SimpleNamespace(bytes=128)])
    plan = SimpleNamespace(fields=(field,), sweeps=(sent, received))
    assert subdomain_bytes(plan) == storage_bytes(field) + 1000 + 64 + 128
    assert subdomain_bytes(plan, {"u"}) == 1000 + 64 + 128


def test_float32_needs_a_device_with_the_rounding_of_the_host():
    def field(dtype: str) -> FieldPlan:
        return FieldPlan(name="rho", dtype=dtype, owned=Box((0,), (8,)), storage=Box((0,), (8,)), bytes=0)

    device = SimpleNamespace(interface="opencl", index=0, name="fast", singles=False)
    check_dtypes(device, [field("float64")])
    check_dtypes(SimpleNamespace(singles=True), [field("float32")])
    with pytest.raises(InputError, match=r"^field 'rho' is float32, but device opencl:0 \(fast\) does "):
        check_dtypes(device, [field("float64"), field("float32")])
