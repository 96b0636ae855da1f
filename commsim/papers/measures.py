"""What the figures of papers are of, each from a few arguments to one number in the figure's unit.

Those of training and of jobs on a link are in :mod:`commsim.papers.training`.
"""

from __future__ import annotations

from collections.abc import Callable

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth

GBPS = 1e9 / 8
ROUNDS = 30  # packets of each slot in the shorter of two tensors
LATENCY = 1e-6  # of each link, one way

Measure = Callable[..., float]
MEASURES: dict[str, Measure] = {}
SIMULATED: set[str] = set()


# Units that a paper may have its times and rates in, and the unit of the measures.
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
RATES = {"Gb/s": 1.0, "Mb/s": 1e-3, "GB/s": 8.0, "MB/s": 8e-3}
UNITS = {
    "seconds": "s", "milliseconds": "ms", "group_milliseconds": "ms", "omnireduce_protocol": "ms",
    "sharp_latency": "us", "host_latency": "us", "goodput": "Gb/s", "byteps_theorem": "Gb/s", "shared_rate": "Gb/s",
}  # fmt: skip


def units_like(name: str) -> dict[str, float]:
    """Return the units that a measure of time or rate may be printed in; nothing for the others."""
    unit = UNITS.get(name, "")
    return next((units for units in (TIMES, RATES) if unit in units), {})


def measure(function: Measure) -> Measure:
    """Register a measure under its name."""
    MEASURES[function.__name__] = function
    return function


def simulated(function: Measure) -> Measure:
    """Register a measure whose number an engine decides: that of flows, packets, tasks, shared links or clusters.

    The others are formulas, counts of bytes, searches, and bubbles of pipelines, which have a published closed form.
    """
    SIMULATED.add(function.__name__)
    return measure(function)


@simulated
def seconds(collective: str, network: str, size: float, ranks: int | None = None, software: str | None = None) -> float:
    """Seconds of a collective, with the fixed cost of the software."""
    from commsim.prediction.build import prepare
    from commsim.prediction.inputs import load_network
    from commsim.prediction.read import with_costs

    slowed = with_costs(load_network(network), software=software)
    return prepare(collective, slowed, n_ranks=ranks).predict(size).time


@simulated
def milliseconds(
    collective: str, network: str, size: float, ranks: int | None = None, software: str | None = None
) -> float:
    """Milliseconds of a collective."""
    return 1e3 * seconds(collective, network, size, ranks, software)


@measure
def omnireduce_protocol(density: float, workers: int, size: int = 104857600, block: int = 256) -> float:
    """Milliseconds of OmniReduce with GPU-direct, whose aggregators add what they receive."""
    from commsim.papers.omnireduce_protocol import OmniReduceInput, direct_time

    return 1e3 * direct_time(OmniReduceInput(size // 4, block, density, workers))


@simulated
def goodput(collective: str, network: str, size: float, ranks: int | None = None, software: str | None = None) -> float:
    """Size of the array over the time of the collective, in Gb/s."""
    return size / seconds(collective, network, size, ranks, software) / GBPS


@simulated
def elements(
    collective: str, network: str, size: float, ranks: int | None = None, software: str | None = None
) -> float:
    """Elements of 4 bytes of the array over the time of the collective, in millions a second."""
    return size / 4e6 / seconds(collective, network, size, ranks, software)


@simulated
def exchange_gain(before: str, after: str, network: str, share: float, size: float, ranks: int) -> float:
    """How many times faster training is when one collective takes the place of another, with nothing hidden.

    Parameters
    ----------
    share : float
        Share of an iteration for the exchange with `before`.
    """
    faster = seconds(before, network, size, ranks) / seconds(after, network, size, ranks)
    return 1 / (1 - share + share / faster)


@measure
def byteps_theorem(machines: int, cpus: int, gbps: float) -> float:
    """Goodput of theorem 1, in Gb/s."""
    from collectives.servers.byteps import byteps_split

    return gbps / float(byteps_split(machines, cpus).time)


@measure
def carried(collective: str, network: str, links: list[str], size: float = 8e8) -> float:
    """Bytes on the busiest of some links, in sizes of the array."""
    from commsim.core.names.nodes_and_links import find_link
    from commsim.prediction.build import prepare

    if not links:
        raise InputError("links must name at least one link, such as h0:switch0")
    ready = prepare(collective, network)
    numbers = [find_link(ready.network, link) for link in links]
    return float(ready.predict(size).link_bytes[numbers].max()) / size


@simulated
def switch_rate(system: str, gbps: float, workers: int) -> float:
    """Millions of elements a second that a switch adds in the packet engine, in steady state."""
    from commsim.core.spec import read_arguments, split_spec
    from switch_model.systems import SYSTEMS

    name, raw = split_spec(system)
    build = SYSTEMS[name].build
    return simulated_rate(build(**read_arguments(build, raw)), gbps * GBPS, workers) / 1e6


def simulated_rate(system: object, bandwidth: Bandwidth, n_workers: int) -> float:
    """Elements per second in steady state: what a longer tensor has more, over what it takes more.

    Parameters
    ----------
    system : System
        System on one switch, without loss.
    bandwidth : float, bytes/s
        Bandwidth of each link.
    n_workers : int
        Workers; a parameter server has a host of its own.
    """
    from commsim.packets.aggregated.aggregation_jobs import aggregation_job, job_workers
    from commsim.packets.run_packets import simulate_aggregation
    from switch_model.system import System
    from topologies.star import star

    assert isinstance(system, System)
    network = star(n_workers + system.server, bandwidth, LATENCY)
    workers = job_workers(network, 1, n_workers, int(system.server))[0]
    sizes = [factor * ROUNDS * system.window * system.elements for factor in (1, 2)]
    times = []
    for size in sizes:
        job = aggregation_job(system, network, workers, size)
        times.append(simulate_aggregation(network, [job], values=False).results[0].time)
    return (sizes[1] - sizes[0]) / (times[1] - times[0])


@simulated
def switch_speed_up(system: str, gbps: float, workers: int, software: str) -> float:
    """How many times faster a switch is than the ring of a library on the same machines."""
    network = f"star:n_hosts={workers},bandwidth={gbps}Gbps,latency=1us"
    return switch_rate(system, gbps, workers) / elements("ring_all_reduce", network, 1e9, software=software)


@simulated
def training_speed_up(
    communication: float, gbps: float, workers: int, software: str, measured_with: str, gpu: float = 1.0
) -> float:
    """Speed-up of training by a switch, of whose time a share was communication with some software, none hidden.

    Parameters
    ----------
    communication : float
        Share of an iteration with `measured_with`.
    software : str
        What the switch is compared with.
    gpu : float
        How many times faster computation is than where the share was measured.
    """
    ours, theirs = (
        switch_speed_up("switchml_rdma:packets_per_message=16", gbps, workers, name)
        for name in (measured_with, software)
    )
    compute, sent = (1 - communication) / gpu, communication / ours  # the second with the switch
    return (compute + sent * theirs) / (compute + sent)


@simulated
def sharp_latency(size: int, hosts: int = 128) -> float:
    """Microseconds of SHARP's all-reduce on hosts of 16 to a leaf."""
    return 1e6 * _sharp(size, hosts, "low_latency")


@simulated
def sharp_stream(size: int, hosts: int = 128) -> float:
    """Share of a link of 100 Gb/s that SHARP's streams reach."""
    return size / _sharp(size, hosts, "streaming") / (100 * GBPS)


def _sharp(size: int, hosts: int, mode: str) -> float:
    from commsim.packets.aggregated.aggregation_jobs import aggregation_job
    from commsim.packets.run_packets import simulate_aggregation
    from commsim.prediction.inputs import load_network
    from switch_model.systems import SYSTEMS

    shape = f"n_leaves={hosts // 16},n_spines=1,hosts_per_leaf=16"
    network = load_network(f"leaf_spine:{shape},bandwidth=100Gbps,latency=0.1us")
    job = aggregation_job(SYSTEMS["sharp"].build(mode=mode), network, network.endpoints.tolist(), size // 4)
    return simulate_aggregation(network, [job], values=False).results[0].time


@measure
def registers(system: str, pool: int | None = None) -> float:
    """Megabytes of registers of a switch program on Tofino: values and, of ATP, all control arrays."""
    from switch_model.budget.jobs import budget
    from switch_model.budget.tofino import tofino_1
    from switch_model.systems import SYSTEMS

    if system == "atp":
        found = budget(SYSTEMS["atp"].build(), tofino_1())
        return found.n_entries * 4e-6 * (found.layout.arrays + found.layout.control_arrays)
    return budget(SYSTEMS[system].build(elements_per_packet=64), tofino_1(), pool_size=pool).value_bytes / 1e6


@measure
def host_latency(hosts: int, step: float) -> float:
    """Microseconds of recursive doubling of a few bytes, from those of a step."""
    return step * (hosts - 1).bit_length()
