"""What a packet takes on each link in the packet engine, by hosts: a ring with an ideal window over leaves and spines.

    python -m benchmarks.speed.packet_hops [--hosts N,...] [--packets N,...] [--write FILE]

Each row is a ring all-reduce whose messages are of so many packets; leaves have 16 hosts, and there are as many spines.
A hop is a packet or an acknowledgement on one link. The processor time is the kernel's alone, the least of several runs
with loaded kernels, so that between rows of equal messages only the number of hops and the memory that they touch
differ. What a hop takes where all tables fit into a near cache is what its instructions take; what it takes more on
many hosts is memory. The last column says how long the ring of 1,024 hosts and 64 MiB takes at the time of the row's
hops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.processes import machine_kind
from benchmarks.scale.page import markdown
from collectives import COLLECTIVES
from commsim.core.files.whole_files import replacing
from commsim.core.jit import compile_all
from commsim.core.placement import place
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.run_packets import run_packets
from commsim.packets.transports.spraying import usual_path
from commsim.report.terminal import print_table
from topologies.leaf_spine import leaf_spine

# Bytes of a packet's payload, hosts of a leaf, and rate of a port in bytes per second.
PAYLOAD, HOSTS, RATE = 4096, 16, 12.5e9
# The work of the issue: hosts, bytes.
MANY, SIZE = 1024, 2**26
# Hops after which a row is not run again, and runs of shorter ones.
ENOUGH, TIMES = 3e6, 5
COLUMNS = ("hosts", "packets a message", "packets", "hops a packet", "MB", "CPU (s)", "ns a hop",
           "1,024 hosts, 64 MiB (s)")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """One ring: what it did, and its processor time."""

    hosts: int
    per_message: int
    packets: float
    hops: float
    table_mb: float
    cpu: float


def measure(hosts: int, per_message: int) -> Measured:
    """Run a ring several times."""
    leaves = hosts // HOSTS
    network = leaf_spine(leaves, leaves, HOSTS, RATE, latency=1e-6)
    schedule = COLLECTIVES["ring_all_reduce"].build(hosts)
    plan = plan_flows(network, [FlowJob(schedule, place(network, hosts))])
    how, size, cpu = usual_path("window", network), float(hosts * per_message * PAYLOAD), np.inf
    for _ in range(TIMES):
        run = run_packets(plan, size, how)
        cpu, counters = min(cpu, run.cpu), run.results[0].counters
        if counters["packet_hops"] > ENOUGH:
            break
    packets, hops = counters["packets"], counters["packet_hops"]
    return Measured(hosts, per_message, packets, hops, bytes_of(run.tables.fabric) / 1e6, cpu)


def bytes_of(table: Any) -> int:
    """Return the bytes of all arrays of a named tuple, and of those within it."""
    return sum(bytes_of(one) for one in table) if isinstance(table, tuple) else int(getattr(table, "nbytes", 0))


def cells(row: Measured, hops: float) -> list[str]:
    """Return a row of the table; `hops` are those of the issue's work."""
    each = row.cpu / row.hops
    numbers = (row.hops / row.packets, row.table_mb, row.cpu, 1e9 * each, each * hops)
    return [str(row.hosts), str(row.per_message), f"{row.packets:.0f}", *(f"{number:.3g}" for number in numbers)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.speed.packet_hops", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--hosts", default="16,64,256,1024", metavar="N,...", help="hosts, in rising order")
    parser.add_argument("--packets", default="1,16", metavar="N,...", help="packets of each message")
    parser.add_argument("--most", type=float, default=2e7, metavar="N", help="leave out rows of more packets (2e7)")
    parser.add_argument("--write", metavar="FILE", help="also write the table, in Markdown")
    args = parser.parse_args(argv)
    numbers = [[int(one) for one in text.split(",")] for text in (args.hosts, args.packets)]
    compile_all()
    measure(HOSTS, 1)
    rows = [
        measure(hosts, each)
        for each in numbers[1]
        for hosts in numbers[0]
        if 2 * (hosts - 1) * hosts * each <= args.most
    ]
    packets = 2 * (MANY - 1) * MANY * (SIZE / MANY / PAYLOAD)
    furthest = max(rows, key=lambda row: (row.hosts, row.per_message))
    table = [cells(row, packets * furthest.hops / furthest.packets) for row in rows]
    title = f"ring, ideal window, {machine_kind()}"
    print_table(list(COLUMNS), table, title)
    if args.write:
        with replacing(args.write) as out:
            out.write(f"{title}\n\n{markdown(COLUMNS, table)}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
