"""Which hosts of a fabric are the NICs of which machine: as the network says, by their names, else in their order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import NIC, Network
from commsim.core.remark import Remark
from commsim.core.units import count_text

from .fewer import restricted
from .nic_names import in_order, is_storage, split_nic

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class MachineHosts:
    """Where machines go.

    Parameters
    ----------
    fabric : Network
        The fabric, without the hosts that are no machine's.
    ports : int64[n_machines, n_nics] or None
        Host of each NIC; None: the next hosts in order.
    labels : tuple of str
        Name of each machine; empty: ``m0`` and so on.
    told : tuple of Remark
        What is to be said of it.
    """

    fabric: Network
    ports: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()
    told: tuple[Remark, ...] = ()


def hosts_of_machines(fabric: Network, machine: Network) -> MachineHosts:
    """Find the hosts of each machine.

    Parameters
    ----------
    fabric : Network
        Fabric of hosts. Those that it says to be of one machine (``machine =`` of a file) are of one; else those whose
        names say so, as ``node07-mlx5_3`` does; else the next ones in order.
    machine : Network
        Machine to be put on it.

    Raises
    ------
    InputError
        If hosts of one machine are not as many as its NICs.
    """
    names = [fabric.nodes[host] for host in fabric.hosts.tolist()]
    n_nics = int((machine.kind == NIC).sum())
    numbers = fabric.machine[fabric.hosts]
    split = [split_nic(name) for name in names]
    if (numbers >= 0).any():
        if (numbers < 0).any():
            name = names[int(np.flatnonzero(numbers < 0)[0])]
            raise InputError(
                f"{fabric.name}: some hosts belong to a machine, {name} does not: set `machine =` of its node"
            )
        split = [(host, nic) if nic else _at_dot(host) for host, nic in split]
        return _grouped(fabric, machine, n_nics, _by_number(numbers.tolist(), split), split, "as the file says")
    if fabric.family or not n_nics:
        return MachineHosts(fabric)
    if names and all(nic for _, nic in split):
        groups: dict[str, list[int]] = defaultdict(list)
        for i, (host, _) in enumerate(split):
            groups[host].append(i)
        return _grouped(fabric, machine, n_nics, groups, split, "by names")
    if n_nics > 1 and len(names) > n_nics and len(names) % n_nics == 0:
        text = f"machines are put on {n_nics} hosts each in their order: m0 on {names[0]} to {names[n_nics - 1]}"
        return MachineHosts(
            fabric, told=_remarks([f"{text}; names such as node07-mlx5_3, or machine = of a node, say another"])
        )
    return MachineHosts(fabric)


def _remarks(texts: list[str]) -> tuple[Remark, ...]:
    return tuple(Remark("machines-placed", text, needed=True) for text in texts)


def _at_dot(name: str) -> tuple[str, str]:
    """Split the name of a node at its last dot, before which the machine is named."""
    host, dot, nic = name.rpartition(".")
    return (host, nic) if dot and host else (name, "")


def _by_number(numbers: list[int], split: list[tuple[str, str]]) -> dict[str, list[int]]:
    """Hosts by the name of their machine: what their names have in common where no other machine is called so."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i, number in enumerate(numbers):
        groups[number].append(i)
    named = {number: {split[i][0] for i in of} for number, of in groups.items()}
    times = Counter(name for names in named.values() for name in names)
    return {
        next(iter(names)) if len(names) == 1 and times[next(iter(names))] == 1 else f"m{number}": groups[number]
        for number, names in sorted(named.items())
    }


def _grouped(
    fabric: Network, machine: Network, n_nics: int, groups: Mapping[str, list[int]], split: list[tuple[str, str]],
    how: str,
) -> MachineHosts:  # fmt: skip
    left_out = [i for of in groups.values() for i in of if is_storage(split[i][1])]
    gone = set(left_out) if any(len(of) > n_nics for of in groups.values()) else set[int]()
    ports, labels = [], []
    for label in sorted(groups, key=in_order):
        own = sorted((i for i in groups[label] if i not in gone), key=lambda i: in_order(split[i][1] or split[i][0]))
        if not own:
            continue
        if len(own) != n_nics:
            raise InputError(_other_count(fabric, machine, n_nics, label, [split[i][1] or split[i][0] for i in own]))
        ports.append(own)
        labels.append(label)
    if not ports:
        raise InputError(f"{fabric.name}: all hosts have names of storage or management NICs")
    place = np.full(len(split), -1)
    kept = [i for i in range(len(split)) if i not in gone]
    place[kept] = np.arange(len(kept))
    keep = np.ones(fabric.n_nodes, np.bool_)
    keep[fabric.hosts[sorted(gone)]] = False
    texts = [_mapping(labels, ports, split, how)]
    if gone:
        nics = sorted({split[i][1] for i in gone}, key=in_order)
        texts.append(f"{count_text(len(gone), 'NIC')} of storage or management left out by name: {', '.join(nics[:8])}")
    short = [label.partition(".")[0] for label in labels]
    names = short if len(set(short)) == len(short) else [label.replace(".", "_") for label in labels]
    return MachineHosts(
        restricted(fabric, keep) if gone else fabric, place[np.array(ports)], tuple(names), _remarks(texts)
    )


def _mapping(labels: list[str], ports: list[list[int]], split: list[tuple[str, str]], how: str) -> str:
    """Say which host and NICs each machine is; the first three, and the last."""
    n = len(labels)
    shown = [*range(min(n, _SHOWN)), *([n - 1] if n > _SHOWN else [])]

    def nics(k: int) -> str:
        names = [split[i][1] or split[i][0] for i in ports[k]]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"

    same = len({tuple(split[i][1] for i in of) for of in ports}) == 1
    each = [labels[k] if same else f"{labels[k]} ({nics(k)})" for k in shown]
    text = ", ".join(each[:_SHOWN]) + (f" ... {each[-1]}" if n > _SHOWN else "")
    order = f"nic0 to nic{len(ports[0]) - 1} are {nics(0)}" if len(ports[0]) > 1 else f"nic0 is {nics(0)}"
    return f"{count_text(n, 'machine')} {how}: {text}" + (f"; {order}" if same and split[ports[0][0]][1] else "")


def _other_count(fabric: Network, machine: Network, n_nics: int, label: str, nics: list[str]) -> str:
    shown = ", ".join(nics[:12]) + (", ..." if len(nics) > 12 else "")
    return (
        f"{fabric.name}: {label} has {count_text(len(nics), 'NIC')} ({shown}), and {machine.name} has {n_nics}; give "
        f"{machine.name}:n_nics=N, or a fabric without the others (those of storage are left out by names such as "
        "storage0)"
    )
