"""``machines=N`` in the name of a fabric: how many machines are on it, whatever the fabric itself counts.

A fabric counts hosts, and each NIC of a machine takes the place of one: ``dgx-h100@star:n_hosts=16`` would be two
machines. ``rail_optimized`` counts machines already. So the key ``machines`` means the same everywhere, and hosts of a
fabric under machines with several NICs cannot be counted by ``n_hosts``, which readers take for machines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.machines.hardware import FACTS
from commsim.core.network import NIC, Network
from commsim.core.spec import full_keys, is_whole, read_arguments, split_spec

from . import TOPOLOGIES
from .hosts import HOST_TYPES
from .presets import PRESETS
from .sold_rates import as_reached
from .switch_ports import USUAL_PORTS
from .uplinks import COUNTS_OF_CABLES

KEY = "machines"
PORTS, PER_ALL = "switch_ports", "n_hosts"
COUNTS_ABOVE = {"n_spines", "uplinks_per_spine"}


def fabric_of(text: str, machine: Network, called: str) -> str:
    """Write a fabric's ``name:key=value,...`` for the machines that will be on it.

    Parameters
    ----------
    text : str
        What the user wrote after ``@``; of a file, and of a function of the user's own, nothing changes.
    machine : Network
        Machines on it.
    called : str
        The machine, as the user wrote it.

    Returns
    -------
    str
        With the fabric's own count in place of ``machines``, and with the rate of the machine's NICs where the fabric
        takes a bandwidth and none is given.

    Raises
    ------
    InputError
        If ``n_hosts`` is ambiguous, a parameter is unknown, or so many machines do not fit the fabric.
    """
    name, raw = split_spec(text)
    nics = np.flatnonzero(machine.kind == NIC)
    if name not in TOPOLOGIES or not nics.size:
        return text
    parameters = TOPOLOGIES[name].parameters
    if "n_hosts" in raw and len(nics) > 1 and not holds_machines(name):
        raise InputError(_two_spellings(f"{called}@{name}", raw["n_hosts"], len(nics)))
    if parameters and (unknown := next((key for key in raw if key != KEY and key not in parameters), "")):
        hint = did_you_mean(alike(unknown, (KEY, *parameters)))
        known = ", ".join((KEY, *parameters))
        raise InputError(f"{name} has no parameter {unknown!r}; {hint}known: {known}")
    raw = as_reached(raw, called)
    if "bandwidth" in parameters and "bandwidth" not in raw and not holds_machines(name):
        # The slowest NIC, as NCCL plans with it; a fabric of 100 Gb/s under NICs of 400 would surprise.
        raw = {**raw, "bandwidth": f"{float(machine.bandwidth[np.isin(machine.src, nics)].min()):.17g}B/s"}
    return _spec(name, with_count(name, raw, len(nics)))


def check_size(fabric: str, called: str) -> None:
    """Refuse a fabric of machines that says nothing of its size and has none: it would ask for hosts, not for machines.

    Parameters
    ----------
    fabric : str
        What stands after ``@``, with full names of counts; of files and own functions all is taken.
    called : str
        The machine, as the user wrote it.

    Raises
    ------
    InputError
        If so.
    """
    name, raw = split_spec(fabric)
    if name not in TOPOLOGIES or raw.keys() & {KEY, PER_ALL, *TOPOLOGIES[name].metadata["sized_by"]}:
        return
    try:
        _built(name, raw)
    except InputError as error:
        if not str(error).startswith(f"{name} needs "):
            return  # :func:`fabric_of` says what else is wrong, with the parameters of machines
        such = _spec(f"{called}@{name}", {**raw, KEY: "2"})
        raise InputError(f"{called}@{name} needs {KEY}, such as {such}") from None


def own_of_machine(machine: str, fabric: str) -> tuple[str, str]:
    """Give a machine the parameters that stand behind its fabric and that only machines have: ``@star:nic=200Gbps``.

    Parameters
    ----------
    machine, fabric : str
        What the user wrote before and after ``@``.

    Returns
    -------
    str, str
        Both, with full names of counts; unchanged where the fabric is a file or of the user's own.

    Raises
    ------
    InputError
        If a parameter is given to both.
    """
    name, raw = split_spec(fabric)
    host, own = split_spec(machine)
    host = PRESETS.builder(host)
    if name not in TOPOLOGIES or host not in HOST_TYPES:
        return machine, fabric
    inside = (*HOST_TYPES[host].parameters, *FACTS, "rates")
    own, raw = full_keys(own, inside), full_keys(full_keys(raw, TOPOLOGIES[name].parameters), inside)
    moved = {key: value for key, value in raw.items() if key not in TOPOLOGIES[name].parameters and key in inside}
    if twice := [key for key in moved if key in own]:
        raise InputError(f"{machine}@{name} has {twice[0]} twice: {own[twice[0]]} and {moved[twice[0]]}")
    if not moved and own == split_spec(machine)[1] and raw == split_spec(fabric)[1]:
        return machine, fabric
    host = machine.partition(":")[0].strip()
    return _spec(host, own | moved), _spec(name, {key: value for key, value in raw.items() if key not in moved})


def _spec(name: str, raw: Mapping[str, str]) -> str:
    return f"{name}:{','.join(f'{key}={value}' for key, value in raw.items())}" if raw else name


def holds_machines(name: str) -> bool:
    """Whether a topology puts machines on itself, and counts them as its hosts."""
    return bool(TOPOLOGIES[name].metadata["holds_machines"])


def with_count(name: str, raw: Mapping[str, str], n_nics: int = 1) -> dict[str, str]:
    """Replace ``machines`` by what the topology counts by.

    Parameters
    ----------
    name : str
        Name of a registered topology.
    raw : mapping of str to str
        Its arguments, as they were written.
    n_nics : int
        Hosts of the fabric that a machine takes.

    Returns
    -------
    dict of str to str
        The same without ``machines``.

    Raises
    ------
    InputError
        If it is no positive whole number, contradicts the other arguments, or no value of the topology's own count
        gives so many.
    """
    raw = full_keys(raw, TOPOLOGIES[name].parameters)
    if KEY not in raw:
        return raw
    text = raw.pop(KEY)
    if not (is_whole(text) and int(text)):
        raise InputError(f"{name}: {KEY} must be a whole number of at least 1, got {text!r}")
    wanted = int(text) * (1 if holds_machines(name) else n_nics)
    what = f"{name}: {KEY}={text}" + (f" are {wanted} hosts of the fabric" if wanted != int(text) else "")
    sized_by = TOPOLOGIES[name].metadata["sized_by"]
    if PER_ALL in TOPOLOGIES[name].parameters and len(sized_by) == 2:
        if not raw.keys() & {*sized_by, *COUNTS_ABOVE}:
            raw.setdefault(PORTS, str(USUAL_PORTS))
        return dict(_on_leaves(what, name, {**raw, PER_ALL: str(wanted)}, sized_by, n_nics))
    free = next((key for key in sized_by if key not in raw), None)
    count = _counter(name, raw)
    if free is None:
        got = count("", 0)
        if got != wanted:
            raise InputError(f"{what}, but {', '.join(f'{key}={raw[key]}' for key in sized_by if key in raw)} "
                             f"has {got}; give one of them")  # fmt: skip
        return raw
    if free == PER_ALL:  # by far the usual case, and the network need not be built for it
        return {**raw, free: str(wanted)}
    if free == "dims":
        raise InputError(f"{what}; {name} needs dims with that product")
    return {**raw, free: str(_value(what, free, wanted, lambda value: count(free, value)))}


def _on_leaves(what: str, name: str, raw: Mapping[str, str], keys: Sequence[str], n_nics: int) -> Mapping[str, str]:
    """Return the arguments with room for whole machines on each leaf, where the hosts of a leaf are not given.

    Raises
    ------
    InputError
        If no leaf has the ratio or the ports, or the machines leave a leaf empty.
    """
    per_leaf, count = keys
    n_machines, leaves = int(raw[PER_ALL]) // n_nics, raw.get(count, "")
    if per_leaf in raw or (leaves and not is_whole(leaves)) or not (leaves or PORTS in raw):
        return raw  # building it says what is wrong or missing
    try:
        if not leaves:
            return _on_fewest(name, raw, keys, n_machines, n_nics)
        if int(leaves) > n_machines:
            return raw  # a machine then has NICs on several leaves
        return _on_so_many(name, raw, per_leaf, n_machines, int(leaves), n_nics)
    except InputError as error:
        raise InputError(f"{what}; {str(error).removeprefix(f'{name}: ')}") from None


def _on_so_many(
    name: str, raw: Mapping[str, str], per_leaf: str, n_machines: int, leaves: int, n_nics: int
) -> Mapping[str, str]:
    """Return the arguments with the fewest whole machines of a leaf that have the ratio and leave no leaf empty."""
    fewest = -(-n_machines // max(1, leaves))
    for each in range(fewest + 1, n_machines + 1):
        with contextlib.suppress(InputError):
            _built(name, found := {**raw, per_leaf: str((each - 1) * n_nics)})
            return found
        if -(-n_machines // each) < leaves:
            break
    _built(name, found := {**raw, per_leaf: str(fewest * n_nics)})  # refuses it, unless one leaf has all
    return found


def _on_fewest(
    name: str, raw: Mapping[str, str], keys: Sequence[str], n_machines: int, n_nics: int
) -> Mapping[str, str]:
    """Return the arguments with the fewest leaves; of their sizes the fewest switches, and then leaves most alike.

    Machines are divided among leaves where none has ports for one.
    """
    per_leaf, count = keys
    one = {key: value for key, value in raw.items() if key != PER_ALL} | {count: "1"}
    room = len(_built(name, one).endpoints) // n_nics
    best: tuple[tuple[int, int], Mapping[str, str]] | None = None
    for each in range(min(room, n_machines), 0, -1):
        needed, found = -(-n_machines // each), {**raw, per_leaf: str(each * n_nics)}
        if best and needed > best[0][0]:
            break
        with contextlib.suppress(InputError):  # so many hosts cannot have the ratio
            order = needed, _built(name, found).n_nodes
            best = (order, found) if best is None or order <= best[0] else best
    if best is None:
        _built(name, raw)
    return best[1] if best else raw


def _built(name: str, raw: Mapping[str, str]) -> Network:
    build = TOPOLOGIES[name].build
    return build(**read_arguments(build, raw))


def _counter(name: str, raw: Mapping[str, str]) -> Callable[[str, int], int]:
    """Return what counts the hosts of the topology with one more argument."""
    build = TOPOLOGIES[name].build
    dropped = (*COUNTS_OF_CABLES, PORTS)  # not all counts can be laid
    raw = {key: value for key, value in raw.items() if key not in dropped}

    def count(key: str, value: int) -> int:
        return len(build(**read_arguments(build, {**raw, key: str(value)} if key else raw)).endpoints)

    return count


def _value(what: str, key: str, wanted: int, count: Callable[[int], int]) -> int:
    """Find the value at which the count, which grows with it, is as wanted: doubling, then halving the interval."""
    step = 1
    try:
        low = count(1)
    except InputError:  # such as an odd number of ports: then even ones are tried, and other reasons are reported
        step = 2
        low = count(2)
    if low > wanted:
        raise InputError(f"{what}, but {key}={step} has {low} already")
    a, b = 1, 1
    while (high := count(b * step)) < wanted:
        a, b = b, min(2 * b, -(-b * wanted // high))  # of a count in proportion, the second guess is right
    while b - a > 1:
        middle = (a + b) // 2
        if count(middle * step) < wanted:
            a = middle
        else:
            b = middle
    values = [(value * step, count(value * step)) for value in (a, b)]
    for value, got in values:
        if got == wanted:
            return value
    near = " and ".join(f"{key}={value} has {got}" for value, got in values)
    raise InputError(f"{what}, but {near}")


def _two_spellings(called: str, text: str, n_nics: int) -> str:
    """Return the hint that ``n_hosts`` may mean either, and how each is written."""
    head = f"{called}: n_hosts={text} counts the ports of the fabric, and each machine takes {n_nics} of them"
    if not is_whole(text) or int(text) % n_nics:
        return f"{head}; {KEY}=N counts machines, such as {KEY}=2 for {2 * n_nics} ports"
    fewer = int(text) // n_nics
    machines = "1 machine" if fewer == 1 else f"{fewer} machines"
    return f"{head}: write {KEY}={fewer} for {machines} on these ports, or {KEY}={text} for {text} machines"
