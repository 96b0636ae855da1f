"""Lists of cables as ns-3's simulators write them: ``src dst 400Gbps 0.0005ms 0``, the last one a share of loss."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.formats.bounded import read_text
from commsim.core.network import Network
from commsim.core.node_kind import GPU, HOST, KINDS, SWITCH

MAX_CABLES = 2**20
MAX_BYTES, MAX_LINE = 2**26, 2**22
_RATES = {"Tbps": 12, "Gbps": 9, "Mbps": 6, "Kbps": 3, "kbps": 3, "bps": 0}
_TIMES = {"ms": -3, "us": -6, "ns": -9, "s": 0}


def cable_lines(network: Network, number: dict[int, int]) -> list[str]:
    """Write one line per cable.

    Parameters
    ----------
    network : Network
        Whose links are alike in both directions.
    number : dict of int to int
        From its nodes to those of the file.

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
            names = f"{network.nodes[src]}->{network.nodes[dst]}"
            raise InputError(f"{network.name}: {names} has no way back that is like it, and a cable goes both ways")
    return lines


def check_kinds(network: Network) -> None:
    """Refuse nodes that are neither hosts (or GPUs) nor switches."""
    bad = np.flatnonzero(~np.isin(network.kind, (HOST, GPU, SWITCH)))
    if bad.size:
        kind = KINDS[network.kind[bad[0]]]
        raise InputError(f"{network.name}: {network.nodes[bad[0]]} is a {kind}; the file has GPUs and switches only")
    if network.metric.size and (network.metric != network.metric[0]).any():
        raise InputError(f"{network.name}: its routing prefers some links (metric), which the file cannot say")


def read_words(path: str | Path) -> list[tuple[int, list[str]]]:
    """Read a file as (line, words), without empty lines.

    Raises
    ------
    InputError
        If it has fewer than two lines, or more or longer ones than a network that can be read.
    """
    text = read_text(path, MAX_BYTES)
    lines = text.split("\n") if text.count("\n") <= 2 * MAX_CABLES else []
    if not lines or max(map(len, lines)) > MAX_LINE:
        raise InputError(f"{path}: more than {2 * MAX_CABLES} lines, or one of more than {MAX_LINE} characters")
    words = [(i, line.split()) for i, line in enumerate(lines, 1) if line and not line.isspace()]
    if len(words) < 2:
        raise InputError(f"{path}: needs a line of counts, a line of switches, and cables")
    return words


def whole(words: list[str], k: int, where: str, limit: int) -> int:
    """Return a word that is a whole number below `limit`."""
    word = words[k] if k < len(words) else ""
    if not (word.isascii() and word.isdigit() and len(word) < 12 and int(word) < limit):
        raise InputError(f"{where}: word {k + 1} must be a whole number below {limit}, got {word[:40]!r}")
    return int(word)


def read_cables(
    lines: list[tuple[int, list[str]]], n_nodes: int, path: str | Path
) -> tuple[list[int], list[int], list[float], list[float], list[float]]:
    """Read cables as links: all as written, then all the other way round; src, dst, bytes/s, s, loss.

    Raises
    ------
    InputError
        Naming the line that is none.
    """
    src, dst, rate, delay, loss = [], [], [], [], []
    known: dict[tuple[str, str], float] = {}  # most cables say the same
    for line, words in lines:
        where = f"{path}, line {line}"
        if len(words) != 5:
            raise InputError(f"{where}: a cable is 'src dst rate delay loss', got {len(words)} words")
        src.append(whole(words, 0, where, n_nodes))
        dst.append(whole(words, 1, where, n_nodes))
        rate.append(_quantity(words[2], _RATES, where, "a rate such as 400Gbps", 8, known))
        delay.append(_quantity(words[3], _TIMES, where, "a delay such as 0.0005ms", 1, known))
        loss.append(_quantity(words[4], {"": 0}, where, "a probability", 1, known))
        if src[-1] == dst[-1] or not rate[-1] > 0 or not loss[-1] < 1:
            raise InputError(f"{where}: a cable joins two nodes, has a positive rate and loses less than all")
    return src + dst, dst + src, rate * 2, delay * 2, loss * 2


def _quantity(
    text: str, units: dict[str, int], where: str, wanted: str, divisor: int, known: dict[tuple[str, str], float]
) -> float:
    if (wanted, text) in known:
        return known[wanted, text]
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
    known[wanted, text] = value
    return value


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")
