"""Phases of slots, and what is to be looked at before time goes on."""

from __future__ import annotations

from typing import Any

from commsim.core.jit import njit_norefcount

from .flow_state import N_BEGINNING, N_WORK


@njit_norefcount
def push(t: Any, what: int) -> None:
    """Put on the list of what is to be looked at: a wire to try, or n_wires + a slot whose phase has ended."""
    t.work[t.counter[N_WORK]] = what
    t.counter[N_WORK] += 1


@njit_norefcount
def try_later(t: Any, w: int) -> None:
    """Look, before time goes on, whether wire `w` may send its next transfer."""
    if not t.trying[w]:
        t.trying[w] = True
        push(t, w)


@njit_norefcount
def begin(t: Any, s: int, phase: int, work: float) -> None:
    """Begin a phase of slot `s`; one that moves nothing, or uses nothing, ends at once."""
    t.slot[s]["phase"] = phase
    t.slot[s]["work"] = work
    if work == 0.0 or t.slot[s]["begin"] == t.slot[s]["end"]:
        push(t, s + len(t.wire))
    else:
        t.beginning[t.counter[N_BEGINNING]] = s
        t.counter[N_BEGINNING] += 1


@njit_norefcount
def release(t: Any, i: int, kind: int) -> None:
    """Tell the successors that wait for `kind` (0 sent, 1 complete) of transfer `i`."""
    for k in range(t.first[i], t.first[i + 1]):
        if t.successor[k] % 2 == kind:
            j = t.successor[k] // 2
            t.waiting[j] -= 1
            if t.waiting[j] == 0:
                try_later(t, t.wire_of[j])
