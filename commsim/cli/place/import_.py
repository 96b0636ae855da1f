"""``commsim place import``: a network, or a cluster, from the files of schedulers and machines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from commsim.core.errors import BackendError, InputError
from commsim.core.network import Network
from commsim.core.units import parse_bandwidth, parse_time
from commsim.files.store import SUFFIXES, save
from commsim.files.whole_files import MAX_TEXT_BYTES, write_tree

if TYPE_CHECKING:
    from commsim.placement.schedulers.fabric_tree import Blocks, Tree

FABRICS = ("slurm-conf", "slurm-yaml", "topograph-graph", "topograph-model")
MACHINES = ("nccl-xml", "nvidia-smi")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("file", help="what to read")
    add("--from", dest="source", required=True, choices=FABRICS + MACHINES, help="what kind of file it is")
    add("-o", "--output", required=True, metavar="FILE", help="a network (.toml, .json, .npz); with --gpus-per-host a "
        "cluster (.toml, .json), and its network beside it")  # fmt: skip
    add("--tier-bandwidth", metavar="1=100Gbps,2=400Gbps", help="of the links of each tier, which no file of a "
        "scheduler says; tier 1 is the node's own link; 2=2:1 is an oversubscription")  # fmt: skip
    add("--latency", default="500ns", metavar="TIME", help="of every link (500ns)")
    add("--gpus-per-host", type=int, metavar="N", help="write a cluster")
    add("--topology", metavar="NAME", help="which one of a topology.yaml (its default)")
    add("--nvlink", metavar="RATE", help="nccl-xml: of a GPU's NVLinks together, where the file does not say")


def main(args: argparse.Namespace) -> int:
    """Read, and write."""
    output, suffixes = Path(args.output), SUFFIXES if args.gpus_per_host is None else (".toml", ".json")
    if output.suffix not in suffixes:
        raise InputError(f"{output}: the name of the file must end with one of {', '.join(suffixes)}")
    if args.gpus_per_host is not None and not 1 <= args.gpus_per_host <= 1024:
        raise InputError(f"--gpus-per-host is from 1 to 1024, got {args.gpus_per_host}")
    _refuse_what_has_no_effect(args)
    network = _machine(args) if args.source in MACHINES else _fabric(args)
    wrote = str(output)
    if args.gpus_per_host is None:
        save(network, output)
    else:
        beside = output.with_suffix(f".network{output.suffix}")
        save(network, beside)
        write_tree(output, {"topology": {"file": beside.name}, "hosts": {"gpus": args.gpus_per_host}})
        wrote = f"{output} and {beside}"
    n_switches = int((network.kind == 1).sum())
    print(f"{wrote}: {len(network.endpoints)} endpoints, {n_switches} switches, {network.n_links} links")
    return 0


def _refuse_what_has_no_effect(args: argparse.Namespace) -> None:
    is_machine = args.source in MACHINES
    given = {
        "--tier-bandwidth": args.tier_bandwidth and is_machine,
        "--gpus-per-host": args.gpus_per_host is not None and is_machine,
        "--topology": args.topology and args.source != "slurm-yaml",
        "--nvlink": args.nvlink and args.source != "nccl-xml",
    }
    for flag, is_useless in given.items():
        if is_useless:
            raise InputError(f"{flag} has no effect on {args.source}")


def _fabric(args: argparse.Namespace) -> Network:
    from commsim.placement.schedulers.fabric_tree import Tree
    from commsim.placement.schedulers.tree_network import build_network, parse_tiers

    if args.tier_bandwidth is None:
        raise InputError(f"--tier-bandwidth is needed: {args.source} files say who is cabled to whom, not how "
                         "fast; for example --tier-bandwidth 1=100Gbps,2=2:1")  # fmt: skip
    tiers, latency = parse_tiers(args.tier_bandwidth), parse_time(args.latency, "--latency")
    found = READERS[args.source](_text(args.file), args)
    tree = found if isinstance(found, Tree) else found.tree()
    network = build_network(tree, tiers, latency, Path(args.file).name)
    if any(switch.speed for switch in tree.switches):
        print("commsim place import: note: LinkSpeed has no unit and Slurm does not use it; --tier-bandwidth counts",
              file=sys.stderr)  # fmt: skip
    return network


def _machine(args: argparse.Namespace) -> Network:
    if args.source == "nvidia-smi":
        from commsim.formats.nvidia_smi import read_nvidia_smi

        return read_nvidia_smi(args.file)
    from commsim.formats.nccl_topology import read_nccl_topology

    return read_nccl_topology(args.file, parse_bandwidth(args.nvlink, "--nvlink") if args.nvlink else None)


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_TEXT_BYTES:
            raise InputError(f"{path}: larger than {MAX_TEXT_BYTES >> 20} MiB")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}") from None


def _slurm_conf(text: str, args: argparse.Namespace) -> Tree | Blocks:
    from commsim.placement.schedulers.slurm import read_slurm_conf

    return read_slurm_conf(text, args.file)


def _slurm_yaml(text: str, args: argparse.Namespace) -> Tree | Blocks:
    from commsim.placement.schedulers.slurm import choose_topology, read_slurm_yaml

    require_yaml()
    return choose_topology(read_slurm_yaml(text, args.file), args.topology, args.file)


def _topograph_graph(text: str, args: argparse.Namespace) -> Tree:
    from commsim.placement.schedulers.kubernetes import read_topograph_graph

    return read_topograph_graph(text, args.file)


def _topograph_model(text: str, args: argparse.Namespace) -> Tree:
    from commsim.placement.schedulers.kubernetes import read_topograph_model

    require_yaml()
    return read_topograph_model(text, args.file)


def require_yaml() -> None:
    """Raise if YAML cannot be read or written here."""
    try:
        import yaml  # noqa: F401
    except ImportError:
        raise BackendError("PyYAML is missing: pip install 'commsim[yaml]'") from None


READERS: dict[str, Callable[[str, argparse.Namespace], Tree | Blocks]] = {
    "slurm-conf": _slurm_conf, "slurm-yaml": _slurm_yaml,
    "topograph-graph": _topograph_graph, "topograph-model": _topograph_model,
}  # fmt: skip
