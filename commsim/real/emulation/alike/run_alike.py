"""Run a program as the first of many ranks that are alike, and measure its steps in virtual time."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.real.torch_backend import load_torch
from commsim.scenario.given import NetworkLike
from commsim.scenario.inputs import PACKED, load_placement
from commsim.scenario.options import ScenarioOptions
from commsim.scenario.read import scenario_of

from ..failures import ProgramError
from ..start_process import raised_at
from .compute import Compute
from .host import Host
from .network_times import NetworkTimes
from .streams import Exchange, Span

__all__ = ["AlikeRun", "run_alike"]


@dataclass(frozen=True, slots=True)
class AlikeRun:
    """What an emulated program did.

    Parameters
    ----------
    time : float, s
        Virtual time of the whole program.
    steps : tuple of float, s
        Ends of the steps of its optimiser.
    host : Host
        State of the rank that ran.
    remarks : tuple of str
        What was assumed.
    """

    time: float
    steps: tuple[float, ...]
    host: Host
    remarks: tuple[str, ...]

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the last step, s; of all, where the program has no optimiser."""
        if not self.steps:
            return 0.0, self.time
        return (self.steps[-2] if len(self.steps) > 1 else 0.0), self.steps[-1]

    @property
    def step_time(self) -> float:
        """Time of the last step, s."""
        return self.window[1] - self.window[0]

    @property
    def exchanges(self) -> list[Exchange]:
        """Collectives that ended in the last step, in the order in which they were called."""
        begin, end = self.window
        return [one for one in self.host.gpu.exchanges if one.end is not None and begin < one.end <= end]

    @property
    def spans(self) -> Sequence[Span]:
        """What each stream did, in the whole program."""
        return self.host.gpu.spans

    def link_bytes(self) -> NDArray[np.float64]:
        """Bytes on each link in the last step."""
        total = np.zeros(self.host.network.network.n_links)
        for one in self.exchanges:
            total += one.costs.link_bytes
        return total


def run_alike(
    program: Sequence[str],
    network: NetworkLike,
    ranks: int,
    compute: Compute,
    algorithms: dict[str, str] | None = None,
    **options: Unpack[ScenarioOptions],
) -> AlikeRun:
    """Run a program as the first of ranks that are alike, without data.

    Parameters
    ----------
    program : sequence of str
        Command, such as ``["python", "train.py"]``.
    network
        Same as in :func:`commsim.predict`.
    ranks : int
        Number of ranks.
    compute : Compute
        Where the time of operators comes from.
    algorithms : mapping of str to str, optional
        Collectives for operations. Default: what runs on the network's machines, as in ``commsim run``.
    **options
        Keywords of :func:`commsim.scenario_of`: placement, routing, seed, faults and costs of messages.

    Raises
    ------
    InputError
        If the program cannot be read, or does what ranks that are alike cannot do.
    BackendError
        If torch is missing.
    ProgramError
        If the program raises.
    """
    path, arguments = _command(program)
    load_torch()
    options["n_ranks"] = ranks
    scenario = scenario_of("", network, **options)
    placement = scenario.placement
    if placement is None or isinstance(placement, str):
        placement = load_placement(placement or PACKED, scenario.network, ranks, scenario.seed)
    placement.check(scenario.network, ranks)
    times = NetworkTimes(scenario.network, placement, algorithms or {}, scenario.seed)
    host = Host(ranks, compute, times, path)
    from .stand_ins import stand_ins
    from .tensors import OnOneDevice, WithoutData

    without_data = WithoutData(host)  # made before the stand-ins: it imports modules that look at torch's functions
    with stand_ins(host, _ranks_of_a_machine(scenario.network, placement)), without_data, OnOneDevice():
        _run(path, arguments)
        time = host.gpu.synchronize()
    ends = [moment.time for moment in host.steps if moment.time is not None]
    return AlikeRun(time, tuple(ends), host, (*scenario.remarks, *host.remarks()))


def _command(program: Sequence[str]) -> tuple[Path, Sequence[str]]:
    """Return the file and the arguments of ``[python] FILE ARGS``."""
    words = list(program)
    if words and Path(words[0]).name.rstrip("0123456789.") == "python":
        words = words[1:]
    if not words or not words[0].endswith(".py"):
        raise InputError(f"ranks that are alike run a file, such as python train.py, got {' '.join(program)!r}")
    if not Path(words[0]).is_file():
        raise InputError(f"{words[0]}: no such program")
    return Path(words[0]), words[1:]


def _ranks_of_a_machine(network: Network, placement: Placement) -> int:
    """Ranks on the machine of the first one."""
    machine = network.machine[placement.nodes]
    return int((machine == machine[0]).sum()) if machine[0] >= 0 else 1


def _run(path: Path, arguments: Sequence[str]) -> None:
    """Execute a program as the main module; what it raises becomes one line with the place."""
    import runpy

    kept, folder = sys.argv, str(path.resolve().parent)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise ProgramError(f"{path}: rank 0 exits with {leave.code}") from None
    except InputError:
        raise
    except Exception as error:
        inner = error.__cause__ or error.__context__
        if isinstance(inner, InputError):  # libraries wrap what their callbacks raise
            raise inner from None
        raise ProgramError(f"rank 0: {raised_at(error, error.__traceback__)}") from error
    finally:
        sys.argv = kept
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
