"""CPU seconds of a question about NCCL on many machines: the first time, and for other sizes on the same network.

    python -m benchmarks.speed.nccl_again [--before DIR] [--times N] [--hashes N] [NAME...]

Each row is a process of its own. It first asks the same of a network that differs in its latency only, so that kernels
are loaded and nothing of the network is known; then it is timed, without and with what is kept. With ``--before DIR``,
a checkout of another commit, rows come in pairs, one after the other and every second time in reverse order; the least
of all times is printed. Rows may be named: beside the usual ones there are those of hashed routes (RoCE) and of fabrics
with a quarter of the uplinks (4:1). ``--hashes`` is what a user may say; by default rows are what a user gets who says
nothing, 8 draws where the hash matters. A row takes at most 4 GB and 600 s.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# What a row's process runs: the arguments are the collective, the machine, the fabric, sizes, and hashes or 0.
PROGRAM = """
import json, resource, sys, time
import commsim as cs
collective, machine, fabric, sizes, hashes = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))
more = {"hashes": int(hashes)} if int(hashes) else {}
twin, network = (f"{machine}@leaf_spine:{fabric}{latency}" for latency in (",latency=601ns", ",latency=600ns"))
def ask(network, size):
    start = time.process_time()
    found = cs.predict(collective, network, size, **more)
    return time.process_time() - start, found
for size in [*sizes.split(",")[:1], *sizes.split(",")]:  # the first time kernels are not compiled
    ask(twin, size)
rows = [ask(network, size) for size in sizes.split(",")]
said = {f"cpu{i}": cpu for i, (cpu, _) in enumerate(rows)}
said |= {f"time{i}": found.time.hex() for i, (_, found) in enumerate(rows)}
said["ways"] = " ".join(dict.fromkeys(found.method for _, found in rows))
said["draws"] = max(1 if found.hashes is None else found.hashes.n for _, found in rows)
said["peak_MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
print(json.dumps(said))
"""
SIZES = ("1GiB", "512MiB", "3GB", "64KiB", "128KiB")
FABRICS = {
    "32": "machines=32,n_leaves=8,n_spines=8,uplinks_per_spine=4",
    "128": "machines=128,n_leaves=32,n_spines=8,uplinks_per_spine=4",
    "128 at 4:1": "machines=128,n_leaves=8,n_spines=8,uplinks_per_spine=4",
}
MACHINES = {"": "dgx-h100", " RoCE": "dgx-h100:net=roce"}
# By name: collective, key of MACHINES, key of FABRICS.
ROWS = {
    f"{collective} on {fabric}{machine}": (f"nccl_{collective}", machine, fabric)
    for collective in ("all_reduce", "all_to_all", "all_gather")
    for machine in MACHINES
    for fabric in FABRICS
}
USUAL = ("all_reduce on 32", "all_reduce on 128", "all_to_all on 128")


def main() -> None:
    """Print a line for each row and checkout."""
    from benchmarks.processes import run
    from commsim.core.errors import BackendError

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="DIR", help="checkout of the commit to compare with")
    parser.add_argument("--times", type=int, default=1, help="times that each row is measured")
    parser.add_argument("--hashes", type=int, default=0, help="draws of the hash of routes")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"rows; known: {', '.join(ROWS)}")
    asked = parser.parse_args()
    trees = {"now": str(Path(__file__).resolve().parents[2])} | ({"before": asked.before} if asked.before else {})
    print(f"load {os.getloadavg()[0]:.1f}", f"{'':34}{''.join(f'{size:>10}' for size in SIZES)}  CPU s", sep="\n")
    for name in asked.names or USUAL:
        collective, machine, fabric = ROWS[name]
        words = [collective, MACHINES[machine], FABRICS[fabric], ",".join(SIZES), str(asked.hashes)]
        found: dict[str, list[dict[str, float | str]]] = {tree: [] for tree in trees}
        for i in range(asked.times):
            for tree in [*trees][:: -1 if i % 2 else 1]:
                command = ["env", f"PYTHONPATH={trees[tree]}", sys.executable, "-P", "-c", PROGRAM, *words]
                try:
                    found[tree].append(dict(run(command, memory=4e9).said))
                except BackendError as error:
                    print(f"{name}, {tree}: {error}", flush=True)
        for tree, rows in found.items():
            if rows:
                least = [min(float(row[f"cpu{k}"]) for row in rows) for k in range(len(SIZES))]
                about = f"{rows[0]['ways']}, draws {rows[0]['draws']}, {rows[0]['peak_MB']} MB"
                print(f"{name + ', ' + tree:34}{''.join(f'{cpu:10.3f}' for cpu in least)}  {about}", flush=True)
        times = {tuple(row[f"time{k}"] for k in range(len(SIZES))) for rows in found.values() for row in rows}
        if len(times) > 1:
            print(f"{name}: times differ", *times, sep="\n")


if __name__ == "__main__":
    main()
