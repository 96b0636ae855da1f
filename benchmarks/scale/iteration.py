"""An iteration of a 13-billion-parameter model on 128 GPUs, packet by packet in one run, on one core.

python -m benchmarks.scale.iteration [--preset ideal] [--micro-batches 32] [--share 1.0] [--json FILE]

Tensor parallel 8 within machines (part of the passes' time: it sends nothing into the network), 4 pipeline stages of
one-forward-one-backward, 4 data parallel ranks. 40 layers of 5,120, sequences of 2,048 tokens, bf16. Each GPU has a
port of 400 Gbit/s; ports of one place in all 16 machines share a leaf (rails), and eight spines join the leaves.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from benchmarks.results_file import write_results
from commsim.packets.packet_options import checked_packets, packets_of
from commsim.report.terminal import print_table
from commsim.training.cost_by_simulation import network_costs
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.graph_in_packets import play_graph
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

TP, PP, DP = 8, 4, 4
PARAMETERS, HIDDEN, SEQUENCE, VALUE = 13e9, 5120, 2048, 2
RATE = 150e12  # operations/s that a GPU reaches
NETWORK = "leaf_spine:n_leaves=8,n_spines=8,hosts_per_leaf=16,bandwidth=400Gbps,latency=500ns"
COLUMNS = ["preset", "iteration(ms)", "flow(ms)", "exposed(ms)", "packets", "hops", "cpu(s)", "hops/s", "peak(MB)"]


def host(tensor: int, stage: int, replica: int) -> int:
    """Return the port of a GPU: leaf `tensor` has its place of all machines, in which stages are next to each other."""
    return 16 * tensor + PP * replica + stage


def iteration(micro_batches: int, share: float = 1.0) -> TaskGraph:
    """Return the tasks of all 128 GPUs.

    Parameters
    ----------
    micro_batches : int
        Of each data parallel rank, one sequence each.
    share : float
        Part of all bytes that is sent: 1 for the whole iteration.
    """
    forward = 2 * PARAMETERS * SEQUENCE / (TP * PP) / RATE
    activation, gradients = share * SEQUENCE * HIDDEN * VALUE / TP, share * PARAMETERS * VALUE / (TP * PP)
    tasks: list[Task] = []
    number: dict[tuple[str, int, int, int, int], int] = {}

    def add(kind: str, where: tuple[int, int, int, int], after: list[int], **more: object) -> None:
        number[kind, *where] = len(tasks)
        name = f"{kind} {' '.join(map(str, where))}"
        tasks.append(Task(name, after=tuple(after), **more))  # type: ignore[arg-type]

    for t in range(TP):
        for r in range(DP):
            for kind, s, m in one_forward_one_backward(micro_batches):
                other = s - 1 if kind == "forward" else s + 1
                waits = [number[kind, t, s, r, m - 1]] if m else []
                if kind == "backward":
                    waits.append(number["forward", t, s, r, m])
                if 0 <= other < PP:
                    pair = (host(t, other, r), host(t, s, r))
                    add(f"send-{kind}", (t, s, r, m), [number[kind, t, other, r, m]],
                        resources=(f"gpu{pair[0]}.{kind}",), operation="send", group=pair, size=activation)  # fmt: skip
                    waits.append(number[f"send-{kind}", t, s, r, m])
                add(kind, (t, s, r, m), waits, resources=(f"gpu{host(t, s, r)}.compute",),
                    duration=forward if kind == "forward" else 2 * forward)  # fmt: skip
    for t in range(TP):
        for s in range(PP):
            group = tuple(host(t, s, r) for r in range(DP))
            done = [number["backward", t, s, r, micro_batches - 1] for r in range(DP)]
            add("gradients", (t, s, 0, 0), done, resources=tuple(f"gpu{g}.data" for g in group),
                operation="all_reduce", group=group, size=gradients)  # fmt: skip
    return TaskGraph(tuple(tasks))


def one_forward_one_backward(n: int) -> list[tuple[str, int, int]]:
    """Return passes (kind, stage, micro-batch) so that each stands behind what it waits for.

    A stage does `PP - stage` forward passes, then one backward and one forward pass in turn (PipeDream, SOSP 2019).
    """
    orders = []
    for s in range(PP):
        warm = min(PP - s, n)
        order = [("forward", m) for m in range(warm)]
        for m in range(n):
            order.append(("backward", m))
            order += [("forward", m + warm)] if m + warm < n else []
        orders.append(order)
    passes: list[tuple[str, int, int]] = []
    done: set[tuple[str, int, int]] = set()
    at = [0] * PP
    while len(passes) < 2 * n * PP:
        for s in range(PP):
            if at[s] == len(orders[s]):
                continue
            kind, m = orders[s][at[s]]
            other = s - 1 if kind == "forward" else s + 1
            if not 0 <= other < PP or (kind, other, m) in done:
                passes.append((kind, s, m))
                done.add((kind, s, m))
                at[s] += 1
    return passes


def main(argv: list[str]) -> int:
    """Play it, and print what it took."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale.iteration", description=__doc__)
    parser.add_argument("--preset", action="append", help="of the packet engine; repeatable (default: ideal)")
    parser.add_argument("--micro-batches", type=int, default=32, help="of each data parallel rank (default: 32)")
    parser.add_argument("--share", type=float, default=1.0, help="part of all bytes that is sent (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    args = parser.parse_args(argv)
    rows = []
    for preset in args.preset or ["ideal"]:
        graph, costs = iteration(args.micro_batches, args.share), network_costs(NETWORK)
        fluid = simulate_graph(graph, costs, ExchangesOnLinks(costs)).iteration_time
        began = time.process_time()
        step = play_graph(graph, costs, packets_of(checked_packets({"preset": preset}, None, None), costs.network))
        cpu, run = time.process_time() - began, step.run
        rows.append(
            [preset, 1e3 * step.timeline.iteration_time, 1e3 * fluid, 1e3 * step.timeline.exposed_communication,
             run.packets, run.packet_hops, cpu, run.packet_hops / run.cpu,
             resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
        )  # fmt: skip
    print_table(COLUMNS, [[f"{x:.4g}" if isinstance(x, float) else str(x) for x in row] for row in rows])
    if args.json:
        write_results(args.json, vars(args), [dict(zip(COLUMNS, row, strict=True)) for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
