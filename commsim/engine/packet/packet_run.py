"""All tables of a run: laid out, run to the end, and enlarged when one is full."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network
from commsim.core.result import Result
from switch_model.slot_kernel import SLOT_ROW
from switch_model.slot_sequence import LOG_ROW

from . import packet_state as s
from . import traffic_state as m
from .packet_state import ENDLESS, LONGEST, PS, on_lines
from .pauses import deadlocked
from .run_kernel import run
from .transport import TRANSPORT_ROW, Fabric
from .wheel_kernel import bucket_shift

ONLY_READ = ("queue", "first_successor", "successor", "adding")  # a plan's own tables are used as they are
LOG_MARGIN = 8  # records that one event may write at most
MAX_PACKETS = 1 << 25  # at once, 2 GiB of them
LOOK_EVERY = 10 * 10**9  # ps between two looks for deadlock
MAX_BYTES = 1 << 34  # of what is recorded, each kind
# Fields of the state that every result has as counters.
COUNTERS = ("duplicates", "drops_loss", "drops_full", "marks", "out_of_order", "timeouts")
LINK_TABLES: dict[str, Any] = {
    "link": s.LINK_ROW, "buffer": s.BUFFER_ROW, "packet": s.PACKET_ROW, "stream": s.STREAM_ROW,
    "tap": s.TAP_ROW, "sample": s.SAMPLE_ROW,
}  # fmt: skip
JOB_TABLES: dict[str, Any] = {
    "job": m.JOB_ROW, "tensor": m.TENSOR_ROW, "worker": m.WORKER_ROW, "entry": m.ENTRY_ROW,
    "aggregator": m.AGGREGATOR_ROW, "slot": SLOT_ROW, "order": np.int16, "server": m.SERVER_ROW,
    "fragment": m.FRAGMENT_ROW, "log": LOG_ROW, "round_first": np.int64, "round_block": np.int32,
    "occupancy": np.uint64, "filled": np.bool_,
}  # fmt: skip
FLOW_TABLES: dict[str, Any] = {
    "flow": m.FLOW_ROW, "receiver": m.RECEIVER_ROW, "message": m.MESSAGE_ROW, "queue": np.int32,
    "first_successor": np.int64, "successor": np.int32, "early": np.uint64,
    "adding": np.int64, "adder_free": np.int64,
}  # fmt: skip


class Tables(NamedTuple):
    """All state of a run; changed in place."""

    links: s.Links
    jobs: m.Jobs
    flows: m.Flows


@dataclass(frozen=True, slots=True, eq=False)
class PacketRun:
    """What happened in a run.

    Parameters
    ----------
    results : tuple of Result
        One per job. Counters of what the packets met with are of all jobs together.
    tables : Tables
        All state at the end.
    cpu : float, s
        CPU time of the simulation proper.
    """

    results: tuple[Result, ...]
    tables: Tables
    cpu: float

    @property
    def series(self) -> s.Rows:
        """SAMPLE_ROW[n]: busy slots and bytes in queues over time, when asked for."""
        return self.tables.links.sample[: self.tables.links.state["n_samples"]]

    @property
    def taps(self) -> s.Rows:
        """TAP_ROW[n]: packets that left the tapped links, when asked for."""
        return self.tables.links.tap[: self.tables.links.state["n_tapped"]]


def lay_out(n_timers: int, n_unfinished: int, seed: int, *, hops: ArrayLike = (), **tables: Any) -> Tables:
    """Lay out all tables.

    Parameters
    ----------
    n_timers : int
        Events beside those of links.
    n_unfinished : int
        Workers or messages that must finish.
    seed : int
        Seed of losses and marks.
    hops : int[n_hops]
        Links of all streams, one stream after the other.
    **tables : structured arrays, or lists of rows
        Those that are not empty, `link` and `buffer` among them.
    """
    n_links = len(tables["link"])
    route = np.zeros(np.size(hops), s.ROUTE_ROW)
    route["link"] = hops
    state, link = np.zeros(1, s.STATE_ROW), tables["link"]
    state["sent_head"], state["next_sample"] = -1, s.NEVER
    state["n_links"], state["seed"], state["n_unfinished"] = n_links, seed % 2**63, n_unfinished
    state["first_worker_timer"] = 3 * n_links
    state["first_flow_timer"] = 3 * n_links + len(tables.get("worker", ()))
    n_events = 3 * n_links + n_timers + 1
    state["change_event"] = n_events - 1
    longest = np.max(link["latency"] + 2000 * link["ps_per_byte"] + link["packet_time"], initial=0.0)
    queue = s.event_queue(n_events, bucket_shift(longest))

    chosen_links = _chosen(LINK_TABLES, tables)
    stream, weight = chosen_links["stream"], np.array(tables.get("class_weight", ()), np.float64)
    n_classes = int(stream["priority"].max(initial=0)) + 1
    state["n_classes"] = n_classes
    per_class = np.zeros((2, n_links * n_classes), np.int64)
    links = s.Links(queue, state[0], **chosen_links, route=on_lines(route), held=per_class[0], last_key=per_class[1],
                    class_weight=weight / weight.min(initial=np.inf))  # fmt: skip
    links.route["last"][stream["end"][stream["end"] > stream["begin"]] - 1] = True
    transport = tables.get("transport", np.zeros(1, TRANSPORT_ROW))
    return Tables(links, job_tables(tables), m.Flows(transport[0], **_chosen(FLOW_TABLES, tables)))


def job_tables(tables: Mapping[str, Any]) -> m.Jobs:
    """Lay out the tables of jobs that switches aggregate; those that are not given are empty."""
    return m.Jobs(**_chosen(JOB_TABLES, tables), workers=tables.get("workers", np.zeros((0, 1), np.uint64)))


def _chosen(rows: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: np.asarray(tables.get(name, []), dtype) for name, dtype in rows.items()}
    return {name: table if name in ONLY_READ else on_lines(table) for name, table in given.items()}


def record(tables: Tables, tapped: Sequence[int], sample_every: float) -> None:
    """Record the packets of some links, and the state of slots and queues every so many seconds (0: never).

    Links whose packets leave in the order in which they come, without anybody asking when, are timed: they need one
    event for each packet, not two.
    """
    link = tables.links.link
    link["tapped"][list(tapped)] = True
    link["timed"] = ~link["tapped"] & (link["shared"] < 0) & (not link["xoff"].any()) & (not sample_every)
    link["timed"] &= tables.links.state["n_classes"] == 1
    if sample_every:
        state = tables.links.state
        state["sample_every"], state["next_sample"] = max(1, round(sample_every * PS)), 0


def run_to_end(
    tables: Tables, margin: int, begin: Callable[[Tables], None], change: Callable[[Tables], Tables] | None = None
) -> tuple[Tables, bool, float]:
    """Run to the end; tables that are full grow.

    Parameters
    ----------
    tables : Tables
        Laid out.
    margin : int
        Packets that one event may need at most.
    begin : callable
        Schedules the first events.
    change : callable, optional
        Changes links, at the times that it sets for the change event.

    Returns
    -------
    tables : Tables
        All state at the end.
    finished : bool
        False when nothing but timers can happen any more and some worker or message has not finished.
    cpu : float, s
        Taken, without compilation.
    """
    tables = grown(tables, margin)
    state = tables.links.state
    unfinished, state["n_unfinished"] = int(state["n_unfinished"]), 0
    run(*tables, margin)  # compiles, or loads, before the clock starts
    state["n_unfinished"] = unfinished
    began = time.process_time()
    begin(tables)
    pauses = bool(tables.links.link["xoff"].any())
    never = np.iinfo(np.int64).max
    state["look_at"] = LOOK_EVERY if pauses else never
    while (why := run(*tables, margin)) in (s.FULL, s.CHANGE):
        if why == s.CHANGE:
            assert change is not None
            tables = change(tables)
            continue
        if pauses and deadlocked(tables.links):
            break
        state["look_at"] = state["now"] + LOOK_EVERY if pauses else never
        tables = grown(tables, margin)
    return tables, why == s.DONE, time.process_time() - began


def grown(tables: Tables, margin: int) -> Tables:
    """Make room: double what is nearly full.

    Parameters
    ----------
    tables : Tables
        What the main loop returned.
    margin : int
        Packets that one event may need at most.

    Raises
    ------
    InputError
        If a run needs more memory than any sensible one does.
    """
    links, jobs, _ = tables
    state = links.state
    if state["n_free"] < margin:
        packet = _more_packets(links, margin)
        jobs = with_packets(jobs, len(packet) - len(links.packet))
        links = links._replace(packet=packet)
    links = links._replace(
        tap=_more_records("tap", links.tap, state["n_tapped"], 1, state["now"]),
        sample=_more_records("sample", links.sample, state["n_samples"], 1, state["now"]),
    )
    return tables._replace(links=links, jobs=with_records(jobs, state))


def with_packets(jobs: m.Jobs, n: int) -> m.Jobs:
    """Return the tables with room for the workers of so many packets more; packets are the last that have sets."""
    if not len(jobs.workers):  # slots are not shared
        return jobs
    more = np.zeros((n, jobs.workers.shape[1]), np.uint64)
    return jobs._replace(workers=np.concatenate((jobs.workers, more)))


def with_records(jobs: m.Jobs, state: s.Row) -> m.Jobs:
    """Return the tables with room for what an event may write to the log."""
    return jobs._replace(log=_more_records("log", jobs.log, state["n_log"], LOG_MARGIN, state["now"]))


def _more_records(name: str, table: s.Rows, used: int, room: int, now: int) -> s.Rows:
    if used + room <= len(table):
        return table
    if table.nbytes > MAX_BYTES // 2:
        raise InputError(f"a run of {now / PS:g} s so far has {used} records ({name}); ask for less")
    more = np.zeros(max(2 * len(table), 1 << 12), table.dtype)
    more[:used] = table[:used]
    return more


def _more_packets(links: s.Links, margin: int) -> s.Rows:
    state, old = links.state, len(links.packet)
    if old > MAX_PACKETS // 2:
        raise InputError(
            f"{old} packets are on their way at once: they are repeated (rto) faster than links can send them, or "
            "windows are too large"
        )
    new = max(2 * old, 4 * margin, 1024)
    packet: s.Rows = on_lines(np.zeros(new, s.PACKET_ROW))
    packet[:old] = links.packet
    packet["next"][old:] = np.arange(old + 1, new + 1)
    packet["next"][-1] = state["first_free"] if state["n_free"] else -1
    state["first_free"] = old
    state["n_free"] += new - old
    return packet


def idle_links(n: int) -> s.Rows:
    """Lay out links without packets, whose buffers are endless and which take no time."""
    link = np.zeros(n, s.LINK_ROW)
    for field in ("head", "tail", "pipe_head", "pipe_tail", "told", "shared"):
        link[field] = -1
    link["buffer"] = ENDLESS
    return link


def check_room(network: Network, fabric: Fabric, link: s.Rows, size: int) -> None:
    """Refuse queues into which a packet never fits.

    Parameters
    ----------
    network, fabric : Network, Fabric
        Network and its queues.
    link : LINK_ROW[n_links]
        Laid out of them.
    size : int, bytes
        Size of the largest packet on the wire.
    """
    room = min(float(link["buffer"].min(initial=ENDLESS)), fabric.shared_buffer * min(1.0, fabric.alpha))
    if room < size:
        raise InputError(f"{network.name}: every buffer must hold a packet of {size} bytes, got {room:g}")


def link_tables(network: Network, fabric: Fabric) -> tuple[s.Rows, s.Rows]:
    """Lay out the links, and the buffers that links of a switch share.

    Returns
    -------
    LINK_ROW[n_links], BUFFER_ROW[n]

    Raises
    ------
    InputError
        If a loss is not in [0, 1), or a latency or a byte's time does not fit into int64 picoseconds.
    """
    link = idle_links(network.n_links)
    times = {
        "latency": network.latency,
        "sender's overhead": network.overhead,
        "receiver's overhead": network.recv_overhead,
    }
    for name, values in times.items():
        if values.max(initial=0.0) > LONGEST:
            raise InputError(f"{network.name}: a {name} must be below {LONGEST:g} s, got {values.max()} s")
    if (network.bandwidth * LONGEST < 1).any():
        slowest = network.bandwidth.min()
        raise InputError(f"{network.name}: a byte must leave in less than {LONGEST:g} s, got {slowest:g} B/s")
    link["ps_per_byte"] = PS / network.bandwidth
    link["latency"] = np.rint(network.latency * PS)
    link["first_time"] = np.rint(network.overhead[network.src] * PS)
    link["last_time"] = np.rint(network.recv_overhead[network.dst] * PS)
    at_switch = network.kind[network.src] == SWITCH
    own = network.buffer if fabric.buffer is None else np.where(at_switch, fabric.buffer, network.buffer)
    link["buffer"] = _bytes(own)
    marks = _bytes(np.array([[fabric.ecn_min], [fabric.ecn_max]], np.float64))
    link["ecn_min"], link["ecn_max"] = np.where(at_switch, marks, 0)
    link["ecn_probability"] = fabric.ecn_probability
    pause_at, link["xon"] = _bytes(np.array([fabric.pause_at, fabric.resume_at], np.float64))
    link["xoff"] = np.where(network.kind[network.dst] == SWITCH, pause_at, 0)
    _losses(network, fabric, link)
    link["lossy"] = (link["loss"] > 0) | (link["to_bad"] > 0)
    switches = np.flatnonzero(network.kind == SWITCH) if np.isfinite(fabric.shared_buffer) else np.empty(0, np.intp)
    buffer = np.zeros(max(1, len(switches)), s.BUFFER_ROW)
    if len(switches):
        buffer["total"], buffer["alpha"] = _bytes(np.full(len(switches), fabric.shared_buffer)), fabric.alpha
        link["shared"][at_switch] = np.searchsorted(switches, network.src[at_switch])
    return link, buffer


def _losses(network: Network, fabric: Fabric, link: s.Rows) -> None:
    loss = np.broadcast_to(np.asarray(network.loss if fabric.loss is None else fabric.loss, np.float64), len(link))
    if not ((loss >= 0) & (loss < 1)).all():
        raise InputError(f"a loss is in [0, 1), got {loss[~((loss >= 0) & (loss < 1))][0]}")
    if fabric.loss_burst == 1:
        link["loss"] = loss
        return
    # in the long run to_bad / (to_bad + to_good) of the packets are lost
    link["loss_bad"], link["to_good"] = 1.0, 1.0 / fabric.loss_burst
    link["to_bad"] = link["to_good"] * loss / (1 - loss)
    if (link["to_bad"] > 1).any():
        raise InputError(
            f"a loss of {loss.max()} in bursts of {fabric.loss_burst} packets cannot be: use longer bursts"
        )


def _bytes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum(values, ENDLESS).astype(np.int64)
