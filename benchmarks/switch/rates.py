"""Steady rates of in-network aggregation: bound, simulated, and what rings and servers can do at best.

python -m benchmarks.switch.rates [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.results_file import write_results
from commsim.core.errors import CommsimError
from commsim.papers import measures
from commsim.papers.measures import GBPS, LATENCY
from commsim.report.terminal import print_table, progress
from switch_model.bounds import line_rate, ring_rate, server_rate, throughput
from switch_model.system import System
from switch_model.systems import SYSTEMS

PNG = "p4app-switchML docs/img/benchmark.png"


@dataclass(frozen=True, slots=True)
class Case:
    """One row.

    Parameters
    ----------
    name : str
        Of the format.
    system : System
        What is simulated.
    gbps, n_workers : int
        Links, and workers on one switch.
    published : float or None
        Measured elements per second of this system, in millions.
    ring : float or None
        Measured of a ring on the same machines, in millions.
    source : str
        Whose both are.
    """

    name: str
    system: System
    gbps: int
    n_workers: int
    published: float | None = None
    ring: float | None = None
    source: str = ""


def cases() -> list[Case]:
    """Return every format at 10, 25 and 100 Gb/s with 8 workers, and what was published also with 4 and 16."""
    udp, rdma = SYSTEMS["switchml_udp"].build, SYSTEMS["switchml_rdma"].build
    formats = {
        "SwitchML UDP, k=64": udp(elements_per_packet=64),
        "SwitchML UDP, k=256": udp(elements_per_packet=256),
        "SwitchML RDMA, k=64, 4 packets": rdma(elements_per_packet=64),
        "SwitchML RDMA, k=256, 1 packet": rdma(packets_per_message=1),
        "SwitchML RDMA, k=256, 4 packets": rdma(),
        "SwitchML RDMA, k=256, 16 packets": rdma(packets_per_message=16),
        "ATP, k=62": SYSTEMS["atp"].build(),
    }
    measured = {4: (2824.0, 1379.0), 8: (2812.0, 1246.0), 16: (2801.0, 971.0)}
    found = []
    for name, system in formats.items():
        for gbps in (10, 25, 100):
            published = name.endswith("k=256, 4 packets") and gbps == 100
            for n in (4, 8, 16) if published else (8,):
                switch, ring = measured[n] if published else (None, None)
                found.append(Case(name, system, gbps, n, switch, ring, PNG if published else ""))
    return found


def round_trip(system: System, gbps: int) -> float:
    """Seconds from the first byte of a message to the last of its result, through a switch that waits for nobody."""
    hops = 4 if system.server else 2
    packet = system.message_bytes / system.packets_per_message / (gbps * GBPS)
    return hops * (LATENCY + packet) + (system.packets_per_message - 1) * packet


def simulated_rate(system: System, gbps: int, n_workers: int) -> float:
    """Elements per second of the packet engine in steady state: what a longer tensor has more, over what it takes more.

    Parameters
    ----------
    system : System
        On one switch, without loss.
    gbps, n_workers : int
        Links, and workers; a parameter server has a host of its own.
    """
    return measures.simulated_rate(system, gbps * GBPS, n_workers)


def measure(case: Case) -> dict[str, float | int | str | None]:
    """Return one row, rates in elements per second."""
    bandwidth = case.gbps * GBPS
    bound = throughput(case.system, bandwidth, round_trip(case.system, case.gbps))
    simulated = simulated_rate(case.system, case.gbps, case.n_workers)
    return {
        "format": case.name,
        "gbps": case.gbps,
        "workers": case.n_workers,
        "line_rate": line_rate(case.system, bandwidth),
        "bound": bound,
        "simulated": simulated,
        "simulated_over_bound": simulated / bound,
        "ring_bound": ring_rate(bandwidth, case.n_workers),
        "one_server_bound": server_rate(bandwidth, case.n_workers),
        "published": None if case.published is None else case.published * 1e6,
        "published_over_bound": None if case.published is None else case.published * 1e6 / bound,
        "published_ring": None if case.ring is None else case.ring * 1e6,
        "source": case.source,
    }


_RATES = ("line_rate", "bound", "simulated", "ring_bound", "one_server_bound", "published", "published_ring")
_COLUMNS = {
    "format": "format",
    "gbps": "Gb/s",
    "workers": "workers",
    "line_rate": "line rate",
    "bound": "bound",
    "simulated": "simulated",
    "simulated_over_bound": "of bound",
    "ring_bound": "ring, ideal",
    "one_server_bound": "1 server, ideal",
    "published": "published",
    "published_over_bound": "of bound",
    "published_ring": "NCCL published",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate all cases and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.switch.rates", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        rows = [measure(case) for case in progress(cases(), "simulating")]
    except CommsimError as error:
        print(f"benchmarks.switch.rates: error: {error}", file=sys.stderr)
        return 2
    title = f"M elements/s, one switch, links of {LATENCY * 1e6:g} us; bound: the line rate, or window k / round trip"
    print_table(list(_COLUMNS.values()), [[_text(key, row[key]) for key in _COLUMNS] for row in rows], title)
    print("# ideal: without headers; n servers on the n workers' hosts have the ring's bound")
    print(f"# published: {PNG}, read to +-11 M; its own line for the bound at 100 Gb/s is 2879")
    if args.json:
        write_results(args.json, {"what": "switch_rates"}, rows)
    return 0


def _text(key: str, value: float | int | str | None) -> str:
    if value is None:
        return ""
    if key in _RATES:
        return f"{float(value) / 1e6:.1f}"
    return f"{value:.1%}" if key.endswith("over_bound") else str(value)


if __name__ == "__main__":
    sys.exit(main())
