"""Synthesized schedules beside the best registered collective, on networks on which these can run, from 1 KiB to 1 GiB.

python -m benchmarks.synthesis.textbook [--json FILE] [--rows PATTERN]

What is chosen is never slower, since registered collectives are among what is tried; the table says by how much it is
faster. Registered collectives need switches, or hosts that forward, between any two ranks that they join.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commsim.core.faults.scaling import scale_links
from commsim.core.jit import compile_all
from commsim.core.network import Network
from commsim.prediction.inputs import load_network
from commsim.ranking.synthesis.synthesize import synthesize

RATE = "bandwidth=100Gbps"
# A network, and the link whose cable has half its rate.
NETWORKS = {
    "star": (f"star:n_hosts=8,{RATE}", ""),
    "star, slow host": (f"star:n_hosts=8,{RATE}", "h3:switch0"),
    "ring": (f"ring:n_hosts=8,{RATE}", ""),
    "ring, slow cable": (f"ring:n_hosts=8,{RATE}", "h3:h4"),
    "torus 4x4": (f"torus:dims=4x4,{RATE}", ""),
    "torus 4x4, slow cable": (f"torus:dims=4x4,{RATE}", "h5:h6"),
    "torus 3x3": (f"torus:dims=3x3,{RATE}", ""),
    "torus 2x2x2": (f"torus:dims=2x2x2,{RATE}", ""),
    "mesh 4x4": (f"torus:dims=4x4,wrap=false,{RATE}", ""),
    "mesh 3x5": (f"torus:dims=3x5,wrap=false,{RATE}", ""),
    "hypercube 4": (f"hypercube:dimension=4,{RATE}", ""),
    "fully connected 8": (f"fully_connected:n_hosts=8,{RATE}", ""),
    "bcube 4, 1": (f"bcube:n=4,k=1,{RATE}", ""),
    "fat tree 4": (f"fat_tree:k=4,{RATE}", ""),
    "leaf-spine 4x4": (f"leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,{RATE}", ""),
    "leaf-spine 2x4, 4:1": (f"leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,oversubscription=4,{RATE}", ""),
    "leaf-spine, slow uplink": (
        f"leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=4,oversubscription=2,{RATE}", "leaf0:spine0"
    ),
    "dual ToR": (f"dual_tor:n_racks=2,n_spines=2,hosts_per_rack=4,{RATE}", ""),
    "multi-plane": (f"multi_plane:n_planes=2,n_leaves=2,n_spines=1,hosts_per_leaf=4,{RATE}", ""),
    "dragonfly": (f"dragonfly:p=2,a=2,h=1,n_groups=3,{RATE}", ""),
    "three tiers": (
        f"three_tier:n_pods=2,racks_per_pod=2,hosts_per_rack=4,switches_per_pod=2,n_cores=2,oversubscription=2,{RATE}",
        "",
    ),
    "jellyfish": (f"jellyfish:n_switches=6,degree=3,hosts_per_switch=2,{RATE}", ""),
    "DGX-A100": ("dgx-a100", ""),
    "2 DGX-A100": ("dgx-a100@star:machines=2", ""),
}  # fmt: skip
OPERATIONS = ("all_gather", "all_reduce")
SIZES = tuple(1 << power for power in (10, 15, 20, 24, 27, 30))
LARGE, GAIN = 16 << 20, 1.3
# Longer schedules gain less than a percent more, and take minutes to simulate.
MAX_MESSAGES = 60_000


def network_of(name: str) -> Network:
    """Build one of ``NETWORKS``."""
    spec, slow = NETWORKS[name]
    network = load_network(spec)
    return scale_links(network, 0.5, pattern=slow) if slow else network


def measure(name: str, operation: str) -> Iterator[dict[str, Any]]:
    """Synthesize for all sizes, and set the best registered collective beside what is made."""
    from collectives import COLLECTIVES

    network = network_of(name)
    found = synthesize(operation, network, SIZES, max_messages=MAX_MESSAGES)
    for size, tried in found.candidates.items():
        books = [one for one in tried if one.method in COLLECTIVES]
        made = [one for one in tried if one.method not in COLLECTIVES]
        best = found.best(size)
        yield {
            "network": name, "operation": operation, "size_B": size, "chosen": best.method, "time_s": best.time,
            "bound_s": found.bounds[size], "textbook": books[0].method if books else None,
            "textbook_s": books[0].time if books else None, "made": made[0].method if made else None,
            "made_s": made[0].time if made else None,
        }  # fmt: skip


def main() -> None:
    """Print the rows, how often what is made is faster, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--rows", metavar="PATTERN", default="*", help="networks, such as 'torus*'")
    args = parser.parse_args()
    compile_all()
    rows = []
    print("|network|operation|size|chosen|times bound|best textbook|times chosen|\n|---|---|---|---|---|---|---|")
    for name in fnmatch.filter(NETWORKS, args.rows):
        for operation in OPERATIONS:
            for row in measure(name, operation):
                rows.append(row)
                books = row["textbook_s"]
                gain = "-" if books is None else f"{books / row['time_s']:.3f}"
                cells = (name, operation, row["size_B"], row["chosen"], f"{row['time_s'] / row['bound_s']:.3f}")
                print("", *cells, row["textbook"], gain, "", sep="|", flush=True)
    known = [row for row in rows if row["textbook_s"] is not None]
    slower = sum(row["time_s"] > row["textbook_s"] for row in known)
    gains: dict[tuple[str, str], float] = {}
    for row in known:
        if row["size_B"] >= LARGE:
            where = row["network"], row["operation"]
            gains[where] = min(gains.get(where, 1e9), row["textbook_s"] / row["time_s"])
    much = {network for (network, _), gain in gains.items() if gain >= GAIN}
    print(f"\n{len(known)} rows, {slower} slower than the best textbook; from 16 MiB at least {GAIN} times faster, for "
          f"one operation at least, on {len(much)} of {len({row['network'] for row in rows})} networks: "
          f"{', '.join(sorted(much))}")  # fmt: skip
    if args.json:
        Path(args.json).write_text(json.dumps({"results": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
