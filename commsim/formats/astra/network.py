"""The network of ASTRA-sim's analytical backends: YAML with one list entry per dimension.

What it calls GB/s is 2**30 bytes per second; latencies are nanoseconds.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text, replacing
from commsim.core.network import Network
from commsim.formats.markup import read_yaml

from .products import BLOCKS, Dimension, network_of
from .recognise import dimensions_of

GB = 2.0**30
MAX_DIMENSIONS = 16
MAX_BYTES, MAX_VALUES = 2**20, 2**10
_FIELDS = ("topology", "npus_count", "bandwidth", "latency")


def read_astra_network(path: str | Path) -> Network:
    """Read a network.

    Raises
    ------
    InputError
        If the file is not such a YAML file, or a number is out of its range.
    """
    return network_of(read_dimensions(path), Path(path).stem)


def read_dimensions(path: str | Path) -> tuple[Dimension, ...]:
    """Read the dimensions of a network.

    Raises
    ------
    InputError
        As in :func:`read_astra_network`.
    """
    tree = read_yaml(read_text(path, MAX_BYTES), str(path), MAX_VALUES)
    if not isinstance(tree, dict) or set(tree) != set(_FIELDS):
        got = ", ".join(map(str, tree)) if isinstance(tree, dict) else type(tree).__name__
        raise InputError(f"{path}: a network of ASTRA-sim has exactly {', '.join(_FIELDS)}; got {got[:200]}")
    lists = [tree[field] for field in _FIELDS]
    for field, values in zip(_FIELDS, lists, strict=True):
        if not isinstance(values, list) or not 0 < len(values) == len(lists[0]) <= MAX_DIMENSIONS:
            lengths = ", ".join(str(len(one)) if isinstance(one, list) else "none" for one in lists)
            raise InputError(
                f"{path}: {field} must be a list with one entry per dimension, 1..{MAX_DIMENSIONS} of them; "
                f"{', '.join(_FIELDS)} have {lengths}"
            )
    dimensions = []
    for k, (block, count, bandwidth, latency) in enumerate(zip(*lists, strict=True)):
        if block not in BLOCKS:
            raise InputError(f"{path}: topology[{k}] must be one of {', '.join(BLOCKS)}, got {str(block)[:60]!r}")
        rate = _number(path, "bandwidth", k, bandwidth) * GB
        _number(path, "latency", k, latency)
        n = _number(path, "npus_count", k, count)
        if n != int(n) or not 2 <= n < 2**31:
            raise InputError(f"{path}: npus_count[{k}] must be a whole number of at least 2, got {count}")
        if not 0 < rate < float("inf"):
            raise InputError(f"{path}: bandwidth[{k}] must be positive and finite, got {bandwidth}")
        dimensions.append(Dimension(block, int(n), rate, _seconds(latency)))
    return tuple(dimensions)


def write_astra_network(network: Network, path: str | Path) -> tuple[str, ...]:
    """Write a network; the file appears whole or not at all.

    Returns
    -------
    tuple of str
        What the file does not say.

    Raises
    ------
    InputError
        If the network is no product of rings, full meshes and switches.
    """
    dimensions, notes = dimensions_of(network)
    lists = {
        "topology": [d.block for d in dimensions],
        "npus_count": [str(d.n_hosts) for d in dimensions],
        "bandwidth": [repr(d.bandwidth / GB) for d in dimensions],  # a power of two: exact
        "latency": [_nanoseconds(d.latency) for d in dimensions],
    }
    comments = {"bandwidth": "  # GB/s, of 2^30 bytes", "latency": "  # ns"}
    with replacing(path) as out:
        for field, values in lists.items():
            out.write(f"{field}: [ {', '.join(values)} ]{comments.get(field, '')}\n".encode())
    return notes


def _number(path: str | Path, field: str, k: int, text: Any) -> float:
    try:
        value = float(text) if isinstance(text, str) and len(text) < 400 and "_" not in text else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise InputError(f"{path}: {field}[{k}] must be a number of 0 or more, got {str(text)[:60]!r}")
    return value


def _seconds(nanoseconds: str) -> float:
    return float(Decimal(nanoseconds).scaleb(-9))


def _nanoseconds(seconds: float) -> str:
    """Digits that :func:`_seconds` turns into the same float again."""
    text = format(Decimal(repr(seconds)).scaleb(9).normalize(), "f")
    return text if "." in text else f"{text}.0"
