"""What can happen to fragments in shared slots: each step goes through the shipped rule, `switch_model.slot_kernel`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.jit import njit_norefcount
from switch_model.prove import seeded
from switch_model.prove.packed_kernel import Words
from switch_model.prove.shared_world_kernel import (
    NOTHING,
    REBOOTS,
    RESTARTS,
    RIGHT,
    WRONG,
    SharedModel,
    SharedWorld,
    decode,
    encode,
)
from switch_model.prove.step_labels import (
    COMES,
    FINE,
    NOT_ONCE,
    PARTIAL,
    REBOOT,
    RESENT,
    RESTART,
    RESULT,
    SERVED,
    TWO_SUMS,
)
from switch_model.slot_kernel import ADD, DUPLICATE, FREE, OVERWRITE, READ, UP, claim, clear, only, release, serve


@njit_norefcount
def expand_shared(
    m: SharedModel, world: SharedWorld, states: Words, first: int, end: int, new: Words, origin: NDArray[np.int32],
    labels: NDArray[np.int64],
) -> tuple[int, int]:  # fmt: skip
    """Write what states can become in one step; the same as `slot_moves_kernel.expand_slots`."""
    most = m.workers * m.chunks * 4 + m.chunks * (4 << m.workers) + m.workers + 1
    n = 0
    for i in range(first, end):
        if n + most > len(origin):
            return n, i
        n_before = n
        n = _arrivals(m, world, states, i, new, labels, n)
        n = _sums(m, world, states, i, new, labels, n)
        n = _results(m, world, states, i, new, labels, n)
        n = _failures(m, world, states, i, new, labels, n)
        for row in range(n_before, n):
            origin[row] = i
    return n, end


@njit_norefcount
def complete_shared(
    m: SharedModel, world: SharedWorld, states: Words, first: int, end: int, new: Words, origin: NDArray[np.int32],
    done: NDArray[np.bool_],
) -> tuple[int, int]:  # fmt: skip
    """Write what states become when a worker repeats a packet and nothing of what follows is lost."""
    n, most = 0, m.workers * m.chunks
    for i in range(first, end):
        if n + most > len(origin):
            return n, i
        if done[i]:
            continue
        decode(m, world, states, i)
        done[i] = _is_done(m, world)
        for w in range(0 if done[i] else m.workers):
            for q in range(m.chunks):
                decode(m, world, states, i)
                if world.got[w] >> q & 1:
                    continue
                _repeat(m, world, w, q)
                encode(m, world, new, n)
                origin[n] = i
                n += 1
    return n, end


@njit_norefcount
def _repeat(m: SharedModel, world: SharedWorld, w: int, q: int) -> None:
    """Let a worker's repeated packet come, and what follows from it at once."""
    action = arrive(m, world, w, q, True)
    if not action & UP:
        return
    packet = int(np.int64(world.sets[m.slots + m.chunks, 0]))
    right = world.up[1, q] >> packet & 1
    world.sets[m.slots + m.chunks, 0] = np.uint64(packet)
    if answer(m, world, q, packet, right) & READ:
        pass_down(m, world, q)
        for to in range(m.workers):
            take_result(world, to, q, 1)


@njit_norefcount
def waiting_shared(m: SharedModel, world: SharedWorld, states: Words, row: int, waits: NDArray[np.int64]) -> None:
    """Write each chunk whose result a worker waits for, or -1, to int64[n_workers, n_chunks]."""
    decode(m, world, states, row)
    for w in range(m.workers):
        for q in range(m.chunks):
            waits[w, q] = -1 if world.got[w] >> q & 1 else q


@njit_norefcount
def _arrivals(
    m: SharedModel, world: SharedWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:  # fmt: skip
    """Let each worker's packet of each chunk come, for the first time and resent."""
    for w in range(m.workers):
        for q in range(m.chunks):
            for resent in range(2):
                decode(m, world, states, i)
                action = arrive(m, world, w, q, resent == 1)
                encode(m, world, new, n)
                labels[n] = (RESENT if resent else COMES) | w << 8 | q << 16 | (action + 1) << 32
                n += 1
    return n


@njit_norefcount
def arrive(m: SharedModel, world: SharedWorld, w: int, q: int, resent: bool) -> int:
    """Hand a worker's packet to the switch; return the action."""
    at, packet = q % m.slots, m.slots + m.chunks
    only(world.sets, packet, w)
    key, resent = q + 1, resent and m.bug != seeded.RESENT_WAITS_FOR_SLOT
    owner, kept = world.slots[at]["key"], world.sets[at, 0]
    if m.bug == seeded.KEY_NOT_COMPARED and owner:
        key = owner
    action = claim(world.slots, at, key, world.sets, at, packet, packet + 1, resent)
    code = RIGHT if key == q + 1 else WRONG
    if action & OVERWRITE:
        for other in range(m.workers):
            world.register[at, other] = NOTHING
        world.register[at, w] = code
    elif action & ADD:
        world.register[at, w] = code if world.register[at, w] == NOTHING else WRONG
    if action & UP:
        _send_up(m, world, at, w, key - 1, action)
    if action & FREE and m.bug == seeded.RESENT_KEEPS_SLOT:
        world.slots[at]["key"], world.sets[at, 0] = key, kept | np.uint64(1) << np.uint64(w)
    elif action & FREE:
        _empty(m, world, at)
    return action


@njit_norefcount
def _empty(m: SharedModel, world: SharedWorld, at: int) -> None:
    """Forget what a free slot held: the next fragment overwrites it."""
    for w in range(m.workers):
        world.register[at, w] = NOTHING


@njit_norefcount
def _send_up(m: SharedModel, world: SharedWorld, at: int, w: int, q: int, action: int) -> None:
    """Put a packet under way to the server: the sum of the slot with READ, else the worker's own."""
    packet = m.slots + m.chunks
    right = True
    if action & READ:
        for other in range(m.workers):
            holds = world.sets[packet, 0] >> np.uint64(other) & np.uint64(1)
            right = right and world.register[at, other] == (RIGHT if holds else NOTHING)
        if m.bug == seeded.BITMAP_OF_SENDER:
            everyone = world.sets[packet, 0] == world.sets[packet + 1, 0]
            if not everyone:
                right = right and world.sets[packet, 0] == np.uint64(1) << np.uint64(w)
                only(world.sets, packet, w)
    if not world.sets[packet, 0] & world.sets[m.slots + q, 0] or _counts_all(m):
        world.up[1 if right else 0, q] |= 1 << np.int64(world.sets[packet, 0])


@njit_norefcount
def _counts_all(m: SharedModel) -> bool:
    return m.bug in (seeded.SERVER_ADDS_TWICE, seeded.SERVER_TRUSTS_COUNT)


@njit_norefcount
def _sums(
    m: SharedModel, world: SharedWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:  # fmt: skip
    """Let each packet come to the server that is under way to it."""
    for q in range(m.chunks):
        for right in range(2):
            for b in range(1, 1 << m.workers):
                decode(m, world, states, i)
                if not world.up[right, q] >> b & 1:
                    continue
                action = answer(m, world, q, b, right)
                encode(m, world, new, n)
                labels[n] = PARTIAL | b << 8 | q << 16 | right << 24 | (action + 1) << 32
                n += 1
    return n


@njit_norefcount
def answer(m: SharedModel, world: SharedWorld, q: int, b: int, right: int) -> int:
    """Hand the sum of a set of workers to the server; return the action."""
    packet, counted = m.slots + m.chunks, m.slots + q
    world.sets[packet, 0] = np.uint64(b)
    before = world.sets[counted, 0]
    action = serve(world.sets, counted, packet, packet + 1)
    if action & DUPLICATE and _counts_all(m) and before != world.sets[packet + 1, 0]:
        world.sets[counted, 0] |= np.uint64(b)
        world.spoilt[q] = 1
        action = ADD
        if m.bug == seeded.SERVER_TRUSTS_COUNT or world.sets[counted, 0] == world.sets[packet + 1, 0]:
            world.sets[counted, 0] = world.sets[packet + 1, 0]
            action |= READ
    if action & (OVERWRITE | ADD) and not right:
        world.spoilt[q] = 1
    if action & READ:
        world.down[q] |= 1 if world.spoilt[q] else 2
    for b in range(1, 1 << m.workers):
        if np.uint64(b) & world.sets[counted, 0] and not (_counts_all(m) and not action & READ):
            world.up[0, q] &= ~(1 << b)
            world.up[1, q] &= ~(1 << b)
    return action


@njit_norefcount
def _results(
    m: SharedModel, world: SharedWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:  # fmt: skip
    """Let each result come to the switch, and from there to each worker."""
    for q in range(m.chunks):
        decode(m, world, states, i)
        if world.down[q]:
            pass_down(m, world, q)
            encode(m, world, new, n)
            labels[n] = SERVED | q << 16
            n += 1
        for w in range(m.workers):
            for right in range(2):
                decode(m, world, states, i)
                if not world.results[q] >> right & 1:
                    continue
                verdict = take_result(world, w, q, right)
                if verdict < 0:
                    continue
                encode(m, world, new, n)
                labels[n] = RESULT | w << 8 | q << 16 | right << 32 | verdict << 56
                n += 1
    return n


@njit_norefcount
def pass_down(m: SharedModel, world: SharedWorld, q: int) -> None:
    """Let the result of a chunk pass through the switch, which frees its slot, to all workers."""
    at = q % m.slots
    kept = world.sets[at, 0]
    if release(world.slots, at, q + 1, world.sets, at) & FREE:
        _empty(m, world, at)
        if m.bug == seeded.RELEASED_NOT_EMPTIED:
            world.sets[at, 0] = kept
            for w in range(m.workers):
                world.register[at, w] = WRONG if kept >> np.uint64(w) & np.uint64(1) else NOTHING
    world.results[q] |= world.down[q]


@njit_norefcount
def take_result(world: SharedWorld, w: int, q: int, right: int) -> int:
    """Hand a result to a worker; return what that shows to be wrong, -1 if nothing happens."""
    if world.got[w] >> q & 1:
        return -1 if right else TWO_SUMS
    world.got[w] |= 1 << q
    return FINE if right else NOT_ONCE


@njit_norefcount
def _failures(
    m: SharedModel, world: SharedWorld, states: Words, i: int, new: Words, labels: NDArray[np.int64], n: int
) -> int:  # fmt: skip
    """Restart each worker that is not done, and reboot the switch, where that may still happen."""
    decode(m, world, states, i)
    restarts, reboots = world.budget[RESTARTS], world.budget[REBOOTS]
    if _is_done(m, world):
        return n
    for w in range(m.workers if restarts else 0):
        decode(m, world, states, i)
        if world.got[w] == (1 << m.chunks) - 1:
            continue
        world.budget[RESTARTS] -= 1
        world.got[w] = 0
        encode(m, world, new, n)
        labels[n] = RESTART | w << 8
        n += 1
    if reboots:
        decode(m, world, states, i)
        world.budget[REBOOTS] -= 1
        for at in range(m.slots):
            world.slots[at]["key"] = 0
            clear(world.sets, at)
            _empty(m, world, at)
        encode(m, world, new, n)
        labels[n] = REBOOT
        n += 1
    return n


@njit_norefcount
def _is_done(m: SharedModel, world: SharedWorld) -> bool:
    done = True
    for w in range(m.workers):
        done = done and world.got[w] == (1 << m.chunks) - 1
    return bool(done)
