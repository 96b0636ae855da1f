"""Read and write quantities: text such as ``400Gbps``, ``64MiB``, ``1.5us`` at the edges, SI floats inside.

The grammar is ``<number>[space]<unit>`` and case decides: ``b`` is a bit, ``B`` is a byte; ``k M G T`` are powers of
1000, ``Ki Mi Gi Ti`` powers of 1024. A bare number is refused, because its meaning is unknown. The one
exception is :func:`parse_nccl_size`, which reads sizes as nccl-tests does.

``format_...`` round for people; ``write_...`` give text that reads back as exactly the same float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from .errors import InputError, wrong_kind

Bandwidth = Annotated[float, "bandwidth"]  # bytes per second
Seconds = Annotated[float, "time"]
Bytes = Annotated[float, "size"]
Ratio = Annotated[float, "ratio"]  # of two capacities: 2 for 2:1

# Decimal, because 33.3 * 1e9 / 8 in floats is not the float that is nearest to 33.3 Gb/s.
_PREFIX = {"": Decimal(1)}
_PREFIX |= {prefix: Decimal(1000) ** n for n, prefix in enumerate(("k", "M", "G", "T", "P"), 1)}
_PREFIX |= {prefix: Decimal(1024) ** n for n, prefix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)}
_BITS_OR_BYTES = {"b": Decimal("0.125"), "bit": Decimal("0.125"), "B": Decimal(1)}
_SECONDS = {unit: Decimal(10) ** -n for n, unit in ((12, "ps"), (9, "ns"), (6, "us"), (3, "ms"), (0, "s"))}
_SECONDS |= dict.fromkeys(("µs", "μs"), _SECONDS["us"])
_SECONDS |= {"m": Decimal(60), "min": Decimal(60), "h": Decimal(3600)}
# Bytes/s. Below this, what is divided by a rate becomes infinite; no rate of a cluster comes near it.
MIN_RATE = 1e-30
# Bytes/s, 144 Tb/s: 10 times the links of a GPU of NVLink 6, one way, the fastest port that is built. More is a typo.
MAX_RATE = 18e12
_SMALLER = {"P": "T", "T": "G", "G": "M"}
# Nothing is left that could fail behind the number, so that a long text is not divided in all ways.
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.ASCII | re.DOTALL)
_BLANKS = " \t\n\r\f\v"
_DATA_UNIT = re.compile(r"(|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)(bit|b|B)")
_RATE_UNIT = re.compile(r"(|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)(?:(bit|b|B)/s|(b|B)ps)")
_COST_UNIT = re.compile(r"(\w+)/B")
_POSITIVE = r"\s*((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*"
_RATIO = re.compile(rf"{_POSITIVE}(?::{_POSITIVE})?", re.ASCII)
_FACTOR = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_OF_NCCL = ("K", "M", "G", "T")
_NCCL_SIZE = re.compile(r"(\d{1,300})([KMGT]?)", re.IGNORECASE | re.ASCII)
# Sizes of one table: -i of a byte would ask for a row for each byte.
MAX_SIZES = 10_000
# Bytes of an element, to which sizes of a fractional factor are rounded down.
ELEMENT = 4


def parse_bandwidth(text: str, name: str = "bandwidth") -> float:
    """Read the rate of a link, such as ``400Gbps`` or ``50 GB/s``: bytes per second.

    Raises
    ------
    InputError
        Where :func:`parse_rate` does; and for a rate that no port comes near, unless it is in plain B/s or b/s.
    """
    rate, (value, unit) = parse_rate(text, name), _split(text, name, "")
    if rate > MAX_RATE and unit[0] not in "bB":  # without a prefix it is meant, and what we write ourselves
        is_close = unit[0] in _SMALLER and rate <= 1000 * MAX_RATE
        hint = f"; did you mean {value}{_SMALLER[unit[0]]}{unit[1:]}?" if is_close else ""
        raise InputError(f"{name} is {text!r}, and must be at most 144Tbps (18TB/s){hint}")
    return rate


def parse_rate(text: str, name: str = "rate") -> float:
    """Read a rate of memories, sums or links, bytes per second; refuse what is no rate, or below 1e-30 B/s."""
    value, unit = _split(text, name, "a rate such as 400Gbps or 50GB/s")
    match = _RATE_UNIT.fullmatch(unit)
    if match is None:
        raise InputError(f"{name} must be a rate such as 400Gbps or 50GB/s, got {text!r}{_rate_hint(text, unit)}")
    rate = float(value * _PREFIX[match[1]] * _BITS_OR_BYTES[match[2] or match[3]])
    if not 0 < rate < math.inf:
        raise InputError(f"{name} must be positive and finite, got {text!r}")
    if rate < MIN_RATE:
        raise InputError(f"{name} must be a rate such as 400Gbps or 50GB/s, got {text!r}, which is too small")
    return rate


def parse_size(text: str, name: str = "size") -> float:
    """Read a size such as ``64MiB`` or ``4 kB``, in bytes; bits are refused for a size.

    As in nccl-tests K, M, G, T alone are powers of 1024: ``64M`` is ``64MiB``.

    Raises
    ------
    InputError
        If the number or the unit is missing or unknown, or the value is negative or infinite.
    """
    value, unit = _split(text, name, "a size such as 64MiB or 1MB")
    if unit.upper() in _OF_NCCL:
        unit = f"{unit.upper()}iB"
    match = _DATA_UNIT.fullmatch(unit)
    if match is None or match[2] != "B":
        raise InputError(f"{name} must be a size such as 64MiB or 1MB, got {text!r}{_size_hint(unit)}")
    return _not_negative(value * _PREFIX[match[1]], text, name)


def parse_time(text: str, name: str = "time") -> float:
    """Read a duration such as ``1.5us``, in seconds.

    Raises
    ------
    InputError
        If the number or the unit is missing or unknown, or the value is negative or infinite.
    """
    value, unit = _split(text, name, "a time such as 1.5us")
    if unit not in _SECONDS:
        raise InputError(f"{name} must be a time such as 1.5us, got {text!r}; units are ps, ns, us, ms, s, m, h")
    return _not_negative(value * _SECONDS[unit], text, name)


def parse_cost(text: str, name: str = "cost") -> float:
    """Read a time per byte such as ``0.02ns/B``, in seconds per byte; refuse what :func:`parse_time` would."""
    value, unit = _split(text, name, "a time per byte such as 0.02ns/B")
    match = _COST_UNIT.fullmatch(unit)
    if match is None or match[1] not in _SECONDS:
        raise InputError(f"{name} must be a time per byte such as 0.02ns/B, got {text!r}")
    return _not_negative(value * _SECONDS[match[1]], text, name)


def parse_ratio(text: str, name: str = "ratio") -> float:
    """Read a ratio of two capacities such as ``2:1`` or ``2``.

    Raises
    ------
    InputError
        If it is neither, one of the numbers is not positive, or the first of two is the smaller one: ratios have the
        larger one first.
    """
    match = _RATIO.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise wrong_kind(name, "a ratio such as 2:1 or 2", text)
    first, other = float(match[1]), float(match[2] or 1)
    if not (other > 0 and 0 < first / other < math.inf):
        raise InputError(f"{name} must be a ratio of positive numbers such as 2:1, got {text!r}")
    if match[2] and first < other:
        raise InputError(f"{name} must have the larger number first, got {text!r}; did you mean {match[2]}:{match[1]}?")
    return first / other


def parse_nccl_size(text: str, name: str = "size") -> int:
    """Read a size as nccl-tests does: a bare number is bytes, and K, M, G, T are powers of 1024.

    Raises
    ------
    InputError
        If it is neither that nor a size with a unit, or is not a whole number of bytes from 1 to 2^63 - 1.
    """
    match = _NCCL_SIZE.fullmatch(text.strip(_BLANKS))
    prefix = " KMGT".index(match[2].upper() or " ") if match else 0
    value = float(match[1]) * 1024**prefix if match else parse_size(text, name)
    if value < 1 or value != int(value):
        raise InputError(f"{name} must be a whole number of bytes, at least 1, got {text!r}")
    if value >= 2**63:
        raise InputError(f"{name} must be below 8 EiB, got {text!r}")
    return int(value)


def parse_nccl_sizes(first: str, last: str, factor: str, step: str | None = None) -> list[int]:
    """Read the sizes that ``-b``, ``-e``, ``-f`` and ``-i`` of nccl-tests ask for, in bytes.

    Parameters
    ----------
    first, last : str
        The first size, and the one that is not exceeded.
    factor : str
        Factor between two sizes, above 1; sizes of a fraction are rounded down to whole elements of 4 bytes.
    step : str, optional
        Added to a size in place of the factor.

    Raises
    ------
    InputError
        If a size is no size, the last is smaller than the first, the factor is not above 1, or sizes are too many.
    """
    low, high = parse_nccl_size(first, "-b"), parse_nccl_size(last, "-e")
    if high < low:
        raise InputError(f"-e must not be smaller than -b, got -b {first} -e {last}")
    if step is not None:
        by = parse_nccl_size(step, "-i")
        if by < 1 or (high - low) // by >= MAX_SIZES:
            raise InputError(f"-i must be at least 1 byte and give at most {MAX_SIZES} sizes, got {step}")
        return list(range(low, high + 1, by))
    times = float(factor) if _FACTOR.fullmatch(factor) else 0.0
    if times <= 1 or MAX_SIZES * math.log(times) <= math.log(high / low):
        many = f"-f must be a number above 1 that gives at most {MAX_SIZES} sizes, got {factor}"
        raise InputError(f"{many}; -i SIZE is a step in bytes")
    times = int(times) if times == int(times) else times  # so that sizes of a whole factor are exact
    sizes, unit = list[int](), math.gcd(low, ELEMENT)
    exact: float = low
    while exact <= high:
        sizes.append(int(exact) // unit * unit)
        exact *= times
    return list(dict.fromkeys(sizes))


PARSERS = {"bandwidth": parse_bandwidth, "time": parse_time, "size": parse_size, "ratio": parse_ratio}


def si_of(value: float | str, parse: Callable[[str, str], float], name: str) -> float:
    """Return a number, which is in SI units, or what one of the parsers above reads in text such as ``10us``."""
    return parse(value, name) if isinstance(value, str) else float(value)


def share(text: str, name: str = "share") -> float:
    """Read a part of a whole, such as ``1%`` or ``0.01``.

    Raises
    ------
    InputError
        If it is no number.
    """
    if (match := _NUMBER.fullmatch(text.strip(_BLANKS))) is None or match[2] not in ("", "%"):
        raise wrong_kind(name, "a share such as 1% or 0.01", text)
    return float(match[1]) / (100 if match[2] else 1)


def write_bandwidth(bytes_per_s: float) -> str:
    """Write a rate so that :func:`parse_bandwidth` gives exactly the same float: ``400Gbps``."""
    prefixes = ("T", "G", "M", "k", "") if bytes_per_s <= MAX_RATE else ()
    return _exact(bytes_per_s, {f"{one}bps": _PREFIX[one] * _BITS_OR_BYTES["b"] for one in prefixes}, "B/s")


def write_size(n_bytes: float) -> str:
    """Write a size so that :func:`parse_size` gives exactly the same float: ``64MiB``."""
    return _exact(n_bytes, {f"{one}iB": _PREFIX[f"{one}i"] for one in "TGMK"}, "B")


def write_time(seconds: float) -> str:
    """Write a duration so that :func:`parse_time` gives exactly the same float: ``1.5us``."""
    return _exact(seconds, {unit: _SECONDS[unit] for unit in ("s", "ms", "us", "ns")}, "s")


def write_cost(seconds_per_byte: float) -> str:
    """Write a time per byte so that :func:`parse_cost` gives exactly the same float: ``0.02ns/B``."""
    return _exact(seconds_per_byte, {"ns/B": _SECONDS["ns"]}, "s/B")


def write_ratio(ratio: float) -> str:
    """Write a ratio so that :func:`parse_ratio` gives exactly the same float: ``2`` for 2:1."""
    return repr(float(ratio)).removesuffix(".0")


WRITERS = {"bandwidth": write_bandwidth, "time": write_time, "size": write_size, "ratio": write_ratio}


def format_size(n_bytes: float) -> str:
    """Write bytes with the largest binary unit that is exact to three digits, such as ``64 MiB``."""
    return _scaled(n_bytes, 1024.0, ("B", "KiB", "MiB", "GiB", "TiB"))


def format_bandwidth(bytes_per_s: float) -> str:
    """Write a rate in bit/s, followed by bytes/s: ``400 Gb/s (50 GB/s)``."""
    if math.isinf(bytes_per_s):
        return "unlimited"
    bits = _scaled(bytes_per_s * 8, 1000.0, ("b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "Pb/s"))
    return f"{bits} ({_scaled(bytes_per_s, 1000.0, ('B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s', 'PB/s'))})"


def format_time(seconds: float) -> str:
    """Write a duration with a unit that leaves one to three digits before the point: ``1.5 us``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if seconds else "0 s"


def microseconds(seconds: float, digits: int = 2) -> str:
    """Write a time as a cell of a table whose column, or text, has the unit: microseconds with fixed digits.

    Examples
    --------
    >>> microseconds(1.2345e-5)
    '12.35'
    >>> microseconds(-1e-15)  # what rounding leaves has no sign
    '0.00'
    """
    return f"{seconds * 1e6:z.{digits}f}"


def _split(text: str, name: str, wanted: str) -> tuple[Decimal, str]:
    match = _NUMBER.fullmatch(text.strip(_BLANKS)) if isinstance(text, str) else None
    if match is None:
        raise wrong_kind(name, wanted, text)
    if not match[2]:
        raise InputError(f"{name} needs a unit: {wanted}, got {text!r}")
    if not abs(float(match[1])) < 1e300:
        raise InputError(f"{name} must be {wanted}, got {text!r}, which is too large")
    return Decimal(match[1]), match[2]


def _rate_hint(text: str, unit: str) -> str:
    if _DATA_UNIT.fullmatch(unit):
        size = re.sub(r"(b|B|bit|bits)$", "", text.strip())
        return f", did you mean {size}bps (bits) or {size}B/s (bytes)?"
    if re.fullmatch(r"[kmgtp]i?(bit|b)(/s|ps)", unit, re.IGNORECASE):
        return "; case counts: k M G T P, b for bits, B for bytes"
    return ""


def _size_hint(unit: str) -> str:
    if unit.endswith(("b", "bit")):
        return "; b is a bit, B is a byte"
    match = re.fullmatch(r"([kmgtp])(i?)B?", unit, re.IGNORECASE)
    if match is None:
        return ""
    prefix = match[1].upper()
    return f", write {prefix}iB (1024) or {'k' if prefix == 'K' else prefix}B (1000)"


def _exact(value: float, units: Mapping[str, Decimal], plain: str) -> str:
    """Text of the first of `units` that leaves at least 1 before the point and reads back exactly; else `plain`."""
    for unit, factor in units.items():
        number = value / float(factor)
        if 1 <= number < 1e5 and float(Decimal(text := f"{number:.12g}") * factor) == value:
            return f"{text}{unit}"
    return f"{float(value)!r}{plain}"


def first_of(texts: Sequence[str], most: int = 3, others: str = "more") -> str:
    """Return the first of several texts, with commas between them, and how many others there are."""
    more = f" and {len(texts) - most} {others}" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def count_text(n: int, noun: str, plural: str = "") -> str:
    """Write a number and its noun, such as ``1 rank`` and ``8 ranks``; a plural that has more than an s is given."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def _not_negative(exact: Decimal, text: str, name: str) -> float:
    value = float(exact)
    if not (0 <= value < math.inf):
        raise InputError(f"{name} must not be negative or infinite, got {text!r}")
    return value


def _scaled(value: float, step: float, units: tuple[str, ...]) -> str:
    i = 0
    while abs(value) >= step and i < len(units) - 1:
        value, i = value / step, i + 1
    return f"{value:.4g} {units[i]}"
