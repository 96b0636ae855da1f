"""``commsim place import``: a network, or a cluster, from the files of schedulers and machines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, Flags, flag
from commsim.core.errors import BackendError, InputError, located
from commsim.core.extras import needs
from commsim.core.files.whole_files import read_text, write_tree
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.spec import SUFFIXES
from commsim.core.units import parse_bandwidth, parse_time, write_time
from commsim.placement.schedulers.file_kinds import kind_of_file
from commsim.report.answer import Answer, Lines, remarks

if TYPE_CHECKING:
    from commsim.placement.schedulers.fabric_tree import Blocks, SwitchTree

FABRICS = ("slurm-conf", "slurm-yaml", "topograph-graph", "topograph-model", "kube-nodes")
MACHINES = ("nccl-xml", "nvidia-smi")


class PlaceImportConfig(Flags):
    """All flags of ``commsim place import``."""

    file: str = flag("file", help="file to read")
    source: str | None = flag("--from", choices=FABRICS + MACHINES, help="format of the file (default: detected)")
    output: str = flag(
        "-o", required=True, metavar="FILE",
        help="network (.toml, .json, .npz); with --gpus-per-host a cluster (.toml, .json), and its network beside it",
    )  # fmt: skip
    tier_bandwidth: str | None = flag(
        metavar="1=100Gbps,2=400Gbps",
        help="rates of the links of each tier, which schedulers' files do not contain. Tier 1 is a node's own link. "
             "2=4x400Gbps: four cables up from each switch; 2=2:1: cables of tier 1's rate, the fewest for this "
             "oversubscription",
    )  # fmt: skip
    latency: str = flag(
        default=DefaultOf("topologies:LINK_LATENCY", write_time), metavar="TIME", help="latency of every link"
    )
    gpus_per_host: int | None = flag(metavar="N", help="write a cluster whose hosts have N GPUs")
    labels: str | None = flag(
        metavar="KEY,KEY",
        help="kube-nodes: labels that name a node's switches, the closest first (default: topograph's)",
    )
    topology: str | None = flag(
        metavar="NAME", help="name of the topology in a topology.yaml (default: the file's default)"
    )
    nvlink: str | None = flag(
        metavar="RATE", help="nccl-xml: rate of all NVLinks of a GPU together, if the file does not give it"
    )


def run(config: PlaceImportConfig) -> Answer:
    """Read a file of another tool, and write a network or a cluster."""
    found = [] if config.source else [kind_of_file(config.file)]
    config = dataclasses.replace(config, source=config.source or found[0])
    is_cluster = config.gpus_per_host is not None or config.source == "kube-nodes"
    output, suffixes = Path(config.output), (".toml", ".json") if is_cluster else SUFFIXES
    if output.suffix not in suffixes:
        raise InputError(f"{output}: the name of the file must end with one of {', '.join(suffixes)}")
    if config.gpus_per_host is not None and not 1 <= config.gpus_per_host <= 1024:
        raise InputError(f"--gpus-per-host is from 1 to 1024, got {config.gpus_per_host}")
    _refuse_what_has_no_effect(config)
    hosts: dict[str, Any] = {"gpus": config.gpus_per_host}
    if config.source in MACHINES:
        network, said = _machine(config), list[str]()
    elif config.source == "kube-nodes":
        network, said, hosts = _nodes(config)
    else:
        network, said, more = _fabric(config)
        hosts |= more
    from commsim.core.files.store import save

    wrote = str(output)
    if not is_cluster:
        save(network, output)
    else:
        beside = output.with_suffix(f".network{output.suffix}")
        save(network, beside)
        write_tree(output, {"topology": {"file": beside.name}, "hosts": hosts})
        wrote = f"{output} and {beside}"
    n_switches = int((network.kind == 1).sum())
    counts = f"{len(network.endpoints)} endpoints, {n_switches} switches, {network.n_links} links"
    said += [f"the format of {config.file} is {kind}" for kind in found]  # what changes the answer comes first
    return Answer([*remarks(Remark("read", one, needed=True) for one in said), Lines([f"{wrote}: {counts}"])])


def _refuse_what_has_no_effect(config: PlaceImportConfig) -> None:
    is_machine = config.source in MACHINES
    given = {
        "--tier-bandwidth": config.tier_bandwidth and is_machine,
        "--gpus-per-host": config.gpus_per_host is not None and (is_machine or config.source == "kube-nodes"),
        "--labels": config.labels and config.source != "kube-nodes",
        "--topology": config.topology and config.source != "slurm-yaml",
        "--nvlink": config.nvlink and config.source != "nccl-xml",
    }
    for name, is_useless in given.items():
        if is_useless:
            raise InputError(f"{name} has no effect on {config.source}")


def _fabric(config: PlaceImportConfig) -> tuple[Network, list[str], dict[str, Any]]:
    """Read a scheduler's file; return its network, remarks, and what the table of hosts has beside their GPUs."""
    from commsim.placement.schedulers.fabric_tree import SwitchTree
    from commsim.placement.schedulers.tier_rates import parse_tiers
    from commsim.placement.schedulers.tree_network import build_network, cables_up, tops_said

    if config.tier_bandwidth is None:
        raise InputError(f"--tier-bandwidth is needed: {config.source} files contain no rates; for example"
                         f" --tier-bandwidth 1=100Gbps,2=2:1")  # fmt: skip
    tiers, latency = parse_tiers(config.tier_bandwidth), parse_time(config.latency, "--latency")
    topology = _read(config)
    tree = topology if isinstance(topology, SwitchTree) else topology.tree()
    network = build_network(tree, tiers, latency, Path(config.file).name)
    unused = "LinkSpeed has no unit and Slurm does not use it; --tier-bandwidth counts"
    shared = [
        f"node {node} is below {' and '.join(over)}: it has a cable to each" for node, over in tree.shared.items()
    ]
    more = [f"and {len(shared) - 2} more nodes below two switches"] if len(shared) > 3 else []
    told = [*(shared[:2] if more else shared), *more]
    speeds = [unused] if any(switch.speed for switch in tree.switches) else []
    sizes = () if isinstance(topology, SwitchTree) else topology.sizes
    more_of_hosts = {"block_sizes": list(sizes)} if sizes else {}
    return network, [*tops_said(tree, network), *told, *speeds, *cables_up(network)], more_of_hosts


def _nodes(config: PlaceImportConfig) -> tuple[Network, list[str], dict[str, Any]]:
    """Read nodes of Kubernetes; return their network, remarks, and the table of hosts."""
    from collections import Counter

    from commsim.placement.schedulers.kube_nodes import read_kube_nodes
    from commsim.placement.schedulers.tier_rates import parse_tiers
    from commsim.placement.schedulers.tree_network import build_network, cables_up, tops_said

    if config.tier_bandwidth is None:
        raise InputError(
            "--tier-bandwidth is needed: nodes have no rates; for example --tier-bandwidth 1=400Gbps,2=2:1"
        )
    labels = [label.strip() for label in config.labels.split(",")] if config.labels else []
    nodes = read_kube_nodes(read_text(config.file), config.file, labels)
    latency = parse_time(config.latency, "--latency")
    by = f"switches by the labels {', '.join(nodes.labels)}"
    tiers = parse_tiers(config.tier_bandwidth)
    with located(f"{config.file}: {by}"):
        network = build_network(nodes.tree, tiers, latency, Path(config.file).name)
    usual = Counter(nodes.gpus.values()).most_common(1)[0][0]
    hosts: dict[str, Any] = {"gpus": usual}
    if others := {name: n for name, n in nodes.gpus.items() if n != usual}:
        hosts["per_host"] = others
    hosts["labels"] = list(nodes.labels)
    if nodes.busy:
        hosts["busy"] = dict(nodes.busy)
    said = [*tops_said(nodes.tree, network), *nodes.remarks, *cables_up(network), by]
    return network, said, hosts


def _machine(config: PlaceImportConfig) -> Network:
    if config.source == "nvidia-smi":
        from commsim.formats.machines.nvidia_smi import read_nvidia_smi

        return read_nvidia_smi(config.file)
    from commsim.formats.machines.nccl_topology import read_nccl_topology

    return read_nccl_topology(config.file, nvlink=parse_bandwidth(config.nvlink, "--nvlink") if config.nvlink else None)


def _read(config: PlaceImportConfig) -> SwitchTree | Blocks:
    from commsim.placement.schedulers import kubernetes, slurm, slurm_yaml

    if config.source in ("slurm-yaml", "topograph-model"):
        require_yaml()
    text = read_text(config.file)
    match config.source:
        case "slurm-conf":
            return slurm.read_slurm_conf(text, config.file)
        case "slurm-yaml":
            return slurm_yaml.choose_topology(
                slurm_yaml.read_slurm_yaml(text, config.file), config.topology, config.file
            )
        case "topograph-graph":
            return kubernetes.read_topograph_graph(text, config.file)
    return kubernetes.read_topograph_model(text, config.file)


def require_yaml() -> None:
    """Raise if YAML cannot be read or written here."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        raise BackendError(needs("PyYAML is missing", "yaml")) from None
