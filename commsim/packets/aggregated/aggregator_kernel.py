"""Aggregation in the network: what switches and parameter servers do with the packets that reach them.

The rule is `switch_model.slot_kernel`'s. What it says about values is written to a log, to be replayed afterwards.
"""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount
from commsim.packets import codes
from commsim.packets import event_rows as s
from commsim.packets.aggregated.traffic_state import AggregationState
from commsim.packets.links.posting_kernel import free_packet, send, take_packet
from commsim.packets.packet_rows import RunState
from switch_model import slot_kernel as rule


@njit_norefcount
def chunk_of(jobs: AggregationState, job: s.Row, message: int, position: int) -> int:
    """Return the chunk that a packet carries, or -1 when it carries exponents only.

    Parameters
    ----------
    jobs : AggregationState
        Aggregation jobs; changed in place.
    job : JOB_ROW
        Row of the job.
    message : int
        Number of the message in its job.
    position : int
        Position of the packet in its message.
    """
    if job["rounds"] >= 0:
        row_of_slot = job["rounds"] + message % job["window"]
        return int(jobs.round_block[jobs.round_first[row_of_slot] + message // job["window"]])
    tensor = 0
    first = job["tensor"]
    while message >= jobs.tensor[first + tensor]["end"]:
        tensor += 1
    row = jobs.tensor[first + tensor]
    index = message - row["first"] - row["lead"]
    if index < 0:
        return -1
    chunk = row["chunk"] + index * job["packets"] + position
    return int(chunk) if chunk < row["end_chunk"] else -1


@njit_norefcount
def set_of_packet(jobs: AggregationState, p: int) -> int:
    """Return which set of workers is a packet's: they follow those of slots, fragments, switches and servers."""
    return len(jobs.slot) + len(jobs.fragment) + len(jobs.aggregator) + len(jobs.server) + p


@njit_norefcount
def slot_row(row: s.Row, job: s.Row, slot: int) -> int:
    """Return the row of a reserved slot in the version that bit 30 names; a pool of one version ignores it.

    Parameters
    ----------
    row : AGGREGATOR_ROW
        Row of the aggregator.
    job : JOB_ROW
        Row of the job.
    slot : int
        Slot and version, as packets carry it.
    """
    if job["versions"] == 1:
        return int(row["slots"] + (slot & ~codes.VERSION))
    return int(row["slots"] + 2 * (slot & ~codes.VERSION) + (slot & codes.VERSION != 0))


@njit_norefcount
def note(
    fabric: RunState, jobs: AggregationState, action: int, register: int, worker: int, chunk: int, into: int, out: int
) -> None:
    """Write one operation on values to the log.

    Parameters
    ----------
    fabric, jobs : RunState, AggregationState
        All tables; changed in place.
    action : int
        Bits of `slot_kernel`, or RECEIVE.
    register : int
        Register in question, or -1.
    worker : int
        Worker whose own values go in, or that receives; -1 for none.
    chunk : int
        Chunk of the tensor.
    into : int
        Message whose values go in, or -1.
    out : int
        Message that is made, or -1.
    """
    row = jobs.log[fabric.state["n_log"]]
    fabric.state["n_log"] += 1
    row["action"], row["register"], row["worker"], row["chunk"] = action, register, worker, chunk
    row["in_message"], row["out_message"] = into, out


@njit_norefcount
def new_message(fabric: RunState) -> int:
    """Return the number of a message that a READ makes."""
    fabric.state["n_messages"] += 1
    return int(fabric.state["n_messages"] - 1)


@njit_norefcount
def on_contribution(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Handle a packet with values, from a worker or from a switch below."""
    packet = fabric.packet[p]
    stream = fabric.stream[packet["stream"]]
    row = jobs.aggregator[stream["owner"]]
    job = jobs.job[row["job"]]
    if job["shared"]:
        _on_claim(fabric, jobs, p, row, job)
        return
    child = stream["child"]
    if job["packets"] > 1 and packet["worker"] >= 0 and not _in_order(jobs, row, job, child, packet):
        fabric.state["out_of_order"] += 1
        free_packet(fabric, p)
        return
    at = slot_row(row, job, packet["slot"])
    shadow = slot_row(row, job, packet["slot"] ^ codes.VERSION)
    if job["skips_seen_check"]:
        jobs.slot[at]["seen"] &= ~(np.uint64(1) << np.uint64(child))
    before = jobs.slot[at]["seen"]
    action = rule.contribute(jobs.slot, at, shadow, child, row["fan_in"], row["up"] >= 0)
    if action & (rule.OVERWRITE | rule.ADD):
        marked = packet["flags"] & codes.MARKED
        jobs.slot[at]["ecn"] = bool(marked) or (before != 0 and jobs.slot[at]["ecn"])
        fabric.state["busy_slots"] += int(before == 0) - int(action & rule.READ != 0)
    else:
        fabric.state["duplicates"] += 1
    if job["rounds"] >= 0:
        action = rule.without_empty(jobs.filled, at, action, packet["flags"] & codes.EMPTY != 0)
        packet["flags"] &= codes.ALL_FLAGS ^ codes.EMPTY
        packet["size"] = job["bytes_first"]
    _carry_out(fabric, jobs, p, row, job, at, action)


@njit_norefcount
def on_result(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Handle a result on its way down at a switch that has switches below, or that must free its slot."""
    packet = fabric.packet[p]
    row = jobs.aggregator[fabric.stream[packet["stream"]]["owner"]]
    job = jobs.job[row["job"]]
    if job["shared"]:
        at = row["slots"] + packet["slot"] % job["pool"]
        if rule.release(jobs.slot, at, _key(row["job"], packet["number"]), jobs.workers, at) & rule.FREE:
            fabric.state["busy_slots"] -= 1
        _to_children(fabric, p, row)
        return
    at = slot_row(row, job, packet["slot"])
    action = rule.take_result(jobs.slot, at)
    chunk = chunk_of(jobs, job, packet["number"], packet["position"])
    out = new_message(fabric)
    if chunk >= 0:
        note(fabric, jobs, action & (rule.OVERWRITE | rule.READ), at, -1, chunk, packet["message"], out)
    packet["message"] = out
    _to_children(fabric, p, row)


@njit_norefcount
def on_unit(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Send what the aggregation unit has finished to where it was going."""
    row = jobs.aggregator[fabric.stream[fabric.packet[p]["stream"]]["owner"]]
    job = jobs.job[row["job"]]
    if not job["shared"]:
        jobs.slot[slot_row(row, job, fabric.packet[p]["slot"])]["in_unit"] = False
    _leave_switch(fabric, p, row)


@njit_norefcount
def on_server(fabric: RunState, jobs: AggregationState, p: int) -> None:
    """Handle a packet at a parameter server: count its workers once, and answer when all are counted."""
    packet = fabric.packet[p]
    row = jobs.server[fabric.stream[packet["stream"]]["owner"]]
    job = jobs.job[row["job"]]
    message = packet["number"]
    fragment = jobs.fragment[row["fragments"] + message]
    counted, held = len(jobs.slot) + row["fragments"] + message, set_of_packet(jobs, p)
    register = row["register"] + message % row["n_registers"]
    action = rule.serve(jobs.workers, counted, held, row["all_workers"])
    if not action & rule.DUPLICATE:
        told = action & (rule.OVERWRITE | rule.ADD)
        note(fabric, jobs, told, register, packet["worker"], chunk_of(jobs, job, message, 0), packet["message"], -1)
    else:
        fabric.state["duplicates"] += 1
    if packet["flags"] & codes.COLLIDED and fragment["slot"] < 0:
        fragment["slot"] = job["unclaimed"]
        job["unclaimed"] = (job["unclaimed"] + 7919) % job["pool"]
    if not action & rule.READ:
        free_packet(fabric, p)
        return
    packet["message"], packet["worker"] = new_message(fabric), -1
    note(fabric, jobs, rule.READ, register, -1, chunk_of(jobs, job, message, 0), -1, packet["message"])
    packet["kind"] = codes.RESULT
    packet["flags"] &= codes.ALL_FLAGS ^ (codes.RESENT | codes.COLLIDED)
    packet["tag"] = fragment["slot"] + 1
    send(fabric, p, row["down"])


@njit_norefcount
def _on_claim(fabric: RunState, jobs: AggregationState, p: int, row: s.Row, job: s.Row) -> None:
    packet = fabric.packet[p]
    at = row["slots"] + packet["slot"] % job["pool"]
    resent = packet["flags"] & codes.RESENT != 0
    was_free = jobs.slot[at]["key"] == 0
    key, held = _key(row["job"], packet["number"]), set_of_packet(jobs, p)
    action = rule.claim(jobs.slot, at, key, jobs.workers, at, held, row["all_workers"], resent)
    if action & rule.COLLISION:
        packet["flags"] |= codes.COLLIDED
        fabric.state["collisions"] += 1
    if not action & (rule.OVERWRITE | rule.ADD | rule.DUPLICATE):
        send(fabric, p, row["up"])
        return
    fabric.state["busy_slots"] += int(was_free) - int(action & rule.FREE != 0)
    if action & rule.DUPLICATE:
        fabric.state["duplicates"] += 1
    else:
        jobs.slot[at]["ecn"] |= packet["flags"] & codes.MARKED != 0
    _carry_out(fabric, jobs, p, row, job, at, action)


@njit_norefcount
def _carry_out(fabric: RunState, jobs: AggregationState, p: int, row: s.Row, job: s.Row, at: int, action: int) -> None:
    """Write what happens to the registers to the log, and send what has to be sent."""
    packet = fabric.packet[p]
    if action & rule.DUPLICATE and jobs.slot[at]["in_unit"]:  # no copy of the sum before the unit has finished it
        free_packet(fabric, p)
        return
    chunk = chunk_of(jobs, job, packet["number"], packet["position"])
    out = new_message(fabric) if action & rule.READ else -1
    if chunk >= 0 and action & (rule.OVERWRITE | rule.ADD):
        told = action & (rule.OVERWRITE | rule.ADD | rule.READ)
        note(fabric, jobs, told, at, packet["worker"], chunk, packet["message"], out)
    elif chunk >= 0 and action & rule.READ:
        note(fabric, jobs, rule.READ, at, -1, chunk, -1, out)
    if not action & rule.READ:
        free_packet(fabric, p)
        return
    packet["message"], packet["worker"] = out, -1
    packet["flags"] &= codes.ALL_FLAGS ^ codes.MARKED
    packet["flags"] |= codes.MARKED if jobs.slot[at]["ecn"] else 0
    if action & rule.SENDER:
        packet["kind"] = codes.RESULT
        packet["flags"] |= codes.REPLY
        send(fabric, p, row["down"] + fabric.stream[packet["stream"]]["child"])
    elif action & (rule.ALL | rule.UP):
        if action & rule.ALL:
            packet["kind"] = codes.RESULT
        if row["unit"] >= 0:
            jobs.slot[at]["in_unit"] = not job["shared"]
            send(fabric, p, row["unit"])
        else:
            _leave_switch(fabric, p, row)


@njit_norefcount
def _leave_switch(fabric: RunState, p: int, row: s.Row) -> None:
    """Send a sum to the parent, or a result to every child."""
    if fabric.packet[p]["kind"] == codes.RESULT:
        _to_children(fabric, p, row)
    else:
        send(fabric, p, row["up"])


@njit_norefcount
def _to_children(fabric: RunState, p: int, row: s.Row) -> None:
    for stream in range(row["down"], row["down_end"] - 1):
        copy = take_packet(fabric)
        fabric.packet[copy] = fabric.packet[p]
        send(fabric, copy, stream)
    send(fabric, p, row["down_end"] - 1)


@njit_norefcount
def _in_order(jobs: AggregationState, row: s.Row, job: s.Row, child: int, packet: s.Row) -> bool:
    """Take a message's packets in order only, as an unreliable connection does: after a gap wait for a first one."""
    place = row["order"] + child * job["window"] + (packet["slot"] & ~codes.VERSION) // job["packets"]
    position = packet["position"]
    if position == 0:
        jobs.order[place] = 1
        return True
    if jobs.order[place] != position:
        jobs.order[place] = -1
        return False
    jobs.order[place] += 1
    return True


@njit_norefcount
def _key(job: int, message: int) -> int:
    """Return the owner of a shared slot: a fragment of a job, never 0."""
    return (job + 1 << 40) | message
