"""How far the packet engine's transports are from the flow engine's fair shares, and why.

python -m benchmarks.accuracy.packet_vs_flow [--json FILE | --write-data]

Every gap is measured again with what may cause it taken away: acknowledgements of no bytes, then also switches that
mark nothing. What is left then is store and forward, the ramp of windows, and unfair shares. With --write-data cases
that ``--engine auto`` looks up are played instead (:mod:`benchmarks.accuracy.packet_grid`): some 15 minutes of one
core.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.results_file import write_results
from collectives import COLLECTIVES
from commsim.auto.known_error import PACKET_FILE
from commsim.core.errors import CommsimError
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.packets.links.queues import ROCE
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import Spraying, usual_path
from commsim.prediction.inputs import load_network
from commsim.report.terminal import print_table, progress

from .packet_grid import write_data

N_RANKS = 8
LINKS = "bandwidth=100Gbps,latency=1us"
NETWORKS = {
    "star": f"star:n_hosts=8,{LINKS}",
    "leaf-spine 2:1": f"leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,uplink_bandwidth=200Gbps,{LINKS}",
}
CASES = ("ring_all_reduce", "halving_doubling_all_reduce", "direct_all_to_all")
# Transports whose messages usually keep to a path, as those of the flow engine do.
PATHS = ("window", "dctcp", "dcqcn")
# Smallest message in bandwidth-delay products of the longest path there and back.
PRODUCTS = (100, 1000)

COLUMNS = [
    "network", "collective", "message(BDP)", "transport", "flow(us)", "packet(us)", "gap(%)", "no_acks(%)",
    "no_marks(%)", "marks", "cause",
]  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """One row.

    Parameters
    ----------
    network, collective, transport : str
        Of the case.
    products : int
        Of bandwidth and delay in the smallest message.
    size : float, bytes
        Of the whole collective.
    flow_s, packet_s : float, s
        Time in either engine.
    without_acks, without_marks : float
        The gap when acknowledgements have no bytes; and when, besides, nothing is marked.
    marks : float
        Packets that were marked.
    """

    network: str
    collective: str
    transport: str
    products: int
    size: float
    flow_s: float
    packet_s: float
    without_acks: float
    without_marks: float
    marks: float

    @property
    def gap(self) -> float:
        """How much longer the packet engine takes."""
        return self.packet_s / self.flow_s - 1

    @property
    def cause(self) -> str:
        """What the largest part of the gap goes away with."""
        parts = {
            "acknowledgements' bytes": self.gap - self.without_acks,
            "rates cut by marks": self.without_acks - self.without_marks,
            "store and forward, windows, unfair shares": self.without_marks,
        }
        return max(parts, key=lambda name: parts[name])


def gaps(
    networks: Mapping[str, str] = NETWORKS, cases: Sequence[str] = CASES, products: Sequence[int] = PRODUCTS
) -> Iterator[Gap]:
    """Measure every case of these networks, collectives and products."""
    for label, spec in networks.items():
        network = load_network(spec)
        for collective in cases:
            schedule = COLLECTIVES[collective].build(N_RANKS)
            plan = plan_flows(network, [FlowJob(schedule, place(network, N_RANKS))])
            smallest = schedule.expand()["count"].min() / schedule.n_chunks
            for product in products:
                size = product * bandwidth_delay(network, plan) / smallest
                flow = simulate_flows(plan, size, framing=ROCE)[0].time
                for name in PATHS:
                    yield measure((label, collective, name, product), plan, size, flow, usual_path(name, network))


def bandwidth_delay(network: Network, plan: FlowPlan) -> float:
    """Bytes on the longest path, there and back, at the fastest link's rate."""
    return float(2 * plan.routes.latency.max() * network.bandwidth.max())


def measure(case: tuple[str, str, str, int], plan: FlowPlan, size: float, flow: float, how: Spraying) -> Gap:
    """Simulate one case three times."""
    silent = dataclasses.replace(how, ack_bytes=0)
    unmarked = dataclasses.replace(silent, ecn=(0.0, 0.0))
    whole, *silenced = (run_packets(plan, size, one).results[0] for one in (how, silent, unmarked))
    without = [result.time / flow - 1 for result in silenced]
    return Gap(*case, size, flow, whole.time, without[0], without[1], whole.counters["marks"])


def row(found: Gap) -> list[str]:
    """Cells under COLUMNS."""
    percents = [f"{100 * x:.2f}" for x in (found.gap, found.without_acks, found.without_marks)]
    times = [f"{found.flow_s * 1e6:.1f}", f"{found.packet_s * 1e6:.1f}"]
    what = [found.network, found.collective, f"{found.products}", found.transport]
    return [*what, *times, *percents, f"{found.marks:.0f}", found.cause]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy.packet_vs_flow", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--write-data", action="store_true", help=f"write commsim/auto/{PACKET_FILE} instead")
    args = parser.parse_args(argv)
    if args.write_data and args.json:
        parser.error("--json goes with the causes, not with --write-data")
    try:
        if args.write_data:
            write_data()
            return 0
        total = len(NETWORKS) * len(CASES) * len(PRODUCTS) * len(PATHS)
        source = gaps()
        found = [next(source) for _ in progress(range(total), "packet_vs_flow")]
    except CommsimError as error:
        print(f"benchmarks.accuracy.packet_vs_flow: error: {error}", file=sys.stderr)
        return 2
    print_table(COLUMNS, [row(gap) for gap in found], f"packet engine against flow engine, {N_RANKS} ranks")
    if args.json:
        rows = [dataclasses.asdict(gap) | {"gap": gap.gap, "cause": gap.cause} for gap in found]
        write_results(args.json, {"what": "packet_vs_flow"}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
