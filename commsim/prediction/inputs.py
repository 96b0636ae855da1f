"""What people name on a command line, as values: a network, and a placement on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from pathlib import Path

from commsim.core.cache import Cache
from commsim.core.errors import InputError, close_names
from commsim.core.limits import is_there
from commsim.core.machines.hardware import FACTS
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement, is_strategy, place
from commsim.core.spec import SUFFIXES, derived, is_own_file, read_arguments, split_spec
from commsim.core.units import count_text
from commsim.extensions import house
from topologies import TOPOLOGIES, largest

# Machines on fabrics that were asked for last, of up to 2^18 links each (20 MB).
NETWORKS: Cache[Network] = Cache(8, lambda network: network.n_links <= 2**18)


def load_network(text: str) -> Network:
    """Build what `text` names, or read a .toml, .json or .npz file.

    Parameters
    ----------
    text : str
        What the user wrote: ``name:key=value,...`` of a topology, a preset or a host type (one machine by itself, or
        ``machines=N`` of them on one switch);
        ``MACHINE@FABRIC``, which puts machines on the hosts of a fabric (``machines=N`` of them); or a path, when it
        ends with .toml, .json or .npz, with .yml or .yaml (a network of ASTRA-sim), or with .xml or .txt for one
        machine; or
        ``FILE.py:function:key=value,...``, which is executed if it is an :class:`commsim.OwnFile`.

    Raises
    ------
    InputError
        If a name is unknown, an argument is wrong, or the file does not hold a network.
    """
    if text.partition(":")[0] not in TOPOLOGIES and (found := network_of_another_tool(text)) is not None:
        return found
    if Path(text).suffix in SUFFIXES and (is_there(text) or "@" not in text):
        from commsim.core.files.network_file import read_network  # only for files, as below

        return read_network(text)
    if Path(text).suffix in house().networks and (is_there(text) or "@" not in text):
        network: Network = house().networks[Path(text).suffix](text)
        return network
    if is_own_file(text):
        from commsim.core.files.own_files import own_entry

        own, given = own_entry(TOPOLOGIES, text)
        return own.build(**read_arguments(own.build, given))
    name = text.partition(":")[0].strip()
    if "@" not in text and name in TOPOLOGIES:
        build, raw = TOPOLOGIES[name].build, split_spec(text)[1]
        try:
            if "machines" in raw:
                from topologies.machine_count import with_count

                raw = with_count(name, raw)
            if TOPOLOGIES[name].metadata["holds_machines"]:
                if joined := _of_preset(name, split_spec(text)[1]):
                    return _joined(joined)
                raw = _under_machines(name, raw)
            return build(**read_arguments(build, raw))
        except InputError:
            _refuse_of_machines(name, raw)
            raise
    from topologies.hosts.load import build_preset, is_machine, is_saved, load_machine, load_saved
    from topologies.presets import PRESETS, named_so

    if "@" not in text and is_saved(text):
        return load_saved(text)
    if "@" in text:
        key = _as_registered(text)
        if key is not None:
            return NETWORKS.get(key, lambda: _joined(text))
        return _joined(text)
    name, raw = split_spec(text)
    if is_machine(text):
        several = _several(name, raw)
        return load_network(derived(text, several)) if several else load_machine(text)
    if name in PRESETS:
        return build_preset(name, raw)
    if is_there(text) or "/" in name:
        raise InputError(f"{text}: not a file of a network; commsim's end with {', '.join(SUFFIXES)}, and `commsim "
                         "topo formats` lists those of other tools")  # fmt: skip
    close = close_names(name, PRESETS) or named_so(name)
    if name not in TOPOLOGIES and not close_names(name, TOPOLOGIES) and close:
        raise TOPOLOGIES.unknown(name, close, "commsim topo presets")
    build = TOPOLOGIES[name].build  # refuses what it does not know
    return build(**read_arguments(build, raw))


def _several(name: str, raw: Mapping[str, str]) -> str:
    """Write several of a machine on one switch, which limits none of them; empty where no number of them is given."""
    if "machines" not in raw:
        return ""
    others = ",".join(f"{key}={value}" for key, value in raw.items() if key != "machines")
    machine = f"{name}:{others}" if others else name
    return machine if raw["machines"] == "1" else f"{machine}@star:machines={raw['machines']}"


def network_of_another_tool(text: str) -> Network | None:
    """Read a network from a file of another tool; None where the text names no such file.

    The suffix does not say what such a file is: .txt may be a machine or a topology of ns-3, .json many things.
    """
    name = text.partition(":")[0]
    path = text if is_there(text) else name if is_there(name) else ""
    if not path or Path(path).suffix in (".npz", ".toml", ".py"):
        return None
    read = house().services.get("network of a file")
    found: Network | None = None if read is None else read(text)
    return found


def _as_registered(text: str) -> Hashable:
    """Return what decides the network of ``MACHINE@FABRIC`` where both are registered; None where one is a file."""
    from topologies.hosts import HOST_TYPES
    from topologies.presets import PRESETS

    words = [word for part in text.split("@") for word in part.replace("=", ":").replace(",", ":").split(":")]
    machine, fabric = (part.partition(":")[0].strip() for part in text.partition("@")[::2])
    if fabric not in TOPOLOGIES or "/" in text or any(map(_is_of_file, words)):
        return None
    builder = PRESETS.builder(machine)
    return (text, largest(), TOPOLOGIES[fabric].build, HOST_TYPES[builder].build) if builder in HOST_TYPES else None


def _is_of_file(word: str) -> bool:
    """Whether a word names a file, which is read anew each time, since it may have changed."""
    suffix = Path(word.strip().removesuffix(".gz")).suffix
    return suffix in (*SUFFIXES, ".py") or suffix in house().networks or suffix in house().machines


def _joined(text: str) -> Network:
    """Build ``MACHINE@FABRIC``."""
    from topologies.hosts.load import load_machine, on_fabric
    from topologies.machine_count import check_size, fabric_of, own_of_machine, with_count

    machine, fabric = own_of_machine(*text.partition("@")[::2])
    inside = load_machine(machine)
    check_size(fabric, machine)
    name = fabric.partition(":")[0].strip()
    if name in TOPOLOGIES and TOPOLOGIES[name].metadata["holds_machines"]:
        build, raw = TOPOLOGIES[name].build, split_spec(fabric)[1]
        if "preset" in raw:
            raise InputError(f"{text} names machines twice: {machine} and {raw['preset']}")
        raw = _under_machines(name, with_count(name, raw), machine)
        joined = build(**read_arguments(build, raw, ("preset",)), preset=machine)
    else:
        joined = on_fabric(load_network(derived(text, fabric_of(fabric, inside, machine))), inside)
    return dataclasses.replace(joined, name=derived(text, f"{machine}@{fabric}"))


def _under_machines(name: str, raw: Mapping[str, str], machine: str | None = None) -> dict[str, str]:
    """Return the arguments of a topology that puts machines on itself with the rates that messages reach on these."""
    from topologies.sold_rates import as_reached

    default = TOPOLOGIES[name].parameters["preset"].default
    return as_reached(raw, machine or raw.get("preset", default))


def _of_preset(name: str, raw: Mapping[str, str]) -> str:
    """Write ``MACHINE@FABRIC`` for a fabric of machines that is given parameters of these; empty where it is not."""
    from topologies.machine_count import own_of_machine

    machine = raw.get("preset", str(TOPOLOGIES[name].parameters["preset"].default))
    fabric = f"{name}:{','.join(f'{key}={value}' for key, value in raw.items() if key != 'preset')}"
    given, rest = own_of_machine(machine, fabric)
    return "" if given == machine else f"{given}@{rest}"


def _refuse_of_machines(name: str, raw: Mapping[str, str]) -> None:
    """Refuse a parameter that machines have and a topology has not, with the words that give it to the machines."""
    for key in (key for key in raw if key not in (*TOPOLOGIES[name].parameters, "machines")):
        from topologies.hosts import HOST_TYPES

        hosts = [host for host in HOST_TYPES if key in HOST_TYPES[host].parameters]
        if not hosts and key not in FACTS:
            continue
        text = f"{key}={raw[key]}"
        how = f"{(hosts or ['nvswitch_host'])[0]}:n_gpus=1,{text}@{name}:..."
        raise InputError(f"{name} has no parameter {key!r}; machines have it: {how}")


def load_placement(text: str, network: Network, n_participants: int, seed: int = 0) -> Placement:
    """Place by a named strategy, as a .toml, .json or .npz file says, or on the machines of a list or host file.

    Parameters
    ----------
    text : str
        A strategy, or a path when it ends with one of the three suffixes or has JSON; ``FILE:JOB`` is a job of the JSON
        of ``commsim place``; else what :func:`commsim.prediction.node_lists.ranks_named` reads.
    network : Network
        Network to place on.
    n_participants : int
        How many there are: ranks, and in a file helpers too.
    seed : int
        Seed of the random strategy.

    Raises
    ------
    InputError
        If the strategy is unknown, the network has too few hosts, or the file does not place `n_participants`.
    """
    if is_strategy(text):
        return place(network, n_participants, text, seed)
    from commsim.prediction.node_lists import placement_file, ranks_named

    named = ranks_named(text, network)
    if named is None:
        from commsim.core.files.store import read_placement

        path, job = placement_file(text) or (text, None)
        placement = read_placement(path, network, job)
    else:
        placement = Placement(named)
    n = len(placement.nodes)
    if n != n_participants:
        fewer = f": --ranks {n} takes those of the file" if n < n_participants else ""
        raise InputError(f"{text}: places {n} participants, but there are {n_participants}{fewer}")
    return placement


def placement_of_ranks(
    network: Network, n_ranks: int | None, placement: str | Placement | None, seed: int = 0
) -> Placement:
    """Return where the ranks of an operation without servers are.

    Parameters
    ----------
    network : Network
        Network to place on.
    n_ranks : int, optional
        Number of ranks. Default: all that the placement or the network has.
    placement : str or Placement, optional
        Strategy, file or placement. Default: ``packed``.
    seed : int
        Seed of the random strategy.

    Raises
    ------
    InputError
        If there are too few places, or the placement is unknown or does not fit.
    """
    if isinstance(placement, Placement):
        if n_ranks is not None and n_ranks != len(placement.nodes):
            raise InputError(f"the placement has {count_text(len(placement.nodes), 'rank')}, got n_ranks={n_ranks}")
        return placement
    most = len(network.endpoints)
    p = most if n_ranks is None else n_ranks
    if n_ranks is None and placement is not None and not is_strategy(placement):
        from commsim.prediction.node_lists import ranks_named

        p = len(ranks_named(placement, network) or range(p))
    if not 1 <= p <= most:
        raise InputError(f"ranks must be 1..{most}, since {network.name} has {count_text(most, 'host')}; got {p}")
    return load_placement(placement or PACKED, network, p, seed)
