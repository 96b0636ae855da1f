"""Every transport with every balancing plays three collectives on 16 hosts of a leaf-spine.

``python -m benchmarks.accuracy.transports`` prints a table for each collective, as docs/fabrics.md has it: times in us.
All bytes are delivered once and messages keep the schedule's order, or the engine raises. 4 MB a rank, four leaves and
four spines at 400 Gbit/s, 500 ns a link; `--oversubscription 4` leaves one spine. ``--seeds N`` gives the median of N.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import median

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.run_packets import simulate_packets
from commsim.packets.transports.spraying import BALANCINGS, Spraying
from commsim.packets.transports.transports import TRANSPORTS
from topologies.leaf_spine import leaf_spine

PLAYED = ("ring_all_reduce", "direct_all_to_all", "double_tree_all_reduce")
# The plans spread messages over paths, as the flow engine takes them; `path` needs one each.
SPREAD = tuple(name for name in BALANCINGS if name != "path")
HOSTS, SIZE, RATE, HOP = 16, 4e6, 50e9, 500e-9


def network_of(oversubscription: int) -> Network:
    """Build the leaf-spine: four leaves of four hosts."""
    return leaf_spine(4, 4 // oversubscription, 4, bandwidth=RATE, latency=HOP)


def times(plan: FlowPlan, transport: str, seeds: int) -> Iterator[str]:
    """Yield the time with each balancing, in us, and the packets that were sent again; a dash where they do not fit."""
    for balancing in SPREAD:
        try:
            spraying = Spraying(transport, balancing)
        except InputError:
            yield "-"
            continue
        runs = [simulate_packets(plan, SIZE, spraying, seed=seed)[0] for seed in range(1, seeds + 1)]
        again = median(run.counters["retransmissions"] for run in runs)
        yield f"{median(run.time for run in runs) * 1e6:.1f}" + (f" ({again:.0f})" if again else "")


def main(words: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.transports", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="of hashes, marks and entropies (default: 5)")
    parser.add_argument("--oversubscription", type=int, default=1, choices=(1, 2, 4))
    args = parser.parse_args(words)
    network = network_of(args.oversubscription)
    for name in PLAYED:
        jobs = [FlowJob(COLLECTIVES[name].build(HOSTS), Placement(network.hosts[:HOSTS]))]
        plan = plan_flows(network, jobs, routing="spray")
        flows = simulate_flows(plan, SIZE)[0].time * 1e6
        print(f"\n`{name}`, as sprayed flows without headers {flows:.1f} us:\n")
        print(f"| | {' | '.join(f'`{balancing}`' for balancing in SPREAD)} |")
        print("|---" * (1 + len(SPREAD)) + "|")
        for transport in TRANSPORTS:
            print(f"| `{transport}` | {' | '.join(times(plan, transport, args.seeds))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
