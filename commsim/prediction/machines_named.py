"""What people name with machines, as networks: a machine, several on one switch, machines on a fabric, presets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path

from commsim.core.cache import Cache
from commsim.core.errors import InputError, close_names
from commsim.core.limits import is_there
from commsim.core.machines.hardware import FACTS
from commsim.core.network import Network
from commsim.core.spec import SUFFIXES, derived, read_arguments, split_spec
from commsim.extensions import house
from topologies import TOPOLOGIES, largest

# Machines on fabrics that were asked for last, of up to 2^18 links each (20 MB).
NETWORKS: Cache[Network] = Cache(8, lambda network: network.n_links <= 2**18)
# Function from the text of any network to it, such as :func:`commsim.prediction.inputs.load_network`.
Load = Callable[[str], Network]


def network_of_machines(text: str, load: Load) -> Network:
    """Build what `text` names that is no topology alone: a preset, a machine, or machines on a fabric.

    Parameters
    ----------
    text : str
        What the user wrote, as in :func:`commsim.prediction.inputs.load_network`.
    load : callable
        That function, for the fabric.

    Raises
    ------
    InputError
        If a name is unknown, or an argument is wrong.
    """
    from topologies.hosts.load import build_preset, is_machine, is_saved, load_machine, load_saved
    from topologies.presets import PRESETS, named_so

    if "@" not in text and is_saved(text):
        return load_saved(text)
    if "@" in text:
        key = _as_registered(text)
        if key is not None:
            return NETWORKS.get(key, lambda: _joined(text, load))
        return _joined(text, load)
    name, raw = split_spec(text)
    if is_machine(text):
        several = _several(name, raw)
        return load(derived(text, several)) if several else load_machine(text)
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


def network_of_its_machines(name: str, given: Mapping[str, str], load: Load) -> Network:
    """Build a topology that is given a number of machines, or puts machines on itself.

    Parameters
    ----------
    name : str
        Name of the topology.
    given : mapping of str to str
        Its arguments.
    load : callable
        As for :func:`network_of_machines`.
    """
    from topologies.machine_count import with_count

    entry = TOPOLOGIES[name]
    raw: Mapping[str, str] = with_count(name, dict(given)) if "machines" in given else given
    if entry.metadata["holds_machines"]:
        if joined := _of_preset(name, given):
            return _joined(joined, load)
        raw = _under_machines(name, raw)
    return entry.build(**read_arguments(entry.build, raw))


def _several(name: str, raw: Mapping[str, str]) -> str:
    """Write several of a machine on one switch, which limits none of them; empty where no number of them is given."""
    if "machines" not in raw:
        return ""
    others = ",".join(f"{key}={value}" for key, value in raw.items() if key != "machines")
    machine = f"{name}:{others}" if others else name
    return machine if raw["machines"] == "1" else f"{machine}@star:machines={raw['machines']}"


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


def _joined(text: str, load: Load) -> Network:
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
        joined = on_fabric(load(derived(text, fabric_of(fabric, inside, machine))), inside)
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


def refuse_of_machines(name: str, raw: Mapping[str, str]) -> None:
    """Refuse a parameter that machines have and a topology has not, with the words that give it to the machines."""
    for key in (key for key in raw if key not in (*TOPOLOGIES[name].parameters, "machines")):
        from topologies.hosts import HOST_TYPES

        hosts = [host for host in HOST_TYPES if key in HOST_TYPES[host].parameters]
        if not hosts and key not in FACTS:
            continue
        text = f"{key}={raw[key]}"
        how = f"{(hosts or ['nvswitch_host'])[0]}:n_gpus=1,{text}@{name}:..."
        raise InputError(f"{name} has no parameter {key!r}; machines have it: {how}")
