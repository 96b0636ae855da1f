"""A program, unchanged, as a point of a sweep: ``commsim emulate`` in a process of its own, on the point's network."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.own_files import allowed_command, only_code, words_of
from commsim.core.files.whole_files import read_tree
from commsim.core.spec import OwnFile
from commsim.prediction.options import COSTS

from .point_parameters import faults_of, network_spec
from .quantities import write_value

# Parameters of a program, as the flags of ``commsim emulate``, and the kind of each.
FLAGS = {"library": "text", "compute": "text", "eager": "size", "leave": "text", "data": "text", "ranks_as": "text"}
KINDS = {f"workload.{key}": kind for key, kind in {"program": "text", "ranks": "whole", **FLAGS}.items()}


def check_program(own: Mapping[str, Any], operations: Sequence[str], *, on_network: bool) -> None:
    """Refuse parameters that are no program's, or too few.

    Parameters
    ----------
    own : mapping of str to value
        Keys of ``[workload]``.
    operations : sequence of str
        Operations whose algorithm may be named.
    on_network : bool
        Whether a topology is given.

    Raises
    ------
    InputError
        Naming them.
    """
    for name in own:
        if f"workload.{name}" not in KINDS and name not in operations:
            raise InputError(f"workload.{name} has no effect on an emulated workload.program")
    if not on_network:
        raise InputError("workload.program needs topology.name: the network that the program runs on")
    if "ranks" not in own:
        raise InputError("workload.program needs workload.ranks")
    try:
        words_of(own["program"])
    except InputError as error:
        raise InputError(f"workload.program {error}") from None


def program_row(
    seed: int, parameters: Mapping[str, Any], own: Mapping[str, Any], kinds: Mapping[str, str],
    operations: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """Run the program once; what it prints is left out.

    Parameters
    ----------
    seed : int
        Seed of random placement, of faults and of ECMP.
    parameters, own : mapping of str to value
        Parameters by table and key, and those of the table ``workload``.
    kinds : mapping of str to str
        Kind of every parameter of the sweep.
    operations : sequence of str
        Operations whose algorithm may be named.

    Raises
    ------
    InputError
        With the last line that ``commsim emulate`` wrote, if the program or the network fails.
    """
    if not isinstance(own["program"], OwnFile):
        allowed_command(own["program"], ())
    flags = ["-n", str(own["ranks"]), "--topology", network_spec(parameters, kinds), "--seed", str(seed)]
    options = {key: parameters.get(f"engine.{key}") for key in COSTS}
    options |= {key: own.get(key) for key in FLAGS} | {"placement": parameters.get("placement.strategy")}
    for key, value in options.items():
        if value is not None:
            flags += [f"--{key.replace('_', '-')}", write_value(value, {**COSTS, **FLAGS}.get(key, "text"))]
    for key, values in faults_of(parameters).items():
        flags += [text for value in values for text in (f"--{key}", value)]
    for operation in operations:
        flags += ["--algorithm", f"{operation}={own[operation]}"] if operation in own else []
    may_run = only_code((flags[3], parameters.get("placement.strategy"), *(own.get(key) for key in operations)))
    with tempfile.TemporaryDirectory(prefix="commsim-") as folder:
        out = Path(folder) / "emulated.json"
        command = [
            sys.executable,
            "-m",
            "commsim",
            may_run,
            "emulate",
            *flags,
            "--json",
            str(out),
            "--",
            *words_of(own["program"]),
        ]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise InputError(lines[-1].removeprefix("commsim emulate: ").removeprefix("error: "))
        tree = read_tree(out)
    row = {
        "n_ranks": own["ranks"], "time_s": tree["time_s"], "compute_s": max(tree["computed_s"]),
        "max_link_bytes": max(tree["link_bytes_B"].values(), default=0.0), "remarks": [],
    }  # fmt: skip
    return row | ({"step_s": tree["step_s"], "exposed_comm_s": tree["exposed_s"]} if "step_s" in tree else {})
