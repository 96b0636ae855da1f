"""``commsim switch budget``: what in-network aggregation takes of a programmable switch, and what it costs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_size, parse_bandwidth, parse_size, parse_time
from commsim.report.table import print_facts, print_remarks, print_table

from ..flags import WithJson, flag

if TYPE_CHECKING:
    from switch_model.budget.chip import Hardware
    from switch_model.budget.jobs import Budget
    from switch_model.system import System


class Config(WithJson):
    """All flags of ``commsim switch budget``."""

    system: str = flag(default="switchml_rdma", metavar="NAME[:key=value,...]", help="switchml_udp, switchml_rdma, atp")
    hardware: str = flag(
        default="tofino_1", metavar="NAME[:key=value,...]", help="tofino_1, tofino_2, tofino_1:pipes=2"
    )
    pool_size: int | None = flag(metavar="N", help="number of slots, in place of the system's own")
    elements_per_packet: int | None = flag(metavar="K", help="in place of the system's own")
    packets_per_message: int | None = flag(metavar="N", help="in place of the system's own")
    jobs: int = flag(default=1, metavar="N", help="number of jobs")
    workers: int = flag(default=8, metavar="N", help="workers of each job")
    bandwidth: str = flag(default="100Gbps", metavar="RATE", help="rate of each worker")
    round_trip: str | None = flag(
        metavar="TIME", help="of a packet and its result: prints bounds on the rate, and the slots that reach it"
    )
    loss: float = flag(default=0.0, metavar="P", help="with --round-trip: probability that a link loses a packet")
    size: str = flag(default="64MiB", metavar="SIZE", help="with --loss: size of each worker's tensor")


def run(config: Config) -> None:
    """Print what is used, what it costs, and with a round trip how fast it can be."""
    from switch_model.budget.jobs import budget

    hardware, bandwidth = _hardware(config.hardware), parse_bandwidth(config.bandwidth, "--bandwidth")
    used = budget(_system(config), hardware, config.jobs, config.workers, config.pool_size, bandwidth)
    title = f"{used.system.name} on {hardware.name}: {config.jobs} x {config.workers} workers, {used.pool_size} slots"
    rows = _used(used)
    shown = [[row["resource"], _text(row, "used"), _text(row, "available")] for row in rows]
    print_table(["of a pipe", "used", "available"], shown, title)
    print_facts(_costs(used))
    bounds = _bounds(config, used)
    print_facts({name.replace("_", " "): f"{value:.6g}" for name, value in bounds.items()})
    print_remarks(hardware.sources)
    more = {"bounds": bounds} if bounds else {}
    config.write_json([_row(used)], used=rows, sources=list(hardware.sources), **more)


def _used(b: Budget) -> list[dict[str, Any]]:
    """Return what is used of each pipe that takes part, and what there is."""
    from switch_model.budget.register_layout import CONTROL_STAGES

    hardware, layout = b.hardware, b.layout
    arrays = hardware.stages * hardware.arrays_per_stage
    rows = [
        ("stages", layout.stages(hardware), hardware.stages),
        ("register arrays", layout.arrays + layout.control_arrays, arrays),
        ("of these, for values", layout.arrays, arrays - CONTROL_STAGES * hardware.arrays_per_stage),
        ("entries of an array", b.n_entries, hardware.most_entries(layout.entry_bytes)),
        ("memory_B", b.sram_bytes, hardware.sram_bytes),
        ("loopback_Bps", b.loops.reading / layout.pipes, b.loops.reading_capacity / layout.pipes),
        ("workers of a job", b.n_workers, b.most_workers),
    ]
    return [{"resource": name, "used": used, "available": available} for name, used, available in rows]


def _text(row: dict[str, Any], key: str) -> str:
    if row["resource"] == "memory_B":
        return format_size(row[key])
    return format_bandwidth(row[key]) if row["resource"] == "loopback_Bps" and row[key] else f"{row[key]:g}"


def _costs(b: Budget) -> dict[str, str]:
    layout, loops = b.layout, b.loops
    again = f"{layout.adding_recirculations} of every packet"
    if layout.folded:
        again += f", {layout.reading_recirculations} more of the one that completes a slot"
    else:
        again += ": a resubmission, and through a loopback port for the one that completes a slot"
    share = f"{loops.share:.1%} of line rate"
    if loops.ports_for_line_rate:
        share += f"; all of it with {loops.ports_for_line_rate} more ports looped back"
    return {
        "passes to add a packet": f"{layout.n_passes}, {layout.pass_elements} elements each",
        "recirculations": again,
        "pipes of a job": f"{layout.pipes} of {b.hardware.pipes}; {b.n_groups} x {layout.pipes} can serve jobs",
        "values of a job's slots": format_size(b.value_bytes),
        "ports": f"{b.looped_ports} looped back, {b.host_ports} left of {b.hardware.pipes * b.hardware.ports}",
        "throughput of a job": f"{b.elements_per_s / 1e6:.1f} M elements/s, {share}",
    }


def _bounds(config: Config, b: Budget) -> dict[str, float]:
    """Return bounds on the rate of a job and of those that use no switch, and what losses cost; none without a trip."""
    from switch_model import bounds

    if config.round_trip is None:
        if config.loss:
            raise InputError("--loss needs --round-trip")
        return {}
    link, trip = b.bandwidth, parse_time(config.round_trip, "--round-trip")
    rates = {
        "slots_for_line_rate": bounds.slots_for(b.system, link, trip),
        "line_rate_elements_per_s": bounds.line_rate(b.system, link),
        "bound_elements_per_s": bounds.throughput(b.system, link, trip, min(b.system.window, b.pool_size)),
    }
    if b.n_workers > 1:
        rates["ring_elements_per_s"] = bounds.ring_rate(link, b.n_workers)
        rates["server_elements_per_s"] = bounds.server_rate(link, b.n_workers)
    if config.loss:
        n_elements = math.ceil(parse_size(config.size, "--size") / b.system.element_bytes)
        cost = bounds.loss_estimate(b.system, n_elements, b.n_workers, link, trip, config.loss)
        rates |= {
            "timeouts_of_a_slot": cost.timeouts,
            "timeouts_of_the_worst_slot": cost.worst_timeouts,
            "estimated_time_s": cost.time,
        }
    return rates


def _row(b: Budget) -> dict[str, Any]:
    layout = b.layout
    return {
        "system": b.system.name,
        "hardware": b.hardware.name,
        "elements_per_packet": b.system.elements,
        "pool_size": b.pool_size,
        "jobs": b.n_jobs,
        "workers": b.n_workers,
        "max_workers": b.most_workers,
        "passes": layout.n_passes,
        "pipes_per_job": layout.pipes,
        "stages": layout.stages(b.hardware),
        "value_arrays": layout.arrays,
        "control_arrays": layout.control_arrays,
        "entries": b.n_entries,
        "value_B": b.value_bytes,
        "sram_B": b.sram_bytes,
        "recirculations_adding": layout.adding_recirculations,
        "recirculations_reading": layout.reading_recirculations,
        "recirculation_adding_Bps": b.loops.adding,
        "recirculation_reading_Bps": b.loops.reading,
        "recirculation_capacity_Bps": b.loops.reading_capacity,
        "ports_looped_back": b.looped_ports,
        "ports_for_hosts": b.host_ports,
        "ports_for_line_rate": b.loops.ports_for_line_rate,
        "share_of_line_rate": b.loops.share,
        "elements_per_s": b.elements_per_s,
    }


def _hardware(text: str) -> Hardware:
    from commsim.core.spec import read_arguments, split_spec
    from switch_model.budget import HARDWARE

    name, raw = split_spec(text)
    build = HARDWARE[name.replace("-", "_")].build
    return build(**read_arguments(build, raw))


def _system(config: Config) -> System:
    """Build the system; the pool is the budget's, which says what fits where the system would only refuse."""
    from commsim.run.systems import named_system

    flags = {key: getattr(config, key) for key in ("elements_per_packet", "packets_per_message")}
    system = named_system(config.system, flags)[0].at()
    if system.hosts:
        raise InputError(f"{system.name} aggregates on hosts, and takes no room on a switch")
    return system
