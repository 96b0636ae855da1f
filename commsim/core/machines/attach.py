"""A machine times a fabric: every NIC of a machine takes the place of one host of the fabric."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError
from commsim.core.machines.hardware import SPREADING, net_of, read_hardware
from commsim.core.network import HOST, KINDS, NIC, Network
from commsim.core.value import NumberedNames

# What :func:`attach_machines` multiplies a fabric's metrics by: two NVLinks cost less than one.
FABRIC_FACTOR = 4
# Fields of a network that have a value for each node that stays the node's, and for each link.
PER_NODE = ("kind", "forwards", "aggregates", "overhead", "recv_overhead", "gamma", "message_engines")
PER_LINK = ("bandwidth", "latency", "buffer", "loss", "metric")


def attach_machines(
    fabric: Network, machine: Network, ports: ArrayLike | None = None, labels: Sequence[str] = ()
) -> Network:
    """Put one machine on every few hosts of a fabric.

    Parameters
    ----------
    fabric : Network
        Fabric of hosts, which become NICs, and switches. Links keep their rates: a port runs at the fabric's.
    machine : Network
        The inside, as :mod:`commsim.core.machines.parts` puts it together.
    ports : int[n_machines, n_nics], optional
        Host (0 for the first host of the fabric) that each NIC replaces. By default a machine takes the next hosts in
        order, so that all of its NICs are near each other.
    labels : sequence of str
        Name of each machine. Default: ``m0``, ``m1`` and so on.

    Returns
    -------
    Network
        Endpoints ``m0.gpu0, m0.gpu1 … m1.gpu0 …``, then the rest of every machine, then the fabric's switches. What
        a host of the fabric costs per message or byte is forgotten; that of the machine's own nodes counts. With
        ``sharp=on`` among the machine's facts the fabric's switches can aggregate.

    Raises
    ------
    InputError
        If the fabric has something else than hosts and switches, the machine has no NIC, or `ports` does not name
        every host exactly once.
    """
    hosts, nics = fabric.hosts, np.flatnonzero(machine.kind == NIC)
    foreign = np.flatnonzero(np.isin(fabric.kind, (HOST, 1), invert=True))
    if foreign.size:
        raise InputError(f"{fabric.name} cannot join machines: {fabric.nodes[foreign[0]]} is a "
                         f"{KINDS[fabric.kind[foreign[0]]]}, not a host or a switch; machines on rails are "
                         "rail_optimized:n_hosts=16,preset=dgx-h100")  # fmt: skip
    if not nics.size:
        raise InputError(f"{machine.name} has no NIC and cannot be attached to {fabric.name}")
    if ports is None and len(hosts) % len(nics):
        raise InputError(f"{fabric.name} has {len(hosts)} ports for hosts, which is not a multiple of the {len(nics)} "
                         f"NICs of {machine.name}")  # fmt: skip
    port = (np.arange(len(hosts)) if ports is None else np.asarray(ports, np.int64)).reshape(-1, len(nics))
    if not np.array_equal(np.sort(port, axis=None), np.arange(len(hosts))):
        raise InputError(f"ports must name each of the {len(hosts)} hosts of {fabric.name} exactly once")
    return _joined(fabric, machine, port, nics, labels)


def _joined(
    fabric: Network, machine: Network, port: NDArray[np.int64], nics: NDArray[np.intp], labels: Sequence[str]
) -> Network:
    n, size, switches = len(port), machine.n_nodes, np.flatnonzero(fabric.kind != HOST)
    first = np.argsort(machine.kind != machine.seat_kind, kind="stable")  # of a machine's nodes, and how many
    n_seats = int(np.count_nonzero(machine.kind == machine.seat_kind))
    place = np.empty((n, size), np.int32)  # of node i of machine m
    for begin, kept in ((0, first[:n_seats]), (n * n_seats, first[n_seats:])):
        place[:, kept] = np.arange(begin, begin + n * len(kept), dtype=np.int32).reshape(n, -1)
    of_fabric = np.empty(fabric.n_nodes, np.int32)
    of_fabric[fabric.hosts[port]] = place[:, nics]
    of_fabric[switches] = n * size + np.arange(len(switches))

    def ends(field: str) -> list[NDArray[Any]]:
        return [np.take(place, getattr(machine, field), axis=1), of_fabric[getattr(fabric, field)]]

    def of_nodes(of_machine: NDArray[Any], of_switch: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate(
            (np.tile(of_machine[first[:n_seats]], n), np.tile(of_machine[first[n_seats:]], n), of_switch)
        )

    factor = np.int32(FABRIC_FACTOR)
    adds = fabric.aggregates | (read_hardware(machine.hardware).get("sharp") == "on")
    fabric = dataclasses.replace(fabric, metric=fabric.metric * factor, aggregates=adds)
    links = {
        name: _one_value(getattr(machine, name), getattr(fabric, name), lambda inside, outside: _woven(
            [np.broadcast_to(inside, (n, machine.n_links)), outside]))
        for name in PER_LINK
    }  # fmt: skip
    nodes = {name: _one_value(getattr(machine, name), getattr(fabric, name)[switches], of_nodes) for name in PER_NODE}
    at = np.empty((n * size + len(switches), fabric.coordinates.shape[1]), np.int32)
    at[place] = fabric.coordinates[fabric.hosts[port[:, :1]]]  # where a machine's first NIC is, and
    at[place[:, nics]] = fabric.coordinates[fabric.hosts[port]]  # the others where they are
    at[n * size :] = fabric.coordinates[switches]
    owner = np.full(len(at), -1, np.int32)
    owner[place] = np.arange(n)[:, np.newaxis]
    return Network(
        f"{machine.name}@{fabric.name}",
        _names(fabric, [[machine.nodes[i] for i in part] for part in np.split(first, [n_seats])], n, labels, switches),
        src=_woven(ends("src")), dst=_woven(ends("dst")),
        **nodes, **links, machine=owner, coordinates=at, overhead_given=machine.overhead_given,
        routing=_routing_of(fabric, machine),
        hardware=machine.hardware, left_out=fabric.left_out, told=fabric.told,
    )  # fmt: skip


def _one_value(
    inside: NDArray[Any], outside: NDArray[Any], joined: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
) -> Any:
    """Return what all have, for a network to repeat, or else what is joined of machines' values and a fabric's."""
    value = outside[0] if outside.size else inside[0] if inside.size else None
    is_same = value is not None and bool((inside == value).all() and (outside == value).all())
    return value if is_same else joined(inside, outside)


def _names(
    fabric: Network, inside: list[list[str]], n: int, labels: Sequence[str], switches: NDArray[np.intp]
) -> Sequence[str]:
    """Names of n machines' endpoints, of their other nodes, and of switches: in runs where nobody gives labels."""
    rest = fabric.nodes.after(len(fabric.hosts)) if isinstance(fabric.nodes, NumberedNames) else None
    if not labels and rest is not None and np.array_equal(switches, np.arange(len(fabric.hosts), fabric.n_nodes)):
        parts = [("m", n, tuple(f".{name}" for name in part)) for part in inside]
        return NumberedNames((*parts, *rest.runs))
    labels = labels or [f"m{m}" for m in range(n)]
    names = [f"{label}.{name}" for part in inside for label in labels for name in part]
    return (*names, *[fabric.nodes[i] for i in switches.tolist()])


def _routing_of(fabric: Network, machine: Network) -> str:
    """Return the routing of a fabric: where it would hash, packets are spread if the machines' network does that."""
    spreads = net_of(machine.hardware) in SPREADING
    return "spray" if fabric.routing == "ecmp" and spreads else fabric.routing


def _woven(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Numbers of the links of all machines and of the fabric: first the first halves of each, then the second ones.

    Where both are made of cables, all ways there so come before all ways back. What is read-only already, a network
    takes without a copy.
    """
    halves = [np.split(column, [(column.shape[-1] + 1) // 2], axis=-1) for column in columns]
    woven, at = np.empty(sum(column.size for column in columns), np.result_type(*columns)), 0
    for half in [half[i] for i in (0, 1) for half in halves]:
        woven[at : at + half.size].reshape(half.shape)[...] = half
        at += half.size
    woven.setflags(write=False)
    return woven
