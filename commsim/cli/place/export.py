"""``commsim place export``: what schedulers should know of a cluster's network, in the files that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, flag
from commsim.core.errors import InputError, located
from commsim.files.fields import Fields
from commsim.files.whole_files import read_tree, replacing
from commsim.report.answer import Answer, Lines

from .import_ import require_yaml

if TYPE_CHECKING:
    from commsim.placement.cluster import Cluster
    from commsim.placement.schedulers.fabric_tree import Tree

FORMATS = ("slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph", "volcano", "kueue", "nodelist")
_YAML = ("slurm-yaml", "topograph-model", "volcano", "kueue")


class Config(Flags):
    """All flags of ``commsim place export``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="the cluster")
    target: str = flag("--to", required=True, choices=FORMATS, help="what to write")
    output: str | None = flag("-o", metavar="FILE", help="file to write (default: standard output)")
    plugin: str = flag(choices=("tree", "block"), default="tree", help="Slurm: topology/tree or topology/block")
    placements: str | None = flag(metavar="FILE", help="nodelist: JSON that `commsim place --json` wrote")
    hostfile: str | None = flag(
        metavar="FILE", help="nodelist: also write the host of each rank, one per line, for Slurm's SLURM_HOSTFILE"
    )
    job: str | None = flag(metavar="NAME", help="nodelist: job whose placement to write (default: the only one)")
    candidate: int = flag(
        default=1, metavar="N", help="nodelist: rank of the candidate, as in the table; 1 is the best"
    )


def run(config: Config) -> Answer:
    """Read the cluster, and write a file for a scheduler."""
    from commsim.placement.cluster import read_cluster
    from commsim.placement.schedulers.tree_network import tree_of

    if config.plugin == "block" and not config.target.startswith("slurm"):
        raise InputError(f"--plugin has no effect on {config.target}")
    if config.target != "nodelist" and (given := config.given("placements", "hostfile", "job", "candidate")):
        raise InputError(f"{given[0]} has no effect on {config.target}")
    if config.target == "nodelist" and config.placements is None:
        raise InputError("nodelist needs --placements FILE, which `commsim place --json` writes")
    if config.target in _YAML:
        require_yaml()
    cluster = read_cluster(config.cluster)
    network = cluster.network
    tree, stand_ins = tree_of(network)
    comments = [f"{network.name}, written by commsim; rates are not in this file"]
    for name, all_names in stand_ins.items():
        shown = ", ".join(all_names[:4]) + (", ..." if len(all_names) > 4 else "")
        comments.append(f"{name} represents {len(all_names)} switches that are interchangeable: {shown}")
    is_nodelist = config.target == "nodelist"
    text = _nodelist(config, cluster, tree) if is_nodelist else _text(config, tree, tuple(comments))
    if config.output is None:
        return Answer([Lines(text.splitlines(), is_file=True)])
    with replacing(config.output) as out:
        out.write(text.encode())
    return Answer()


def _text(config: Config, tree: Tree, comments: tuple[str, ...]) -> str:
    from commsim.placement.schedulers import kubernetes, slurm
    from commsim.placement.schedulers.fabric_tree import blocks_of

    topology = blocks_of(tree) if config.plugin == "block" else tree
    match config.target:
        case "slurm-conf":
            return slurm.write_slurm_conf(topology, comments)
        case "slurm-yaml":
            return slurm.write_slurm_yaml([slurm.NamedTopology("default", topology, True)], comments)
        case "topograph-model":
            return kubernetes.write_topograph_model(tree, comments)
        case "topograph-graph":
            return kubernetes.write_topograph_graph(tree)
        case "volcano":
            return kubernetes.write_volcano(tree, comments)
    return kubernetes.write_kueue(tree, comments)


def _nodelist(config: Config, cluster: Cluster, tree: Tree) -> str:
    """Return the options of a placement, and write its hosts; say on standard error where the options need these."""
    from commsim.placement.schedulers.slurm import ARBITRARY, sbatch_options
    from commsim.report.render import tell

    hosts = _hosts(config, config.placements or "", cluster, tree)
    options = sbatch_options(tree, hosts)
    if config.hostfile is not None:
        with replacing(config.hostfile) as out:
            out.write("".join(f"{host}\n" for host in hosts).encode())
    elif ARBITRARY in options:
        tell(
            "# GPUs per host or the order of ranks are not those of Slurm's block distribution: without SLURM_HOSTFILE "
            "they are lost; --hostfile FILE writes what it names"
        )
    return options + "\n"


def _hosts(config: Config, path: str, cluster: Cluster, tree: Tree) -> list[str]:
    """Hosts of the placement that ``--placements``, ``--candidate`` and ``--job`` choose.

    Raises
    ------
    InputError
        If there is no such placement, or the cluster does not have its hosts and GPUs.
    """
    from commsim.placement.strategies.free_gpus import FreeGpus
    from commsim.workload.sharing.periodic import PeriodicJob

    rows = Fields(read_tree(path), path).tables("candidates")
    if not 1 <= config.candidate <= len(rows):
        raise InputError(f"{path}: has candidates 1..{len(rows)}, got --candidate {config.candidate}")
    placement = rows[config.candidate - 1].table("placement")
    jobs = list(placement)
    if config.job is None and len(jobs) != 1:
        raise InputError(f"{path}: choose one of the jobs with --job: {', '.join(jobs)}")
    if config.job is not None and config.job not in jobs:
        raise InputError(f"{path}: has no job {config.job!r}; it has {', '.join(jobs)}")
    placed = {job: tuple(placement.items(job, str, "the name of a node")) for job in jobs}
    with located(path):
        FreeGpus(cluster, [PeriodicJob(job, len(nodes), 1.0, (), nodes) for job, nodes in placed.items()])
    nodes = placed[config.job or jobs[0]]
    known = set(tree.nodes)
    return [node if node in known else node.partition(".")[0] for node in nodes]  # m0 for m0.gpu0
