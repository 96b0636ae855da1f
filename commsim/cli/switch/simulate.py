"""``commsim switch simulate``: in-network aggregation, packet by packet, on a switch or a network of switches.

Which blocks the workers of `commsim switch simulate` have, when its system skips blocks of zeros.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_size, parse_time, share
from commsim.report.table import print_table, progress, write_results

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.engine.packet.packet_job import AggregationJob
    from commsim.sparse.occupancy import Occupancy
    from switch_model.system import System

LISTS: dict[str, Callable[[str], Any]] = {"workers": int, "pool_size": int, "loss": share, "seed": int}
MAX_TENSORS = 1_000_000
COLUMNS = ("system", "workers", "pool", "loss", "size", "time", "M elem/s", "line rate", "resent", "drops", "exact")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--system", default="switchml_rdma", metavar="NAME[:key=value,...]", help="atp, omnireduce:density=0.1, ...")
    add("--workers", default="8", metavar="N[,N...]", help="workers of a job (8)")
    add("--jobs", type=int, default=1, metavar="N", help="jobs that share the switches, each on hosts of its own (1)")
    add("--bandwidth", metavar="RATE", help="of each link of a star (100Gbps)")
    add("--latency", metavar="TIME", help="one way, of each link of a star (1us)")
    add("--topology", metavar="NAME:key=value,...|FILE", help="instead of a star")
    add("--size", default="64MiB", metavar="SIZE", help="of the tensor of each worker (64MiB)")
    add("--tensors", type=int, default=1, metavar="N", help="tensors of that size, one after the other (1)")
    add("--elements-per-packet", type=int, metavar="K", help="instead of the system's own")
    add("--packets-per-message", type=int, metavar="N", help="instead of the system's own")
    add("--pool-size", metavar="N[,N...]", help="slots, instead of the system's own")
    add("--window", type=int, metavar="N", help="packets that a worker may have outstanding (the pool size)")
    add("--rto", metavar="TIME", help="after which a worker repeats")
    add("--loss", default="0", metavar="P[,P...]", help="chance that a packet is lost on a link, such as 1%% (0)")
    add("--loss-up", type=share, metavar="P", help="from hosts, instead of --loss")
    add("--loss-down", type=share, metavar="P", help="to hosts, instead of --loss")
    add("--loss-burst", type=float, default=1.0, metavar="N", help="packets that a burst of losses lasts (1)")
    add("--buffer", metavar="SIZE", help="of each queue (infinite)")
    add("--ecn", metavar="SIZE", help="queue from which packets are marked")
    add("--start-jitter", metavar="TIME", help="workers start late by up to this")
    add("--floats", action="store_true", help="send block exponents one window ahead of the values")
    add("--seed", default="0", metavar="N[,N...]", help="of losses, values and jitter (0)")
    add("--engine", choices=("auto", "event", "recurrence"), default="event", help="recurrence: no losses, no values")
    add("--no-values", action="store_true", help="sum no tensors; `exact` is then null")
    add("--versions", type=int, metavar="1|2", help="of a slot, to show what goes wrong with one")
    add("--without", action="append", default=[], metavar="RULE", help="seen_check, continued_slots: what goes wrong")
    add("--sample-every", metavar="TIME", help="write slots in use and bytes queued over time into the JSON")
    add("--pcap", metavar="FILE", help="write the packets of the workers' links")
    add("--pcap-values", action="store_true", help="with --pcap: whole packets, not headers only")
    add("--draw", metavar="FILE", help="draw what was varied, or slots in use over time: .svg or .png")
    add("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Simulate every combination, print a table."""
    grid = {name: _numbers(getattr(args, name), name, kind) for name, kind in LISTS.items()}
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if args.pcap_values and not args.pcap:
        raise InputError("--pcap-values says what --pcap writes, and needs it")
    if args.topology and (args.bandwidth or args.latency):
        raise InputError("--bandwidth and --latency are those of a star, and --topology is given")
    if min(grid["seed"]) < 0:
        raise InputError(f"--seed must not be negative, got {args.seed}")
    if (args.pcap or args.sample_every) and len(points) > 1:
        raise InputError(f"--pcap and --sample-every take one run, got {len(points)}")
    results, rows, series = [], [], None
    for point in progress(points, "simulating"):
        found, series = _simulate(args, point)
        for result in found:
            results.append(row(result, point))
            rows.append(_text(result, point))
    print_table(COLUMNS, rows, "switch simulate")
    if args.draw:
        from .draw import draw_simulated

        draw_simulated(args.draw, results, series)
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        more = {} if series is None else {"series": series}
        write_results(args.json, config, results, **more)
    return 0


def row(result: Result, point: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON row of the contract of `commsim switch simulate`."""
    counters = dict(result.counters)
    exact = bool(counters["exact"]) if "exact" in counters else None
    contract = {name: int(counters[name]) for name in ("elements", "retransmissions", "duplicates", "drops", "events")}
    rates = {name: counters[name] for name in ("elements_per_s", "line_rate_elements_per_s", "cpu_s")}
    return result.row() | point | contract | rates | {"exact": exact, "packet_hops": int(counters["packet_hops"])}


def _simulate(args: argparse.Namespace, point: dict[str, Any]) -> tuple[list[Result], list[dict[str, float]] | None]:
    import dataclasses

    system, blocks = _system(args, point)
    network, jobs = _jobs(args, point, system, blocks)
    line_rate = system.line_rate(_slowest(network, jobs))
    results, series = _play(args, point, network, jobs)
    more = {"line_rate_elements_per_s": line_rate}
    return [dataclasses.replace(r, counters={**r.counters, **more}) for r in results], series


def _play(
    args: argparse.Namespace, point: dict[str, Any], network: Network, jobs: list[AggregationJob]
) -> tuple[list[Result], list[dict[str, float]] | None]:
    from commsim.engine.packet.aggregation import simulate_aggregation
    from commsim.engine.packet.recurrence import simulate_recurrence, why_not
    from commsim.engine.packet.transport import Fabric

    mark = parse_size(args.ecn, "--ecn") if args.ecn else 0.0
    fabric = Fabric(ecn_min=mark, ecn_max=mark, loss_burst=args.loss_burst)
    if args.engine == "recurrence" or (
        args.engine == "auto" and args.no_values and not why_not(network, jobs[0], fabric)
    ):
        if len(jobs) > 1 or args.pcap or args.sample_every:
            raise InputError("the recurrence knows one job, and neither packets nor series; use --engine event")
        return [simulate_recurrence(network, jobs[0], fabric=fabric)], None
    tapped = _worker_links(network, jobs) if args.pcap else []
    every = parse_time(args.sample_every, "--sample-every") if args.sample_every else 0.0
    if args.draw and not every and all("," not in str(getattr(args, name) or "") for name in LISTS):
        raise InputError("--draw needs something to draw: several values of a flag, or --sample-every")
    run = simulate_aggregation(
        network, jobs, fabric=fabric, seed=point["seed"], values=not args.no_values, sample_every=every, tapped=tapped
    )
    if args.pcap:
        from .tap import write_tapped

        write_tapped(args.pcap, network, jobs, run, point["seed"], with_values=args.pcap_values)
    series = [
        {"time_s": int(s["time"]) / 1e12, "busy_slots": int(s["busy_slots"]), "queued_bytes": int(s["queued"])}
        for s in run.series
    ]
    return list(run.results), series if every else None


def _system(args: argparse.Namespace, point: dict[str, Any]) -> tuple[System, dict[str, str]]:
    """Build the system that the flags describe, and what was written of its blocks."""
    import dataclasses

    from commsim.run.systems import named_system

    flags = {
        "elements_per_packet": args.elements_per_packet,
        "packets_per_message": args.packets_per_message,
        "pool_size": point["pool_size"],
        "window": args.window,
        "rto": None if args.rto is None else parse_time(args.rto, "--rto"),
    }
    spec, blocks = named_system(args.system, flags, beside=DRAWN)
    system = spec.at(parse_size(args.size, "--size"))
    return (system if args.versions is None else dataclasses.replace(system, versions=args.versions)), blocks


def _jobs(
    args: argparse.Namespace, point: dict[str, Any], system: System, blocks: dict[str, str]
) -> tuple[Network, list[AggregationJob]]:
    import numpy as np

    from commsim.run.helper_placement import free_seat
    from commsim.run.packet_job import aggregation_job, job_workers, spare_hosts, with_loss

    for flag, n in (("--workers", point["workers"]), ("--jobs", args.jobs)):
        if n < 1:
            raise InputError(f"{flag} must be at least 1, got {n}")
    if args.loss != "0" and None not in (args.loss_up, args.loss_down):
        raise InputError(f"--loss-up and --loss-down leave nothing for --loss {args.loss}")
    network = _network(args, point["workers"] * args.jobs + spare_hosts(system))
    up = point["loss"] if args.loss_up is None else args.loss_up
    down = point["loss"] if args.loss_down is None else args.loss_down
    if up or down or not args.topology:
        network = with_loss(network, up, down)
    n_elements = parse_size(args.size, "--size") / system.element_bytes
    if n_elements < 1 or args.tensors < 1:
        raise InputError(f"a tensor has at least 1 element, got --size {args.size} and --tensors {args.tensors}")
    if args.tensors > MAX_TENSORS:
        raise InputError(f"--tensors is at most {MAX_TENSORS}, got {args.tensors}")
    jitter = parse_time(args.start_jitter, "--start-jitter") if args.start_jitter else 0.0
    draw = np.random.default_rng(point["seed"])
    occupancy = drawn_blocks(blocks, system, point["workers"], math.ceil(n_elements))
    jobs, every = [], job_workers(network, args.jobs, point["workers"], spare_hosts(system))
    server = free_seat(system.name, network, [w for workers in every for w in workers]) if system.server else None
    for workers in every:
        starts = tuple(draw.uniform(0, jitter, len(workers)).tolist()) if jitter else ()
        sizes = [math.ceil(n_elements)] * args.tensors
        more = {"floats": args.floats, "starts": starts, "without": args.without, "occupancy": occupancy}
        jobs.append(aggregation_job(system, network, workers, sizes, server=server, **more))
    return network, jobs


def _network(args: argparse.Namespace, n_hosts: int) -> Network:
    import dataclasses

    import numpy as np

    from commsim.run.inputs import load_network

    if args.topology:
        network = load_network(args.topology)
    else:
        from topologies import TOPOLOGIES

        bandwidth = parse_bandwidth(args.bandwidth or "100Gbps", "--bandwidth")
        latency = parse_time(args.latency or "1us", "--latency")
        network = TOPOLOGIES["star"].build(n_hosts=n_hosts, bandwidth=bandwidth, latency=latency)
    if args.buffer:
        buffer = np.full(network.n_links, parse_size(args.buffer, "--buffer"))
        network = dataclasses.replace(network, buffer=buffer)
    return network


def _slowest(network: Network, jobs: list[AggregationJob]) -> float:
    """Bandwidth of the slowest link that a job's tree uses."""
    return float(min(network.bandwidth[link] for link in _tree_links(jobs)))


def _tree_links(jobs: list[AggregationJob]) -> list[int]:
    return [k for job in jobs for tree in job.trees for path in (*tree.worker_up, *tree.up) for k in path]


def _worker_links(network: Network, jobs: list[AggregationJob]) -> list[int]:
    nodes = {w for job in jobs for w in job.workers}
    ends = zip(network.src.tolist(), network.dst.tolist(), strict=True)
    return [i for i, (a, b) in enumerate(ends) if a in nodes or b in nodes]


def _numbers(text: str | None, name: str, kind: Callable[[str], Any]) -> list[Any]:
    if text is None:
        return [None]
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        flag = "--" + name.replace("_", "-")
        raise InputError(f"{flag} is a number, or several with commas between, got {text!r}") from None


def _text(result: Result, point: dict[str, Any]) -> tuple[str, ...]:
    c = result.counters
    exact = {None: "-", 0.0: "NO", 1.0: "yes"}[c.get("exact")]
    return (
        result.collective,
        str(result.n_ranks),
        str(point["pool_size"] or "-"),
        f"{point['loss']:g}",
        f"{result.size:.0f}",
        f"{result.time * 1e3:.4f} ms",
        f"{c['elements_per_s'] / 1e6:.1f}",
        f"{c['line_rate_elements_per_s'] / 1e6:.1f}",
        f"{c['retransmissions']:.0f}",
        f"{c['drops']:.0f}",
        exact,
    )


def drawn(density: float = 1.0, pattern: str = "random", seed: int = 0, exponent: float = 1.0) -> dict[str, Any]:
    """Parameters of :func:`commsim.sparse.generate.drawn_occupancy` that may stand beside the system's own."""
    return dict(locals())


DRAWN = tuple(inspect.signature(drawn).parameters)


def drawn_blocks(mine: dict[str, str], system: System, n_workers: int, n_elements: int) -> Occupancy | None:
    """Return the blocks that are not all zero at each worker; None when every block is sent.

    Parameters
    ----------
    mine : dict of str to str
        What was written of the blocks.
    system : System
        Which sends them.
    n_workers, n_elements : int
        Workers, and elements of the tensor.

    Raises
    ------
    InputError
        If no such blocks can be drawn.
    """
    from commsim.core.spec import read_arguments
    from commsim.sparse.generate import drawn_occupancy

    if not mine:
        return None
    if "density" not in mine:
        raise InputError(f"{system.name} needs density=... to know which blocks are not zero, got {', '.join(mine)}")
    given = drawn(**read_arguments(drawn, mine))
    return drawn_occupancy(n_workers, n_elements, block=system.elements, **given)
