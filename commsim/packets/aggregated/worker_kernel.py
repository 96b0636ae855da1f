"""Workers of an aggregation job: a window of messages, each repeated when its result stays away.

Either each slot clocks itself (SwitchML: the result of message q on a slot lets message q + W follow), or messages
go in order in a window that congestion may shrink (ATP, PANAMA).
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets.aggregated.aggregator_kernel import chunk_of, note, set_of_packet
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.codes import CONTRIBUTION, ECN_CAPABLE, EMPTY, MARKED, RESENT, VERSION
from commsim.packets.event_rows import Row
from commsim.packets.links.posting_kernel import free_packet, send, take_packet
from commsim.packets.links.wheel_kernel import schedule
from commsim.packets.packet_rows import RunState
from switch_model.slot_kernel import only
from switch_model.slot_sequence import RECEIVE


@njit_norefcount
def on_worker_timer(fabric: RunState, jobs: AggregationState, number: int) -> None:
    """Start a worker, or repeat the messages that have timed out.

    Parameters
    ----------
    fabric, jobs : RunState, AggregationState
        All tables; changed in place.
    number : int
        Number of the worker.
    """
    worker = jobs.worker[number]
    job = jobs.job[worker["job"]]
    worker["timer_pending"] = False
    if not worker["started"]:
        worker["started"] = True
        fabric.state["events"] += 1
        _begin_tensor(fabric, jobs, worker, job)
        return
    expired = 0
    while worker["head"] >= 0 and jobs.entry[worker["head"]]["deadline"] <= fabric.state["now"]:
        entry = worker["head"]
        _unlink(jobs, worker, entry)
        _repeat(fabric, jobs, worker, job, entry)
        expired = 1
    fabric.state["events"] += expired
    fabric.state["timeouts"] += expired
    _set_timer(fabric, jobs, worker, job)


@njit_norefcount
def on_worker_result(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Take a result: once, in order inside its message; then let the next message go."""
    packet = fabric.packet[p]
    number = fabric.stream[packet["stream"]]["owner"]
    worker = jobs.worker[number]
    job = jobs.job[worker["job"]]
    message, position, marked = packet["number"], packet["position"], packet["flags"] & MARKED != 0
    place = _entry_of(jobs, worker, job, message)
    entry = jobs.entry[place]
    if entry["message"] != message or entry["done"]:
        fabric.state["duplicates"] += 1
        free_packet(fabric, p)
        return
    if position == 0:
        entry["expected"] = 0
    if position != entry["expected"]:
        fabric.state["out_of_order"] += 1
        entry["expected"] = -1
        free_packet(fabric, p)
        return
    chunk = chunk_of(jobs, job, message, position)
    if chunk >= 0:
        note(fabric, jobs, RECEIVE, -1, number, chunk, packet["message"], -1)
    if job["shared"] and packet["tag"]:
        entry["slot"] = packet["tag"] - 1
    free_packet(fabric, p)
    entry["expected"] += 1
    worker["n_results"] += 1
    worker["n_marked"] += marked
    if entry["expected"] == job["packets"]:
        entry["done"] = True
        _unlink(jobs, worker, place)
        worker["left"] -= 1
        _go_on(fabric, jobs, worker, job, message)


@njit_norefcount
def _go_on(fabric: RunState, jobs: AggregationState, worker: Row, job: Row, message: int) -> None:
    end = jobs.tensor[worker["tensor"]]["end"]
    if worker["left"] == 0:
        if worker["tensor"] + 1 < job["tensor"] + job["n_tensors"]:
            worker["tensor"] += 1
            _begin_tensor(fabric, jobs, worker, job)
        else:
            worker["finished"] = fabric.state["now"]
            fabric.state["n_unfinished"] -= 1
    elif job["sliding"]:
        if job["ecn"] and message >= worker["limit"]:
            _adjust_window(worker, job)
        _slide(fabric, jobs, worker, job)
        first = _entry_of(jobs, worker, job, worker["base"])
        if message > worker["base"] and not jobs.entry[first]["resent"] and job["rto"] > 0:
            _unlink(jobs, worker, first)
            _repeat(fabric, jobs, worker, job, first)
    elif _follows(jobs, job, message, end):
        _send_message(fabric, jobs, worker, job, message + job["window"])


@njit_norefcount
def _slide(fabric: RunState, jobs: AggregationState, worker: Row, job: Row) -> None:
    end = jobs.tensor[worker["tensor"]]["end"]
    while worker["base"] < worker["next"]:
        entry = jobs.entry[_entry_of(jobs, worker, job, worker["base"])]
        if not entry["done"]:
            break
        worker["base"] += 1
    window = min(job["window"], int(worker["congestion_window"]) // job["packets"]) if job["ecn"] else job["window"]
    while worker["next"] < end and worker["next"] - worker["base"] < max(1, window):
        _send_message(fabric, jobs, worker, job, worker["next"])
        worker["next"] += 1


@njit_norefcount
def _adjust_window(worker: Row, job: Row) -> None:
    """Shrink or widen the congestion window, once per window of results."""
    share = worker["n_marked"] / worker["n_results"]
    if job["gain"] == 1.0 and worker["n_marked"]:
        share = 1.0
    worker["marks"] += job["gain"] * (share - worker["marks"])
    if worker["n_marked"]:
        worker["congestion_window"] *= 1.0 - worker["marks"] / 2.0
    else:
        worker["congestion_window"] += job["segment"]
    worker["congestion_window"] = min(max(worker["congestion_window"], 1.0), job["max_window"])
    worker["n_marked"], worker["n_results"] = 0, 0
    worker["limit"] = worker["next"]


@njit_norefcount
def _begin_tensor(fabric: RunState, jobs: AggregationState, worker: Row, job: Row) -> None:
    tensor = jobs.tensor[worker["tensor"]]
    worker["left"] = tensor["end"] - tensor["first"]
    worker["base"] = worker["next"] = tensor["first"]
    if job["sliding"]:
        worker["limit"] = max(worker["limit"], tensor["first"])
        _slide(fabric, jobs, worker, job)
        return
    rounds, first, n = job["rounds"], tensor["first"], min(job["window"], tensor["end"] - tensor["first"])
    if rounds >= 0:
        first, n = 0, job["window"]
        worker["left"] = jobs.round_first[rounds + n] - jobs.round_first[rounds]
    for message in range(first, first + n):
        if rounds < 0 or jobs.round_first[rounds + message] < jobs.round_first[rounds + message + 1]:
            _send_message(fabric, jobs, worker, job, message)


@njit_norefcount
def _follows(jobs: AggregationState, job: Row, message: int, end: int) -> bool:
    """Whether the slot of this message has another one: round r of slot j is message j + r * window."""
    if job["rounds"] < 0:
        return bool(message + job["window"] < end)
    row = job["rounds"] + message % job["window"]
    return bool(jobs.round_first[row] + message // job["window"] + 1 < jobs.round_first[row + 1])


@njit_norefcount
def _is_empty(jobs: AggregationState, worker: Row, job: Row, message: int) -> bool:
    """Whether a worker's packet in a round has no values; in the first round it always has some."""
    if job["rounds"] < 0 or message < job["window"]:
        return False
    block = chunk_of(jobs, job, message, 0)
    word = jobs.occupancy[job["owned"] + worker["number"] * job["owned_words"] + block // 64]
    return bool((word >> np.uint64(block % 64)) & np.uint64(1) == 0)


@njit_norefcount
def _index(jobs: AggregationState, worker: Row, job: Row, message: int) -> int:
    """Position in the sequence of slots and versions: it goes on from tensor to tensor."""
    return int(message - jobs.tensor[worker["tensor"]]["first"]) if job["restarts_slots"] else message


@njit_norefcount
def _entry_of(jobs: AggregationState, worker: Row, job: Row, message: int) -> int:
    """Entry of the window that a message has."""
    return int(worker["entry"] + _index(jobs, worker, job, message) % job["window"])


@njit_norefcount
def _send_message(fabric: RunState, jobs: AggregationState, worker: Row, job: Row, message: int) -> None:
    place = _entry_of(jobs, worker, job, message)
    entry = jobs.entry[place]
    entry["message"], entry["expected"] = message, 0
    entry["resent"] = entry["done"] = False
    _transmit(fabric, jobs, worker, job, place, 0)


@njit_norefcount
def _repeat(fabric: RunState, jobs: AggregationState, worker: Row, job: Row, place: int) -> None:
    jobs.entry[place]["resent"] = True
    worker["n_resent"] += job["packets"]
    fabric.state["retransmissions"] += job["packets"]
    _transmit(fabric, jobs, worker, job, place, RESENT)


@njit_norefcount
def _transmit(fabric: RunState, jobs: AggregationState, worker: Row, job: Row, place: int, flags: int) -> None:
    """Send the packets of the message in a window's entry, and set its time."""
    entry = jobs.entry[place]
    index = _index(jobs, worker, job, entry["message"])
    n_packets = job["packets"]
    slot = (index % job["window"]) * n_packets
    version = VERSION if (index // job["window"]) & 1 else 0
    for position in range(n_packets):
        p = take_packet(fabric)
        packet = fabric.packet[p]
        packet["kind"] = CONTRIBUTION
        packet["number"], packet["position"] = entry["message"], position
        packet["slot"] = entry["slot"] if job["shared"] else (slot + position) | version
        packet["message"], packet["worker"] = -1, job["worker"] + worker["number"]
        if job["shared"]:
            only(jobs.workers, set_of_packet(jobs, p), worker["number"])
        packet["flags"] = flags | (ECN_CAPABLE if job["ecn"] else 0)
        packet["size"] = job["bytes_middle"]
        if position == 0:
            packet["size"] = job["bytes_first"]
        elif position == n_packets - 1:
            packet["size"] = job["bytes_last"]
        if _is_empty(jobs, worker, job, entry["message"]):
            packet["flags"] |= EMPTY
            packet["size"] = job["bytes_empty"]
        spread = slot if job["rounds"] >= 0 else entry["message"]
        send(fabric, p, worker["up"] + spread % job["n_trees"])
    entry["deadline"] = fabric.state["now"] + job["rto"]
    entry["after"], entry["before"] = -1, worker["tail"]
    if worker["tail"] < 0:
        worker["head"] = place
    else:
        jobs.entry[worker["tail"]]["after"] = place
    worker["tail"] = place
    _set_timer(fabric, jobs, worker, job)


@njit_norefcount
def _unlink(jobs: AggregationState, worker: Row, place: int) -> None:
    entry = jobs.entry[place]
    if entry["before"] >= 0:
        jobs.entry[entry["before"]]["after"] = entry["after"]
    else:
        worker["head"] = entry["after"]
    if entry["after"] >= 0:
        jobs.entry[entry["after"]]["before"] = entry["before"]
    else:
        worker["tail"] = entry["before"]


@njit_norefcount
def _set_timer(fabric: RunState, jobs: AggregationState, worker: Row, job: Row) -> None:
    if worker["timer_pending"] or worker["head"] < 0 or job["rto"] == 0:
        return
    worker["timer_pending"] = True
    number = job["worker"] + worker["number"]
    schedule(fabric.events, fabric.state["first_worker_timer"] + number, jobs.entry[worker["head"]]["deadline"])
