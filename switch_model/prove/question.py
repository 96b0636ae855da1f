"""A question about a protocol: which system, how small, and what may happen to it."""

from __future__ import annotations

from dataclasses import dataclass

from commsim.core.errors import InputError, unknown_name
from commsim.core.spec import is_whole

from .seeded import BUGS

SWITCHML, LIVE, OMNIREDUCE, ATP = "switchml", "switchml_live", "omnireduce", "atp"
SYSTEMS = {
    SWITCHML: "SwitchML as published, and in the packet engine: two versions of each slot, a bitmap each",
    LIVE: "the live switch, over UDP and in the kernel: SwitchML behind a check of packets' numbers",
    OMNIREDUCE: "OmniReduce: the rule of SwitchML, with empty packets, for every pattern of zero blocks",
    ATP: "ATP: slots that fragments claim by hash, and a parameter server for what finds none",
}
NO_RECOVERY, EPOCHS = "none", "epoch"
MAX_WORKERS, MAX_SLOTS, MAX_CHUNKS, MAX_FAILURES = 4, 4, 8, 3
ANY = "any"


@dataclass(frozen=True, slots=True)
class ProofQuestion:
    """What is to be proved.

    Parameters
    ----------
    system : str
        Name in `SYSTEMS`.
    workers, slots, chunks : int
        How many; chunk q goes to slot q modulo `slots`.
    reorder : str
        "any", or by how many rounds of its slot a packet may come late: 0 for links that keep the order. "" for what
        the system is made for.
    restarts, reboots : int
        How often a worker restarts, and the switch reboots, at any moment.
    recovery : {"none", "epoch"}
        What follows: nothing, or the job begins again under another number.
    bug : str
        Seeded bug, or "".

    Raises
    ------
    InputError
        If it makes no sense, or is too large.
    """

    system: str = SWITCHML
    workers: int = 3
    slots: int = 2
    chunks: int = 4
    reorder: str = ""
    restarts: int = 0
    reboots: int = 0
    recovery: str = NO_RECOVERY
    bug: str = ""

    def __post_init__(self) -> None:
        if self.system not in SYSTEMS:
            raise unknown_name("protocol", self.system, SYSTEMS)
        for name, most in (("workers", MAX_WORKERS), ("slots", MAX_SLOTS), ("chunks", MAX_CHUNKS)):
            if not 1 <= getattr(self, name) <= most:
                raise InputError(f"a proof takes 1 to {most} {name}, got {getattr(self, name)}")
        for name in ("restarts", "reboots"):
            if not 0 <= getattr(self, name) <= MAX_FAILURES:
                raise InputError(f"a proof takes 0 to {MAX_FAILURES} {name}, got {getattr(self, name)}")
        if self.slots > self.chunks:
            raise InputError(f"each slot needs a chunk, got {self.slots} slots and {self.chunks} chunks")
        if self.recovery not in (NO_RECOVERY, EPOCHS):
            raise InputError(f"recovery is {NO_RECOVERY} or {EPOCHS}, got {self.recovery!r}")
        if self.reorder not in ("", ANY) and not (is_whole(self.reorder) and int(self.reorder) <= MAX_CHUNKS):
            raise InputError(f"reorder is {ANY} or 0 to {MAX_CHUNKS} rounds, got {self.reorder!r}")
        if self.bug and self.bug not in BUGS:
            raise unknown_name("bug", self.bug, BUGS)
        if self.system == ATP and (self.reorder not in ("", ANY) or self.recovery != NO_RECOVERY):
            raise InputError("atp is explored with packets in any order and without epochs only")

    @property
    def rounds(self) -> int:
        """Chunks of the first slot."""
        return -(-self.chunks // self.slots)

    @property
    def lateness(self) -> str:
        """By how many rounds a packet may come late, or "any"."""
        return self.reorder or (ANY if self.system in (LIVE, ATP) else "0")

    @property
    def bug_code(self) -> int:
        """Number by which the kernels know the seeded bug."""
        return BUGS[self.bug].code if self.bug else 0
