"""``commsim switch simulate``: in-network aggregation, packet by packet, on a switch or a network of switches."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError, PhysicsError
from commsim.core.remark import Remark, as_remarks
from commsim.core.spec import as_whole
from commsim.core.units import parse_bandwidth, parse_nccl_size, parse_size, parse_time, share
from commsim.report.answer import Answer, remarks
from commsim.report.terminal import progress

from .simulate_flags import BANDWIDTH, LATENCY, SwitchSimulateConfig
from .simulated_rows import (
    about_limits,
    about_pools,
    about_slots,
    cells,
    row,
    table_of,
    what_limits,
    why_above,
    why_slow,
)

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.result import Result
    from commsim.packets.aggregated.packet_job import AggregationJob
    from commsim.sparse.occupancy import Occupancy
    from switch_model.system import System

LISTS: dict[str, Callable[[str], Any]] = {
    "workers": as_whole, "pool_size": as_whole, "loss": share, "seed": as_whole, "bandwidth": str,
}  # fmt: skip
MAX_TENSORS = 1_000_000
MAX_JOBS = 4096  # each of which gets a tree
MAX_SAMPLE_EVERY = 1e6  # seconds


def run(config: SwitchSimulateConfig) -> Answer:
    """Simulate every combination."""
    grid = {name: _numbers(getattr(config, name), name, kind) for name, kind in LISTS.items()}
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if config.pcap_values and not config.pcap:
        raise InputError("--pcap-values needs --pcap")
    if config.topology and (config.bandwidth or config.latency):
        raise InputError("--bandwidth and --latency are those of a star, and --topology is given")
    if min(grid["seed"]) < 0:
        raise InputError(f"--seed must be 0 or more, got {config.seed}")
    if (config.pcap or config.sample_every) and len(points) > 1:
        raise InputError(f"--pcap and --sample-every take one run, got {len(points)}")
    if config.draw and len(grid["bandwidth"]) > 1:
        raise InputError(f"--draw takes one --bandwidth, got {config.bandwidth}")
    results, rows, series, unfilled = [], [], None, set[int]()
    for point in progress(points, "simulating"):
        system, network, of_jobs, limited, series = _simulate(config, point)
        for job, (result, limit) in enumerate(zip(of_jobs, limited, strict=True)):
            rto = None if system.lossless else system.rto
            results.append(row(result, point) | limit | {"network": network.name, "rto_s": rto})
            number = job if config.jobs > 1 else None
            rate = point["bandwidth"] if len(grid["bandwidth"]) > 1 else None
            rows.append(cells(result, point, system.pool_size, limit["limited_by"], number, rate))
        slots = about_slots(system, config.jobs)
        unfilled |= {pool for pool in (point["pool_size"],) if pool is not None and pool > system.window}
    if config.draw:
        from commsim.pages.pictures.paint import write_picture
        from commsim.switches.aggregation_picture import draw_aggregation

        write_picture(draw_aggregation(results, series), config.draw)
    parts = [
        table_of(rows, results, config.size, has_rates=len(grid["bandwidth"]) > 1),
        *remarks(
            (
                *as_remarks(slots, "slots"),
                *as_remarks(about_pools(unfilled, system, config.jobs), "pool-unfilled"),
                *as_remarks(about_limits(results, system), "limits"),
                *(Remark("rate-above-link", line, needed=True) for line in why_above(results)),
                *(Remark("slow", line, needed=True) for line in why_slow(config.rto, results, system)),
            )
        ),
    ]
    return Answer(parts, results, more={} if series is None else {"series": series})


def _simulate(
    config: SwitchSimulateConfig, point: dict[str, Any]
) -> tuple[System, Network, list[Result], list[dict[str, Any]], list[dict[str, float]] | None]:
    import dataclasses

    from switch_model.budget.jobs import require_slots

    from .budget import hardware_of

    system, blocks = _system(config, point)
    network, jobs = _jobs(config, point, system, blocks)
    if config.hardware != "none":
        require_slots(system, hardware_of(config.hardware), 1 if config.topology else config.jobs)
    slowest = min(float(network.bandwidth[link]) for job in jobs for link in job.tree_links)
    results, series = _run_engine(config, point, network, jobs)
    more = {"line_rate_elements_per_s": system.line_rate(slowest)}
    of_jobs = [dataclasses.replace(r, counters={**r.counters, **more}) for r in results]
    return system, network, of_jobs, what_limits(network, jobs, results), series


def _run_engine(
    config: SwitchSimulateConfig, point: dict[str, Any], network: Network, jobs: list[AggregationJob]
) -> tuple[list[Result], list[dict[str, float]] | None]:
    from commsim.packets.aggregated.tree_times import simulate_recurrence, why_not
    from commsim.packets.links.queues import Fabric
    from commsim.packets.packet_work import expect_aggregation
    from commsim.packets.run_packets import simulate_aggregation
    from commsim.switches.packet_capture import worker_links, write_tapped

    mark = parse_size(config.ecn, "--ecn") if config.ecn else 0.0
    fabric = Fabric(ecn_min=mark, ecn_max=mark, loss_burst=config.loss_burst)
    expect_aggregation(network, jobs, fabric, values=not config.no_values)
    if config.engine == "recurrence" or (
        config.engine == "auto" and config.no_values and not why_not(network, jobs[0], fabric)
    ):
        if len(jobs) > 1 or config.pcap or config.sample_every:
            raise InputError("the recurrence simulates one job, without packets or series; use --engine event")
        return [simulate_recurrence(network, jobs[0], fabric=fabric)], None
    tapped = worker_links(network, jobs) if config.pcap else []
    every = parse_time(config.sample_every, "--sample-every") if config.sample_every else 0.0
    if every > MAX_SAMPLE_EVERY:
        raise InputError(f"--sample-every is at most {MAX_SAMPLE_EVERY:g} s, got {config.sample_every}")
    if config.draw and not every and all("," not in str(getattr(config, name) or "") for name in LISTS):
        raise InputError("--draw needs something to draw: several values of a flag, or --sample-every")
    try:
        outcome = simulate_aggregation(
            network, jobs, fabric=fabric, seed=point["seed"], values=not config.no_values, sample_every=every,
            tapped=tapped,
        )  # fmt: skip
    except PhysicsError as error:
        if reason := _why_endless(config, jobs[0].system):
            raise InputError(f"{reason} ({error})") from None
        raise
    if config.pcap:
        write_tapped(config.pcap, network, jobs, outcome, point["seed"], with_values=config.pcap_values)
    series = [
        {"time_s": int(s["time"]) / 1e12, "busy_slots": int(s["busy_slots"]), "queued_bytes": int(s["queued"])}
        for s in outcome.series
    ]
    return list(outcome.results), series if every else None


def _why_endless(config: SwitchSimulateConfig, system: System) -> str:
    """Describe why a run never ends where that is as it was asked for; empty where it is a bug."""
    if system.versions == 1 or config.without:
        flags = "--versions 1" if system.versions == 1 else f"--without {' '.join(config.without)}"
        return f"{flags}: a packet was lost, and no slot has its result any more; a larger --buffer loses none"
    return ""


def _system(config: SwitchSimulateConfig, point: dict[str, Any]) -> tuple[System, dict[str, str]]:
    """Build the system that the flags describe, and what was written of its blocks."""
    import dataclasses

    from commsim.packets.aggregated.systems import named_system

    flags = {
        "elements_per_packet": config.elements_per_packet,
        "packets_per_message": config.packets_per_message,
        "pool_size": point["pool_size"],
        "window": config.window,
        "header": None if config.header is None else _header(config.header),
        "rto": None if config.rto is None else parse_time(config.rto, "--rto"),
    }
    spec, blocks = named_system(config.system, flags, beside=DRAWN)
    system = spec.at(parse_nccl_size(config.size, "--size"))
    return (system if config.versions is None else dataclasses.replace(system, versions=config.versions)), blocks


def _jobs(
    config: SwitchSimulateConfig, point: dict[str, Any], system: System, blocks: dict[str, str]
) -> tuple[Network, list[AggregationJob]]:
    import numpy as np

    from commsim.packets.aggregated.aggregation_jobs import aggregation_job, job_workers, spare_hosts, with_loss
    from commsim.packets.aggregated.aggregator_seats import free_seats

    for name, n in (("--workers", point["workers"]), ("--jobs", config.jobs)):
        if n < 1:
            raise InputError(f"{name} must be at least 1, got {n}")
    if config.jobs > MAX_JOBS:
        raise InputError(f"--jobs is at most {MAX_JOBS}, got {config.jobs}")
    if config.jobs > 1 and config.engine == "recurrence":
        raise InputError("the recurrence simulates one job; use --engine event")
    if config.loss != "0" and None not in (config.loss_up, config.loss_down):
        raise InputError(f"--loss-up and --loss-down leave nothing for --loss {config.loss}")
    network = _network(config, point["bandwidth"], point["workers"] * config.jobs + spare_hosts(system, config.jobs))
    up = point["loss"] if config.loss_up is None else config.loss_up
    down = point["loss"] if config.loss_down is None else config.loss_down
    if up or down or not config.topology:
        network = with_loss(network, up, down)
    n_elements = parse_nccl_size(config.size, "--size") / system.element_bytes
    if n_elements < 1 or config.tensors < 1:
        raise InputError(f"a tensor has at least 1 element, got --size {config.size} and --tensors {config.tensors}")
    if config.tensors > MAX_TENSORS:
        raise InputError(f"--tensors is at most {MAX_TENSORS}, got {config.tensors}")
    jitter = parse_time(config.start_jitter, "--start-jitter") if config.start_jitter else 0.0
    draw = np.random.default_rng(point["seed"])
    occupancy = drawn_blocks(blocks, system, point["workers"], math.ceil(n_elements))
    jobs, every = [], job_workers(network, config.jobs, point["workers"], spare_hosts(system))
    servers = free_seats(system.name, network, sum(every, ())) if system.server else [None]
    for number, workers in enumerate(every):
        starts = tuple(draw.uniform(0, jitter, len(workers)).tolist()) if jitter else ()
        sizes = [math.ceil(n_elements)] * config.tensors
        job = aggregation_job(
            system, network, workers, sizes, server=servers[number % len(servers)], floats=config.floats, starts=starts,
            without=config.without, occupancy=occupancy,
        )  # fmt: skip
        jobs.append(job)
    return network, jobs


def _network(config: SwitchSimulateConfig, rate: str | None, n_hosts: int) -> Network:
    import dataclasses

    import numpy as np

    from commsim.prediction.inputs import load_network

    if config.topology:
        network = load_network(config.topology)
    else:
        from topologies import TOPOLOGIES

        bandwidth = parse_bandwidth(str(BANDWIDTH) if rate is None else rate, "--bandwidth")
        latency = parse_time(config.latency or LATENCY, "--latency")
        network = TOPOLOGIES["star"].build(n_hosts=n_hosts, bandwidth=bandwidth, latency=latency)
    if config.buffer:
        buffer = np.full(network.n_links, parse_size(config.buffer, "--buffer"))
        network = dataclasses.replace(network, buffer=buffer)
    return network


def _header(text: str) -> int:
    n_bytes = parse_size(text, "--header")
    if n_bytes != int(n_bytes):
        raise InputError(f"--header must be whole bytes, such as 82B, got {text!r}")
    return int(n_bytes)


def _numbers(text: str | None, name: str, kind: Callable[[str], Any]) -> list[Any]:
    if text is None:
        return [None]
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"--{name.replace('_', '-')} is a number, or several with commas, got {text!r}") from None


def occupancy_parameters(
    density: float = 1.0, pattern: str = "random", seed: int = 0, exponent: float = 1.0
) -> dict[str, Any]:
    """Parameters of :func:`commsim.sparse.generate.drawn_occupancy` that are allowed beside the system's own."""
    return dict(locals())


DRAWN = tuple(inspect.signature(occupancy_parameters).parameters)


def drawn_blocks(raw: dict[str, str], system: System, n_workers: int, n_elements: int) -> Occupancy | None:
    """Return the blocks that are not all zero at each worker; None when every block is sent.

    Parameters
    ----------
    raw : dict of str to str
        What was written of the blocks.
    system : System
        System that sends them.
    n_workers, n_elements : int
        Workers, and elements of the tensor.

    Raises
    ------
    InputError
        If no such blocks can be drawn.
    """
    from commsim.core.spec import read_arguments
    from commsim.sparse.generate import drawn_occupancy

    if not raw:
        return None
    if "density" not in raw:
        raise InputError(f"{system.name} needs density=... to know which blocks are not zero, got {', '.join(raw)}")
    given = occupancy_parameters(**read_arguments(occupancy_parameters, raw, name=system.name))
    return drawn_occupancy(n_workers, n_elements, block=system.elements, **given)
