"""Collectives packet by packet on a fabric that sprays, beside the flow engine and the lower bound.

``python -m benchmarks.accuracy.sprayed_collectives --json FILE --size 1MiB`` plays every algorithm over every fabric on
128 hosts, 1:1 and 4:1, with whole, slow and dead cables, and goes on where the file ends; ``--table FILE`` prints what
stands in docs/fabrics.md, for each size in the file. A slow cable has a quarter of its rate; a dead one is known to all
switches.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

import commsim as cs
from commsim.core.errors import CommsimError
from commsim.core.files.whole_files import replacing
from commsim.core.result import Result
from commsim.core.units import format_size, parse_size
from commsim.prediction.plans.dense import Plan
from commsim.prediction.solve import plan_of

NETWORK = "leaf_spine:n_leaves=8,n_spines={spines},hosts_per_leaf=16,bandwidth=400Gbps,latency=1us"
SPINES = {"1:1": 16, "4:1": 4}
RANKS, PAYLOAD, HEADER = 128, 4096, 64
# Size of a rank where none is given, bytes.
USUAL = 2.0**20


class Faults(TypedDict, total=False):
    """Cables that are dead or slow, as options of :func:`commsim.predict`."""

    fail: list[str]
    scale: list[str]


COLLECTIVES = (
    "ring_all_reduce", "halving_doubling_all_reduce", "double_tree_all_reduce", "hierarchical_all_reduce",
    "direct_all_to_all",
)  # fmt: skip
# Preset of each fabric, and the flow engine's routing of the same.
FABRICS = {
    "ECMP+DCQCN": ("roce", "ecmp"),
    "adaptive": ("roce-adaptive", "spray"),
    "spray+NSCC": ("uec", "spray:entropies=128"),
    "spray+RCCC": ("uec-credit", "spray:entropies=128:trims"),
}
CABLES = ("whole", "1% slow", "5% slow", "1% dead", "5% dead")


def faults(cables: str, ratio: str) -> Faults:
    """Name the cables between switches that are slow or dead, at least one of them."""
    if cables == "whole":
        return {}
    share, kind = cables.split("% ")
    n = max(1, round(int(share) / 100 * 8 * SPINES[ratio]))
    return {"fail": [f"links:{n}"]} if kind == "dead" else {"scale": [f"links:{n}=0.25"]}


def play(collective: str, ratio: str, fabric: str, cables: str, size: float, seed: int) -> dict[str, Any]:
    """Play one case in both engines."""
    network, given = NETWORK.format(spines=SPINES[ratio]), faults(cables, ratio)
    preset, routing = FABRICS[fabric]
    begin = time.process_time()
    asked = cs.scenario_of(
        collective, network, engine="packet", seed=seed, packets={"preset": preset}, overhead="0us", **given
    )
    wish = dataclasses.replace(asked.wish, trace=True)
    plan = plan_of(asked)
    assert isinstance(plan, Plan)
    result = plan.outcome(size, wish).results[0]
    spent = time.process_time() - begin
    # the hash that packets had: a median over others compares unlike paths
    flow = cs.predict(collective, network, size, routing=routing, seed=seed, overhead="0us", hashes=1, **given)
    operation = "all_to_all" if collective.endswith("all_to_all") else "all_reduce"
    least = cs.lower_bound(operation, network, seed=seed, overhead="0us", **given).time(size)
    return {
        "time_s": result.time, "flow_s": flow.time, "bound_s": least, "cpu_s": round(spent, 2),
        "worst_message": _worst(plan.at(size), result, size),
        "sent_again": int(result.counters["retransmissions"]),
        "trimmed": int(result.counters.get("trimmed", 0)), "packets": int(result.counters["packets"]),
    }  # fmt: skip


def _worst(plan: Plan, result: Result, size: float) -> float:
    """Find the largest time of a message over that of its packets on a shortest path without others."""
    schedule, network, trace = plan.schedule, plan.network, result.trace
    assert trace is not None
    transfers = schedule.expand()
    nbytes = transfers["count"] * (size / schedule.n_chunks)
    node = np.asarray(plan.ranks)
    rate, latency = float(network.bandwidth.max()), float(network.latency.max())
    same_leaf = node[transfers["src"]] // 16 == node[transfers["dst"]] // 16
    hops = np.where(same_leaf, 2, 4)
    n = np.ceil(nbytes / PAYLOAD * (1 - 1e-12))
    first = np.minimum(nbytes, PAYLOAD) + HEADER
    alone = (nbytes + n * HEADER + (hops - 1) * first) / rate + hops * latency
    crosses = transfers["src"] != transfers["dst"]
    return float(((trace.done - trace.start)[crosses] / alone[crosses]).max())


def table(rows: list[dict[str, Any]], size: float) -> None:
    """Print medians of all seeds: time over flows, over the bound, worst message and packets sent again."""
    print(
        "\n".join(("| network, collective | fabric | " + " | ".join(CABLES) + " |", "|---" * (2 + len(CABLES)) + "|"))
    )
    for ratio, collective, fabric in itertools.product(SPINES, COLLECTIVES, FABRICS):
        cells = []
        for cables in CABLES:
            some = [r for r in rows if r["case"][:5] == [collective, ratio, fabric, cables, size]]
            if not some:
                cells.append("-")
                continue
            over_flow, over_bound = (
                statistics.median(r["time_s"] / r[name] for r in some) for name in ("flow_s", "bound_s")
            )
            worst = statistics.median(r["worst_message"] for r in some)
            again = round(statistics.median(r["sent_again"] for r in some))
            cells.append(f"{over_flow:.2f}, {over_bound:.1f}, {worst:.1f}, {again}")
        print(f"| {ratio} {collective} | {fabric} | " + " | ".join(cells) + " |")
    for fabric, cables in itertools.product(FABRICS, ("whole", "slow", "dead")):
        of_size = [r for r in rows if r["case"][4] == size]
        gaps = [r["flow_s"] / r["time_s"] - 1 for r in of_size if r["case"][2] == fabric and cables in r["case"][3]]
        if gaps:
            low, middle, high = np.quantile(gaps, (0.0, 0.5, 1.0))
            print(f"flows for {fabric}, {cables}: median {middle:+.0%}, {low:+.0%} to {high:+.0%}, {len(gaps)} cases")


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.sprayed_collectives")
    parser.add_argument(
        "--size", type=lambda text: parse_size(text, "--size"),
        help="of a rank (default: 1MiB; of a table all sizes in the file)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file of the rows; what it has is not played again")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of a file")
    args = parser.parse_args()
    if (args.json is None) == (args.table is None):
        parser.error("give either --json or --table")
    path = args.json or args.table
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    if args.table is not None:
        for size in sorted({row["case"][4] for row in rows}) if args.size is None else [args.size]:
            print(f"{format_size(size)}:")
            table(rows, size)
        return 0
    size, known = args.size or USUAL, {tuple(row["case"]) for row in rows}
    for cables, ratio, collective, fabric, seed in itertools.product(
        CABLES, SPINES, COLLECTIVES, FABRICS, range(args.seeds)
    ):
        case = (collective, ratio, fabric, cables, size, seed)
        if case in known:
            continue
        try:
            row = play(collective, ratio, fabric, cables, size, seed)
        except CommsimError as error:
            print(f"{' '.join(map(str, case))}: {error}", file=sys.stderr)
            continue
        rows.append({"case": case, **row})
        over = row["time_s"] / row["flow_s"]
        print(f"{' '.join(map(str, case)):90s} {row['time_s'] * 1e6:9.1f} us, {over:.2f} of flows", flush=True)
        with replacing(path) as file:
            file.write(json.dumps({"rows": rows}, indent=1).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
