"""Messages of hosts: when each begins, is complete, and lets others begin; and the timers of a host.

A message may begin as soon as what it waits for has happened. Where that happens at its own host it begins at once;
where it happens at another host, with the next span: at most the least latency of a link late.
"""

from __future__ import annotations

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.message_kernel import begin, deliver, free_successor, note_sent

from .fabric_state import NEVER, RCCC, Fabric
from .sender_kernel import get_ready, give_up, request


@njit_norefcount
def on_left(fabric: Fabric, h: int, f: int, now: int) -> None:
    """Note that the last packet of a flow's message has first left its host; go on with the next message."""
    _release(fabric, h, note_sent(fabric, f, now), 0, now)
    if begin(fabric, f, now):
        _set_out(fabric, f, now)


@njit_norefcount
def take_messages(fabric: Fabric, h: int, f: int, now: int) -> None:
    """Take the messages of a flow whose packets have all come."""
    receiver = fabric.receiver[f]
    while fabric.flow[f]["expected"] >= receiver["boundary"]:
        _take(fabric, h, f, now)


@njit_norefcount
def on_timer(fabric: Fabric, h: int, now: int) -> None:
    """Begin the messages of a host whose time has come, and give up packets that got no answer for too long."""
    host = fabric.host[h]
    host["timer"] = NEVER
    for i in range(host["first_flow"], host["first_flow"] + host["n_flows"]):
        f = fabric.flow_of[i]
        flow = fabric.flow[f]
        if flow["ready"] > now:
            host["timer"] = min(host["timer"], flow["ready"])
            continue
        if flow["limit"] == 0 and begin(fabric, f, now):
            _set_out(fabric, f, now)
        if flow["give_up"] <= now:
            if flow["local"]:
                _pass_local(fabric, h, f, now)
            else:
                give_up(fabric, f, now)
        host["timer"] = min(host["timer"], flow["give_up"])


@njit_norefcount
def on_added(fabric: Fabric, h: int, now: int) -> None:
    """Complete the message that a host has added, and wait for the next one."""
    host = fabric.host[h]
    f = host["adding_head"]
    host["adding_head"] = fabric.flow[f]["next_adding"]
    _complete(fabric, h, f, now)
    receiver = fabric.receiver[f]
    if receiver["complete"] < receiver["message"]:
        _add(fabric, h, f, fabric.message[fabric.queue[receiver["complete"]]]["done"])
    _set_adder(fabric, h)


@njit_norefcount
def wake(fabric: Fabric, now: int) -> None:
    """Let the messages begin that hosts have waited for others to let begin, when a span is over."""
    state = fabric.state
    f = state["woken_head"]
    state["woken_head"] = -1
    while f >= 0:
        flow = fabric.flow[f]
        _set_out(fabric, f, now)
        host = fabric.host[flow["src"]]
        host["wake"] = min(host["wake"], now)
        f = flow["next_woken"]


@njit_norefcount
def _set_out(fabric: Fabric, f: int, now: int) -> None:
    """Go on with a flow whose next message has begun, at its own host."""
    flow, rules = fabric.flow[f], fabric.rules
    if flow["local"]:
        flow["give_up"] = now
        host = fabric.host[flow["src"]]
        host["timer"] = min(host["timer"], now)
        return
    if rules["transport"] == RCCC and flow["highest"] > 0:
        if flow["acknowledged"] == flow["highest"]:  # as at the beginning, a window goes before it is paid for
            flow["blind"] = True
            flow["credit"] = max(flow["credit"], int(rules["window"]))
        elif flow["credit"] <= 0:
            request(fabric, f, now)
    get_ready(fabric, f)


@njit_norefcount
def _release(fabric: Fabric, h: int, number: int, completed: int, now: int) -> None:
    """Tell the messages that waited for this one to be sent (0), or to be complete (1)."""
    state = fabric.state
    for i in range(fabric.first_successor[number], fabric.first_successor[number + 1]):
        f = free_successor(fabric, i, completed, now)
        if f >= 0 and fabric.flow[f]["src"] == h:
            _set_out(fabric, f, now)
        elif f >= 0:
            fabric.flow[f]["next_woken"] = state["woken_head"]
            state["woken_head"] = f


@njit_norefcount
def _take(fabric: Fabric, h: int, f: int, now: int) -> None:
    """Take one message of a flow whose packets have all come."""
    receiver = fabric.receiver[f]
    then = deliver(fabric, receiver, fabric.queue[receiver["message"]], now)
    receiver["boundary"] = NEVER
    if receiver["message"] < receiver["end"]:
        receiver["boundary"] = fabric.message[fabric.queue[receiver["message"]]]["end"]
    if then == now:
        _complete(fabric, h, f, now)
    elif then != NEVER:
        _add(fabric, h, f, then)
        _set_adder(fabric, h)


@njit_norefcount
def _complete(fabric: Fabric, h: int, f: int, now: int) -> None:
    receiver = fabric.receiver[f]
    number = fabric.queue[receiver["complete"]]
    receiver["complete"] += 1
    _release(fabric, h, number, 1, now)


@njit_norefcount
def _add(fabric: Fabric, h: int, f: int, when: int) -> None:
    """Let a flow wait for its node to add its message, among others in the order of time."""
    host, flow = fabric.host[h], fabric.flow[f]
    flow["added_at"] = when
    before, after = -1, host["adding_head"]
    while after >= 0 and fabric.flow[after]["added_at"] <= when:
        before, after = after, fabric.flow[after]["next_adding"]
    flow["next_adding"] = after
    if before < 0:
        host["adding_head"] = f
    else:
        fabric.flow[before]["next_adding"] = f


@njit_norefcount
def _set_adder(fabric: Fabric, h: int) -> None:
    host = fabric.host[h]
    f = host["adding_head"]
    host["added_at"] = fabric.flow[f]["added_at"] if f >= 0 else NEVER


@njit_norefcount
def _pass_local(fabric: Fabric, h: int, f: int, now: int) -> None:
    """Deliver the message of a flow whose ends are one host, which crosses no link."""
    flow = fabric.flow[f]
    flow["give_up"] = NEVER
    number = note_sent(fabric, f, now)
    _release(fabric, h, number, 0, now)
    flow["highest"] = flow["acknowledged"] = flow["expected"] = flow["limit"]
    _take(fabric, h, f, now)
    if flow["limit"] == flow["n_packets"]:
        flow["received_at"] = flow["finished_at"] = now
        fabric.state["n_unfinished"] -= 1
    elif begin(fabric, f, now):
        _set_out(fabric, f, now)
