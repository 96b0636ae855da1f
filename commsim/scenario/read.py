"""The one function from text or values to a scenario; command line, Python and sweeps call it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.core.units import parse_bandwidth, parse_time
from commsim.routing.routing import is_hashed
from commsim.scenario.collective_names import spelled_out, usual_collective
from commsim.scenario.faults import draws_faults, flaps_of, with_faults
from commsim.scenario.inputs import load_network
from commsim.scenario.packet_options import FABRIC, TRANSPORT, framing_of, packet_notes, packets_of
from commsim.scenario.scenario import AUTO, Scenario, Wish
from commsim.software.presets import software as software_named

if TYPE_CHECKING:
    from commsim.engine.packet.transport import Fabric, Transport
    from commsim.scenario.together.composition import Composition

Quantity = float | str | None
JOBS_ONLY = "--jobs FILE describes the whole run; {} cannot be used with it"
__all__ = ["JOBS_ONLY", "network_of", "scenario_of", "with_costs"]


def network_of(
    network: str | Network,
    *,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    seed: int = 0,
    overhead: Quantity = None,
    recv_overhead: Quantity = None,
    reduce_rate: Quantity = None,
    software: str | None = None,
) -> tuple[Network, list[str]]:
    """Return a network with its faults and with the costs of messages.

    Parameters
    ----------
    network : str or Network
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    fail, scale : sequence of str
        Faults, as :func:`commsim.scenario.faults.with_faults` reads them.
    seed : int
        Seed of faults that are drawn.
    overhead, recv_overhead : float, s, or str, optional
        Time per message at the sender's and at the receiver's port. Default: the network's own.
    reduce_rate : float, bytes/s, or str, optional
        Rate at which a rank reduces. Default: the network's own.
    software : str, optional
        Preset of :mod:`commsim.software.presets`.

    Returns
    -------
    Network, list of str
        And what was drawn or assumed.
    """
    found = load_network(network) if isinstance(network, str) else network
    notes: list[str] = []
    if fail or scale:
        found, notes = with_faults(found, fail, scale, seed)
    rate = _number(reduce_rate, parse_bandwidth, "--reduce-rate")
    if rate is not None and not rate > 0:
        raise InputError(f"--reduce-rate must be above 0, got {reduce_rate}")
    found = with_costs(
        found,
        overhead=_number(overhead, parse_time, "--overhead"),
        recv_overhead=_number(recv_overhead, parse_time, "--recv-overhead"),
        gamma=None if rate is None else 1 / rate,
        software=software,
    )
    if software is not None:
        notes = [*notes, software_named(software).told]
    return found, notes


def with_costs(
    network: Network,
    *,
    overhead: float | None = None,
    recv_overhead: float | None = None,
    gamma: float | None = None,
    software: str | None = None,
) -> Network:
    """Return the network with other costs of messages at every node; None leaves one as it is.

    Software is a preset of :mod:`commsim.software.presets`, which slows ports down.

    Gamma is left as it is at switches: one that aggregates adds as fast as its links bring, unless the network says
    otherwise.
    """
    if software is not None:
        network = software_named(software).on(network)
    given = {"overhead": overhead, "recv_overhead": recv_overhead}
    changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
    if gamma is not None:
        changes["gamma"] = np.where(network.kind == SWITCH, network.gamma, gamma)
    return dataclasses.replace(network, **changes) if changes else network


def scenario_of(
    collective: str | Schedule | None,
    network: str | Network,
    *,
    operation: str | None = None,
    n_ranks: int | None = None,
    placement: str | Placement | None = None,
    routing: str | None = None,
    seed: int | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    flap: Sequence[str] = (),
    detection: Quantity = None,
    rto: Quantity = None,
    overhead: Quantity = None,
    recv_overhead: Quantity = None,
    reduce_rate: Quantity = None,
    software: str | None = None,
    compressor: str | None = None,
    groups: Sequence[Sequence[int]] = (),
    jobs: Composition | str | PathLike[str] | None = None,
    assume_programmable: bool = True,
    engine: str = "",
    tolerance: float | None = None,
    method: str = AUTO,
    start_jitter: Quantity = None,
    iterations: int | None = None,
    payload: Quantity = None,
    header: Quantity = None,
    framing: Framing | None = None,
    transport: str | Transport | None = None,
    fabric: Fabric | None = None,
    packets: Mapping[str, Any] | None = None,
    trace: bool = False,
) -> Scenario:
    """Make a scenario of what a user gives; text is read with its units, numbers are SI.

    Parameters
    ----------
    collective : str, Schedule or None
        ``name:key=value,...``, ``nccl``, a file, or a schedule; empty where several are ranked. Default: what runs on
        the network's machines.
    network : str or Network
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    operation : str, optional
        Operation that a library's name stands for. Default: all_reduce.
    n_ranks, placement, routing, seed, compressor, groups, assume_programmable
        Same as in :class:`commsim.scenario.scenario.Scenario`.
    jobs : Composition, str or path, optional
        Jobs and background traffic in place of a collective, or the TOML or JSON file that describes them.
    fail, scale, overhead, recv_overhead, reduce_rate, software
        Same as in :func:`network_of`.
    flap, detection, rto
        Same as in :func:`commsim.scenario.faults.flaps_of`.
    engine, tolerance, method, start_jitter, iterations, framing, fabric, trace
        Same as in :class:`commsim.scenario.scenario.Wish`; the engine is ``flow`` unless another is named.
    payload, header : float, bytes, or str, optional
        Bytes of packets, in place of `framing`.
    transport : str or Transport, optional
        Transport of the packet engine, by name or as a value.
    packets : mapping of str to value, optional
        Further options of the packet engine, by the keys of :mod:`commsim.scenario.packet_options`.

    Raises
    ------
    InputError
        If something is unknown, wrong, or belongs to another engine.
    """
    if jobs is not None:
        if operation is not None:
            raise InputError(JOBS_ONLY.format("--operation"))
        from commsim.scenario.together.composition import Composition, read_composition

        jobs = jobs if isinstance(jobs, Composition) else read_composition(Path(jobs))
    drawn = seed or 0
    if drawn < 0:
        raise InputError(f"seed must be 0 or more, got {seed}")
    where, notes = network_of(
        network, fail=fail, scale=scale, seed=drawn, overhead=overhead, recv_overhead=recv_overhead,
        reduce_rate=reduce_rate, software=software,
    )  # fmt: skip
    spec: str | Schedule = "" if collective is None else collective
    if isinstance(spec, str) and spec:
        spec = spelled_out(spec, operation)
    elif collective is None and jobs is None:
        plain = bool(groups) or compressor is not None or engine == AUTO
        spec, told = usual_collective(where, operation or "all_reduce", textbook=plain)
        notes = [*([told] if told else []), *notes]
    name = engine or "flow"
    if framing is None and (payload, header) != (None, None):
        framing = framing_of(payload, header)
    given = {key: value for key, value in (packets or {}).items() if value is not None}
    if isinstance(transport, str):
        given, transport = {"transport": transport, **given}, None
    if unknown := given.keys() - TRANSPORT.keys() - FABRIC.keys():
        raise InputError(f"the packet engine has no option {min(unknown)}; known: {', '.join((*TRANSPORT, *FABRIC))}")
    if name == "packet":
        notes += packet_notes(given, framing)
        made, meets = packets_of(given, where)
        transport, fabric = transport or made, fabric or meets
    elif given and (name, *given) != (AUTO, "transport"):
        flag = f"--{min(given).replace('_', '-')}"
        raise InputError(f"{flag} needs --engine packet, got --engine {name}")
    elif given:
        transport, _ = packets_of(given, where)
    jitter = _number(start_jitter, parse_time, "--start-jitter") or 0.0
    wish = Wish(
        engine=name, start_jitter=jitter, iterations=iterations or 1, seed=drawn, framing=framing, trace=trace,
        transport=transport, fabric=fabric, method=method, tolerance=tolerance,
        flaps=flaps_of(flap, where, detection, rto) if flap or (detection, rto) != (None, None) else None,
    )  # fmt: skip
    random = placement == "random" or jitter or name == "packet" or is_hashed(routing or where.routing)
    if seed is not None and not random and not draws_faults((*fail, *scale)) and jobs is None:
        notes.append("--seed: no effect, nothing here is drawn at random")
    return Scenario(
        where, spec, n_ranks, placement, routing, drawn, compressor, tuple(tuple(group) for group in groups), jobs,
        assume_programmable, wish, tuple(notes),
    )  # fmt: skip


def _number(value: Quantity, parse: Any, name: str) -> float | None:
    """Return a quantity in SI units; text is parsed."""
    return value if value is None else float(parse(value, name)) if isinstance(value, str) else float(value)
