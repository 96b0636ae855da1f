"""Messages of flows: when one may begin, when it is complete, and which ones waited for that."""

from __future__ import annotations

import numpy as np

from commsim.core.jit import njit_norefcount

from .packet_state import Links, Row
from .traffic_state import ADDED, GO, Flows
from .wheel_kernel import schedule


@njit_norefcount
def arm(links: Links, flows: Flows, f: int, kind: int, when: int) -> None:
    """Set a timer of a flow, unless it is set.

    Parameters
    ----------
    links, flows : Links, Flows
        All tables; changed in place.
    f : int
        Number of the flow.
    kind : int
        GO, TIMEOUT, RISE or ADDED.
    when : int, ps
        Time at which it fires.
    """
    flow = flows.flow[f]
    if not flow["pending"] & (1 << kind):
        flow["pending"] |= 1 << kind
        schedule(links.queue, links.state["first_flow_timer"] + kind * len(flows.flow) + f, when)


@njit_norefcount
def begin(links: Links, flows: Flows, f: int) -> bool:
    """Let the next message of a flow start, when nothing it waits for is left; return whether it did."""
    flow = flows.flow[f]
    if flow["message"] == flow["end"] or links.state["now"] < flow["ready"]:
        return False
    message = flows.message[flows.queue[flow["message"]]]
    if message["start"] >= 0 or message["waiting"] > 0:
        return False
    message["start"] = links.state["now"]
    flow["first"], flow["limit"] = message["first"], message["end"]
    flow["last_size"] = message["last_size"]
    return True


@njit_norefcount
def release(links: Links, flows: Flows, number: int, completed: int) -> None:
    """Tell the messages that waited for this one to be sent, or to be complete.

    Parameters
    ----------
    links, flows : Links, Flows
        All tables; changed in place.
    number : int
        Number of the message.
    completed : int
        1 when it is complete, 0 when it is sent.
    """
    for i in range(flows.first_successor[number], flows.first_successor[number + 1]):
        code = flows.successor[i]
        if code & 1 == completed:
            message = flows.message[code >> 1]
            message["waiting"] -= 1
            if message["waiting"] == 0 and begin(links, flows, message["flow"]):
                arm(links, flows, message["flow"], GO, links.state["now"])


@njit_norefcount
def deliver(links: Links, flows: Flows, f: int, receiver: Row, number: int) -> None:
    """Take a message whose data have all come: it is complete, or waits for its node to add it to what is there.

    A node adds one message at a time, in the order in which they come, and completes those of a flow in order.

    Parameters
    ----------
    links, flows : Links, Flows
        All tables; changed in place.
    f : int
        Number of the flow.
    receiver : RECEIVER_ROW
        Receiver's row of this flow.
    number : int
        Number of the message.
    """
    now = links.state["now"]
    then, place = now, receiver["message"]
    if len(flows.adding) > 0:
        if flows.adding[number] > 0:
            then = max(now, flows.adder_free[receiver["node"]]) + flows.adding[number]
            flows.adder_free[receiver["node"]] = then
        if receiver["complete"] < place:
            then = max(then, flows.message[flows.queue[place - 1]]["done"])
    flows.message[number]["done"] = then
    receiver["message"] += 1
    if then == now and receiver["complete"] == place:
        _complete(links, flows, receiver, number)
    elif receiver["complete"] == place:
        arm(links, flows, f, ADDED, then)


@njit_norefcount
def on_added(links: Links, flows: Flows, f: int) -> None:
    """Complete the message of a flow that has been added, and wait for the next one."""
    flow, receiver = flows.flow[f], flows.receiver[f]
    flow["pending"] &= ~np.uint8(1 << ADDED)
    links.state["events"] += 1
    _complete(links, flows, receiver, flows.queue[receiver["complete"]])
    if receiver["complete"] < receiver["message"]:
        arm(links, flows, f, ADDED, flows.message[flows.queue[receiver["complete"]]]["done"])


@njit_norefcount
def _complete(links: Links, flows: Flows, receiver: Row, number: int) -> None:
    links.state["n_unfinished"] -= 1
    receiver["complete"] += 1
    release(links, flows, number, 1)
