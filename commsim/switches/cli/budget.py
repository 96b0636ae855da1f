"""``commsim switch budget``: what in-network aggregation takes of a programmable switch, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, WithJson, flag
from commsim.core.errors import InputError
from commsim.core.remark import as_remarks
from commsim.core.units import format_bandwidth, format_size, parse_bandwidth, parse_nccl_size, parse_time
from commsim.report.answer import Answer, Facts, Table, remarks

from .simulate_flags import BANDWIDTH, HARDWARE, SIZE, SYSTEM

if TYPE_CHECKING:
    from switch_model.budget.chip import Hardware
    from switch_model.budget.layout_of_jobs import Budget
    from switch_model.system import System


# How names of rates end, and the rate that links and slots allow.
PER_S = "_elements_per_s"
BOUND = f"bound{PER_S}"


class SwitchBudgetConfig(WithJson):
    """All flags of ``commsim switch budget``."""

    system: str = flag(
        default=SYSTEM, metavar="NAME[:key=value,...]", help="system: switchml_udp, switchml_rdma or atp"
    )
    hardware: str = flag(
        default=HARDWARE,
        metavar="NAME[:key=value,...]",
        help="switch, such as tofino_1, tofino_2 or tofino_1:pipes=2",
    )
    pool_size: int | None = flag(metavar="N", help="number of slots, in place of the system's own")
    elements_per_packet: int | None = flag(metavar="K", help="elements in a packet, in place of the system's own")
    packets_per_message: int | None = flag(metavar="N", help="packets in a message, in place of the system's own")
    jobs: int = flag(default=1, metavar="N", help="number of jobs")
    workers: int = flag(default=DefaultOf("switch_model.system:N_WORKERS"), metavar="N", help="workers of each job")
    bandwidth: str = flag(default=BANDWIDTH, metavar="RATE", help="rate of each worker")
    round_trip: str | None = flag(
        metavar="TIME",
        help="time from a packet to its result; prints bounds on the rate, and the slots needed to reach it",
    )
    loss: float = flag(default=0.0, metavar="P", help="with --round-trip: probability that a link loses a packet")
    size: str = flag("-b", default=SIZE, metavar="SIZE", help="with --loss: size of each worker's tensor")


def run(config: SwitchBudgetConfig) -> Answer:
    """Return what is used, what it costs, and with a round trip how fast it can be."""
    from switch_model.budget.jobs import budget

    hardware, bandwidth = hardware_of(config.hardware), parse_bandwidth(config.bandwidth, "--bandwidth")
    used = budget(_system(config), hardware, config.jobs, config.workers, config.pool_size, bandwidth)
    title = f"{used.system.name} on {hardware.name}: {config.jobs} x {config.workers} workers, {used.pool_size} slots"
    rows = used.resources()
    shown = [[row["resource"], _text(row, "used"), _text(row, "available")] for row in rows]
    bounds = _bounds(config, used)
    parts = [
        Table(["of a pipe", "used", "available"], shown, title),
        Facts(_costs(used, bounds)),
        Facts(dict(_fact(name, value) for name, value in bounds.items() if name != BOUND)),
        *remarks(as_remarks(hardware.sources, "source")),
    ]
    more = {"used": rows, "sources": list(hardware.sources), **({"bounds": bounds} if bounds else {})}
    return Answer(parts, [used.row()], more=more)


def _text(row: dict[str, Any], key: str) -> str:
    if row["resource"] == "memory_B":
        return format_size(row[key])
    return format_bandwidth(row[key]) if row["resource"] == "loopback_Bps" and row[key] else f"{row[key]:g}"


def _fact(name: str, value: float) -> tuple[str, str]:
    if name.endswith(PER_S):
        return f"{name.removesuffix(PER_S).replace('_', ' ')}, at most", _rate(value)
    return name.replace("_", " "), f"{value:.6g}"


def _rate(value: float) -> str:
    return f"{value / 1e6:.1f} M elements/s"


def _costs(b: Budget, bounds: Mapping[str, float]) -> dict[str, str]:
    layout, loops = b.layout, b.loops
    again = f"{layout.adding_recirculations} of every packet"
    if layout.folded:
        again += f", {layout.reading_recirculations} more of the one that completes a slot"
    else:
        again += ": a resubmission, and through a loopback port for the one that completes a slot"
    slots = bounds.get(BOUND, math.inf)
    throughput = min(b.elements_per_s, slots)
    share = f"{throughput / b.system.line_rate(b.bandwidth):.1%} of line rate"
    if slots < b.elements_per_s:
        name = "pool" if b.pool_size <= b.system.window else "window"
        share += f", limited by the {name} of {min(b.pool_size, b.system.window)} packets"
    elif loops.ports_for_line_rate:
        share += f"; all of it with {loops.ports_for_line_rate} more ports looped back"
    if not bounds:
        share += "; with --round-trip also what its slots allow"
    return {
        "passes to add a packet": f"{layout.n_passes}, {layout.pass_elements} elements each",
        "recirculations": again,
        "pipes of a job": f"{layout.pipes} of {b.hardware.pipes}; {b.n_groups} x {layout.pipes} can serve jobs",
        "values of a job's slots": format_size(b.value_bytes),
        "ports": f"{b.looped_ports} looped back, {b.host_ports} left of {b.hardware.pipes * b.hardware.ports}",
        "throughput of a job": f"{_rate(throughput)}, {share}",
    }


def _bounds(config: SwitchBudgetConfig, b: Budget) -> dict[str, float]:
    """Return bounds on the rate of a job and of those that use no switch, and what losses cost; none without a trip."""
    from switch_model import bounds

    if config.round_trip is None:
        if config.loss:
            raise InputError("--loss needs --round-trip, such as --round-trip 10us --system switchml_udp")
        return {}
    trip, size = parse_time(config.round_trip, "--round-trip"), parse_nccl_size(config.size, "--size")
    return bounds.rates(b.system, b.n_workers, b.bandwidth, trip, b.pool_size, config.loss, size)


def hardware_of(text: str) -> Hardware:
    """Build ``name:key=value,...`` of a switch."""
    from commsim.core.spec import read_arguments, split_spec
    from switch_model.budget import HARDWARE

    name, raw = split_spec(text)
    build = HARDWARE[name.replace("-", "_")].build
    return build(**read_arguments(build, raw, name=name))


def _system(config: SwitchBudgetConfig) -> System:
    """Build the system; the pool is the budget's, which says what fits where the system would only refuse."""
    from commsim.packets.aggregated.systems import named_system

    flags = {key: getattr(config, key) for key in ("elements_per_packet", "packets_per_message")}
    system = named_system(config.system, flags)[0].at()
    if system.hosts:
        raise InputError(f"{system.name} aggregates on hosts, and needs no resources of a switch")
    return system
