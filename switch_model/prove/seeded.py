"""Bugs that can be seeded into a protocol, so that one sees whether its check would find them."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

ONCE, SAME, PROGRESS = "once", "same", "progress"  # what a bug breaks

# Numbers by which the kernels know a bug: of reserved slots ...
NO_BUG = 0
(SEEN_NOT_SET, SEEN_NOT_ASKED, SHADOW_NOT_CLEARED, SHADOW_ALL_CLEARED, PARTIAL_READ, SHADOW_READ, ONE_TOO_FEW,
 ONE_TOO_MANY, ADDS_TO_THE_OLD, OVERWRITES_ALWAYS, COUNTS_COPIES, ANSWERS_NONE, VERSION_NOT_FLIPPED, SEQUENCE_RESTARTS,
 ACCEPTS_ANY_RESULT, SENDS_AHEAD, NEVER_REPEATS, SEQUENCE_NOT_ASKED, HELD_NOT_KEPT, SLOTS_NOT_CLEARED, EMPTY_OVERWRITES,
 EMPTY_NOT_SENT, FILLED_NOT_RESET) = range(1, 24)  # fmt: skip
# ... and of shared ones.
(KEY_NOT_COMPARED, RESENT_KEEPS_SLOT, RESENT_WAITS_FOR_SLOT, RELEASED_NOT_EMPTIED, SERVER_ADDS_TWICE,
 SERVER_TRUSTS_COUNT, BITMAP_OF_SENDER) = range(41, 48)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeededBug:
    """One bug.

    Parameters
    ----------
    code : int
        Number by which the kernels know it.
    says : str
        What is wrong.
    breaks : {"once", "same", "progress"}
        Which invariant it breaks.
    where : mapping
        The smallest question about the protocol in which that is seen, as keywords of `question.ProofQuestion`.
    """

    code: int
    says: str
    breaks: str
    where: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))


def _bug(code: int, says: str, breaks: str, **where: Any) -> SeededBug:
    defaults = {"system": "switchml", "workers": 2, "slots": 1, "chunks": 2}
    return SeededBug(code, says, breaks, MappingProxyType({**defaults, **where}))


BUGS: dict[str, SeededBug] = {
    "seen_not_set": _bug(SEEN_NOT_SET, "the bitmap does not keep who has contributed", ONCE, chunks=1),
    "seen_not_asked": _bug(SEEN_NOT_ASKED, "a copy is added again: the bitmap is not asked", ONCE, chunks=1),
    "shadow_not_cleared": _bug(SHADOW_NOT_CLEARED, "the other version's bit is not cleared", ONCE, chunks=3),
    "shadow_all_cleared": _bug(SHADOW_ALL_CLEARED, "all bits of the other version are cleared", ONCE, chunks=2),
    "partial_read": _bug(PARTIAL_READ, "a copy is answered before the slot is complete", ONCE, chunks=1),
    "shadow_read": _bug(SHADOW_READ, "a copy is answered from the other version of the slot", ONCE, chunks=1),
    "one_too_few": _bug(ONE_TOO_FEW, "a slot is complete one worker too early", ONCE, chunks=1),
    "one_too_many": _bug(ONE_TOO_MANY, "a slot waits for one worker more than there are", PROGRESS, chunks=1),
    "adds_to_the_old": _bug(ADDS_TO_THE_OLD, "the first packet of a round is added to the old sum", ONCE, chunks=3),
    "overwrites_always": _bug(OVERWRITES_ALWAYS, "each packet overwrites the slot", ONCE, chunks=1),
    "counts_copies": _bug(COUNTS_COPIES, "a copy is not added, but counted", ONCE, chunks=1, workers=3),
    "answers_none": _bug(ANSWERS_NONE, "a copy that comes after the result gets no answer", PROGRESS, chunks=1),
    "version_not_flipped": _bug(VERSION_NOT_FLIPPED, "a worker uses one version of the slot only", ONCE),
    "sequence_restarts": _bug(SEQUENCE_RESTARTS, "the second tensor begins at version 0 again", ONCE, chunks=4),
    "accepts_any_result": _bug(
        ACCEPTS_ANY_RESULT, "a worker takes a result by slot and version only", ONCE, chunks=3, reorder="any",
        system="switchml_live",
    ),
    "sends_ahead": _bug(SENDS_AHEAD, "a worker sends two packets on a slot before the first result", ONCE, chunks=3),
    "never_repeats": _bug(NEVER_REPEATS, "a worker does not repeat what may be lost", PROGRESS, chunks=1),
    "sequence_not_asked": _bug(
        SEQUENCE_NOT_ASKED, "the live switch does not ask whether a packet is in sequence", ONCE, chunks=2,
        system="switchml_live",
    ),
    "held_not_kept": _bug(
        HELD_NOT_KEPT, "the live switch does not note which packet a version holds", PROGRESS, system="switchml_live"
    ),
    "slots_not_cleared": _bug(
        SLOTS_NOT_CLEARED, "a job that begins again gets its slots with the sums of the last", PROGRESS, chunks=1,
        restarts=1, recovery="epoch", system="switchml_live",
    ),
    "empty_overwrites": _bug(EMPTY_OVERWRITES, "an empty packet overwrites the slot", ONCE, system="omnireduce"),
    "empty_not_sent": _bug(EMPTY_NOT_SENT, "a worker without the block sends nothing", PROGRESS, system="omnireduce"),
    "filled_not_reset": _bug(
        FILLED_NOT_RESET, "the first block of a round is added to what the slot held", ONCE, chunks=3,
        system="omnireduce",
    ),
    "key_not_compared": _bug(KEY_NOT_COMPARED, "a packet is added to another fragment's slot", ONCE, system="atp"),
    "resent_keeps_slot": _bug(
        RESENT_KEEPS_SLOT, "a resent packet takes the partial sum along, and the slot keeps it", PROGRESS, system="atp"
    ),
    "resent_waits_for_slot": _bug(
        RESENT_WAITS_FOR_SLOT, "a resent packet waits for its slot, as others do", PROGRESS, system="atp"
    ),
    "released_not_emptied": _bug(
        RELEASED_NOT_EMPTIED, "a slot that is freed keeps its bitmap and its sum", ONCE, system="atp"
    ),
    "server_adds_twice": _bug(SERVER_ADDS_TWICE, "the server adds what it has counted already", ONCE, system="atp"),
    "server_trusts_count": _bug(
        SERVER_TRUSTS_COUNT, "the server counts packets in place of workers", ONCE, system="atp", chunks=1
    ),
    "bitmap_of_sender": _bug(
        BITMAP_OF_SENDER, "a partial sum goes up with the bit of its last sender only", ONCE, system="atp", chunks=1,
        workers=3,
    ),
}  # fmt: skip
