"""In-network aggregation by flow engine, packet engine and `switch simulate`: times, differences and their causes.

python -m benchmarks.accuracy.in_network_agreement [-o FILE.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from commsim.core.units import format_size
from commsim.packets.aggregated.aggregation_jobs import aggregation_job
from commsim.packets.aggregated.plan_aggregated import AggregatedPlan
from commsim.packets.aggregated.systems import named_system
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network

NETWORKS = {
    "star": "star:n_hosts=9,bandwidth=100Gbps,latency=1us",
    "leaf-spine": "leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=3,bandwidth=100Gbps,latency=1us",
    "fat tree": "fat_tree:k=4,bandwidth=100Gbps,latency=1us",
}
SYSTEMS = ("switchml", "atp", "sharp")
SIZES = (1 << 14, 1 << 20, 1 << 24)
WORKERS = 8
COLUMNS = (
    "system",
    "network",
    "size",
    "`run`, us",
    "`run --engine packet`, us",
    "`switch simulate`, us",
    "difference",
    "cause",
)


def rows(sizes: tuple[int, ...] = SIZES) -> Iterator[tuple[str, ...]]:
    """Compute the cells of each row; the last but one is that of the flow engine to the packet engine."""
    for name in SYSTEMS:
        for where, spec in NETWORKS.items():
            ready, network = prepare(name, spec, n_ranks=WORKERS), load_network(spec)
            for size in sizes:
                flow, packet = ready.predict(size), ready.predict(size, engine="packet")
                view = ready.view(size) if isinstance(ready, AggregatedPlan) else None
                system = named_system(name, {})[0].at(size)
                job = aggregation_job(
                    system, network, network.endpoints[:WORKERS].tolist(), -(-size // system.element_bytes)
                )
                simulated = simulate_aggregation(network, [job]).results[0]
                times = [f"{r.time * 1e6:.3f}" for r in (flow, packet, simulated)]
                causes = "; ".join(view.differences) if view is not None else ""
                gap = f"{flow.time / packet.time - 1:+.2%}"
                yield name, where, format_size(size), *times, gap, causes or "-"


def table(sizes: tuple[int, ...] = SIZES) -> str:
    """Return the rows as a table in Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows(sizes)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", metavar="FILE.md", help="write it there")
    out = parser.parse_args().o
    if out:
        Path(out).write_text(table())
    else:
        print(table())


if __name__ == "__main__":
    main()
