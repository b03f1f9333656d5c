"""Options with meaningless values: each generated line works, or ends with status 2 and one message.

Further tests have values that once crashed, hung or were accepted silently.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from swept_options import check_sweep, run

# -- the sweep -----------------------------------------------------------------------------------------------


def test_two_thousand_command_lines_work_or_are_rejected() -> None:
    check_sweep(2000, seed=int.from_bytes(os.urandom(3)))


# -- memory --------------------------------------------------------------------------------------------------


def test_a_solve_succeeds_without_memory_for_measurements(tmp_path: Path) -> None:
    """A solve under any limit of the address space gives a result, or an error before the solve.

    With one of the limits the result lacks the bandwidth.
    """
    ends = []
    for bound in range(250, 600, 25):
        status, out, err = run(
            "solve poisson --n 2000 --max-iterations 3 --threads 1", tmp_path, address_space=bound * 2**20
        )
        assert "Traceback" not in err, (bound, err)
        if status == 0:
            assert "checksum" in out
            ends.append("without bandwidth" if "bandwidth of the memory is not known" in err else "whole")
            if ends[-1] == "whole":
                break
        else:
            assert err.count("halocline: error:") == 1, (bound, err)
            assert "available" in err or "memory" in err, (bound, err)
            ends.append("refused")
    assert {"without bandwidth", "whole"} <= set(ends), ends


def test_messages_between_devices_can_be_predicted(tmp_path: Path) -> None:
    status, out, _ = run("model poisson --n 256 --machine summit --methods gpu_aware,mpi", tmp_path)
    assert status == 0
    assert "a pass" in out


def test_mailboxes_that_exceed_memory_are_rejected(tmp_path: Path) -> None:
    line = "bench exchange --n 256 --fields 16 --dtype float64 --radius 8 --repeat 1 --ranks 2 --threads 1"
    status, out, err = run(f"{line} --methods rma --mailboxes 256", tmp_path)
    assert (status, out) == (1, "")
    assert re.fullmatch(
        r"halocline: error: the fields and mailboxes of the 2 ranks on this node need 237\.5 GB, but only "
        r"[\d.,]+ GB are available. Use fewer mailboxes, a smaller grid, float32 or more nodes\.\n",
        err,
    )
