"""Where ranks are, as a list of machines: ``m[0-7,16-23]``, ``m0,m16x4``, or the host file of a job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from commsim.core.errors import InputError, close_names, did_you_mean
from commsim.core.files.opening import read_regular
from commsim.core.files.whole_files import read_text
from commsim.core.limits import is_there, may_open_files
from commsim.core.names.hostlist import expand_hosts, spelled_out, split_hosts
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network import Network
from commsim.core.placement import STRATEGIES, is_strategy
from commsim.core.spec import SUFFIXES
from commsim.core.units import count_text, write_bandwidth
from topologies import TOPOLOGIES

_COUNTED = re.compile(r"(.+?)(?:x|:|\s+slots\s*=\s*)([1-9]\d{0,4})", re.ASCII)


def ranks_named(text: str, network: Network) -> list[int] | None:
    """Return the node of each rank that a list of machines or nodes gives; None where `text` is something else.

    A machine stands for all of its GPUs, in order; ``m0x4``, and in a file ``m0 slots=4`` or ``m0:4``, for four of
    them. Where a name comes several times, each time is one GPU, as in the file that ``SLURM_HOSTFILE`` names.

    Parameters
    ----------
    text : str
        Names of machines, hosts or GPUs, separated by commas, with ranges in brackets or as in ``m0-7``; or the path of
        a text file with one on each line.
    network : Network
        Network with the nodes.

    Raises
    ------
    InputError
        If the list names what is not there, a node twice, or more GPUs of a machine than it has.
    """
    if is_strategy(text) or ".json:" in text or Path(text).suffix in SUFFIXES:
        return None
    places = _places(network)
    lines = [("placement", word.strip()) for word in split_hosts(text)]
    if not any(name in places for _, word in lines for name in _names(word, places)[0]):
        if placement_file(text):
            return None
        lines = _lines_of(text, network)
    named = [(where, *_names(word, places)) for where, word in lines]
    many = [name for _, names, _ in named for name in names]
    is_rank_by_rank = len(set(many)) < len(many) and all(count is None for _, _, count in named)
    nodes: list[int] = []
    taken: set[int] = set()
    for where, names, count in named:
        for name in names:
            if name not in places:
                raise InputError(f"{where}: {network.name} has no {name!r}; {_known(network)}")
            free = [node for node in places[name] if node not in taken]
            wanted = 1 if is_rank_by_rank else len(places[name]) if count is None else count
            if wanted > len(free):
                n, before = len(places[name]), len(places[name]) - len(free)
                told = f"{where}: {name} takes {count_text(n, 'rank')}, got {before} and then {wanted} more"
                raise InputError(told + _of_sockets(network, places[name][0], sum(one == name for one in many)))
            nodes += free[:wanted]
            taken.update(free[:wanted])
    return nodes


def placement_file(text: str) -> tuple[str, str | None] | None:
    """Return the file of a placement and the job of it that ``FILE`` or ``FILE:JOB`` names; None for anything else.

    It is one by its suffix, or where it begins as a table of JSON does: ``commsim place --json FILE`` takes any name.
    """
    path, colon, job = text.rpartition(":")
    if Path(text).suffix in SUFFIXES and not is_there(path):
        return text, None
    for file, of in ((text, None), (path, job if colon else None)):
        if is_there(file) and Path(file).is_file() and read_regular(file, 64, whole=False).lstrip().startswith(b"{"):
            return file, of
    return (path, job) if Path(path).suffix == ".json" else None


def _of_sockets(network: Network, host: int, n_ranks: int) -> str:
    """Return, after a semicolon, which network has hosts that take several ranks, where a plain host is given some."""
    topology, _, rest = network.name.partition(":")
    if network.machine[host] >= 0 or topology not in TOPOLOGIES or n_ranks < 2:
        return ""
    nic = write_bandwidth(float(network.bandwidth[network.src == host].max(initial=0.0)))
    fabric = ",".join(part for part in rest.split(",") if part.partition("=")[0] not in ("n_hosts", "bandwidth"))
    n_hosts, beside = len(network.endpoints), f",{fabric}" * bool(fabric)
    return (
        f"; cpu_host:n_cpus={n_ranks},n_nics=1,nic={nic}@{topology}:machines={n_hosts}{beside} has hosts "
        f"m0 to m{n_hosts - 1} of {n_ranks} ranks, joined by their sockets' links (inter_cpu=)"
    )


def _names(word: str, places: Mapping[str, Sequence[int]]) -> tuple[list[str], int | None]:
    """Return the names of a word, and how many GPUs of each are meant; None for all."""
    if word in places:
        return [word], None
    match = _COUNTED.fullmatch(word)
    return spelled_out([match[1]] if match else [word]), int(match[2]) if match else None


def _lines_of(text: str, network: Network) -> list[tuple[str, str]]:
    """Return the words of a host file, each with its line.

    Raises
    ------
    InputError
        If `text` names no file, or an empty one.
    """
    is_path = is_there(text) or (may_open_files() and ("/" in text or bool(Path(text).suffix)))
    if not is_path:
        if "[" in text:
            expand_hosts(text)  # refuses brackets that do not close
        hint = did_you_mean(close_names(text, STRATEGIES))
        files = f"a file that ends with {', '.join(SUFFIXES)} or has a host a line"
        known = f"{', '.join(STRATEGIES)}, a list of names ({_known(network)}), or {files}"
        raise InputError(f"unknown placement {text!r}; {hint}known: {known}")
    content = [line.partition("#")[0].strip() for line in read_text(text).splitlines()]
    lines = [(f"{text}, line {i}", line) for i, line in enumerate(content, 1) if line]
    if not lines:
        raise InputError(f"{text}: is empty; it must name machines")
    return lines


def _places(network: Network) -> dict[str, list[int]]:
    """Nodes that take ranks, by their own names and by those of their machines."""
    hosts = host_names(network)
    places: dict[str, list[int]] = {}
    for node in network.endpoints.tolist():
        for name in {network.nodes[node], hosts[node]}:
            places.setdefault(name, []).append(node)
    return places


def _known(network: Network) -> str:
    """Say what machines or hosts are called."""
    hosts = [*dict.fromkeys(host_names(network)[node] for node in network.endpoints.tolist())]
    what = "machines" if (network.machine[network.endpoints] >= 0).any() else "hosts"
    return f"{what} are {hosts[0]} to {hosts[-1]}" if len(hosts) > 1 else f"the only one is {hosts[0]}"
