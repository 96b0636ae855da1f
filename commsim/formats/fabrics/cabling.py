"""The cables of a fabric as a file lists them: their ends, the rate at which each runs, and whether it is up."""

from __future__ import annotations

from dataclasses import dataclass, field

from commsim.core.errors import InputError

MAX_CABLES = 2**20
# Largest file of a fabric: an ibnetdiscover of 10,000 nodes with 8 ports has 30 MB.
MAX_BYTES = 2**28
# Letters of the name of a device or a port.
MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class End:
    """One end of a cable.

    Parameters
    ----------
    device : str
        The box: a node or a switch.
    port : str
        Its port, as the file calls it; empty where it does not.
    """

    device: str
    port: str = ""

    def __str__(self) -> str:
        return f"{self.device}[{self.port}]" if self.port else self.device


def check_end(end: End, where: str) -> None:
    """Refuse a device or a port whose name no table could show.

    Raises
    ------
    InputError
        If the device has no name, or one of both is too long or not printable.
    """
    for name in (end.device, end.port):
        if len(name) > MAX_NAME or not name.isprintable():
            raise InputError(f"{where}: names of devices and ports are printable text of up to {MAX_NAME} letters, got "
                             f"{name!r}")  # fmt: skip
    if not end.device:
        raise InputError(f"{where}: a cable has a device at both ends, got none")


@dataclass(frozen=True, slots=True)
class Cable:
    """One cable.

    Parameters
    ----------
    a, b : End
        Its ends.
    rate : float, bytes/s
        Rate at which it runs, one way; 0 where the file does not say.
    full : float, bytes/s
        Rate at which both of its ports could run, where the file says; else 0.
    text : str
        Its rate as the file writes it, such as ``1x EDR``.
    is_up : bool
        Whether it carries data.
    latency : float, s
        Its latency; None where the file does not say.
    """

    a: End
    b: End
    rate: float = 0.0
    full: float = 0.0
    text: str = ""
    is_up: bool = True
    latency: float | None = None


@dataclass(slots=True)
class Cabling:
    """What a file says of a fabric.

    Parameters
    ----------
    cables : list of Cable
        Each once.
    kinds : dict of str to str
        ``switch`` or ``host`` by device, where the file says so.
    down : list of End
        Ports that are down, and whose other end is not known.
    told : list of str
        What was guessed in reading, to be said.
    n_again : int
        Rows of cables that were listed before, by the same or by the other end: a port holds one cable.
    """

    cables: list[Cable] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)
    down: list[End] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    n_again: int = 0
    _seen: set[frozenset[End]] = field(default_factory=set)

    def add(self, cable: Cable, where: str) -> None:
        """Append a cable that is not there yet.

        Raises
        ------
        InputError
            If it joins a port to itself, or there are too many.
        """
        for end in (cable.a, cable.b):
            check_end(end, where)
        if cable.a == cable.b:
            raise InputError(f"{where}: a cable joins two ports, got {cable.a} at both ends")
        if len(self.cables) >= MAX_CABLES:
            raise InputError(f"{where}: more than {MAX_CABLES} cables")
        ends = frozenset((cable.a, cable.b))
        if ends in self._seen:
            self.n_again += 1
            return
        if cable.a.port and cable.b.port:
            self._seen.add(ends)
        self.cables.append(cable)
