"""``commsim testbed``: a network of namespaces on this machine, and collectives run in it for real."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from commsim.cli.flags import DefaultOf, Flags, Sizes, Verb, WithJson, flag, repeated, switched
from commsim.cli.flags.faults import FaultsInTime
from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, microseconds, parse_nccl_size, parse_time
from commsim.report.answer import Answer, Lines, Table
from commsim.report.terminal import tell

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.real.testbed.flaps import FlappedRun
    from commsim.real.testbed.layout import TestbedLayout
    from commsim.real.testbed.measure import TestbedCell
    from commsim.real.testbed.places import NamesOfTestbed
    from commsim.real.testbed.share import ShiftedRun

EXAMPLES = {
    "testbed": """
        commsim testbed status
        commsim testbed run --network star:n_hosts=4,bandwidth=200Mbps --collective ring_all_reduce -b 1M -e 1M
        commsim testbed up leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Mbps --routing \
            dmodk --name lab
        commsim testbed share --name lab --jobs 'h0,h2;h1,h3' --shifts 0ms,470ms
        commsim testbed down lab""",
}

COLUMNS = ["collective", "size(B)", "time(ms)", "p5(ms)", "p95(ms)", "predicted(ms)", "error", "bytes_error", "wrong",
           "remark"]  # fmt: skip
LEAST = ["p5(ms)", "p95(ms)", "bytes_error", "remark"]
USUAL = ("ring_all_reduce", "halving_doubling_all_reduce", "pairwise_all_to_all")
FLAPPED = ["collective", "size(B)", "whole(ms)", "flapped(ms)", "lost(ms)", "predicted(ms)", "error", "wrong", "remark"]
SHARED = ["shift(ms)", "job", "time(ms)", "spread(ms)", "alone(ms)", "predicted(ms)", "error", "slowdown"]

NAME = DefaultOf("commsim.real.testbed.places:USUAL")


class InTestbed(Flags):
    """The testbed in which a verb runs jobs."""

    name: str | None = flag(metavar="NAME", help="a testbed that is up (default: %(usual)s)", shown={"usual": NAME})
    network: str | None = flag(metavar="NETWORK", help="build a testbed of this network for this run only")
    routing: str | None = flag(metavar="NAME", help="with --network: routing, in place of the network's own")


class TestbedRunConfig(Sizes, WithJson, InTestbed, FaultsInTime):
    """All flags of ``commsim testbed run``."""

    DEFAULTS: ClassVar[dict[str, str]] = {"minbytes": "64K", "maxbytes": "4M"}
    collective: tuple[str, ...] = repeated(
        metavar="NAME:key=value,...",
        help=f"algorithm; switchml uses a live switch (default: {', '.join(USUAL)}); repeatable",
    )
    native: tuple[str, ...] = repeated(metavar="OPERATION", help="also run the library's own collective; repeatable")
    ranks: int | None = flag(
        metavar="N", help="number of ranks (default: all hosts that no server or aggregator needs)"
    )
    placement: str | None = flag(metavar="NAME|FILE", help="placement strategy, or a file (default: packed)")
    backend: str = flag(
        default=DefaultOf("commsim.real.testbed.launch:BACKEND"),
        metavar="mpi|gloo",
        help="library that carries the messages",
    )
    no_calibration: bool = switched(
        help="do not calibrate; predict from the given rates and latencies and the packet headers"
    )
    seed: int = flag(default=0, metavar="N", help="seed of random placement and of ECMP")


def run(config: TestbedRunConfig) -> Answer:
    """Measure beside the prediction; the exit code is 1 if a result was wrong."""
    sizes = config.sizes()
    from commsim.prediction.inputs import load_network
    from commsim.real.testbed.runs import run_cells

    if config.network:
        config.flaps(load_network(config.network))  # a wrong one is refused before anything is built
    with testbed_of(config) as (place, layout):
        if config.flaps(layout.network) is not None:
            return _run_flaps(config, place, layout)
        pairs, costs = run_cells(
            place, layout, config.collective or USUAL, sizes, native=config.native, backend=config.backend,
            n_ranks=config.ranks, placement=config.placement, seed=config.seed,
            calibrated=not config.no_calibration, warmup=1 if config.warmup_iters is None else config.warmup_iters,
            iterations=config.iters or 9, tell=_tell,
        )  # fmt: skip
        name, cells = layout.network.name, [cell for _, cell in pairs]
    if costs is not None:
        _tell(f"point to point: o {microseconds(costs.o, 1)} us, L {microseconds(costs.L, 1)} us, "
              f"{costs.efficiency:.2%} of the links' rates")  # fmt: skip
    table = Table(COLUMNS, [_text(cell) for cell in cells], f"{name}, for real over {config.backend}", LEAST)
    code = 1 if any(cell.result.counters.get("wrong") for cell in cells) else 0
    return Answer([table], [cell_row(cell) for cell in cells], code=code)


def _run_flaps(config: TestbedRunConfig, place: NamesOfTestbed, layout: TestbedLayout) -> Answer:
    """Measure what flaps cost; the exit code is 1 if a result was wrong."""
    from commsim.prediction.build import prepare
    from commsim.real.testbed.flaps import kernel_rto, measure_flaps
    from commsim.real.testbed.launch import Ranks

    if config.native:
        raise InputError(
            "--flap is predicted for schedules, and --native runs the library's own; leave one of them out"
        )
    flaps = config.flaps(layout.network)
    assert flaps is not None
    if config.rto is None:
        flaps = dataclasses.replace(flaps, rto=kernel_rto(layout))
    from commsim.packets.aggregated.plan_aggregated import AggregatedPlan

    flapped = []
    for spec in config.collective or USUAL[:1]:
        prepared = prepare(spec, layout.network, n_ranks=config.ranks, placement=config.placement, seed=config.seed)
        if isinstance(prepared, AggregatedPlan) or prepared.data is not None:
            raise InputError(f"--flap runs dense collectives of hosts, got {spec}")
        with Ranks(place, layout, prepared.placement.nodes.tolist(), config.backend) as ranks:
            n = config.iters or 5
            flapped += [measure_flaps(ranks, prepared, size, flaps, iterations=n) for size in config.sizes()]
    table = Table(
        FLAPPED,
        [_flapped_text(one) for one in flapped],
        f"{layout.network.name}, {', '.join(config.flap)}",
        ["whole(ms)", "remark"],
    )
    return Answer([table], [_flapped_row(one) for one in flapped], code=1 if any(one.wrong for one in flapped) else 0)


def _flapped_row(flapped: FlappedRun) -> dict[str, Any]:
    return {
        "collective": flapped.collective,
        "size_B": flapped.size,
        "whole_s": flapped.whole.tolist(),
        "flapped_s": flapped.flapped.tolist(),
        "lost_s": flapped.lost,
        "predicted_lost_s": flapped.predicted_lost,
        "predicted_whole_s": flapped.predicted_whole,
        "wrong": flapped.wrong,
        "foreign_load": flapped.load.foreign,
    }


def _flapped_text(flapped: FlappedRun) -> list[str]:
    times = (np.median(flapped.whole), np.median(flapped.flapped), flapped.lost, flapped.predicted_lost)
    return [flapped.collective, f"{flapped.size:.0f}", *(f"{1e3 * t:.2f}" for t in times), f"{flapped.error:+.1%}",
            f"{flapped.wrong:.0f}", flapped.load.disturbed]  # fmt: skip


@contextlib.contextmanager
def testbed_of(config: InTestbed) -> Iterator[tuple[NamesOfTestbed, TestbedLayout]]:
    """Find the testbed that the flags name, or build one for the time of the run.

    Raises
    ------
    InputError
        If the flags name both, or neither and the usual one is not up.
    """
    from commsim.prediction.inputs import load_network
    from commsim.real.testbed.own_testbed import temporary_testbed, up

    if config.name and config.network:
        raise InputError("--name names a testbed that is up, --network builds one: give one of them")
    if config.routing and not config.network:
        raise InputError("--routing is decided when a testbed is built: give it with --network, or to testbed up")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was built for the run goes with it
    if config.network:
        with temporary_testbed(routed(load_network(config.network), config.routing), _tell) as testbed:
            yield testbed
    else:
        yield up(config.name or str(NAME))


def cell_row(cell: TestbedCell) -> dict[str, Any]:
    """Return a cell as the JSON has it."""
    low, high = cell.spread
    return cell.result.row() | {
        "predicted_s": cell.predicted.time,
        "error": cell.error,
        "p5_s": low,
        "p95_s": high,
        "bytes_error": cell.bytes_error,
        "foreign_load": cell.load.foreign,
        "invalid": cell.invalid or None,
    }


def _text(cell: TestbedCell) -> list[str]:
    result, (low, high) = cell.result, cell.spread
    return [result.collective, f"{result.size:.0f}", f"{result.time * 1e3:.2f}", f"{low * 1e3:.2f}",
            f"{high * 1e3:.2f}", f"{cell.predicted.time * 1e3:.2f}", f"{cell.error:+.1%}", f"{cell.bytes_error:.2%}",
            f"{result.counters.get('wrong', 0):.0f}", cell.invalid]  # fmt: skip


def _tell(what: str) -> None:
    tell(f"commsim testbed: {what}")


class ShareConfig(WithJson, InTestbed):
    """All flags of ``commsim testbed share``."""

    jobs: str = flag(required=True, metavar="h0,h2;h1,h3", help="hosts of each job, in rank order")
    collective: str = flag(default="ring_all_reduce", metavar="NAME:key=value,...", help="collective of each job")
    size: str = flag("-b", default="4MiB", metavar="SIZE", help="size of each all-reduce")
    compute: str = flag(default="500ms", metavar="TIME", help="time between two all-reduces of a job")
    shifts: str = flag(default="0ms,250ms", metavar="TIME,...", help="delays of the second job's start")
    iterations: int = flag(
        default=DefaultOf("commsim.real.testbed.share:share.iterations"), metavar="N", help="all-reduces of each job"
    )


def run_shared(config: ShareConfig) -> Answer:
    """Run jobs on shared links, and predict them."""
    size, compute = int(parse_nccl_size(config.size, "--size")), parse_time(config.compute, "--compute")
    shifts = [parse_time(text, "--shifts") for text in config.shifts.split(",")]
    if config.iterations < 1:
        raise InputError(f"--iterations must be at least 1, got {config.iterations}")
    from commsim.prediction.collective_names import load_schedule
    from commsim.real.testbed.share import share

    with testbed_of(config) as (place, layout):
        hosts = _hosts_of(config.jobs, layout)
        schedules = [load_schedule(config.collective, len(nodes), size) for nodes in hosts]
        runs = share(place, layout, schedules, hosts, size, shifts, compute=compute, iterations=config.iterations)
    table = Table(
        SHARED,
        [_shared_text(one, j) for one in runs for j in range(len(hosts))],
        layout.network.name,
        ["spread(ms)", "slowdown"],
    )
    return Answer([table], [_shared_row(one, j) for one in runs for j in range(len(hosts))])


def _hosts_of(text: str, layout: TestbedLayout) -> list[list[int]]:
    names = {layout.network.nodes[seat]: seat for seat in layout.seats}
    jobs = [[name.strip() for name in job.split(",")] for job in text.split(";")]
    for name in (name for job in jobs for name in job if name not in names):
        raise InputError(f"--jobs: {layout.network.name} has no host {name!r}; it has {', '.join(names)}")
    if min(len(job) for job in jobs) < 2:
        raise InputError(f"--jobs: a job has two hosts at least, got {text}")
    return [[names[name] for name in job] for job in jobs]


def _shared_row(shared: ShiftedRun, j: int) -> dict[str, Any]:
    return {"shift_s": shared.shift, "job": j, "time_s": float(shared.measured[j]), "alone_s": float(shared.alone[j]),
            "predicted_s": float(shared.predicted[j]), "error": float(shared.error[j]),
            "samples_s": shared.times[j].tolist(), "foreign_load": shared.load.foreign}  # fmt: skip


def _shared_text(shared: ShiftedRun, j: int) -> list[str]:
    numbers = (shared.shift, shared.measured[j], np.ptp(shared.times[j]), shared.alone[j], shared.predicted[j])
    ms = [f"{1e3 * x:.2f}" for x in numbers]
    return [ms[0], str(j), *ms[1:], f"{shared.error[j]:+.1%}", f"{shared.measured[j] / shared.alone[j]:.2f}"]


class UpConfig(Flags):
    """All flags of ``commsim testbed up``."""

    network: str = flag("network", metavar="NETWORK", help="topology:key=value,..., preset, or network file")
    routing: str | None = flag(metavar="NAME", help="routing, in place of the network's own")
    name: str = flag(default=NAME, metavar="NAME", help="name of the testbed; several can be up")


def routed(network: Network, routing: str | None) -> Network:
    """Return the network with another routing, if one is given."""
    return network if routing is None else dataclasses.replace(network, routing=routing)


def up(config: UpConfig) -> Answer:
    """Build, and say what is where."""
    from commsim.prediction.inputs import load_network
    from commsim.real.testbed.build import build
    from commsim.real.testbed.layout import lay_out
    from commsim.real.testbed.places import NamesOfTestbed

    place, layout = NamesOfTestbed(config.name), lay_out(routed(load_network(config.network), config.routing))
    for warning in build(place, layout):
        _tell(warning)
    network = layout.network
    kind = "bridges" if layout.bridged else "routers"
    counts = f"{len(layout.seats)} seats, {len(layout.cables)} cables"
    lines = [f"{place.name}: {network.name}, {counts}, switches are {kind}"]
    for seat in layout.seats:
        rates = " ".join(format_bandwidth(float(network.bandwidth[port.link])) for port in layout.ports_of(seat))
        lines.append(f"  {network.nodes[seat]:<12} {layout.address(seat)!s:<14} {place.namespace(seat)}  {rates}")
    return Answer([Lines(lines)])


def status(_: WithJson) -> Answer:
    """List the testbeds."""
    from commsim.real.testbed.places import testbeds

    rows = []
    for place in testbeds():
        network = place.network().name if place.ready else "not complete: `commsim testbed down` takes it away"
        rows.append({"name": place.name, "complete": place.ready, "namespaces": len(place.namespaces()),
                     "processes": len(place.processes()), "network": network})  # fmt: skip
    columns = ["name", "complete", "namespaces", "processes", "network"]
    shown = [["yes" if row[c] is True else "no" if row[c] is False else str(row[c]) for c in columns] for row in rows]
    return Answer([Table(columns, shown)], rows, {})


class DownConfig(Flags):
    """All flags of ``commsim testbed down``."""

    name: str = flag("name", nargs="?", default=NAME, metavar="NAME", help="the testbed")
    all: bool = switched(help="all testbeds, and the remains of crashed ones")


def down(config: DownConfig) -> Answer:
    """End what runs in it, and remove it."""
    from commsim.real.testbed.places import NamesOfTestbed, require_root, testbeds

    require_root()
    there = testbeds()
    which, gone = there if config.all else [NamesOfTestbed(config.name)], []
    for place in which:
        if not config.all and place not in there:
            known = ", ".join(one.name for one in there) or "none is up"
            raise InputError(f"no testbed {place.name}; known: {known}")
        place.remove()
        gone.append(f"{place.name}: gone")
    return Answer([Lines(gone)])


COMMANDS = {
    "testbed up": Verb(UpConfig, up, "build a network of namespaces with the rates of its links"),
    "testbed run": Verb(
        TestbedRunConfig, run, "run collectives in a testbed for real, and compare with the prediction"
    ),
    "testbed share": Verb(
        ShareConfig, run_shared, "run jobs on shared links of a testbed, with and without a time shift"
    ),
    "testbed status": Verb(WithJson, status, "print the testbeds that are up, and the remains of crashed ones"),
    "testbed down": Verb(DownConfig, down, "remove a testbed, whatever its state"),
}
