"""The flow engine's predictions beside the packet engine's on a grid of cases, which ``--engine auto`` looks up.

Both are asked as a user would: by ``Plan.predict`` without options but the transport, so the packet engine has its
headers and acknowledgements, and the flow engine has none. With the ideal window, times depend on rate times latency
and not on the rate (:mod:`commsim.auto.evidence` says why; a test tries it), so one rate is played; DCTCP and
DCQCN have clocks of their own and are played at the slowest and the fastest.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import commsim.auto
from benchmarks.accuracy.known_errors import to_tree
from commsim.auto.case import case_of
from commsim.auto.known_error import PACKET, PACKET_FILE, ErrorSample
from commsim.core.files.whole_files import replacing
from commsim.packets.transports.spraying import usual_path
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network
from commsim.prediction.read import DEFAULT_OVERHEAD, with_costs

KIB, MIB, GIB = 2**10, 2**20, 2**30
COLLECTIVES = (
    "ring_all_reduce", "halving_doubling_all_reduce", "binomial_tree_all_reduce", "double_tree_all_reduce",
    "ring_reduce_scatter", "ring_all_gather", "recursive_doubling_all_gather", "binomial_broadcast", "chain_broadcast",
    "binomial_reduce", "pairwise_all_to_all", "direct_all_to_all",
)  # fmt: skip
ON_RAILS = (*COLLECTIVES, "hierarchical_all_reduce")
SLOW, USUAL, FAST = 1.25e9, 12.5e9, 50e9  # bytes/s: 10, 100 and 400 Gbit/s
# At the usual rate as long as the default overhead is at it and, relative to packets, at the slow and the fast one.
OVERHEADS = (DEFAULT_OVERHEAD * SLOW / USUAL, DEFAULT_OVERHEAD, DEFAULT_OVERHEAD * FAST / USUAL)
# Bytes that a link holds: none, 100 Gbit/s for 500 ns, 400 Gbit/s for 1 us.
PRODUCTS = (0.0, 6250.0, 50_000.0)


@dataclass(frozen=True, slots=True)
class Block:
    """Cases that are all played: every algorithm, network, size and product of rate and latency.

    Parameters
    ----------
    ranks : int
        How many.
    sizes : tuple of int, bytes
        Of the operation.
    products : tuple of float, bytes
        Rate times latency of a link.
    networks : tuple of str
        Of :func:`network_for`.
    transports : tuple of str
        Of the packet engine.
    rates : tuple of float, bytes/s
        Of the hosts' links.
    overheads : tuple of float, s
        What a message costs its sender.
    """

    ranks: int
    sizes: tuple[int, ...]
    products: tuple[float, ...] = PRODUCTS
    networks: tuple[str, ...] = ("star", "leaf-spine 1:1", "leaf-spine 2:1", "fat tree", "rails")
    transports: tuple[str, ...] = ("window",)
    rates: tuple[float, ...] = (USUAL,)
    overheads: tuple[float, ...] = (0.0,)


SMALL, ENDS, CLOCKED = (64 * KIB, MIB, 16 * MIB), (PRODUCTS[0], PRODUCTS[-1]), ("dctcp", "dcqcn")
FABRICS = ("star", "leaf-spine 1:1", "leaf-spine 2:1", "fat tree")
BLOCKS = (
    Block(8, SMALL),
    Block(32, SMALL),
    Block(128, SMALL),
    Block(8, SMALL[1:], ENDS, FABRICS, CLOCKED, (SLOW, FAST)),
    Block(8, (128 * MIB,), ENDS),
    Block(32, (128 * MIB,), ENDS),
    Block(32, SMALL[1:], ENDS, FABRICS, CLOCKED, (SLOW, FAST)),
    Block(8, (128 * MIB,), ENDS, FABRICS, CLOCKED, (SLOW, FAST)),
    Block(8, (GIB,), ENDS, FABRICS),
    Block(128, (64 * MIB,), ENDS, FABRICS),
    Block(32, (GIB,), ENDS, FABRICS[:1]),
    Block(8, (KIB, *SMALL), PRODUCTS, FABRICS, overheads=OVERHEADS),
    Block(32, (KIB, *SMALL), PRODUCTS, FABRICS, overheads=OVERHEADS[1:2]),
    Block(8, (128 * MIB,), ENDS, FABRICS, overheads=OVERHEADS[1:]),
)


def network_for(label: str, ranks: int, rate: float, product: float) -> str:
    """Return a network that holds the ranks, larger ones in larger racks and pods: ``topology:key=value,...``."""
    links = f"bandwidth={rate:g}B/s,latency={product / rate:g}s"
    rack, k = {8: (4, 4), 32: (8, 8), 128: (16, 16)}[ranks]
    leaves = f"n_leaves={ranks // rack},n_spines={rack // 2},hosts_per_leaf={rack}"
    match label:
        case "star":
            return f"star:n_hosts={ranks},{links}"
        case "leaf-spine 1:1":
            return f"leaf_spine:{leaves},uplink_bandwidth={2 * rate:g}B/s,{links}"
        case "leaf-spine 2:1":
            return f"leaf_spine:{leaves},{links}"
        case "fat tree":
            return f"fat_tree:k={k},{links}"
    return f"rail_optimized:n_hosts={ranks // 8},latency={product / USUAL:g}s"


def played(blocks: Sequence[Block] = BLOCKS) -> Iterator[ErrorSample]:
    """Play them, packet by packet, beside the flow engine."""
    for block in blocks:
        every = itertools.product(block.networks, block.rates, block.products, block.overheads)
        for label, rate, product, overhead in every:
            network = with_costs(load_network(network_for(label, block.ranks, rate, product)), overhead=overhead)
            for collective in ON_RAILS if label == "rails" else COLLECTIVES:
                ready = prepare(collective, network, n_ranks=block.ranks)
                for size in block.sizes:
                    flow = ready.predict(size).time
                    for transport in block.transports:
                        packets = ready.predict(size, engine="packet", transport=usual_path(transport, network)).time
                        yield ErrorSample("flow", PACKET[transport], case_of(ready, size), flow / packets - 1)


def write_data(blocks: Sequence[Block] = BLOCKS, path: Path | None = None) -> None:
    """Play everything, say how far it is after each block, and write what auto looks up."""
    found: list[ErrorSample] = []
    total = number_of_cases(blocks)
    for block in blocks:
        found += played([block])
        print(f"# {len(found)} of {total} cases, {time.process_time():.0f} s of CPU", file=sys.stderr, flush=True)
    write_comparisons(path or data_path(), found)


def number_of_cases(blocks: Sequence[Block] = BLOCKS) -> int:
    """Return how many there are."""
    return sum(
        len(block.sizes) * len(block.products) * len(block.transports) * len(block.rates) * len(block.overheads)
        * sum(len(ON_RAILS if label == "rails" else COLLECTIVES) for label in block.networks)
        for block in blocks
    )  # fmt: skip


def write_comparisons(path: Path, some: Sequence[ErrorSample]) -> None:
    """Write them as JSON, a line for each table."""
    tree = to_tree(some)
    head = json.dumps({"schema": tree["schema"], "columns": tree["columns"]})[1:-1]
    lines = ",\n".join(json.dumps(table, separators=(",", ":"), allow_nan=False) for table in tree["tables"])
    with replacing(path) as out:
        out.write(f'{{{head}, "tables": [\n{lines}\n]}}\n'.encode())


def data_path(name: str = PACKET_FILE) -> Path:
    """Where shipped data lies in a checkout."""
    return Path(commsim.auto.__path__[0]) / name
