"""What the columns of a list of cables hold, guessed from their names: an end, a port, a rate, a latency, a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from commsim.core.errors import InputError, shorten
from commsim.core.units import first_of

_WORDS = re.compile(r"[A-Za-z]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_A = {"a", "1", "src", "source", "from", "local", "left", "near", "start", "begin", "host", "server", "node", "lower"}
_B = {"b", "2", "dst", "dest", "destination", "target", "to", "remote", "right", "far", "end", "peer", "neighbor",
      "neighbour", "z", "upper"}  # fmt: skip
# Of these a column may be called without anything else; the others only say which end it is.
_HOSTS = {"host", "server", "node", "hostname", "compute"}
_SWITCHES = {"switch", "leaf", "spine", "tor", "core"}
_DEVICES = {"device", "dev", "system", "chassis", "box", "equipment", "hostname", "parent", *_HOSTS, *_SWITCHES}
_PORTS = {"port", "interface", "intf", "iface", "if", "ifname", "termination", "nic", "hca", "connector", "slot"}
_RATES = {"rate", "speed", "bandwidth", "bw", "gbps", "mbps", "kbps", "capacity", "linkspeed", "gbit", "mbit"}
_LATENCIES = {"latency", "delay"}
_SECONDS = ("ps", "ns", "us", "ms", "s")
_STATES = {"state", "status", "oper", "link"}
_KINDS = {"kind", "role", "type", "class"}
_WIDTHS = {"width", "lanes"}
_UNITS = {
    "gbps": 1e9,
    "gbit": 1e9,
    "gb": 1e9,
    "g": 1e9,
    "mbps": 1e6,
    "mbit": 1e6,
    "mb": 1e6,
    "kbps": 1e3,
    "kbit": 1e3,
    "bps": 1.0,
}
_FULL = {"max", "nominal", "supported", "capable", "maximum", "full"}


@dataclass(slots=True)
class Columns:
    """Numbers of the columns of what is known.

    Parameters
    ----------
    device, port, kind : dict of str to int
        By end, ``a`` and ``b``.
    rate, full : list of int
        Columns of the rate at which a cable runs, and of the rate that it could have.
    latency : list of int
        Columns of the latency of a cable.
    width, state : list of int
        Columns of the number of lanes, and of what is said of the state.
    unit : float, bit/s
        Unit of a rate without one; 0: guessed by its size.
    time_unit : str
        Unit of a latency without one; empty: such a latency is refused.
    implied : dict of str to str
        Kind of an end by what its column is called, such as leaf.
    """

    device: dict[str, int] = field(default_factory=dict)
    port: dict[str, int] = field(default_factory=dict)
    kind: dict[str, int] = field(default_factory=dict)
    rate: list[int] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    latency: list[int] = field(default_factory=list)
    width: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    unit: float = 0.0
    time_unit: str = ""
    implied: dict[str, str] = field(default_factory=dict)

    def told(self, names: Sequence[str]) -> str:
        """Say which column was taken for what, and which ones are not read."""
        parts = []
        for end in "ab":
            port = f" {names[self.port[end]]}" if end in self.port else ""
            parts.append(f"{names[self.device[end]]}{port}")
        text = f"columns: {' to '.join(parts)}"
        lists = ("rate", "full", "latency", "width", "state")
        for what in lists:
            if of := getattr(self, what):
                text += f", {what} {' and '.join(names[i] for i in of)}"
        ends = (self.device, self.port, self.kind)
        taken = {*(i for of in ends for i in of.values()), *(i for what in lists for i in getattr(self, what))}
        left = [name for i, name in enumerate(names) if name and i not in taken]
        return f"{text}; not read: {first_of(left)}" if left else text


def words_of(name: str) -> list[str]:
    """Words of a column's name: ``sideADevice`` and ``side_a_device`` have the same."""
    return [word.lower() for word in _WORDS.findall(_CAMEL.sub(" ", name))]


def guess_columns(names: Sequence[str], where: str) -> Columns:
    """Guess what columns hold.

    Raises
    ------
    InputError
        If the two devices are not found among them.
    """
    columns = Columns()
    open_ends: list[str] = []
    for i, name in enumerate(names):
        words = words_of(name)
        if words:
            _take(columns, i, words, open_ends)
    if set(columns.device) != {"a", "b"}:
        got = ", ".join(names)
        raise InputError(
            f"{where}: a list of cables has two columns of devices, such as a_device, a_port, b_device, b_port, rate; "
            f"got {shorten(got)}"
        )
    return columns


def _take(columns: Columns, i: int, words: list[str], seen: list[str]) -> None:
    """Take a column for what its words say; those of no end belong to the next one in order."""
    known = set(words)
    what = _what(known)
    if what == "rate":
        columns.unit = columns.unit or next((_UNITS[word] for word in words if word in _UNITS), 0.0)
        (columns.full if known & _FULL else columns.rate).append(i)
    elif what == "latency":
        columns.latency.append(i)
        columns.time_unit = columns.time_unit or next((word for word in words if word in _SECONDS), "")
    elif what in ("state", "width"):
        getattr(columns, what).append(i)
    elif what == "kind":
        end = _end(known, what)
        if end and "cable" not in known:
            columns.kind.setdefault(end, i)
    elif what in ("device", "port"):
        end = _end(known, what) or _next_end(columns, what)
        if what == "device" and end in columns.device:
            what = "port"  # side_a_name beside side_a_device
        taken = columns.device if what == "device" else columns.port
        if end and end not in taken:
            taken[end] = i
            seen.append(end)
            if what == "device" and known & (_HOSTS | _SWITCHES):
                columns.implied[end] = "switch" if known & _SWITCHES else "host"
                if known & {"node", "host", "hostname"}:  # of any device
                    columns.implied.pop(end)


def _what(known: set[str]) -> str:
    if known & _WIDTHS:
        return "width"
    if known & _LATENCIES:
        return "latency"
    if known & _RATES:
        return "rate"
    if known & _PORTS and not known & {"id", "type"}:
        return "port"
    if known & _STATES and not known & {"type"}:
        return "state"
    if known & _KINDS:
        return "kind"
    if known & (_DEVICES | {"name"}) or known <= _A | _B | {"side", "end"}:
        return "device" if not known & {"rack", "location", "site", "id"} else ""
    return ""


def _end(known: set[str], what: str) -> str:
    """End that the words name: b before a, since host is a word for either device."""
    sides = known - _DEVICES if what == "device" else known - {"host", "server", "node"} or known
    if sides & _B:
        return "b"
    return "a" if sides & _A else ""


def _next_end(columns: Columns, what: str) -> str:
    """End of a column that names none: the first, then the second; a port is of the device before it."""
    if what == "port":
        return "b" if "b" in columns.device else "a"
    return next((end for end in "ab" if end not in columns.device), "")
