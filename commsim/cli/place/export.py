"""``commsim place export``: what schedulers should know of a cluster's network, in the files that they read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.files.fields import Fields
from commsim.files.whole_files import read_tree, replacing

from .import_ import require_yaml

if TYPE_CHECKING:
    from commsim.placement.schedulers.fabric_tree import Blocks, Tree

FORMATS = ("slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph", "volcano", "kueue", "nodelist")
_YAML = ("slurm-yaml", "topograph-model", "volcano", "kueue")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("cluster", metavar="cluster.toml", help="the cluster")
    add("--to", dest="target", required=True, choices=FORMATS, help="what to write")
    add("-o", "--output", metavar="FILE", help="where to (standard output)")
    add("--plugin", choices=("tree", "block"), default="tree", help="Slurm: for topology/tree or topology/block (tree)")
    add("--placements", metavar="FILE", help="nodelist: what `commsim place --json` wrote")
    add("--job", metavar="NAME", help="nodelist: whose placement (the only job)")
    add("--candidate", type=int, default=0, metavar="N", help="nodelist: which candidate, 0 is the best (0)")


def main(args: argparse.Namespace) -> int:
    """Read the cluster, and write."""
    from commsim.placement.cluster import read_cluster
    from commsim.placement.schedulers.tree_network import tree_of

    if args.plugin == "block" and not args.target.startswith("slurm"):
        raise InputError(f"--plugin has no effect on {args.target}")
    if (args.target == "nodelist") != (args.placements is not None):
        raise InputError("nodelist needs --placements FILE, which `commsim place --json` writes" if not args.placements
                         else f"--placements has no effect on {args.target}")  # fmt: skip
    if args.target in _YAML:
        require_yaml()
    network = read_cluster(args.cluster).network
    tree, stand_ins = tree_of(network)
    comments = [f"{network.name}, written by commsim; rates are not in this file"]
    for name, all_names in stand_ins.items():
        shown = ", ".join(all_names[:4]) + (", ..." if len(all_names) > 4 else "")
        comments.append(f"{name} stands for {len(all_names)} switches that do the same: {shown}")
    text = WRITERS[args.target](tree, tuple(comments), args)
    if args.output is None:
        sys.stdout.write(text)
        return 0
    with replacing(args.output) as out:
        out.write(text.encode())
    return 0


def _topology(tree: Tree, args: argparse.Namespace) -> Tree | Blocks:
    from commsim.placement.schedulers.fabric_tree import blocks_of

    return blocks_of(tree) if args.plugin == "block" else tree


def _slurm_conf(tree: Tree, comments: tuple[str, ...], args: argparse.Namespace) -> str:
    from commsim.placement.schedulers.slurm import write_slurm_conf

    return write_slurm_conf(_topology(tree, args), comments)


def _slurm_yaml(tree: Tree, comments: tuple[str, ...], args: argparse.Namespace) -> str:
    from commsim.placement.schedulers.slurm import NamedTopology, write_slurm_yaml

    return write_slurm_yaml([NamedTopology("default", _topology(tree, args), True)], comments)


def _topograph_model(tree: Tree, comments: tuple[str, ...], _: argparse.Namespace) -> str:
    from commsim.placement.schedulers.kubernetes import write_topograph_model

    return write_topograph_model(tree, comments)


def _topograph_graph(tree: Tree, _: tuple[str, ...], __: argparse.Namespace) -> str:
    from commsim.placement.schedulers.kubernetes import write_topograph_graph

    return write_topograph_graph(tree)


def _volcano(tree: Tree, comments: tuple[str, ...], _: argparse.Namespace) -> str:
    from commsim.placement.schedulers.kubernetes import write_volcano

    return write_volcano(tree, comments)


def _kueue(tree: Tree, comments: tuple[str, ...], _: argparse.Namespace) -> str:
    from commsim.placement.schedulers.kubernetes import write_kueue

    return write_kueue(tree, comments)


def _nodelist(tree: Tree, _: tuple[str, ...], args: argparse.Namespace) -> str:
    from commsim.placement.schedulers.slurm import sbatch_options

    top = Fields(read_tree(args.placements), args.placements)
    rows = top.tables("candidates")
    if not 0 <= args.candidate < len(rows):
        raise InputError(f"{args.placements}: has candidates 0..{len(rows) - 1}, got --candidate {args.candidate}")
    placement = rows[args.candidate].table("placement")
    jobs = list(placement)
    if args.job is None and len(jobs) != 1:
        raise InputError(f"{args.placements}: choose one of the jobs with --job: {', '.join(jobs)}")
    if args.job is not None and args.job not in jobs:
        raise InputError(f"{args.placements}: has no job {args.job!r}; it has {', '.join(jobs)}")
    nodes = placement.items(args.job or jobs[0], str, "the name of a node")
    known = set(tree.nodes)
    hosts = [node if node in known else node.partition(".")[0] for node in nodes]  # m0 for m0.gpu0
    return sbatch_options(tree, hosts) + "\n"


WRITERS: dict[str, Callable[[Tree, tuple[str, ...], argparse.Namespace], str]] = {
    "slurm-conf": _slurm_conf, "slurm-yaml": _slurm_yaml, "topograph-model": _topograph_model,
    "topograph-graph": _topograph_graph, "volcano": _volcano, "kueue": _kueue, "nodelist": _nodelist,
}  # fmt: skip
