"""The one function from text or values to a scenario; command line, Python and sweeps call it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Unpack, cast

import numpy as np

from commsim.core.errors import InputError
from commsim.core.machines.hardware import guesses_of, net_of
from commsim.core.network import GPU, MEMORY, SWITCH, Network
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.units import parse_bandwidth, parse_time, si_of
from commsim.extensions import house
from commsim.prediction.build import CollectiveWork
from commsim.prediction.checks import check_names, checked_all
from commsim.prediction.collective_names import require_operation, spelled_out, usual_collective
from commsim.prediction.inputs import CollectiveLike, NetworkLike, collective_of, framing_of, placement_of
from commsim.prediction.inputs import network_of as loaded
from commsim.prediction.options import COSTS, Quantity, ScenarioOptions, WorkOptions, takes
from commsim.prediction.scenario import AUTO, Scenario, Wish, engine_of
from commsim.prediction.work_plan import Work
from commsim.routing.routing import is_hashed

# Overhead of a message where neither the network nor the user says what one costs, in s: LogP's o of a library on RDMA
# NICs. Measured: Netgauge with MVAPICH over InfiniBand (Tukey, Argonne) found 0.98 us to send 1 byte and 1.25 us to
# send 1 KiB, and 1.1 to 1.3 us to receive (tests/ng-mpi-tukey.dat of codes-org/codes, columns o_s and o_r). Presets of
# others: NCCL 1 us to post a message, 2 us on AMD CPUs (`getNetOverhead` of src/graph/tuning.cc); LogGOPSim 1.5 us
# (`LogGOPS_o` of its cmdline.ggo). Without any, algorithms that send all messages at once would be best at all sizes.
DEFAULT_OVERHEAD = 1e-6
__all__ = ["DEFAULT_OVERHEAD", "changed_network", "scenario_of", "with_costs", "with_default_overhead"]


def changed_network(
    network: str | Network,
    *,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    seed: int = 0,
    overhead: Quantity = None,
    recv_overhead: Quantity = None,
    reduce_rate: Quantity = None,
    software: str | None = None,
) -> tuple[Network, list[Remark]]:
    """Return a network with its faults and with the costs of messages.

    Parameters
    ----------
    network : str or Network
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    fail, scale : sequence of str
        Faults, as :func:`commsim.prediction.faults.with_faults` reads them.
    seed : int
        Seed of faults that are drawn.
    overhead, recv_overhead : float, s, or str, optional
        Time per message at the sender and at the receiver. Default: the network's own, and where it says nothing
        ``DEFAULT_OVERHEAD`` to send from a plain host.
    reduce_rate : float, bytes/s, or str, optional
        Rate at which a rank reduces. Default: the network's own.
    software : str, optional
        Preset of :mod:`commsim.prediction.software`.

    Returns
    -------
    Network, list of Remark
        And what was drawn or assumed.
    """
    found = network if isinstance(network, Network) else loaded(network)
    notes: list[Remark] = []
    if fail or scale:
        from commsim.prediction.faults import with_faults  # only where there are faults, as below

        found, notes = with_faults(found, fail, scale, seed)
    if (overhead, recv_overhead, software) == (None, None, None):
        found = with_default_overhead(found)
    if (overhead, recv_overhead, software, reduce_rate) != (None, None, None, None):
        rate = None if reduce_rate is None else si_of(reduce_rate, parse_bandwidth, "reduce rate")
        if rate is not None and not rate > 0:
            raise InputError(f"reduce rate must be above 0, got {reduce_rate}")
        found = with_costs(
            found,
            overhead=None if overhead is None else si_of(overhead, parse_time, "overhead"),
            recv_overhead=None if recv_overhead is None else si_of(recv_overhead, parse_time, "recv overhead"),
            gamma=None if rate is None else 1 / rate,
            software=software,
        )
    if software is not None:
        from commsim.prediction.software import software as software_named

        notes = [*notes, software_named(software).remark]
    if found.hardware:
        notes = [*notes, *_left_open(found)]
    return found, [*notes, *found.told]


def _left_open(network: Network) -> list[Remark]:
    """Say what is guessed of machines, and that the transport of their NICs is not known."""
    has_fabric = bool(network.machine.max(initial=0) > 0)
    guessed = guesses_of(network.hardware, has_fabric=has_fabric)
    remarks = [Remark("hardware-guessed", guessed)] * bool(guessed)  # titles say it, and an answer in Python has none
    if has_fabric and "gpu=" in network.hardware and not net_of(network.hardware):
        text = "the transport of the NICs is not known: messages cost what links do (net= names it)"
        remarks.append(Remark("transport-unknown", text))
    return remarks


def with_costs(
    network: Network,
    *,
    overhead: float | None = None,
    recv_overhead: float | None = None,
    gamma: float | None = None,
    software: str | None = None,
) -> Network:
    """Return the network with other costs of messages at every node; None leaves one as it is.

    Software is a preset of :mod:`commsim.prediction.software`, which slows ports down.

    Gamma is left as it is at switches: one that aggregates adds as fast as its links bring, unless the network says
    otherwise.
    """
    if software is not None:
        from commsim.prediction.software import software as software_named

        network = dataclasses.replace(software_named(software).on(network), overhead_given=True)
    overheads = {"overhead": overhead, "recv_overhead": recv_overhead}
    changes: dict[str, Any] = {k: v for k, v in overheads.items() if v is not None}
    if changes:
        changes["overhead_given"] = True
    if gamma is not None:
        changes["gamma"] = np.where(network.kind == SWITCH, network.gamma, gamma)
    return dataclasses.replace(network, **changes) if changes else network


def with_default_overhead(network: Network) -> Network:
    """Return the network with ``DEFAULT_OVERHEAD`` at its plain hosts; the same where it is known what messages cost.

    An overhead, measured curves or a library's name say so, and an overhead that is given as 0. Parts of machines with
    GPUs get none: latencies of their links are those of messages between GPUs, with the software. Memories of machines
    without GPUs are seats of processes that send as those of a plain host do.
    """
    known = network.overhead_given or network.curves is not None or network.software
    if known or network.overhead.any() or network.recv_overhead.any():
        return network
    of_gpus = np.isin(network.machine, network.machine[network.kind == GPU])
    plain = (network.kind != SWITCH) & ((network.machine < 0) | ((network.kind == MEMORY) & ~of_gpus))
    return dataclasses.replace(network, overhead=np.where(plain, DEFAULT_OVERHEAD, 0.0)) if plain.any() else network


@takes(ScenarioOptions)
def scenario_of(
    collective: CollectiveLike | None, network: NetworkLike, **options: Unpack[ScenarioOptions]
) -> Scenario:
    """Make a scenario: a network with its faults, the work on it, and the engine.

    Text is read with its units, numbers are SI.

    Parameters
    ----------
    collective : str, Schedule, callable or None
        ``name:key=value,...``, ``nccl``, a file, a schedule, or a function from a number of ranks to a schedule, to be
        proved; empty where several are ranked. Default: what runs on the network's machines.
    network : str, Network or NetworkBuilder
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    **options
        Keywords of :class:`commsim.prediction.options.ScenarioOptions`.

    Raises
    ------
    InputError
        If something is unknown, wrong, or belongs to another engine.
    TypeError
        If a keyword is no option.

    Examples
    --------
    >>> import commsim as cs
    >>> asked = cs.scenario_of("ring_all_reduce", "star:n_hosts=4", overhead="1us")
    >>> [round(r.time * 1e6, 2) for r in cs.solve(asked, ["1MiB", "2MiB"]).results]
    [137.83, 263.66]
    """
    work: Work = CollectiveWork()
    if options:
        check_names(options, ScenarioOptions)
        options = cast(ScenarioOptions, checked_all(options))
        work = _work_of(options) or work
    seed, operation = options.get("seed"), options.get("operation")
    fail, scale, routing = options.get("fail", ()), options.get("scale", ()), options.get("routing")
    whole = network if isinstance(network, Network) else loaded(network)
    placement, n_ranks = options.get("placement"), options.get("n_ranks")
    if placement is not None:
        placement, n_ranks = placement_of(placement, whole, n_ranks)
    costs: dict[str, Any] = {name: options.get(name) for name in COSTS}
    where, notes = changed_network(whole, fail=fail, scale=scale, seed=seed or 0, **costs)
    left = (
        _ranks_left(whole, fail) if fail and (placement, n_ranks, type(work)) == (None, None, CollectiveWork) else None
    )
    if left is not None:
        placement, n_ranks = left, len(left.nodes)
    wish, about_packets = _wish_of(options, where)
    if routing is None and wish.engine != "flow":
        routing = wish.routing_on(where)
    each = work.ranks_of_each if isinstance(work, CollectiveWork) and callable(collective) else 0
    spec = "" if collective is None else collective
    if not isinstance(spec, str):
        spec = collective_of(spec, each or n_ranks or len(whole.endpoints))
    if isinstance(spec, str) and spec:
        spec = spelled_out(spec, operation)
    if not isinstance(work, CollectiveWork):
        _refuse(work, collective=spec, n_ranks=n_ranks, operation=operation)
    else:
        if spec and operation is not None and work.KEEPS_OPERATION:
            require_operation(spec, operation)
        elif collective is None:
            plain = type(work) is not CollectiveWork or wish.engine == AUTO
            spec, remarks = usual_collective(where, operation or "all_reduce", textbook=plain)
            notes = [*([remarks] if remarks else []), *notes]
        work = dataclasses.replace(work, collective=spec, n_ranks=n_ranks)
    notes += about_packets
    random = placement == "random" or wish.start_jitter or wish.engine == "packet"
    random = random or is_hashed(routing or where.routing) or not isinstance(work, CollectiveWork)
    if seed is not None and not random and not _draws_faults((*fail, *scale)):
        notes.append(Remark("seed-unused", "seed: no effect, nothing here is drawn at random"))
    if wish.iterations > 1 and not wish.start_jitter:
        text = "iterations: no effect, a simulation without jitter gives the same time every time"
        notes.append(Remark("option-unused", text))
    return Scenario(
        where, work, placement, routing, seed or 0,
        options.get("assume_programmable", True), wish, tuple(notes),
        _slower_links(whole, fail, scale, seed or 0) if scale else (),
        changed_network(whole, **costs)[0] if fail or scale else None,
        _failed_links(whole, fail, seed or 0) if fail else (),
        left is not None,
    )  # fmt: skip


def _ranks_left(whole: Network, fail: Sequence[str]) -> Placement | None:
    """Return the places that are left to ranks where hosts or GPUs fail."""
    from commsim.prediction.faults import ranks_left

    return ranks_left(whole, fail)


def _draws_faults(texts: Sequence[str]) -> bool:
    """Whether a fault is drawn at random."""
    if not texts:
        return False
    from commsim.prediction.faults import draws_faults

    return draws_faults(texts)


def _failed_links(whole: Network, fail: Sequence[str], seed: int) -> tuple[int, ...]:
    """Return the links that failures take away."""
    from commsim.prediction.faults import with_faults

    numbered = dataclasses.replace(whole, buffer=np.arange(1.0, whole.n_links + 1))  # what tells parallel cables apart
    left = with_faults(numbered, fail, (), seed)[0].buffer.astype(np.int64) - 1
    return tuple(np.setdiff1d(np.arange(whole.n_links), left).tolist())


def _slower_links(whole: Network, fail: Sequence[str], scale: Sequence[str], seed: int) -> tuple[int, ...]:
    """Return the links whose rate a fault lowers, of those that are left."""
    from commsim.prediction.faults import with_faults

    left, scaled = (with_faults(whole, fail, faults, seed)[0] for faults in ((), scale))
    return tuple(np.flatnonzero(scaled.bandwidth < left.bandwidth).tolist())


def _wish_of(options: ScenarioOptions, network: Network) -> tuple[Wish, list[Remark]]:
    """Return the engine that is wished for, with its options, and what to say of packets."""
    engine, framing = options.get("engine") or "flow", options.get("framing")
    payload, header = options.get("payload"), options.get("header")
    if framing is None and (payload, header) != (None, None):
        framing = framing_of(payload, header)
    transport, notes = None, list[Remark]()
    if engine == "packet" or {"transport", "fabric", "packets"} & options.keys():
        transport, notes = house().services["options of packets"](options, engine, framing, network)
    flap, detection, rto = options.get("flap", ()), options.get("detection"), options.get("rto")
    flaps = None
    if flap or (detection, rto) != (None, None):
        from commsim.prediction.faults import flaps_of

        flaps = flaps_of(flap, network, detection, rto)
    method, jitter = options.get("method", AUTO), options.get("start_jitter")
    model = engine_of(
        engine, method=None if method == AUTO else method, transport=transport, tolerance=options.get("tolerance"),
        flaps=flaps,
    )  # fmt: skip
    wish = Wish(
        model, start_jitter=0.0 if jitter is None else si_of(jitter, parse_time, "start jitter"),
        iterations=options.get("iterations") or 1, seed=options.get("seed") or 0, framing=framing,
        trace=options.get("trace", False), hashes=options.get("hashes") or 0,
    )  # fmt: skip
    return wish, notes


def _work_of(options: ScenarioOptions) -> Work | None:
    """Return the work that the options ask for; None where they ask for a collective."""
    named = {name: options.get(name) for name in WorkOptions.__annotations__}
    works = {name: value for name, value in named.items() if value is not None and value != ()}
    if not works:
        return None
    name = "work" if "work" in works else next(iter(works))
    value = works.pop(name)
    if name == "work" and isinstance(value, str):
        name, _, value = value.partition(":")
    work: Work = value if isinstance(value, Work) else house().works[name].read(value)
    for other in works:
        raise work.refusal(other)
    return work


def _refuse(work: Work, **given: Any) -> None:
    """Refuse the first option that is given, since the work does not take any of them."""
    for name, value in given.items():
        if value:
            raise work.refusal(name)
