"""Run a program on a network that is not there: what ``commsim emulate`` and ``commsim.emulate`` call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError, wrong_kind
from commsim.core.files.socket_folders import socket_folder
from commsim.core.network import Network
from commsim.core.placement import PACKED
from commsim.core.remark import Remark
from commsim.core.spec import as_number
from commsim.core.units import count_text, format_time, parse_size, si_of
from commsim.prediction.build import CollectiveWork
from commsim.prediction.checks import texts
from commsim.prediction.inputs import NetworkLike, load_placement
from commsim.prediction.options import ScenarioOptions
from commsim.prediction.read import scenario_of
from commsim.prediction.scenario import Scenario
from commsim.real.library_rules import choice_of
from commsim.routing.routing import read_routing

from .clock import seconds_of
from .coordinator import Coordinator
from .ledger import CallRecord, Ledger, SiteRow
from .process_ranks import ADDRESS, ProcessRanks, interpreter, python_path
from .program_clock import CLOCK, CLOCKS
from .settings import DATA
from .start_process import write_start_file
from .thread_ranks import ThreadRanks
from .torch_ranks.inductor_folder import no_empty_folder
from .traffic.network_traffic import EmulatedTraffic

EAGER = "64KiB"
# Most ranks that are processes unless threads are asked for.
MOST_PROCESSES = 16
COMPUTE = "none"
# The first of each is the default.
RANKS_AS, LEAVES, DATAS = ("auto", "threads", "processes"), ("together", "own"), ("real", "none")
__all__ = ["DATAS", "EAGER", "LEAVES", "RANKS_AS", "Emulation", "emulate"]


@dataclass(frozen=True, slots=True, eq=False)
class Emulation:
    """What a program took on the network.

    Parameters
    ----------
    network : Network
        The network.
    time : float, s
        When the last rank ended.
    ends, computed, exposed : float64[n_ranks], s
        When each rank ended, how long it computed, and how long it waited for the network.
    steps : float64[n_steps, n_ranks, 2], s
        When each rank ended each step of its optimiser, and how long it had waited for the network until then.
    rows : tuple of SiteRow
        Calls by site, those that took longest first.
    records : tuple of CallRecord
        Every call, where that was asked for.
    link_bytes : float64[n_links], bytes
        What each link carried.
    remarks : tuple of Remark
        What was assumed.
    n_simulated : int
        Simulations that were made.
    """

    network: Network
    time: float
    ends: NDArray[np.float64]
    computed: NDArray[np.float64]
    exposed: NDArray[np.float64]
    steps: NDArray[np.float64]
    rows: tuple[SiteRow, ...]
    records: tuple[CallRecord, ...]
    link_bytes: NDArray[np.float64]
    remarks: tuple[Remark, ...]
    n_simulated: int

    @property
    def step(self) -> tuple[float, float]:
        """Time of the last step, from when the last rank had ended the one before; and the mean that ranks waited, s.

        Without an optimiser, those of the whole program.
        """
        if not len(self.steps):
            return self.time, float(self.exposed.mean())
        before = self.steps[-2] if len(self.steps) > 1 else np.zeros_like(self.steps[-1])
        time, exposed = self.steps[-1].T[0].max() - before.T[0].max(), (self.steps[-1] - before).T[1].mean()
        return float(time), float(exposed)

    def __repr__(self) -> str:
        calls = count_text(sum(row.n_calls for row in self.rows), "call")
        return (
            f"Emulation({count_text(len(self.ends), 'rank')} on {self.network.name}: {calls}, {format_time(self.time)})"
        )

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each site and kind of call, as a data frame of pandas or polars."""
        return frame_of((row.columns() for row in self.rows), library)


def emulate(
    program: Sequence[str] | Callable[[], Any],
    network: NetworkLike,
    ranks: int,
    *,
    library: str | None = None,
    algorithm: Sequence[str] = (),
    compute: str = COMPUTE,
    eager: float | str = EAGER,
    leave: str = LEAVES[0],
    data: str = DATAS[0],
    ranks_as: str = RANKS_AS[0],
    records: bool = False,
    clock: str = CLOCKS[0],
    **options: Unpack[ScenarioOptions],
) -> Emulation:
    """Run a program on a network that is not there: with its data and its sums, and a clock of that network.

    Parameters
    ----------
    program : sequence of str or callable
        Command such as ``["python", "train.py"]``, which is not changed; or a function without arguments, whose ranks
        are threads.
    network : str, Network or NetworkBuilder
        As in :func:`commsim.predict`.
    ranks : int
        Number of ranks.
    library : str, optional
        Library whose rules choose the algorithm of a collective: a name of ``LIBRARIES`` in
        :mod:`commsim.real.library_rules`. By default MPICH's for MPI, and for torch what ``commsim run`` would use.
    algorithm : sequence of str
        ``OPERATION=NAME[:key=value,...]``, in place of the library's.
    compute : str
        ``none``: computing takes no time. ``measured`` or ``measured:FACTOR``: the processor time of the rank.
    eager : float, bytes, or str
        Largest message that is sent before its receive is posted.
    leave : {"together", "own"}
        Whether all ranks leave a collective at its end, which is what :func:`commsim.predict` counts; or each when its
        own part is complete.
    data : {"real", "none"}
        Whether the data of messages is moved. Without it only times are right, and memory is not needed.
    ranks_as : {"auto", "threads", "processes"}
        What ranks are. Auto: processes up to 16, which share nothing; else threads of one process.
    records : bool
        Whether every call is kept.
    clock : {"virtual", "wall"}
        What ``time.time``, ``perf_counter`` and ``monotonic`` of the program show: the time of its rank, or of this
        machine.
    **options
        Keywords of :func:`commsim.scenario_of`: placement, routing, seed, faults and costs of messages.

    Returns
    -------
    Emulation

    Raises
    ------
    InputError
        If something is unknown or wrong.
    ProgramError
        If the program fails: with the rank, and what it raised or waits for.

    Examples
    --------
    >>> import commsim as cs
    >>> def program():
    ...     from mpi4py import MPI
    ...
    ...     return MPI.COMM_WORLD.allreduce(1)
    >>> cs.emulate(program, "star:n_hosts=4", 4)
    Emulation(4 ranks on star:n_hosts=4,bandwidth=100Gbps,latency=500ns: 14 calls, 12 us)
    """
    words = ("leave", leave, LEAVES), ("data", data, DATAS), ("ranks_as", ranks_as, RANKS_AS), ("clock", clock, CLOCKS)
    for name, value, known in words:
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    if not callable(program) and (
        isinstance(program, (str, bytes)) or not isinstance(program, Sequence) or not program
    ):
        raise wrong_kind("program", "a function without parameters, or a list such as ['python', 'prog.py']", program)
    if ranks < 1:
        raise InputError(f"ranks must be at least 1, got {ranks}")
    factor = _factor(compute)
    options["n_ranks"] = ranks
    scenario = scenario_of("", network, **options)
    _require_flow(scenario)
    traffic = EmulatedTraffic(scenario, _nodes(scenario, ranks), leave == "together")
    ledger = Ledger(records)
    choose = choice_of(library, texts("all_reduce=ring_all_reduce")("algorithm", algorithm), scenario.network)
    largest = si_of(eager, parse_size, "eager")
    coordinator = Coordinator(traffic, choose, largest, ledger.add)
    in_threads = callable(program) or ranks_as == "threads" or (ranks_as == "auto" and ranks > MOST_PROCESSES)
    remarks = list(scenario.remarks)
    if in_threads:
        from .programs import run_in_threads

        threads = ThreadRanks(coordinator, None if factor is None else time.thread_time, factor or 1.0)
        run_in_threads(threads, program, moves_data=data == "real", clock=clock)
        if not callable(program) and ranks_as == "auto":
            text = f"{ranks} ranks are threads of one process and share modules; --ranks-as processes"
            remarks.append(Remark("ranks-are-threads", text, details="such as NumPy's random state"))
    else:
        assert not callable(program)
        with no_empty_folder(), socket_folder(f"{ADDRESS}.{ranks}") as name:
            folder = Path(name)
            write_start_file(folder)
            environment = {"PYTHONPATH": python_path(folder), DATA: data, CLOCK: clock}
            ProcessRanks(coordinator, factor).run(interpreter(program), folder, environment)
    return _emulation(coordinator, ledger, remarks)


def _emulation(coordinator: Coordinator, ledger: Ledger, remarks: Sequence[Remark]) -> Emulation:
    traffic, clocks = coordinator.traffic, coordinator.clocks
    ends = np.array([seconds_of(clock.now) for clock in clocks])
    computed = np.array([seconds_of(clock.computed) for clock in clocks])
    exposed = np.array([seconds_of(clock.exposed) for clock in clocks])
    n_steps = min(len(clock.steps) for clock in clocks)
    steps = [[[*map(seconds_of, clock.steps[k])] for clock in clocks] for k in range(n_steps)]
    of_steps = np.array(steps).reshape(-1, len(clocks), 2)
    rows = sorted(ledger.rows.values(), key=lambda row: -row.ticks)
    return Emulation(
        traffic.network, float(ends.max()), ends, computed, exposed, of_steps, tuple(rows), tuple(ledger.records),
        traffic.all_carried(), tuple(remarks), traffic.n_simulated,
    )  # fmt: skip


def _nodes(scenario: Scenario, n_ranks: int) -> NDArray[np.int32]:
    read_routing(scenario.routing or scenario.network.routing)
    placement = scenario.placement
    if placement is None or isinstance(placement, str):
        placement = load_placement(placement or PACKED, scenario.network, n_ranks, scenario.seed)
    placement.check(scenario.network, n_ranks)
    return placement.nodes


def _require_flow(scenario: Scenario) -> None:
    """Refuse what the flow engine of an emulation has not."""
    wish = scenario.wish
    if wish.engine != "flow":
        raise InputError(f"programs run in engine flow, got engine {wish.engine}")
    for name, value in {"start jitter": wish.start_jitter, "flaps": wish.model.flaps}.items():
        if value:
            raise InputError(f"{name} is not modelled for emulated programs")
    if type(scenario.work) is not CollectiveWork:
        raise InputError(f"{scenario.work.NAME} is not modelled for emulated programs")


def _factor(compute: str) -> float | None:
    """Read how computing takes time: the factor of processor time, or None."""
    kind, colon, text = compute.partition(":")
    if compute == "none":
        return None
    if kind == "measured":
        try:
            factor = as_number(text) if colon else 1.0
        except ValueError:
            factor = -1.0
        if 0 < factor < float("inf"):
            return factor
    raise InputError(f"compute must be none, measured or measured:FACTOR with a factor above 0, got {compute!r}")
