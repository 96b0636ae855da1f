"""Messages of flows: when one may begin, when it is complete, and which ones waited for that.

These rules hold for any sender: the tables have the fields that :class:`MessageTables` names.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from commsim.engine.packet.packet_state import NEVER, Row, Rows


class MessageTables(Protocol):
    """What the rules of messages read and change: fields of the same name as in ``Flows``."""

    @property
    def flow(self) -> Rows:
        """Senders."""

    @property
    def receiver(self) -> Rows:
        """Receivers."""

    @property
    def message(self) -> Rows:
        """All messages."""

    @property
    def queue(self) -> NDArray[np.int32]:
        """Messages by flow."""

    @property
    def first_successor(self) -> NDArray[np.int64]:
        """Index of the first message that waits for each one."""

    @property
    def successor(self) -> NDArray[np.int32]:
        """Messages that wait."""

    @property
    def adding(self) -> NDArray[np.int64]:
        """Time that each message takes to be added."""

    @property
    def adder_free(self) -> NDArray[np.int64]:
        """Time at which each node has added all."""


@njit_norefcount
def begin(tables: MessageTables, f: int, now: int) -> bool:
    """Let the next message of a flow start, when nothing it waits for is left; return whether it did."""
    flow = tables.flow[f]
    if flow["message"] == flow["end"] or now < flow["ready"]:
        return False
    message = tables.message[tables.queue[flow["message"]]]
    if message["start"] >= 0 or message["waiting"] > 0:
        return False
    message["start"] = now
    flow["first"], flow["limit"] = message["first"], message["end"]
    flow["last_size"] = message["last_size"]
    return True


@njit_norefcount
def note_sent(tables: MessageTables, f: int, now: int) -> int:
    """Note that the last packet of a flow's message has first left its host; return the number of the message."""
    flow = tables.flow[f]
    number = tables.queue[flow["message"]]
    tables.message[number]["sent"] = now
    flow["message"] += 1
    return int(number)


@njit_norefcount
def free_successor(tables: MessageTables, i: int, completed: int, now: int) -> int:
    """Tell a message that waits for another one that this is sent, or complete.

    Parameters
    ----------
    tables : MessageTables
        All tables; changed in place.
    i : int
        Row in the table of successors.
    completed : int
        1 when the other message is complete, 0 when it is sent.
    now : int, ps
        Time.

    Returns
    -------
    int
        The flow whose next message begins for that reason, or -1.
    """
    code = tables.successor[i]
    if code & 1 != completed:
        return -1
    message = tables.message[code >> 1]
    message["waiting"] -= 1
    if message["waiting"] == 0 and begin(tables, message["flow"], now):
        return int(message["flow"])
    return -1


@njit_norefcount
def deliver(tables: MessageTables, receiver: Row, number: int, now: int) -> int:
    """Take a message whose data have all come: it is complete, or waits for its node to add it to what is there.

    A node adds one message at a time, in the order in which they come, and completes those of a flow in order.

    Parameters
    ----------
    tables : MessageTables
        All tables; changed in place.
    receiver : RECEIVER_ROW
        Receiver's row of the message's flow.
    number : int
        Number of the message.
    now : int, ps
        Time.

    Returns
    -------
    int, ps
        When the message is complete, or NEVER if one of its flow before it is not.
    """
    then, place = now, receiver["message"]
    if len(tables.adding) > 0:
        if tables.adding[number] > 0:
            then = max(now, tables.adder_free[receiver["node"]]) + tables.adding[number]
            tables.adder_free[receiver["node"]] = then
        if receiver["complete"] < place:
            then = max(then, tables.message[tables.queue[place - 1]]["done"])
    tables.message[number]["done"] = then
    receiver["message"] += 1
    return then if receiver["complete"] == place else NEVER


@njit_norefcount
def message_of(tables: MessageTables, flow: Row, number: int) -> int:
    """Return whose packet this is: of the message that has begun, or of one before it."""
    place = min(flow["message"], flow["end"] - 1)
    while number < tables.message[tables.queue[place]]["first"]:
        place -= 1
    return int(tables.queue[place])
