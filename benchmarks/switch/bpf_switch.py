"""The kernel's switch between network namespaces: exact or not, how fast, and how far from what the wire allows.

python -m benchmarks.switch.bpf_switch [--json FILE]     (root; about a minute)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.results_file import write_results
from benchmarks.switch.switch_world import SwitchWorld
from commsim.core.errors import CommsimError
from commsim.report.terminal import print_table
from switch_model.bpf.program import PACKET_HEADERS

ETHERNET = 14


@dataclass(frozen=True, slots=True)
class Case:
    """One world, and what its workers do.

    Parameters
    ----------
    n_workers, elements, n_slots : int
        Hosts, values of a packet, and window.
    rate : int, bit/s
        Of each cable, both ways; 0 for none.
    size : int
        Elements of a tensor.
    loss : float
        On each cable, each way.
    rto : float, s
        Of the workers.
    """

    n_workers: int
    elements: int
    rate: int = 0
    size: int = 524_288  # 2 MiB
    n_slots: int = 32
    loss: float = 0.0
    rto: float = 0.2


CASES = (
    Case(2, 64),
    Case(4, 64),
    Case(4, 64, n_slots=64),
    Case(4, 256),
    Case(8, 64),
    Case(8, 256),
    Case(4, 256, 50_000_000),
    Case(4, 256, 20_000_000),
    Case(8, 256, 50_000_000),
    Case(4, 256, 100_000_000),
    Case(4, 64, 100_000_000),
    Case(4, 256, 50_000_000, loss=0.001, rto=0.05),
    Case(4, 256, 50_000_000, loss=0.01, rto=0.05),
    Case(4, 256, 50_000_000, 1_048_576, n_slots=64, rto=0.2),
    Case(4, 256, 50_000_000, 1_048_576, n_slots=64, rto=0.01),  # shorter than the pool takes to drain: it collapses
)


def measure(case: Case, tensors: int) -> dict[str, Any]:
    """Run one case; the first tensor, in which addresses are learnt, is not timed."""
    with SwitchWorld(case.n_workers, case.rate, case.loss) as world:
        switch = world.serve(case.elements, case.n_slots)
        said = world.workers(case.elements, case.size, tensors + 1, case.n_slots, case.rto)
        counted = world.counters(switch)
    seconds = sorted(max(worker["seconds"][i] for worker in said) for i in range(1, tensors + 1))
    packets = -(-case.size // case.elements)
    wire = packets * 8 * (ETHERNET + PACKET_HEADERS + 4 * case.elements) / case.rate if case.rate else 0.0
    median = seconds[tensors // 2]
    return {"n_workers": case.n_workers, "elements_per_packet": case.elements, "slots": case.n_slots, "rate": case.rate,
            "size": 4 * case.size, "loss": case.loss, "rto_s": case.rto, "exact": all(w["exact"] for w in said),
            "time_s": median, "time_min_s": seconds[0], "time_max_s": seconds[-1], "bound_s": wire,
            "over_bound": median / wire - 1 if wire else None, "results_per_s": packets / median,
            "packets_in_per_s": case.n_workers * packets / median,
            "repeated": sum(worker["repeated"] for worker in said), "counters": counted}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--tensors", type=int, default=5, help="timed, per case; their median is shown")
    args = parser.parse_args(argv)
    try:
        found = [measure(case, args.tensors) for case in CASES]
    except CommsimError as error:
        print(f"benchmarks.switch.bpf_switch: {error}", file=sys.stderr)
        return 2
    head = ["workers", "K", "slots", "Mbit/s", "MiB", "loss", "RTO ms", "exact", "ms (min..max)", "over the bound",
            "results/s", "repeated"]  # fmt: skip
    print_table(head, [_row(result) for result in found])
    if args.json:
        write_results(args.json, {}, found)
    return 0 if all(result["exact"] for result in found) else 1


def _row(r: dict[str, Any]) -> list[str]:
    over = "" if r["over_bound"] is None else f"{100 * r['over_bound']:+.1f} %"
    times = f"{1e3 * r['time_s']:.1f} ({1e3 * r['time_min_s']:.1f}..{1e3 * r['time_max_s']:.1f})"
    return [str(r["n_workers"]), str(r["elements_per_packet"]), str(r["slots"]),
            f"{r['rate'] / 1e6:g}" if r["rate"] else "", f"{r['size'] / 2**20:g}", f"{100 * r['loss']:g} %",
            f"{1e3 * r['rto_s']:g}", "yes" if r["exact"] else "NO", times, over, f"{r['results_per_s']:,.0f}",
            str(r["repeated"])]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
