"""Aggregation in the network: what switches and parameter servers do with the packets that reach them.

The rule is `switch_model.slot_kernel`'s. What it says about values is written to a log, to be replayed afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from commsim.core.jit import njit_norefcount
from switch_model.slot_kernel import (
    ADD,
    ALL,
    COLLISION,
    DUPLICATE,
    FREE,
    OVERWRITE,
    READ,
    SENDER,
    UP,
    claim,
    contribute,
    release,
    take_result,
)

from .link_kernel import free_packet, send, take_packet
from .packet_state import (
    COLLIDED,
    COLLISIONS,
    DUPLICATES,
    ECN_MARKED,
    EMPTY,
    FIRST,
    N_ADDED,
    N_BUSY_SLOTS,
    N_LOG,
    N_MESSAGES,
    OUT_OF_ORDER,
    REPLY,
    RESENT,
    RESULT,
    VERSION,
)


@njit_norefcount
def chunk_of(t: Any, job: Any, message: int, position: int) -> int:
    """Return the chunk that a packet carries, or -1 when it carries exponents only."""
    if job["rounds"] >= 0:
        row_of_slot = job["rounds"] + message % job["window"]
        return int(t.round_block[t.round_first[row_of_slot] + message // job["window"]])
    tensor = 0
    first = job["tensor"]
    while message >= t.tensor[first + tensor]["end"]:
        tensor += 1
    row = t.tensor[first + tensor]
    index = message - row["first"] - row["lead"]
    if index < 0:
        return -1
    chunk = row["chunk"] + index * job["packets"] + position
    return int(chunk) if chunk < row["end_chunk"] else -1


@njit_norefcount
def slot_row(row: Any, job: Any, slot: int) -> int:
    """Return the row of a reserved slot in the version that bit 30 names; a pool of one version ignores it."""
    if job["versions"] == 1:
        return int(row["slots"] + (slot & ~VERSION))
    return int(row["slots"] + 2 * (slot & ~VERSION) + (slot & VERSION != 0))


@njit_norefcount
def note(t: Any, action: int, register: int, worker: int, chunk: int, into: int, out: int) -> None:
    """Write one operation on values to the log."""
    row = t.log[t.clock[N_LOG]]
    t.clock[N_LOG] += 1
    row["action"] = action
    row["register"] = register
    row["worker"] = worker
    row["chunk"] = chunk
    row["in_message"] = into
    row["out_message"] = out


@njit_norefcount
def new_message(t: Any) -> int:
    """Return the number of a message that a READ makes."""
    t.clock[N_MESSAGES] += 1
    return int(t.clock[N_MESSAGES] - 1)


@njit_norefcount
def on_contribution(t: Any, p: int) -> None:
    """Handle a packet with values, from a worker or from a switch below."""
    packet = t.packet[p]
    stream = t.stream[packet["stream"]]
    number = stream["owner"]
    job = t.job[t.aggregator[number]["job"]]
    if job["shared"]:
        _on_claim(t, p, number)
        return
    child = stream["child"]
    if job["packets"] > 1 and packet["worker"] >= 0 and not _in_order(t, number, child, packet):
        t.clock[OUT_OF_ORDER] += 1
        free_packet(t, p)
        return
    row = t.aggregator[number]
    at = slot_row(row, job, packet["slot"])
    shadow = slot_row(row, job, packet["slot"] ^ VERSION)
    if job["forgets"]:
        t.slot[at]["seen"] &= ~(np.uint64(1) << np.uint64(child))
    before = t.slot[at]["seen"]
    action = contribute(t.slot, at, shadow, child, row["fan_in"], row["up"] >= 0)
    if action & (OVERWRITE | ADD):
        marked = packet["flags"] & ECN_MARKED
        t.slot[at]["ecn"] = bool(marked) or (before != 0 and t.slot[at]["ecn"])
        t.clock[N_BUSY_SLOTS] += (before == 0) - (action & READ != 0)
        t.clock[N_ADDED] += 1
    else:
        t.clock[DUPLICATES] += 1
    if job["rounds"] >= 0:
        action = _without_empty(t, packet, job, at, action)
    _carry_out(t, p, number, at, action)


@njit_norefcount
def on_result(t: Any, p: int) -> None:
    """Handle a result on its way down at a switch that has switches below, or that must free its slot."""
    packet = t.packet[p]
    number = t.stream[packet["stream"]]["owner"]
    row = t.aggregator[number]
    job = t.job[row["job"]]
    if job["shared"]:
        at = row["slots"] + packet["slot"] % job["pool"]
        if release(t.slot, at, _key(row["job"], packet["number"])) & FREE:
            t.clock[N_BUSY_SLOTS] -= 1
        _to_children(t, p, number)
        return
    at = slot_row(row, job, packet["slot"])
    action = take_result(t.slot, at)
    chunk = chunk_of(t, job, packet["number"], packet["position"])
    out = new_message(t)
    if chunk >= 0:
        note(t, action & (OVERWRITE | READ), at, -1, chunk, packet["message"], out)
    packet["message"] = out
    _to_children(t, p, number)


@njit_norefcount
def on_unit(t: Any, p: int) -> None:
    """Send what the aggregation unit has finished to where it was going."""
    number = t.stream[t.packet[p]["stream"]]["owner"]
    if t.packet[p]["kind"] == RESULT:
        _to_children(t, p, number)
    else:
        send(t, p, t.aggregator[number]["up"])


@njit_norefcount
def on_server(t: Any, p: int) -> None:
    """Handle a packet at a parameter server: count its workers once, and answer when all are counted."""
    packet = t.packet[p]
    row = t.server[t.stream[packet["stream"]]["owner"]]
    job = t.job[row["job"]]
    message = packet["number"]
    fragment = t.fragment[row["fragments"] + message]
    register = row["register"] + message % row["n_registers"]
    before = fragment["seen"]
    bits = packet["bits"]
    action = DUPLICATE
    if before & bits == 0:
        action = OVERWRITE if before == 0 else ADD
        fragment["seen"] = before | bits
        note(t, action, register, packet["worker"], chunk_of(t, job, message, 0), packet["message"], -1)
        t.clock[N_ADDED] += 1
    else:
        t.clock[DUPLICATES] += 1
    if packet["flags"] & COLLIDED and fragment["slot"] < 0:
        fragment["slot"] = job["unclaimed"]
        job["unclaimed"] = (job["unclaimed"] + 7919) % job["pool"]
    if fragment["seen"] != row["everyone"]:
        free_packet(t, p)
        return
    packet["message"], packet["worker"] = new_message(t), -1
    note(t, READ, register, -1, chunk_of(t, job, message, 0), -1, packet["message"])
    packet["kind"] = RESULT
    packet["flags"] &= ~(RESENT | FIRST)
    packet["flags"] &= ~COLLIDED
    if fragment["slot"] >= 0:
        packet["bits"] = np.uint64(fragment["slot"]) + np.uint64(1)
    else:
        packet["bits"] = np.uint64(0)
    send(t, p, row["down"])


@njit_norefcount
def _on_claim(t: Any, p: int, number: int) -> None:
    packet = t.packet[p]
    row = t.aggregator[number]
    job = t.job[row["job"]]
    at = row["slots"] + packet["slot"] % job["pool"]
    resent = packet["flags"] & RESENT != 0
    was_free = t.slot[at]["key"] == 0
    held = t.slot[at]["seen"]
    action = claim(t.slot, at, _key(row["job"], packet["number"]), packet["bits"], row["everyone"], resent)
    if action & COLLISION:
        packet["flags"] |= COLLIDED
        t.clock[COLLISIONS] += 1
    if not action & (OVERWRITE | ADD | DUPLICATE):
        send(t, p, row["up"])
        return
    t.clock[N_BUSY_SLOTS] += was_free - (action & FREE != 0)
    if action & DUPLICATE:
        t.clock[DUPLICATES] += 1
    else:
        t.clock[N_ADDED] += 1
        t.slot[at]["ecn"] |= packet["flags"] & ECN_MARKED != 0
    packet["bits"] |= held
    _carry_out(t, p, number, at, action)


@njit_norefcount
def _carry_out(t: Any, p: int, number: int, at: int, action: int) -> None:
    """Write what happens to the registers to the log, and send what has to be sent."""
    packet = t.packet[p]
    row = t.aggregator[number]
    job = t.job[row["job"]]
    chunk = chunk_of(t, job, packet["number"], packet["position"])
    out = -1
    if action & READ:
        out = new_message(t)
    if chunk >= 0 and action & (OVERWRITE | ADD):
        note(t, action & (OVERWRITE | ADD | READ), at, packet["worker"], chunk, packet["message"], out)
    elif chunk >= 0 and action & READ:
        note(t, READ, at, -1, chunk, -1, out)
    if not action & READ:
        free_packet(t, p)
        return
    packet["message"], packet["worker"] = out, -1
    packet["flags"] = (packet["flags"] & ~(FIRST | ECN_MARKED)) | (ECN_MARKED if t.slot[at]["ecn"] else 0)
    if action & SENDER:
        _reply(t, p, number)
    elif action & ALL:
        packet["kind"] = RESULT
        _through_unit(t, p, number)
    elif action & UP:
        _through_unit(t, p, number)


@njit_norefcount
def _without_empty(t: Any, packet: Any, job: Any, at: int, action: int) -> int:
    """Let a packet without values count, but not add: the first one of a round with values overwrites."""
    if action & OVERWRITE:
        t.filled[at] = False
    if action & (OVERWRITE | ADD):
        action &= ~(OVERWRITE | ADD)
        if not packet["flags"] & EMPTY:
            action |= ADD if t.filled[at] else OVERWRITE
            t.filled[at] = True
    packet["flags"] &= ~EMPTY
    packet["size"] = job["bytes_only"]
    return int(action)


@njit_norefcount
def _through_unit(t: Any, p: int, number: int) -> None:
    unit = t.aggregator[number]["unit"]
    if unit >= 0:
        send(t, p, unit)
    elif t.packet[p]["kind"] == RESULT:
        _to_children(t, p, number)
    else:
        send(t, p, t.aggregator[number]["up"])


@njit_norefcount
def _to_children(t: Any, p: int, number: int) -> None:
    row = t.aggregator[number]
    for stream in range(row["down"], row["down_end"] - 1):
        copy = take_packet(t)
        t.packet[copy] = t.packet[p]
        send(t, copy, stream)
    send(t, p, row["down_end"] - 1)


@njit_norefcount
def _reply(t: Any, p: int, number: int) -> None:
    packet = t.packet[p]
    packet["kind"] = RESULT
    packet["flags"] |= REPLY
    send(t, p, t.aggregator[number]["down"] + t.stream[packet["stream"]]["child"])


@njit_norefcount
def _in_order(t: Any, number: int, child: int, packet: Any) -> bool:
    """Take a message's packets in order only, as an unreliable connection does: after a gap wait for a first one."""
    row = t.aggregator[number]
    job = t.job[row["job"]]
    place = row["order"] + child * job["window"] + (packet["slot"] & ~VERSION) // job["packets"]
    position = packet["position"]
    if position == 0:
        t.order[place] = 1
        return True
    if t.order[place] != position:
        t.order[place] = -1
        return False
    t.order[place] += 1
    return True


@njit_norefcount
def _key(job: int, message: int) -> int:
    """Return the owner of a shared slot: a fragment of a job, never 0."""
    return (job + 1 << 40) | message
