"""Less capacity is never faster: drawn networks with fewer, slower or dead cables, in the median over hashes.

    python -m benchmarks.accuracy.less_capacity --networks 2000 -o FILE.jsonl [--first 0] [--engine flow]
    python -m benchmarks.accuracy.less_capacity --read FILE.jsonl ...

A pair is one collective on one network, and on the same network with less capacity between its switches. A file has a
line a pair; runs with another ``--first`` are pieces of one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import commsim as cs
import commsim.packets.aggregated.systems
from collectives import COLLECTIVES
from commsim.core.errors import CommsimError, InputError
from commsim.core.network_queries import fabric_cables
from commsim.prediction.inputs import load_network
from commsim.routing.cable_counts import count_cables

HASHES = 8
# Hashes that give one time, so that no more are drawn.
ALIKE = 3
# Rounding of times that are equal.
ROUNDED = 1e-9
# Largest array that is played in packets, bytes.
IN_PACKETS = 2**18
MACHINES = ("dgx-h100", "dgx-a100", "mi300x", "pcie_host")
KINDS = ("fewer cables", "slower cables", "dead cables")
# Without those of tests: what is drawn must not depend on what was imported before.
ALGORITHMS = tuple(sorted(n for n in COLLECTIVES if COLLECTIVES[n].build.__module__.startswith("collectives.")))
LIBRARIES = tuple(name for name in ALGORITHMS if name.startswith(("nccl_", "rccl_")))


@dataclass(frozen=True, slots=True)
class Pair:
    """A question on a network, and on the same one with less capacity.

    Parameters
    ----------
    number : int
        Number of the pair, which is its seed.
    kind : str
        What is taken away, of ``KINDS``.
    collective, network, less : str
        Collective, network, and the network that has less; the same where faults take it away.
    faults : mapping of str to list of str
        ``fail`` or ``scale`` of the network that has less.
    size : int, bytes
        Size of the operation.
    placement : str
        Where the ranks are.
    """

    number: int
    kind: str
    collective: str
    network: str
    less: str
    faults: Mapping[str, Sequence[str]]
    size: int
    placement: str


def drawn(number: int) -> Pair | None:
    """Draw a pair; None where what was drawn cannot be built."""
    draw = random.Random(f"less capacity {number}")
    fabric, ratios = _fabric(draw)
    kind = draw.choice(KINDS)
    name = draw.choice(LIBRARIES if "@" in fabric or fabric.startswith("rail") else ALGORITHMS)
    size = round(2 ** draw.uniform(12, 24))
    placement = draw.choice(("packed", "packed", "spread"))
    more, fewer = sorted(draw.sample(ratios, 2))
    network = f"{fabric},oversubscription={more}"
    less, faults = (f"{fabric},oversubscription={fewer}", {}) if kind == KINDS[0] else (network, {})
    try:
        load_network(less)
        if kind != KINDS[0]:
            faults = _faults(draw, network, kind)
    except InputError:
        return None
    return Pair(number, kind, name, network, less, faults, size, placement)


def _fabric(draw: random.Random) -> tuple[str, list[int]]:
    """Return a network without its ratio, and the ratios from which two are drawn."""
    n = draw.choice((2, 4, 8))
    rate = f"bandwidth={draw.choice((25, 100, 400))}Gbps"
    ratios = [ratio for ratio in (1, 2, 4, 8) if n % ratio == 0]
    match draw.randrange(8):
        case 0 | 1:
            spines = draw.choice((1, 2, n))
            return f"leaf_spine:n_leaves={draw.choice((2, 3, 4))},n_spines={spines},hosts_per_leaf={n},{rate}", ratios
        case 2:
            counts = f"machines={draw.choice((2, 4))},n_leaves=2,n_spines={draw.choice((2, 4))}"
            return f"{draw.choice(MACHINES)}@leaf_spine:{counts}", [1, 2, 4]
        case 3:
            group = draw.choice((2, 4))
            return f"rail_optimized:machines={2 * group},hosts_per_group={group}", [1, 2, 4][:group]
        case 4:
            return f"fat_tree:k={draw.choice((4, 4, 8))},{rate}", [1, 2]
        case 5:
            counts = f"n_pods=2,racks_per_pod={draw.choice((2, 4))},hosts_per_rack={n},switches_per_pod=2,n_cores=2"
            return f"three_tier:{counts},{rate}", ratios
        case 6:
            counts = f"n_leaves={draw.choice((2, 3))},n_spines={draw.choice((1, 2))},hosts_per_leaf={n}"
            return f"multi_plane:n_planes=2,{counts},{rate}", ratios
        case _:
            return (
                f"dual_tor:n_racks={draw.choice((2, 3))},n_spines={draw.choice((1, 2))},hosts_per_rack={n},{rate}",
                ratios,
            )


def _faults(draw: random.Random, text: str, kind: str) -> dict[str, list[str]]:
    """Return cables that are slower, all of a tier or a few, or that fail, a few so that switches stay joined."""
    network = load_network(text)
    if kind == "slower cables" and draw.random() < 0.5:
        tier = draw.choice(count_cables(network))
        pattern = f"link:*{tier.below}*:*{tier.above}*"
        return {"scale": [f"{pattern}={draw.choice((0.9, 0.5, 0.25))}"]}
    cables = fabric_cables(network)
    some = draw.sample(cables.tolist(), min(len(cables), draw.choice((1, 1, 2, max(1, len(cables) // 8)))))
    names = sorted({f"link:{network.link_name(cable)}" for cable in some})
    if kind == "slower cables":
        factor = draw.choice((0.9, 0.5, 0.25))
        return {"scale": [f"{name}={factor}" for name in names]}
    return {"fail": names}


def times(pair: Pair, seeds: Iterable[int], engine: str) -> tuple[list[float], list[float]]:
    """Return the times with all and with less capacity, s, by seed; few where the hash matters to neither."""
    every = list(seeds)
    both = (load_network(pair.network), dict[str, Sequence[str]]()), (load_network(pair.less), pair.faults)

    def of(which: int, seed: int) -> float:
        network, faults = both[which]
        given: dict[str, Any] = {"placement": pair.placement, "engine": engine, **faults}
        return cs.predict(pair.collective, network, pair.size, seed=seed, **given).time

    few = [[of(which, seed) for seed in every[:ALIKE]] for which in range(2)]
    if not all(max(column) <= min(column) * (1 + ROUNDED) for column in few):
        # three draws that are alike say little where the other network's differ: medians are of the same seeds
        few = [[*column, *(of(which, seed) for seed in every[ALIKE:])] for which, column in enumerate(few)]
    return few[0], few[1]


def measured(pair: Pair, engine: str = "flow", hashes: int = HASHES) -> dict[str, Any] | None:
    """Return a pair with its medians; a pair that is faster with less is asked again with four times the hashes.

    None where the question is refused, such as a number of ranks that the algorithm does not take.
    """
    try:
        more, less = times(pair, range(hashes), engine)
        if median(less) < median(more) * (1 - ROUNDED):
            again = times(pair, range(hashes, 4 * hashes), engine)
            more, less = more + again[0], less + again[1]
    except CommsimError:
        return None
    gain = 1 - median(less) / median(more)
    spread = max(more) / min(more) - 1
    return {**asdict(pair), "more_s": median(more), "less_s": median(less), "gain": gain, "spread": spread}


def summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many pairs break the rule and by how much, in all and by kind and collective."""
    broken = [row for row in rows if row["gain"] > ROUNDED]
    lines = [f"{len(rows)} pairs, {len(broken)} faster with less capacity"]
    for key in ("kind", "collective"):
        for value in sorted({row[key] for row in rows}):
            of = [row for row in rows if row[key] == value]
            gains = sorted((row["gain"] for row in of if row["gain"] > ROUNDED), reverse=True)
            if gains or key == "kind":
                most = f", by {gains[0]:.2%} at most, {sum(g > 0.01 for g in gains)} by over 1 %" if gains else ""
                lines.append(f"{value}: {len(gains)} of {len(of)}{most}")
    worst = sorted(broken, key=lambda row: -row["gain"])[:15]
    return lines + [
        f"{row['gain']:.2%} #{row['number']} {row['kind']}: {row['collective']} {row['size']} B {row['placement']} on "
        f"{row['network']} | {row['faults'] or row['less']} (spread {row['spread']:.0%})"
        for row in worst
    ]


def main(words: list[str] | None = None) -> int:
    """Draw, ask, write and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.less_capacity", description=__doc__)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--engine", default="flow", choices=("flow", "packet"))
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--read", type=Path, nargs="+")
    args = parser.parse_args(words)
    if args.read:
        rows = [json.loads(line) for path in args.read for line in path.read_text().splitlines()]
        print("\n".join(summary(rows)))
        return 0
    rows = []
    for number in range(args.first, args.first + args.networks):
        pair = drawn(number)
        if pair and args.engine == "packet":
            pair = replace(pair, size=min(pair.size, IN_PACKETS))
        row = measured(pair, args.engine) if pair else None
        if row is None:
            continue
        rows.append(row)
        if args.output:
            with args.output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print("\n".join(summary(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
