"""A machine by what people call it: a preset, a host type with its arguments, or a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

from commsim.core.errors import InputError, close_names, meant_or_known
from commsim.core.machines.attach import attach_machines
from commsim.core.machines.fewer import fewer_devices
from commsim.core.machines.hardware import FACTS, read_hardware, write_hardware
from commsim.core.machines.hosts_of_machines import hosts_of_machines
from commsim.core.network import NIC, Network
from commsim.core.registry import Registry
from commsim.core.remark import Remark
from commsim.core.spec import SUFFIXES, full_keys, is_whole, read_arguments, split_spec
from commsim.extensions import house
from topologies import TOPOLOGIES, require_buildable
from topologies.presets import LISTED, PRESETS, named_so

from . import HOST_TYPES

COUNTS = ("n_gpus", "n_nics")  # that a machine has more of than are used


def is_machine(text: str) -> bool:
    """Whether `text` names a machine rather than a whole network."""
    name = text.partition(":")[0].strip()
    if Path(name.removesuffix(".gz")).suffix in house().machines:
        return True
    return PRESETS.builder(name) in HOST_TYPES


def is_saved(text: str) -> bool:
    """Whether `text` is a saved network: ``net.toml``, or with facts of its machines, ``net.toml:gpu=hopper``."""
    return Path(text).suffix in SUFFIXES or Path(text.partition(":")[0]).suffix in SUFFIXES


def load_saved(text: str) -> Network:
    """Read a saved network; facts of its machines, as in ``net.toml:gpu=hopper,net=roce``, replace those of the file.

    Raises
    ------
    InputError
        If the file is wrong, or something else than a fact is given.
    """
    from commsim.core.files.network_file import read_network

    if Path(text).suffix in SUFFIXES:
        return read_network(text)
    name, raw = split_spec(text)
    rest, words = _split_hardware(raw)
    for key in rest:
        known = ", ".join(key for key in FACTS if key != "guessed")
        raise InputError(f"{name} has no parameter {key!r}, since its links have rates; known: {known}")
    network = read_network(name)
    facts = read_hardware(network.hardware) | read_hardware(words)
    if "gpu" in raw:
        facts.pop("guessed", None)
    return dataclasses.replace(network, name=text, hardware=write_hardware(facts))


def load_machine(text: str) -> Network:
    """Build ``name:key=value,...`` of a preset or a host type, or read a file: .xml, .txt (or packed), or a saved one.

    Besides the builder's arguments, presets, host types and files take the facts of
    :mod:`commsim.core.machines.hardware`: ``gpu=hopper``.

    Raises
    ------
    InputError
        If the name is unknown, an argument is wrong, or the file does not hold one machine.
    """
    if is_saved(text):
        return load_saved(text)
    name, raw = split_spec(text)
    if Path(name.removesuffix(".gz")).suffix in house().machines:
        gpu = {key: raw[key] for key in ("gpu",) if key in raw}  # decides rates too, so that it is the reader's
        raw, words = _split_hardware({key: value for key, value in raw.items() if key not in gpu})
        raw, used = _split_counts(raw, name)
        machine = (
            fewer_devices(_read_machine_file(name, raw | gpu), **used) if used else _read_machine_file(name, raw | gpu)
        )
        facts = read_hardware(machine.hardware) | read_hardware(words)
        return dataclasses.replace(machine, name=text, hardware=write_hardware(facts))
    if name in PRESETS:
        if not is_machine(name):
            raise InputError(f"preset {name} is a whole network, not a machine")
        return build_preset(name, raw)
    if name not in HOST_TYPES:
        hosts = [preset for preset in PRESETS if is_machine(preset)]
        files = f"a file ending with {', '.join(house().machines)}"
        close = close_names(name, (*hosts, *HOST_TYPES)) or named_so(name)
        known = f"{meant_or_known(close, hosts, LISTED)}, {', '.join(HOST_TYPES)}, or {files}"
        raise InputError(f"unknown machine {name!r}; {known}")
    raw, hardware = _split_hardware(raw)
    build = HOST_TYPES[name].build
    machine = build(**read_arguments(build, raw))
    return dataclasses.replace(machine, name=text, hardware=hardware) if hardware else machine


def _split_counts(raw: Mapping[str, str], name: str) -> tuple[dict[str, str], dict[str, int]]:
    """Split how many GPUs and NICs of a whole machine are used from the other arguments."""
    used = {
        key: read_arguments(fewer_devices, {key: raw[key]}, names=("machine",), name=name)[key]
        for key in COUNTS
        if key in raw
    }
    return {key: value for key, value in raw.items() if key not in COUNTS}, used


def _asks_for_fewer(arguments: Mapping[str, str], parameters: Mapping[str, str]) -> bool:
    """Whether fewer GPUs of a preset's machine are used, or NICs that its PCIe tree cannot be dealt.

    With another PCIe tree it is another machine.
    """
    n_gpus, n_nics = (parameters.get(key, "") for key in COUNTS)
    n_slots = int(arguments.get("n_pcie_switches", "0")) or int(arguments.get("n_cpus", "0"))
    is_fewer = is_whole(n_gpus) and int(n_gpus) < int(arguments.get("n_gpus", "0"))
    if not is_fewer and is_whole(n_nics) and 0 < int(n_nics) < int(arguments.get("n_nics", "0")):
        is_fewer = bool(n_slots % int(n_nics) and int(n_nics) % n_slots)
    return is_fewer and not {"n_pcie_switches", "n_cpus"} & parameters.keys()


def _require_divisible(name: str, arguments: Mapping[str, str], parameters: Mapping[str, str]) -> None:
    """Refuse more GPUs or NICs than a preset's machine has, which its own PCIe tree cannot be dealt.

    Raises
    ------
    InputError
        Names the count, and the largest that the machine has.
    """
    if {"n_pcie_switches", "n_cpus"} & parameters.keys():
        return
    n_slots = int(arguments.get("n_pcie_switches", "0")) or int(arguments.get("n_cpus", "0"))
    for key in COUNTS:
        count, most = parameters.get(key, ""), int(arguments.get(key, "0"))
        if n_slots and most and is_whole(count) and int(count) > most and int(count) % n_slots:
            devices = key.removeprefix("n_").replace("gpus", "GPUs").replace("nics", "NICs")
            raise InputError(
                f"{name} has {most} {devices}: {key} is at most {most}, got {count}; a larger one has a multiple of "
                f"{n_slots}, or its own n_pcie_switches and n_cpus"
            )


def on_fabric(fabric: Network, machine: Network) -> Network:
    """Put one machine on every few hosts of a fabric: on those that the fabric, or their names, say to be of one.

    Raises
    ------
    InputError
        As :func:`attach_machines` and :func:`hosts_of_machines` do, and before it if the network would be too large.
    """
    n = len(fabric.hosts) // max(1, int((machine.kind == NIC).sum()))
    require_buildable(fabric.name, fabric.n_nodes + n * machine.n_nodes, fabric.n_links + n * machine.n_links)
    found = hosts_of_machines(fabric, machine)
    joined = attach_machines(found.fabric, machine, found.ports, found.labels)
    return dataclasses.replace(joined, told=_first_faults((*machine.told, *found.told, *joined.told)))


def _first_faults(remarks: tuple[Remark, ...]) -> tuple[Remark, ...]:
    """Return what is said with what is down or slow before the rest."""
    return tuple(sorted(remarks, key=lambda one: "fault" not in one.code))


def _split_hardware(raw: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Split ``gpu=hopper`` and the like, which every machine takes, from the builder's own arguments."""
    facts = {key: value for key, value in raw.items() if key in FACTS}
    text = ",".join(f"{key}={value}" for key, value in facts.items())
    return {key: value for key, value in raw.items() if key not in FACTS}, write_hardware(read_hardware(text))


def build_preset(name: str, raw: Mapping[str, str] | None = None) -> Network:
    """Build a preset; `raw` replaces arguments, and ``rates=spec`` selects the nominal rates.

    Raises
    ------
    InputError
        If the preset is unknown, or an argument is unknown or wrong.
    """
    preset, parameters = PRESETS[name], dict(raw or {})
    rates, host = parameters.pop("rates", "effective"), parameters.pop("host", preset.host) if preset.host else None
    if rates not in ("effective", "spec"):
        raise InputError(f"preset {name}: rates must be effective or spec, got {rates!r}")
    registry: Registry[Network] = HOST_TYPES if preset.builder in HOST_TYPES else TOPOLOGIES
    build = registry[preset.builder].build
    hardware = ""
    parameters = full_keys(parameters, registry[preset.builder].parameters)
    if preset.builder in HOST_TYPES:
        parameters, hardware = _split_hardware({**preset.hardware, **parameters})
    used: dict[str, int] = {}
    if _asks_for_fewer(preset.arguments, parameters) and preset.builder in HOST_TYPES:
        parameters, used = _split_counts(parameters, name)
    _require_divisible(name, preset.arguments, parameters)
    values = {**preset.arguments, **{rate.parameter: rate.used(rates) for rate in preset.rates}, **parameters}
    network = build(**read_arguments(build, values, name=name))
    if used:
        network = fewer_devices(dataclasses.replace(network, name=name), **used)
    if host is not None:
        network = on_fabric(network, load_machine(host))
    written = ",".join(f"{key}={value}" for key, value in (raw or {}).items())
    # A preset of a whole network has machines in it, whose hardware the network then has.
    return dataclasses.replace(
        network, name=f"{name}:{written}" if written else name, hardware=hardware or network.hardware
    )


def _read_machine_file(path: str, raw: dict[str, str]) -> Network:
    read: Callable[..., Network] = house().machines[Path(path.removesuffix(".gz")).suffix]
    more = ", ".join(key for key in FACTS if key not in ("gpu", "guessed"))
    return read(**read_arguments(read, raw, names=("path",), name=path, more=more), path=path)
