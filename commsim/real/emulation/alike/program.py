"""Run a program as the first of many ranks that are alike, and measure its steps in virtual time."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import BackendError, InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.real.torch_backend import load_torch

from .compute import Compute
from .host import Host
from .network_times import NetworkTimes
from .streams import Exchange, Span


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
    n_operators : int
        Calls of operators that took time.
    """

    time: float
    steps: tuple[float, ...]
    host: Host

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """Collectives, in the order in which they were called."""
        return self.host.gpu.exchanges

    @property
    def spans(self) -> Sequence[Span]:
        """What each stream did, by its end."""
        return self.host.gpu.spans

    @property
    def window(self) -> tuple[float, float]:
        """Start and end of the last step; of all, where the program has no optimiser."""
        if not self.steps:
            return 0.0, self.time
        return (self.steps[-2] if len(self.steps) > 1 else 0.0), self.steps[-1]

    def link_bytes(self) -> NDArray[np.float64]:
        """Bytes on each link in the window, of the collectives that ended in it."""
        begin, end = self.window
        total = np.zeros(self.host.network.network.n_links)
        for one in self.exchanges:
            if one.end is not None and begin < one.end <= end:
                total += one.costs.link_bytes
        return total


def run_alike(
    script: str, arguments: Sequence[str], network: Network, placement: Placement, compute: Compute,
    algorithms: dict[str, str] | None = None, seed: int = 0,
) -> AlikeRun:  # fmt: skip
    """Run a program as the first of the ranks that are placed.

    Parameters
    ----------
    script : str
        Path of a Python program.
    arguments : sequence of str
        Its arguments.
    network, placement
        Network, and the node of each rank.
    compute : Compute
        Where the time of operators comes from; ``measured`` needs data, which is not here.
    algorithms : mapping of str to str, optional
        Collectives for operations.
    seed : int
        Seed of hashes, and of torch.

    Returns
    -------
    AlikeRun

    Raises
    ------
    InputError
        If the program cannot be read, or does what ranks alike cannot do.
    BackendError
        If torch is missing, or the program raises.
    """
    if compute.kind == "measured":
        raise InputError("--compute measured needs tensors with data; name a GPU, such as --compute roofline:h100")
    path = Path(script)
    if not path.is_file():
        raise InputError(f"{script}: no such program")
    torch = load_torch()
    from .stand_ins import stand_ins
    from .tensors import OnOneDevice, WithoutData

    host = Host(len(placement.nodes), compute, NetworkTimes(network, placement, algorithms or {}, seed), path)
    torch.manual_seed(seed)
    without_data = WithoutData(host)  # made before the stand-ins: it imports modules that look at torch's functions
    with stand_ins(host, _ranks_of_a_machine(network, placement)), without_data, OnOneDevice():
        _run(path, arguments)
        time = host.gpu.synchronize()
    ends = [moment.time for moment in host.steps if moment.time is not None]
    return AlikeRun(time, tuple(ends), host)


def _ranks_of_a_machine(network: Network, placement: Placement) -> int:
    """Ranks on the machine of the first one."""
    machine = network.machine[placement.nodes]
    return int((machine == machine[0]).sum()) if machine[0] >= 0 else 1


def _run(path: Path, arguments: Sequence[str]) -> None:
    """Execute a program as the main module; what it raises becomes one line with the place."""
    kept, folder = sys.argv, str(path.resolve().parent)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as leave:
        if leave.code not in (None, 0):
            raise BackendError(f"{path}: the program ended with {leave.code}") from None
    except (InputError, BackendError):
        raise
    except Exception as error:
        if isinstance(error.__cause__, InputError) or isinstance(error.__context__, InputError):
            raise (error.__cause__ or error.__context__) from None  # type: ignore[misc]
        raise BackendError(f"{path}: rank 0 raised {_one_line(error, path)}") from error
    finally:
        sys.argv = kept
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _one_line(error: Exception, path: Path) -> str:
    """Type, place in the program, and first line of an exception."""
    places = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == path.name]
    where = f" at line {places[-1].lineno}" if places else ""
    text = str(error).strip().splitlines()
    if os.environ.get("COMMSIM_TRACEBACK"):
        out = io.StringIO()
        traceback.print_exception(error, file=out)
        print(out.getvalue(), file=sys.stderr)
    return f"{type(error).__name__}{where}: {text[0] if text else 'without a message'}"
