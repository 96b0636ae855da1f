"""What people name on a command line, as values: a network, and a placement on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cache import Cache
from commsim.core.errors import InputError, located, shorten
from commsim.core.limits import may_open_files
from commsim.core.machines.hardware import FACTS
from commsim.core.network import HOST, Network
from commsim.core.registry import close_names
from commsim.core.spec import SUFFIXES, derived, is_own_file, read_arguments, split_spec
from commsim.core.units import parse_bandwidth
from commsim.extensions import house
from topologies import TOPOLOGIES, largest, require_buildable

if TYPE_CHECKING:
    from commsim.core.files.fields import TableFields

# Of one host.
MAX_GPUS = 1024

SPEC_OF_TABLE = 'spec = "star:n_hosts=8"'
# Machines on fabrics that were asked for last, of up to 2^18 links each (20 MB).
NETWORKS: Cache[Network] = Cache(8, lambda network: network.n_links <= 2**18)


def load_network(text: str) -> Network:
    """Build what `text` names, or read a .toml, .json or .npz file.

    Parameters
    ----------
    text : str
        What the user wrote: ``name:key=value,...`` of a topology, a preset or a host type (one machine by itself);
        ``MACHINE@FABRIC``, which puts machines on the hosts of a fabric (``machines=N`` of them); or a path, when it
        ends with .toml, .json or .npz, with .yml or .yaml (a network of ASTRA-sim), or with .xml or .txt for one
        machine; or
        ``FILE.py:function:key=value,...``, which is executed if it is an :class:`commsim.OwnFile`.

    Raises
    ------
    InputError
        If a name is unknown, an argument is wrong, or the file does not hold a network.
    """
    if text.partition(":")[0] not in TOPOLOGIES and (found := _of_another_tool(text)) is not None:
        return found
    if Path(text).suffix in SUFFIXES and (_is_there(text) or "@" not in text):
        from commsim.core.files.network_file import read_network  # only for files, as below

        return read_network(text)
    if Path(text).suffix in house().networks and (_is_there(text) or "@" not in text):
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
            return build(**read_arguments(build, raw))
        except InputError:
            _refuse_of_machines(name, raw)
            raise
    from topologies.hosts.load import build_preset, is_machine, is_saved, load_machine, load_saved
    from topologies.presets import PRESETS

    if "@" not in text and is_saved(text):
        return load_saved(text)
    if "@" in text:
        key = _as_registered(text)
        if key is not None:
            return NETWORKS.get(key, lambda: _joined(text))
        return _joined(text)
    name, raw = split_spec(text)
    if is_machine(text):
        _refuse_several(name, raw)
        return load_machine(text)
    if name in PRESETS:
        return build_preset(name, raw)
    if _is_there(text) or "/" in name:
        raise InputError(f"{text}: no file of a network; its own end with {', '.join(SUFFIXES)}, and `commsim topo "
                         "formats` lists those of others")  # fmt: skip
    if name not in TOPOLOGIES and not close_names(name, TOPOLOGIES) and (close := close_names(name, PRESETS)):
        raise InputError(f"unknown topology {name!r}; did you mean {' or '.join(close)}? (commsim topo presets)")
    build = TOPOLOGIES[name].build  # refuses what it does not know
    return build(**read_arguments(build, raw))


def _refuse_several(name: str, raw: Mapping[str, str]) -> None:
    """Refuse a number of machines without what joins them, with the words that give both."""
    if "machines" in raw:
        others = ",".join(f"{key}={value}" for key, value in raw.items() if key != "machines")
        machine = f"{name}:{others}" if others else name
        raise InputError(f"{name} is one machine; several hang on a fabric: {machine}@star:machines={raw['machines']}")


def _of_another_tool(text: str) -> Network | None:
    """Read a network from a file of another tool; None where the text names no such file.

    The suffix does not say what such a file is: .txt may be a machine or a topology of ns-3, .json many things.
    """
    name = text.partition(":")[0]
    path = text if _is_there(text) else name if _is_there(name) else ""
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
    builder = PRESETS[machine].builder if machine in PRESETS else machine
    return (text, largest(), TOPOLOGIES[fabric].build, HOST_TYPES[builder].build) if builder in HOST_TYPES else None


def _is_of_file(word: str) -> bool:
    """Whether a word names a file, which is read anew each time, since it may have changed."""
    suffix = Path(word.strip()).suffix
    return suffix in (*SUFFIXES, ".py") or suffix in house().networks or suffix in house().machines


def _joined(text: str) -> Network:
    """Build ``MACHINE@FABRIC``."""
    from topologies.hosts.load import load_machine, on_fabric
    from topologies.machine_count import fabric_of

    machine, _, fabric = text.partition("@")
    inside = load_machine(machine)
    name, _, rest = fabric.partition(":")
    if name in TOPOLOGIES and TOPOLOGIES[name].metadata["holds_machines"] and "," not in machine:
        raise InputError(f"{name} has machines of its own: {name}:{rest}{',' * bool(rest)}preset={machine}")
    joined = on_fabric(load_network(derived(text, fabric_of(fabric, inside, machine))), inside)
    return dataclasses.replace(joined, name=text)


def _refuse_of_machines(name: str, raw: Mapping[str, str]) -> None:
    """Refuse a parameter that machines have and a topology has not, with the words that give it to the machines."""
    for key in (key for key in raw if key not in (*TOPOLOGIES[name].parameters, "machines")):
        from topologies.hosts import HOST_TYPES

        hosts = [host for host in HOST_TYPES if key in HOST_TYPES[host].parameters]
        if not hosts and key not in FACTS:
            continue
        text = f"{key}={raw[key]}"
        holds = TOPOLOGIES[name].metadata["holds_machines"]
        host = (hosts or ["nvswitch_host"])[0]
        preset = raw.get("preset", "dgx-h100").partition(":")[0]
        how = f"preset={preset}:{text}" if holds else f"{host}:n_gpus=1,{text}@{name}:..."
        raise InputError(f"{name} has no parameter {key!r}; it is one of the machines: {how}")


def _is_there(text: str) -> bool:
    """Whether a text names a file; one that is too long for a name does not, and nothing of a request does."""
    if not may_open_files():
        return False
    try:
        return Path(text).exists()
    except OSError:
        return False


def read_topology(top: TableFields, path: Path) -> Network:
    """Read the table ``[topology]`` of a file.

    Parameters
    ----------
    top : TableFields
        All tables of the file.
    path : Path
        The file, beside which ``file`` is looked for.

    Raises
    ------
    InputError
        Naming the file, the line and the field that is wrong.
    """
    fields = top.table("topology")
    ways = [key for key in ("name", "spec", "file") if key in fields]
    if len(ways) != 1:
        fields.fail(
            None, f"needs one of name, spec and file, as in {SPEC_OF_TABLE}, got {' and '.join(ways) or 'none'}"
        )
    text = fields.text(ways[0])
    if ways[0] == "name":
        fields_text = [f"{key}={_as_text(fields, key)}" for key in fields if key != "name"]
        text = f"{text}:{','.join(fields_text)}" if fields_text else text
    fields.finish()
    if ways[0] == "file":
        from commsim.core.files.network_file import read_network

        return read_network(path.parent / text, has_table=False)
    with located(path):
        return load_network(text)


def _as_text(fields: TableFields, key: str) -> str:
    """Write a parameter of a topology as the command line takes it; neither key nor value may end it."""
    if not key.isidentifier():
        fields.fail(None, f"has no parameter {shorten(repr(key))}: a parameter's name has letters, digits and _")
    value = fields.raw(key)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(part, int) for part in value):
        return "x".join(map(str, value))
    if not isinstance(value, (str, int, float)) or {",", "@"} & {*str(value)}:
        fields.refuse(key, "a number, text without a comma and @, true, false or a list of whole numbers")
    return str(value)


def network_of_table(tree: Any, path: Path) -> Network:
    """Return the network that the table ``[topology]`` of a file names, with a place for each free GPU of ``[hosts]``.

    Ranks of a host with several share its ports (:func:`commsim.core.machines.gpus_of_hosts.with_gpus`), as in
    ``commsim place``.
    """
    from commsim.core.files.fields import TableFields
    from commsim.core.machines.gpus_of_hosts import with_gpus

    top = TableFields(tree, path)
    top.only("topology", "hosts")
    network = read_topology(top, path)
    hosts = top.table("hosts")
    if "hosts" not in top or network.seat_kind != HOST:
        return network
    gpus, busy = read_gpus(hosts, network)
    inside = read_inside(hosts)
    hosts.raw("block_sizes")  # of Slurm's export
    hosts.finish()
    with located(path):
        n = int(gpus.sum() - busy.sum())
        require_buildable(f"{network.name} with GPUs", network.n_nodes + n, network.n_links + 2 * n)
        return with_gpus(network, np.maximum(gpus - busy, 0), inside)


def read_inside(hosts: TableFields) -> float | None:
    """Read the rate between a GPU and its host from the table ``[hosts]``, bytes/s; None where it has none."""
    return None if hosts.raw("inside") is None else parse_bandwidth(hosts.text("inside"), "inside")


def read_gpus(hosts: TableFields, network: Network) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the GPUs of each node of a network from the table ``[hosts]``, and how many are taken, int64[n_nodes].

    ``gpus`` is how many every host has, ``per_host`` a table of those that have another number, and ``busy`` a table of
    GPUs that are taken. Where GPUs are nodes of the network, each is 1, and only ``busy`` can be given.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    gpus = np.zeros(network.n_nodes, np.int64)
    if network.seat_kind == HOST:
        gpus[network.hosts] = hosts.whole("gpus", 0, MAX_GPUS, 0 if "per_host" in hosts else None)
        _fill(gpus, hosts.table("per_host"), network)
    else:
        gpus[network.endpoints] = 1
        for key in ("gpus", "per_host"):
            if key in hosts:
                hosts.fail(key, f"has no effect: the GPUs of {network.name} are nodes, and each is 1")
    busy = np.zeros(network.n_nodes, np.int64)
    _fill(busy, hosts.table("busy"), network)
    return gpus, busy


def _fill(values: NDArray[np.int64], table: TableFields, network: Network) -> None:
    from commsim.core.hostlist import expand_hosts

    hosts = {network.nodes[i]: int(i) for i in network.endpoints}
    for name in table:
        for host in (name,) if name in hosts or "[" not in name else expand_hosts(name):
            if host not in hosts:
                table.fail(name, f"is not a host of {network.name}; the first is {network.nodes[network.endpoints[0]]}")
            values[hosts[host]] = table.whole(name, 0, MAX_GPUS)
