"""Topologies of ns-3's simulators: HPCC's (and ASTRA-sim's ns-3 backend's), and what SimAI's share with them.

Both are a line of counts, a line of switches, and lists of cables, ``src dst 400Gbps 0.0005ms 0``, the last number a
share of loss; SimAI tells the NVSwitches of its servers from the switches of the network. Cables are read many lines at
once where they are as they should be.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text, replacing
from commsim.core.network import GPU, HOST, KINDS, SWITCH, Network
from commsim.core.remark import Remark
from commsim.core.spec import is_whole

MAX_CABLES, MAX_NODES = 2**20, 2**22
MAX_BYTES, MAX_LINE = 2**26, 2**22
_RATES = {"Tbps": 12, "Gbps": 9, "Mbps": 6, "Kbps": 3, "kbps": 3, "bps": 0}
_TIMES = {"ms": -3, "us": -6, "ns": -9, "s": 0}
_QUANTITIES = (
    (_RATES, "a rate such as 400Gbps", 8), (_TIMES, "a delay such as 0.0005ms", 1), ({"": 0}, "a probability", 1),
)  # fmt: skip
# Rates, delays and losses: each takes as long to read as ten cables that say what others said.
MAX_DIFFERENT = 100_000
_BLOCK = 2**16
_ONE_LINE = re.compile(r"[ -~]*")
# How a line begins that is a cable.
_CABLE = re.compile(r"\s*\d+\s+\d+\s+\d", re.ASCII)


# Number and text of a line that is not empty.
Line = tuple[int, str]


def read_lines(path: str | Path) -> list[Line]:
    """Read the lines of a file that are not empty.

    Raises
    ------
    InputError
        If it has fewer than two of them, or more or longer ones than a network that can be read.
    """
    text = read_text(path, MAX_BYTES)
    lines = text.split("\n") if text.count("\n") <= 2 * MAX_CABLES else []
    if not lines or max(map(len, lines)) > MAX_LINE:
        raise InputError(f"{path}: more than {2 * MAX_CABLES} lines, or one of more than {MAX_LINE} characters")
    numbered = [(i, line) for i, line in enumerate(lines, 1) if line and not line.isspace()]
    if len(numbered) < 2:
        raise InputError(f"{path}: needs a line of counts, a line of switches, and cables")
    return numbered


def _whole_word(words: list[str], k: int, where: str, limit: int) -> int:
    """Return a word that is a whole number below `limit`."""
    word = words[k] if k < len(words) else ""
    if not (is_whole(word, 11) and int(word) < limit):
        raise InputError(f"{where}: word {k + 1} must be a whole number below {limit}, got {word[:40]!r}")
    return int(word)


class Ns3Links:
    """Cables as links: all as written, then all the other way round.

    Parameters
    ----------
    lines : list of Line
        One cable each.
    n_nodes : int
        Number of nodes of the file.
    path : path
        Path of the file, named in messages.

    Raises
    ------
    InputError
        Naming the line that is none.
    """

    def __init__(self, lines: list[Line], n_nodes: int, path: str | Path) -> None:
        self._n_nodes, self._path = n_nodes, path
        self._known: dict[tuple[str, str], float] = {}  # most cables say the same
        self._ends: tuple[list[int], list[int]] = [], []
        self._rest: tuple[list[float], list[float], list[float]] = [], [], []
        for begin in range(0, len(lines), _BLOCK):
            block = lines[begin : begin + _BLOCK]
            if not self._plain(block):
                for line, text in block:
                    self._one(f"{path}, line {line}", text.split())
        a, b = (np.array(end, np.int64) for end in self._ends)
        self.src, self.dst = np.concatenate((a, b)), np.concatenate((b, a))
        self.bandwidth, self.latency, self.loss = (np.tile(np.array(column), 2) for column in self._rest)

    def _plain(self, block: list[Line]) -> bool:
        """Read many lines at once, if they are all right; else nothing, so that one by one the wrong one is named."""
        if any(text.count(" ") != 4 for _, text in block):
            return False
        text = " ".join([text for _, text in block])
        words = text.split()
        if len(words) != 5 * len(block) or text.count(" ") != len(words) - 1 or not _ONE_LINE.fullmatch(text):
            return False
        columns = [words[k::5] for k in range(5)]
        ends = [list(map(int, column)) if _are_whole(column) else [] for column in columns[:2]]
        if any(not end or max(end) >= self._n_nodes for end in ends) or any(map(operator.eq, *ends)):
            return False
        try:
            rest = [self._quantities(column, k, "") for k, column in enumerate(columns[2:])]
        except InputError:
            return False
        if not min(rest[0]) > 0 or not max(rest[2]) < 1:
            return False
        self._add(ends, rest)
        return True

    def _one(self, where: str, words: list[str]) -> None:
        if len(words) != 5:
            raise InputError(f"{where}: a cable is 'src dst rate delay loss', got {len(words)} words")
        ends = [_whole_word(words, k, where, self._n_nodes) for k in range(2)]
        rest = [self._quantities([word], k, where) for k, word in enumerate(words[2:])]
        if ends[0] == ends[1] or not rest[0][0] > 0 or not rest[2][0] < 1:
            raise InputError(f"{where}: a cable joins two nodes, has a positive rate and loses less than all")
        self._add([[end] for end in ends], rest)

    def _add(self, ends: list[list[int]], rest: list[list[float]]) -> None:
        for have, more in zip(self._ends, ends, strict=True):
            have += more
        for column, values in zip(self._rest, rest, strict=True):
            column += values

    def _quantities(self, texts: list[str], k: int, where: str) -> list[float]:
        units, wanted, divisor = _QUANTITIES[k]
        for text in set(texts):
            if (wanted, text) not in self._known:
                self._known[wanted, text] = _quantity(text, units, where, wanted, divisor)
                if len(self._known) > MAX_DIFFERENT:
                    raise InputError(f"{self._path}: more than {MAX_DIFFERENT} different rates, delays and losses")
        return [self._known[wanted, text] for text in texts]


def _are_whole(words: list[str]) -> bool:
    together = "".join(words)
    return is_whole(together, len(together)) and max(map(len, words)) < 12


def _quantity(text: str, units: dict[str, int], where: str, wanted: str, divisor: int) -> float:
    unit = next((unit for unit in units if text.endswith(unit)), None)
    try:
        if unit is None or len(text) > 60:
            raise InvalidOperation
        number = Decimal(text.removesuffix(unit)).scaleb(units[unit]) / divisor
        value = float(number) if number == 0 or (number.is_finite() and abs(number.adjusted()) < 300) else -1.0
    except ArithmeticError:  # no number, or one with an exponent that no float has
        value = -1.0
    if value < 0:
        raise InputError(f"{where}: must be {wanted}, got {text[:40]!r}")
    return value


def cable_lines(network: Network, number: dict[int, int]) -> list[str]:
    """Write one line per cable.

    Parameters
    ----------
    network : Network
        Network whose links are alike in both directions.
    number : dict of int to int
        Map from its nodes to those of the file.

    Raises
    ------
    InputError
        If a link has no way back that is like it.
    """
    waiting: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    lines = []
    columns = (getattr(network, name).tolist() for name in ("src", "dst", "bandwidth", "latency", "loss"))
    for src, dst, *rest in zip(*columns, strict=True):
        if waiting[dst, src, *rest]:
            lines.append(waiting[dst, src, *rest].pop())
            continue
        rate, delay = Decimal(repr(rest[0])) * 8 / 10**9, Decimal(repr(rest[1])) * 1000
        waiting[src, dst, *rest].append(f"{number[src]} {number[dst]} {_plain(rate)}Gbps {_plain(delay)}ms {rest[2]:g}")
    for (src, dst, *_), left in waiting.items():
        if left:
            names = f"{network.nodes[src]}:{network.nodes[dst]}"
            raise InputError(f"{network.name}: {names} has no way back that is like it, and a cable goes both ways")
    return lines


def check_kinds(network: Network, *, has_servers: bool = False) -> None:
    """Refuse nodes that are neither hosts (or GPUs) nor switches, and routing that the format cannot say.

    Parameters
    ----------
    network : Network
        What is to be written.
    has_servers : bool
        Whether the format tells links inside of servers, which go first, from those of the network.
    """
    bad = np.flatnonzero(~np.isin(network.kind, (HOST, GPU, SWITCH)))
    if bad.size:
        kind = KINDS[network.kind[bad[0]]]
        raise InputError(f"{network.name}: {network.nodes[bad[0]]} is a {kind}; the file has GPUs and switches only")
    machine = network.machine
    inside = (machine[network.src] >= 0) & (machine[network.src] == machine[network.dst]) & has_servers
    of_each = [network.metric[links] for links in (inside, ~inside)]
    alike = all((metric == metric[:1]).all() for metric in of_each)
    if not alike or (inside.any() and (~inside).any() and of_each[0][0] > of_each[1][0]):
        raise InputError(f"{network.name}: its routing prefers some links (metric), which the format has no field for")


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def write_ns3(network: Network, path: str | Path) -> None:
    """Write a network of hosts and switches, numbered as they are; the file appears whole or not at all.

    Raises
    ------
    InputError
        If it has other nodes, or links that go one way only.
    """
    check_kinds(network)
    switches = np.flatnonzero(network.kind == SWITCH)
    cables = cable_lines(network, {i: i for i in range(network.n_nodes)})
    lines = [f"{network.n_nodes} {len(switches)} {len(cables)}", " ".join(map(str, switches)), *cables]
    write_lines(path, lines)


def read_ns3(path: str | Path) -> Network:
    """Read a network; hosts are called ``h0``, switches ``s8``, by their numbers in the file.

    Raises
    ------
    InputError
        Naming the line that is wrong.
    """
    (n_nodes, n_switches, n_cables), _, switches, rest = parts_of(path, 3, slice(1, 2))
    rest, told = without_remarks(rest, n_cables)
    if len(set(switches)) != n_switches or len(rest) != n_cables:
        got = f"{len(set(switches))} and {len(rest)}"
        raise InputError(f"{path}: line 1 says {n_switches} switches and {n_cables} cables, got {got}")
    if n_nodes > 2 * n_cables:
        raise InputError(f"{path}: line 1 says {n_nodes} nodes, more than {n_cables} cables can join")
    kind = np.full(n_nodes, HOST)
    kind[switches] = SWITCH
    names = [f"{'s' if k == SWITCH else 'h'}{i}" for i, k in enumerate(kind)]
    return dataclasses.replace(network_of(path, names, kind, Ns3Links(rest, n_nodes, path)), told=told)


def without_remarks(lines: list[Line], n_cables: int) -> tuple[list[Line], tuple[Remark, ...]]:
    """Return the lines of the cables without the text after the last one, and what is to be said of it.

    The simulators read as many cables as the first line says, and nothing after them. Lines that are more cables stay,
    so that the contradiction is found.

    Parameters
    ----------
    lines : list of Line
        All lines after the switches.
    n_cables : int
        Number of cables that the first line says.
    """
    after = [line for line in lines[n_cables:] if not _CABLE.match(line[1])]
    if not after or len(after) < len(lines) - n_cables:
        return lines, ()
    text = f"text after the last cable is left out: line {after[0][0]} and what follows"
    return lines[:n_cables], (Remark("network-file", text, needed=True),)


def parts_of(path: str | Path, n_counts: int, of_switches: slice) -> tuple[list[int], Line, list[int], list[Line]]:
    """Return the counts of the first line and the line, the numbers of the switches, and the lines of the cables."""
    lines = read_lines(path)
    limits = [MAX_NODES] * (n_counts - 1) + [MAX_CABLES]
    counts = [
        _whole_word(lines[0][1].split(), k, f"{path}, line {lines[0][0]}", limit) for k, limit in enumerate(limits)
    ]
    words = lines[1][1].split() if any(counts[of_switches]) else []
    ids = [_whole_word(words, k, f"{path}, line {lines[1][0]}", counts[0]) for k in range(len(words))]
    return counts, lines[0], ids, lines[2:] if any(counts[of_switches]) else lines[1:]


def network_of(
    path: str | Path, names: list[str], kind: NDArray[np.int64], cables: Ns3Links, machine: ArrayLike = -1
) -> Network:
    """Return the network of a file's nodes and cables; it is called like the file."""
    links = (cables.src, cables.dst, cables.bandwidth, cables.latency)
    return Network(Path(path).stem, names, kind, *links, loss=cables.loss, machine=machine)


def write_lines(path: str | Path, lines: list[str]) -> None:
    """Write a file that appears whole or not at all."""
    with replacing(path) as out:
        out.write(("\n".join(lines) + "\n").encode())
