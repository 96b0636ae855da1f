"""``commsim place export``: what schedulers should know of a cluster's network, in the files that they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, flag
from commsim.core.errors import InputError, located
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_any, read_tree, replacing
from commsim.report.answer import Answer, Lines

from .import_ import require_yaml

if TYPE_CHECKING:
    from commsim.placement.cluster import Cluster
    from commsim.placement.schedulers.fabric_tree import SwitchTree

FORMATS = (
    "slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph", "volcano", "kueue", "nodelist", "pods",
    "kueue-jobs",
)  # fmt: skip
_MAX_NAMES = 8
_PLACED = ("nodelist", "pods", "kueue-jobs")  # what has a placement
_YAML = ("slurm-yaml", "topograph-model", "volcano", "kueue", "pods", "kueue-jobs")


class PlaceExportConfig(Flags):
    """All flags of ``commsim place export``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="the cluster")
    target: str = flag("--to", required=True, choices=FORMATS, help="what to write")
    output: str | None = flag("-o", metavar="FILE", help="file to write (default: standard output)")
    plugin: str = flag(choices=("tree", "block"), default="tree", help="Slurm: topology/tree or topology/block")
    placements: str | None = flag(
        metavar="FILE", help="nodelist, pods, kueue-jobs: JSON that `commsim place --json` wrote, or placed jobs"
    )
    hostfile: str | None = flag(
        metavar="FILE", help="nodelist: also write the host of each rank, one per line, for Slurm's SLURM_HOSTFILE"
    )
    job: str | None = flag(
        metavar="NAME", help="job whose placement to write (default: nodelist: the only one; else all)"
    )
    candidate: int = flag(
        default=1, metavar="N", help="nodelist, pods, kueue-jobs: rank of the candidate, as in the table"
    )
    level: str = flag(
        choices=("required", "preferred"), default="required",
        help="kueue-jobs: whether a job has to stay within the level of the network that its placement is in",
    )  # fmt: skip


def run(config: PlaceExportConfig) -> Answer:
    """Read the cluster, and write a file for a scheduler."""
    from commsim.placement.cluster import read_cluster
    from commsim.placement.schedulers.tree_network import tree_of

    if config.plugin == "block" and not config.target.startswith("slurm"):
        raise InputError(f"--plugin has no effect on {config.target}")
    useless = {"nodelist": ("level",), "pods": ("hostfile", "level"), "kueue-jobs": ("hostfile",)}.get(
        config.target, ("placements", "hostfile", "job", "candidate", "level")
    )
    if flags := config.given(*useless):
        raise InputError(f"{flags[0]} has no effect on {config.target}")
    if config.target in _PLACED and config.placements is None:
        raise InputError(f"{config.target} needs --placements FILE, which `commsim place --json` writes")
    if config.target in _YAML:
        require_yaml()
    cluster = read_cluster(config.cluster)
    network = cluster.network
    tree, stand_ins = tree_of(network)
    comments = [f"{network.name}, written by commsim; rates are not in this file"]
    for name, all_names in stand_ins.items():
        shown = ", ".join(all_names[:4]) + (", ..." if len(all_names) > 4 else "")
        comments.append(f"{name} represents {len(all_names)} switches that are interchangeable: {shown}")
    text = (
        _placement_text(config, cluster, tree)
        if config.target in _PLACED
        else _text(config, tree, tuple(comments), cluster)
    )
    if config.output is None:
        return Answer([Lines(text.splitlines(), is_file=True)])
    with replacing(config.output) as out:
        out.write(text.encode())
    return Answer([Lines([f"{config.output}: written"])])


def _text(config: PlaceExportConfig, tree: SwitchTree, comments: tuple[str, ...], cluster: Cluster) -> str:
    from commsim.placement.schedulers import kubernetes, slurm, slurm_yaml
    from commsim.placement.schedulers.fabric_tree import blocks_of

    topology = blocks_of(tree, cluster.block_sizes) if config.plugin == "block" else tree
    match config.target:
        case "slurm-conf":
            return slurm.write_slurm_conf(topology, comments)
        case "slurm-yaml":
            return slurm_yaml.write_slurm_yaml([slurm_yaml.NamedTopology("default", topology, True)], comments)
        case "topograph-model":
            return kubernetes.write_topograph_model(tree, comments)
        case "topograph-graph":
            return kubernetes.write_topograph_graph(tree)
        case "volcano":
            return kubernetes.write_volcano(tree, comments)
    return kubernetes.write_kueue(tree, comments, labels=cluster.labels)


def _placement_text(config: PlaceExportConfig, cluster: Cluster, tree: SwitchTree) -> str:
    """Return what places jobs: pods, or options, and write the hosts of these; say on standard error what is lost."""
    from commsim.core.names.nodes_and_links import host_names
    from commsim.placement.schedulers.kueue_jobs import Wanted, write_kueue_jobs
    from commsim.placement.schedulers.pods import write_pods
    from commsim.placement.schedulers.slurm import ARBITRARY, sbatch_options
    from commsim.report.terminal import tell

    placed, starts = _placement_and_starts(config, config.placements or "", cluster)
    known = set(tree.nodes)
    host_of = {node: node if node in known else node.partition(".")[0] for nodes in placed.values() for node in nodes}
    of_host = Counter(host_names(cluster.network)[node] for node in cluster.network.endpoints)
    for job, nodes in placed.items():
        used = Counter(host_of[node] for node in nodes if host_of[node] != node)  # GPUs of machines
        if parts := [host for host, n in used.items() if n < of_host[host]]:
            who = "Slurm" if config.target == "nodelist" else "Kubernetes"
            tell(f"# {who} chooses the GPUs of {', '.join(parts[:_MAX_NAMES])}: which of them job {job} has is lost")
    if config.target == "kueue-jobs":
        wanted: Wanted = "required" if config.level == "required" else "preferred"
        on_hosts = {job: [host_of[node] for node in nodes] for job, nodes in placed.items()}
        return write_kueue_jobs(tree, on_hosts, wanted, labels=cluster.labels)
    if config.target == "pods":
        return write_pods({job: [host_of[node] for node in nodes] for job, nodes in placed.items()}, starts)
    if late := [f"{job} {ms:g} ms" for job, ms in starts.items() if ms]:
        tell(f"# start times are left out, Slurm has no option for them: {', '.join(late)} in the iteration")
    hosts = [host_of[node] for nodes in placed.values() for node in nodes]
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


def _placement_and_starts(
    config: PlaceExportConfig, path: str, cluster: Cluster
) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Nodes and starts (ms) by job of the placement that ``--placements``, ``--candidate`` and ``--job`` choose.

    Raises
    ------
    InputError
        If there is no such placement, or the cluster does not have its hosts and GPUs.
    """
    from commsim.placement.node_names import on_nodes
    from commsim.placement.strategies.free_gpus import FreeGpus
    from commsim.training.sharing.job_rows import rows_of
    from commsim.training.sharing.periodic import PeriodicJob, parse_jobs

    rows_of_jobs = rows_of(read_any(path), path)
    if isinstance(rows_of_jobs[0], list):
        with located(path):
            known = [job for job in on_nodes(cluster, parse_jobs(*rows_of_jobs)) if job.placement is not None]
            FreeGpus(cluster, known)
        if not known:
            raise InputError(
                f"{path}: no job has a placement: `commsim place CLUSTER.toml {path} --json FILE` finds one"
            )
        chosen = _chosen(config, path, [job.name for job in known])
        return (
            {job.name: job.placement or () for job in known if job.name in chosen},
            {job.name: job.start * 1e3 for job in known if job.name in chosen and job.start is not None},
        )
    tree = TableFields(read_tree(path), path)
    if "moves" in tree and "candidates" not in tree:
        raise InputError(
            f"{path}: is of `commsim place moves`, and has a move of each job by itself; to export one, write its "
            "placement_after into JOBS.json as the job's placement, and use what `commsim place CLUSTER.toml JOBS.json "
            "--json FILE` writes"
        )
    rows = tree.tables("candidates")
    if not 1 <= config.candidate <= len(rows):
        raise InputError(f"{path}: has candidates 1..{len(rows)}, got --candidate {config.candidate}")
    row = rows[config.candidate - 1]
    placement = row.table("placement")
    jobs = list(placement)
    wanted = _chosen(config, path, jobs)
    placed = {job: tuple(placement.items(job, str, "the name of a node")) for job in jobs}
    with located(path):
        FreeGpus(cluster, [PeriodicJob(job, len(nodes), 1.0, (), nodes) for job, nodes in placed.items()])
    shifts = row.table("shifts_ms") if "shifts_ms" in row else None
    starts = {job: shifts.number(job) for job in jobs if shifts is not None and job in shifts}
    return {job: placed[job] for job in wanted}, {job: starts[job] for job in wanted if job in starts}


def _chosen(config: PlaceExportConfig, path: str, jobs: Sequence[str]) -> Sequence[str]:
    """Return the jobs that ``--job`` chooses: all by default, but for a node list, which is of one."""
    if config.job is None and len(jobs) != 1 and config.target == "nodelist":
        raise InputError(f"{path}: choose one of the jobs with --job: {', '.join(jobs)}")
    if config.job is not None and config.job not in jobs:
        raise InputError(f"{path}: has no job {config.job!r}; it has {', '.join(jobs)}")
    return jobs if config.job is None else [config.job]
