"""Messages of flows: when each begins, is complete, and lets others begin; and the timers of flows."""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.packets.codes import ADDED, GO, RCCC, TIMEOUT
from commsim.packets.event_rows import NEVER
from commsim.packets.hosts.sender_kernel import arm, get_ready, give_up, request
from commsim.packets.packet_rows import COMPLETE, SENT, STARTED, RunState
from commsim.packets.rule_kernel import rules_for


@njit_norefcount
def on_left(fabric: RunState, f: int, now: int) -> None:
    """Note that the last packet of a flow's message has first left its host; go on with the next message."""
    _release(fabric, _note_sent(fabric, f, now), 0, now)
    if _begin(fabric, f, now):
        _set_out(fabric, f)


@njit_norefcount
def on_go(fabric: RunState, f: int, now: int) -> None:
    """Go on with a flow: both ends have begun, its next message may begin, or its rate allows a packet."""
    flow = fabric.flow[f]
    _begin(fabric, f, now)
    if flow["local"]:
        _pass_local(fabric, f, now)
    elif flow["highest"] == flow["first"]:
        _set_out(fabric, f)
    else:
        get_ready(fabric, f)


@njit_norefcount
def on_timeout(fabric: RunState, f: int, now: int) -> None:
    """Give up packets that got no answer for too long; a timer that was put off only sets itself again."""
    flow = fabric.flow[f]
    if flow["give_up"] <= now:
        give_up(fabric, f, now)
    if flow["give_up"] < NEVER:
        arm(fabric, f, TIMEOUT, flow["give_up"])


@njit_norefcount
def on_added(fabric: RunState, f: int, now: int) -> None:
    """Complete the message of a flow that has been added, and wait for the next one."""
    _complete(fabric, f, now)
    receiver = fabric.receiver[f]
    if receiver["complete"] < receiver["message"]:
        arm(fabric, f, ADDED, fabric.times[COMPLETE, fabric.queue[receiver["complete"]]])


@njit_norefcount
def take_messages(fabric: RunState, f: int, now: int) -> None:
    """Take the messages of a flow whose packets have all come."""
    receiver = fabric.receiver[f]
    while fabric.flow[f]["expected"] >= receiver["boundary"]:
        _take(fabric, f, now)


@njit_norefcount
def _begin(fabric: RunState, f: int, now: int) -> bool:
    """Let the next message of a flow start, when nothing it waits for is left; return whether it did."""
    flow = fabric.flow[f]
    if flow["message"] == flow["end"] or now < flow["ready"]:
        return False
    number = fabric.queue[flow["message"]]
    message = fabric.message[number]
    if fabric.times[STARTED, number] >= 0 or message["waiting"] > 0:
        return False
    fabric.times[STARTED, number] = now
    flow["first"], flow["limit"] = flow["limit"], message["end"]
    flow["last_size"] = message["last_size"]
    return True


@njit_norefcount
def _note_sent(fabric: RunState, f: int, now: int) -> int:
    """Note that the last packet of a flow's message has first left its host; return the number of the message."""
    flow = fabric.flow[f]
    number = fabric.queue[flow["message"]]
    fabric.times[SENT, number] = now
    flow["message"] += 1
    return int(number)


@njit_norefcount
def _set_out(fabric: RunState, f: int) -> None:
    """Send the first packets of a message that has begun."""
    flow, rules = fabric.flow[f], rules_for(fabric, f)
    if rules["transport"] == RCCC and flow["highest"] > 0 and flow["highest"] < flow["limit"]:
        if flow["acknowledged"] == flow["highest"]:  # as at the beginning, a window goes before it is paid for
            flow["blind"] = True
            flow["credit"] = max(flow["credit"], int(rules["window"]))
        elif flow["credit"] <= 0:
            request(fabric, f)
    get_ready(fabric, f)


@njit_norefcount
def _release(fabric: RunState, number: int, completed: int, now: int) -> None:
    """Tell the messages that waited for this one to be sent (0), or to be complete (1)."""
    for i in range(fabric.first_successor[number], fabric.first_successor[number + 1]):
        if fabric.successor[i] & 1 == completed:
            message = fabric.message[fabric.successor[i] >> 1]
            message["waiting"] -= 1
            if message["waiting"] == 0 and _begin(fabric, message["flow"], now):
                arm(fabric, message["flow"], GO, now)


@njit_norefcount
def _take(fabric: RunState, f: int, now: int) -> None:
    """Take one message of a flow whose packets have all come: it is complete, or waits for its node to add it.

    A node adds one message at a time, in the order in which they come, and completes those of a flow in order.
    """
    receiver, then = fabric.receiver[f], now
    place = receiver["message"]
    number = fabric.queue[place]
    if len(fabric.adding) > 0:
        if fabric.adding[number] > 0:
            then = max(now, fabric.adder_free[receiver["node"]]) + fabric.adding[number]
            fabric.adder_free[receiver["node"]] = then
        if receiver["complete"] < place:
            then = max(then, fabric.times[COMPLETE, fabric.queue[place - 1]])
    fabric.times[COMPLETE, number] = then
    receiver["message"], receiver["boundary"] = place + 1, NEVER
    if receiver["message"] < receiver["end"]:
        receiver["boundary"] = fabric.message[fabric.queue[receiver["message"]]]["end"]
    if receiver["complete"] < place:
        return
    if then == now:
        _complete(fabric, f, now)
    else:
        arm(fabric, f, ADDED, then)


@njit_norefcount
def _complete(fabric: RunState, f: int, now: int) -> None:
    receiver = fabric.receiver[f]
    number = fabric.queue[receiver["complete"]]
    receiver["complete"] += 1
    _release(fabric, number, 1, now)


@njit_norefcount
def _pass_local(fabric: RunState, f: int, now: int) -> None:
    """Deliver the messages that can begin, of a flow whose ends are one host, which cross no link."""
    flow = fabric.flow[f]
    while flow["message"] < flow["end"] and fabric.times[STARTED, fabric.queue[flow["message"]]] >= 0:
        number = _note_sent(fabric, f, now)
        end = fabric.message[number]["end"]  # that of the flow is the next message's if that one waited for this one
        flow["highest"] = flow["acknowledged"] = flow["expected"] = end
        _release(fabric, number, 0, now)
        _take(fabric, f, now)
        if end == flow["n_packets"]:
            flow["received_at"] = flow["finished_at"] = now
            fabric.state["n_unfinished"] -= 1
        _begin(fabric, f, now)
