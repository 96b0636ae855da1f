"""The rule of aggregation: what a switch does with one packet, as a state machine over a table of slots.

A packet that arrives changes the state of one slot and yields an *action*: a word of bits that say what happens to the
slot's registers and where, if anywhere, a packet goes. The kernels touch no values. The live switch carries the action
out at once; the packet engine writes it to a log, and the values are summed afterwards by replaying that log.

References
----------
Sapio et al., "Scaling distributed machine learning with in-network aggregation", NSDI 2021 (SwitchML): `contribute`,
`take_result`; `in_sequence` is ours. Fei et al., "Efficient sparse collective communication", SIGCOMM 2021
(OmniReduce): `without_empty`. Lao et al., "ATP: in-network aggregation for multi-tenant learning", NSDI 2021: `claim`,
`release`, `serve`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import Records, njit_norefcount

# What happens to the registers of the slot ...
OVERWRITE = 1  # they become the packet's values
ADD = 2  # the packet's values are added
READ = 4  # a packet is made of them
# ... and where a packet goes: made of the registers with READ, else the one that came.
ALL = 8  # to every child
SENDER = 16  # back to the child that it came from
UP = 32  # to the parent: the next switch, or the parameter server
FREE = 64  # the slot is free afterwards
COLLISION = 128  # the slot belonged to another fragment
DUPLICATE = 256  # the slot had counted this child already

Rows = Records
Sets = NDArray[np.uint64]  # of workers, one a row: bit i % 64 of word i // 64 is worker i

SLOT_ROW = np.dtype(
    [
        ("seen", np.uint64),  # a bit for each child that has contributed; 0 where slots are shared
        ("key", np.int64),  # the fragment that it holds, 0 for none; slots that are not shared stay at 0
        ("count", np.int32),  # children still to come; 0 before the first and after the last
        ("has_result", np.bool_),  # registers hold what goes down to the children
        ("ecn", np.bool_),  # a packet that contributed was marked
        ("in_unit", np.bool_),  # the sum is complete, and has not left the aggregation unit
    ],
    align=True,
)
MAX_CHILDREN = 64  # bits of `seen`
TRAVELS = 0xFFFFFFFF  # the bits of a packet's number that are in the packet


@njit_norefcount
def contribute(slots: Rows, at: int, shadow: int, child: int, fan_in: int, has_parent: bool) -> int:
    """Count one child's packet in a reserved slot, and say what the switch does with it.

    Parameters
    ----------
    slots : SLOT_ROW[n]
        State; changed in place.
    at, shadow : int
        The slot in the packet's version, and in the other one. Equal for a pool of one version, which cannot tell a
        retransmission from the next round.
    child : int
        Its number at this switch, 0..63.
    fan_in : int
        Children that contribute to each round.
    has_parent : bool
        Whether the sum goes up, or is the result.

    Returns
    -------
    int
        Action.
    """
    bit = np.uint64(1) << np.uint64(child)
    before = slots[at]["seen"]
    if shadow != at:
        slots[shadow]["seen"] &= ~bit
    slots[at]["seen"] = before | bit
    if before & bit:
        if slots[at]["has_result"]:
            return READ | SENDER | DUPLICATE
        if has_parent and slots[at]["count"] == 0:
            return READ | UP | DUPLICATE  # the sum went up and nothing came back: it, or the result, was lost
        return DUPLICATE
    action = OVERWRITE if before == 0 else ADD
    left = slots[at]["count"]
    left = fan_in - 1 if left == 0 else left - 1
    slots[at]["count"] = left
    slots[at]["has_result"] = left == 0 and not has_parent
    if left == 0:
        action |= READ | (UP if has_parent else ALL)
    return action


@njit_norefcount
def in_sequence(slots: Rows, at: int, child: int, number: int, held: int, beside: int, n_slots: int) -> bool:
    """Whether a packet may come to a reserved slot now, by its number in the job's sequence.

    Only the present packet of a slot's version may come, or the one that follows it once both versions are complete.
    So a worker's late copy of an old packet, or one of another tensor, cannot be taken for a new packet. SwitchML's own
    switch does not ask.

    Parameters
    ----------
    slots : SLOT_ROW[2 n_slots]
        State; the two versions of a slot stand side by side.
    at : int
        The slot in the packet's version.
    child : int
        The packet's sender.
    number : int
        Number of the packet; its lower 32 bits count.
    held, beside : int
        Numbers of the packets that this version and the other one hold.
    n_slots : int
        Slots of the job.

    Returns
    -------
    bool
    """
    complete = slots[at]["count"] == 0
    if number == held & TRAVELS:
        return bool(not complete or slots[at]["seen"] >> np.uint64(child) & np.uint64(1))
    follows = number == (held + 2 * n_slots) & TRAVELS and number == (beside + n_slots) & TRAVELS
    return bool(follows and complete and slots[at ^ 1]["count"] == 0)


@njit_norefcount
def without_empty(filled: NDArray[np.bool_], at: int, action: int, empty: bool) -> int:
    """Let a packet without values count, but not add: the first one of a round with values overwrites.

    Parameters
    ----------
    filled : bool[n]
        Whether a packet with values has come in this round of a slot; changed in place.
    at : int
        The slot in the packet's version.
    action : int
        What `contribute` said.
    empty : bool
        Whether the packet has no values.

    Returns
    -------
    int
        Action.
    """
    if action & OVERWRITE:
        filled[at] = False
    if action & (OVERWRITE | ADD):
        action &= ~(OVERWRITE | ADD)
        if not empty:
            action |= ADD if filled[at] else OVERWRITE
            filled[at] = True
    return action


@njit_norefcount
def take_result(slots: Rows, at: int) -> int:
    """Store what came down from the parent, and pass it to every child; the slot answers late children from now on."""
    slots[at]["has_result"] = True
    return OVERWRITE | READ | ALL


@njit_norefcount
def claim(slots: Rows, at: int, key: int, sets: Sets, held: int, children: int, everyone: int, resent: bool) -> int:
    """Count a packet in a shared slot, which belongs to the first fragment that finds it free.

    Parameters
    ----------
    slots : SLOT_ROW[n]
        State; changed in place.
    at : int
        The slot that the packet's fragment hashes to.
    key : int
        The fragment, positive.
    sets : uint64[n_sets, n_words]
        Sets of workers; changed in place. Three of them are those of:
    held : int
        The slot: whose values its registers hold.
    children : int
        The packet: whose values it holds; where the slot takes it, those of the slot too.
    everyone : int
        This switch: the workers below it.
    resent : bool
        Whether its sender repeats it; then the partial sum leaves for the parameter server, and the slot is freed.

    Returns
    -------
    int
        Action. A packet that goes UP without READ goes on as it came.
    """
    slot_key = slots[at]["key"]
    if resent and slot_key != key:
        return UP
    if slot_key != key and slot_key != 0:
        return UP | COLLISION
    known = meet(sets, held, children)
    if known and not includes(sets, held, children):
        return UP  # some of its workers are counted, some not: it can be neither added nor ignored here
    if slot_key == 0:
        slots[at]["key"], slots[at]["ecn"] = key, False
    action = DUPLICATE
    if not known:
        action = ADD if meet(sets, held, held) else OVERWRITE
    unite(sets, children, held)
    if resent:
        slots[at]["key"] = 0
        clear(sets, held)
        return action | READ | UP | FREE
    unite(sets, held, children)
    if includes(sets, held, everyone):
        return action | READ | UP
    return action


@njit_norefcount
def release(slots: Rows, at: int, key: int, sets: Sets, held: int) -> int:
    """Let go of a shared slot when its fragment's result passes on its way down to every child."""
    if slots[at]["key"] != key:
        return ALL
    slots[at]["key"] = 0
    clear(sets, held)
    return ALL | FREE


@njit_norefcount
def serve(sets: Sets, counted: int, children: int, everyone: int) -> int:
    """Count a packet at a parameter server, unless it has counted one of the packet's workers already.

    Parameters
    ----------
    sets : uint64[n_sets, n_words]
        Sets of workers; changed in place. Three of them are those of:
    counted, children, everyone : int
        The fragment: whose values are summed; the packet: whose values it holds; and all workers of the job.

    Returns
    -------
    int
        Action; with READ the sum is complete, and goes to every worker.
    """
    action = DUPLICATE
    if not meet(sets, counted, children):
        action = ADD if meet(sets, counted, counted) else OVERWRITE
        unite(sets, counted, children)
    return action | READ if includes(sets, counted, everyone) else action


@njit_norefcount
def meet(sets: Sets, a: int, b: int) -> bool:
    """Tell whether two sets have a worker in common; a set and itself, whether it has any."""
    common = np.uint64(0)
    for word in range(sets.shape[1]):
        common |= sets[a, word] & sets[b, word]
    return bool(common)


@njit_norefcount
def includes(sets: Sets, a: int, b: int) -> bool:
    """Tell whether set `a` has all workers of set `b`."""
    missing = np.uint64(0)
    for word in range(sets.shape[1]):
        missing |= sets[b, word] & ~sets[a, word]
    return not missing


@njit_norefcount
def unite(sets: Sets, a: int, b: int) -> None:
    """Add the workers of set `b` to set `a`."""
    for word in range(sets.shape[1]):
        sets[a, word] |= sets[b, word]


@njit_norefcount
def clear(sets: Sets, a: int) -> None:
    """Make a set empty."""
    for word in range(sets.shape[1]):
        sets[a, word] = 0


@njit_norefcount
def only(sets: Sets, a: int, worker: int) -> None:
    """Make a set that of one worker."""
    clear(sets, a)
    sets[a, worker >> 6] = np.uint64(1) << np.uint64(worker & 63)
