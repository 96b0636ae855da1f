"""Read NCCL's log: the channels that its search found, its table of costs, and what it took at which size."""

from __future__ import annotations

import re
from typing import Any

OPERATIONS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast", "Reduce": "reduce",
}  # fmt: skip
# Operations whose sizes NCCL prints for one rank.
BY_RANK = ("all_gather", "reduce_scatter")
PROTOCOLS = ("ll", "ll128", "simple")
ALGORITHMS = {"RING": "ring", "TREE": "tree", "PAT": "pat"}
NAMES = {"Tree": "tree", "Ring": "ring", "PAT": "pat"}
_PATTERN = re.compile(r"Pattern (\d+), crossNic \d, nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+)")
_CALL = re.compile(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo..Hi\}=\{(\d+)..(\d+)\}")


def patterns(log: str) -> dict[str, list[Any]]:
    """Return channels, GB/s inside and between, and the path to the NIC, of rings (pattern 4) and trees (3)."""
    found = {number: rest for number, *rest in _PATTERN.findall(log)}
    return {
        name: [int(found[number][0]), float(found[number][1]), float(found[number][2]), found[number][4]]
        for name, number in (("ring", "4"), ("tree", "3"))
    }


def costs(log: str) -> dict[str, dict[str, list[float]]]:
    """Return latency (us) and bandwidth (GB/s) by operation and algorithm/protocol, of what NCCL uses."""
    table: dict[str, dict[str, list[float]]] = {}
    names: list[str] = []
    for line in log.splitlines():
        head, *cells = (text.strip() for text in line.partition(" INFO ")[2].split("|"))
        cells = [cell for cell in cells if cell]
        if head == "Algorithm":
            names = cells
        elif head in OPERATIONS:
            for i, cell in enumerate(cells):
                latency, bandwidth = map(float, cell.split("/"))
                name = NAMES.get(names[i // 3])
                if name and bandwidth:
                    row = table.setdefault(OPERATIONS[head], {})
                    row[f"{name}/{PROTOCOLS[i % 3]}"] = [latency, bandwidth]
    return table


def calls(log: str, n_ranks: int) -> dict[tuple[str, int], tuple[str, int]]:
    """Return algorithm, protocol and number of channels by operation and bytes of the whole array."""
    found = {}
    for name, size, algorithm, protocol, first, last in _CALL.findall(log):
        if name in OPERATIONS:
            operation = OPERATIONS[name]
            whole = int(size) * (n_ranks if operation in BY_RANK else 1)
            how = f"{ALGORITHMS[algorithm]}/{protocol.lower()}"
            found[operation, whole] = how, int(last) - int(first) + 1
    return found
