"""Running jobs that faults affect: those whose host failed, which are moved, those cut off, and what others lose."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError, RoutingError
from commsim.core.names.hostlist import spelled_out
from commsim.core.names.nodes_and_links import host_names, link_names
from commsim.core.network import Network
from commsim.core.remark import Remark
from commsim.core.units import count_text
from commsim.prediction.checks import texts
from commsim.prediction.faults import failed_hosts, with_faults
from commsim.routing.routing import is_hashed
from commsim.training.sharing.periodic import PeriodicJob

from .candidate import PlacementCandidate, counted_names
from .cluster import Cluster, cut_off_hosts, on_network
from .evaluation import evaluate_placed
from .link_classes import link_classes
from .link_use import link_uses
from .node_names import on_nodes
from .scores import Scores, ScoreSettings
from .starts.job_uses import job_uses, own_paths

_MAX_NAMED = 4  # hosts that are cut off


def after_faults(
    cluster: Cluster,
    jobs: Sequence[PeriodicJob],
    fail: Sequence[str],
    scale: Sequence[str],
    settings: ScoreSettings,
    drain: Sequence[str] = (),
) -> tuple[Cluster, tuple[PeriodicJob, ...], list[Remark]]:
    """Return what faults and drained hosts leave of a cluster, its jobs, and remarks.

    Parameters
    ----------
    cluster : Cluster
        Cluster without faults.
    jobs : sequence of PeriodicJob
        Jobs, placed or not.
    fail, scale : sequence of str
        Same as in :func:`commsim.prediction.faults.with_faults`.
    settings : ScoreSettings
        How scores are found; its seed chooses paths, and draws faults.
    drain : sequence of str
        Hosts that work, and take no job.

    Returns
    -------
    Cluster, tuple of PeriodicJob, list of Remark
        Jobs on a host that failed, that is drained, or that most others cannot reach any more, are to be placed again,
        but for their ranks on other hosts.

    Raises
    ------
    InputError
        If a fault cannot be read, a host is not known, or there is no room for the jobs that are moved.
    """
    for name, given in (("fail", fail), ("scale", scale)):
        texts("host:h2")(name, given)
    texts("h2")("drain", drain)
    jobs = on_nodes(cluster, jobs)
    network, remarks = cluster.network, list[Remark]()
    if fail or scale:
        network, remarks = with_faults(cluster.network, fail, scale, settings.seed)
    failed, drained = failed_hosts(cluster.network, fail), nodes_of_hosts(cluster.network, drain)
    dead = failed | cut_off_by(cluster.network, network) | drained
    left = tuple(_without(job, dead | _beside(cluster.network, dead) if job.gpus_per_host else dead) for job in jobs)
    remarks += _moved(jobs, left, dead, {"failed": failed, "are drained": drained - failed})
    placed = [name for job in left for name in job.placement or job.placed if name]
    after, cut_off = on_network(cluster, network, placed)
    at = np.isin(network.nodes, list(drained))
    after = replace(after, busy=np.where(at, after.gpus, after.busy)) if drained else after
    _require_room(after, jobs, left, dead)
    return after, left, [*remarks, *cut_off, *affected(cluster, after, left, settings)]


def nodes_of_hosts(network: Network, drain: Sequence[str]) -> frozenset[str]:
    """Return the names of the nodes for ranks of hosts that are drained.

    Parameters
    ----------
    drain : sequence of str
        Hosts, or several in one text as in placements: ``n[019-024]``, ``h0-3``. A switch such as ``leaf0`` stands for
        the hosts with a cable to it.

    Raises
    ------
    InputError
        If a host is not known, or a switch has no cable to a host.
    """
    if not drain:
        return frozenset()
    names, nodes = host_names(network), network.endpoints.tolist()
    known, cabled = {names[i] for i in nodes}, dict[str, set[str]]()
    for src, dst in zip(network.src.tolist(), network.dst.tolist(), strict=True):
        if names[src] in known and names[dst] not in known:
            cabled.setdefault(names[dst], set()).add(names[src])
    hosts = set[str]()
    for one in (name for text in drain for name in ([text] if text in known else spelled_out([text]))):
        if one not in known and one not in cabled:
            what = "no cable from a host to switch" if one in names else "no host"
            leaf = f"; {next(iter(cabled))} stands for the hosts with a cable to it" if cabled else ""
            raise InputError(f"{network.name} has {what} {one!r} to drain{leaf}")
        hosts |= cabled.get(one) or {one}
    return frozenset(network.nodes[i] for i in nodes if names[i] in hosts)


def _moved(
    jobs: Sequence[PeriodicJob],
    left: Sequence[PeriodicJob],
    dead: Collection[str],
    reasons: Mapping[str, Collection[str]],
) -> list[Remark]:
    """Name the jobs that are moved, all in one remark: of several with the same code a terminal shows the first."""
    told, whys = [], dict.fromkeys([*reasons, "are cut off"], False)
    for job, now in zip(jobs, left, strict=True):
        if lost := [name for name in job.placement or job.placed if name in dead]:
            for name in lost:
                whys[next((why for why, nodes in reasons.items() if name in nodes), "are cut off")] = True
            told.append((job.name, counted_names(lost), "; its other ranks stay" if any(now.placed) else ""))
    why = " or ".join(name for name, is_so in whys.items() if is_so)
    if len(told) == 1:
        ((name, hosts, stay),) = told
        return [Remark("job-moved", f"job {name} is moved off hosts that {why}, {hosts}{stay}", needed=True)]
    each = ", ".join(f"{name} ({hosts}{stay})" for name, hosts, stay in told)
    return [Remark("job-moved", f"jobs are moved off hosts that {why}: {each}", needed=True)] if told else []


def cut_off_by(before: Network, after: Network) -> set[str]:
    """Names of the hosts that most others reached before the faults, and do not reach after them."""
    was = set(cut_off_hosts(before).tolist())
    return {before.nodes[i] for i in cut_off_hosts(after).tolist() if i not in was}


def _require_room(
    after: Cluster, jobs: Sequence[PeriodicJob], left: Sequence[PeriodicJob], dead: Collection[str]
) -> None:
    """Refuse that more ranks lose their host than there are free GPUs."""
    lost = {job.name: [name for name in job.placement or job.placed if name in dead] for job in jobs}
    moved = {name: nodes for name, nodes in lost.items() if nodes}
    n_lost = sum(map(len, moved.values()))
    n_free = int(after.free.sum()) - sum(bool(name) for job in left for name in job.placement or job.placed)
    if n_lost > max(0, n_free):
        names = ", ".join(f"{name} ({counted_names(nodes)})" for name, nodes in [*moved.items()][:_MAX_NAMED])
        raise InputError(
            f"jobs on hosts cut off, drained or that failed need {count_text(n_lost, 'other GPU')}, and "
            f"{max(0, n_free)} are free: {names}"
        )


def _beside(network: Network, dead: Collection[str]) -> set[str]:
    """Return the nodes of hosts with one of some nodes: a job with a number of GPUs on each host leaves these."""
    names = host_names(network)
    hosts = {host for node, host in zip(network.nodes, names, strict=True) if node in dead}
    return {node for node, host in zip(network.nodes, names, strict=True) if host in hosts}


def _without(job: PeriodicJob, dead: Collection[str]) -> PeriodicJob:
    """Return a job that is to be placed again where it had GPUs of nodes in `dead`, and starts when it likes."""
    names = job.placement or job.placed
    if not any(name in dead for name in names):
        return job
    left = tuple("" if name in dead else name for name in names)
    return replace(job, placement=None, start=None, placed=left if any(left) else ())


def affected(before: Cluster, after: Cluster, jobs: Sequence[PeriodicJob], settings: ScoreSettings) -> list[Remark]:
    """Name the placed jobs that send over failed or slower links, with what they lose before and after.

    Parameters
    ----------
    before, after : Cluster
        Cluster without and with the faults.
    jobs : sequence of PeriodicJob
        Those that are placed, as they stay; the others are not looked at.
    settings : ScoreSettings
        How scores are found; its hashes choose paths.

    Returns
    -------
    list of Remark
        At most one remark: jobs that send over these links with any of the hashes, and estimates of what they lose with
        the median one and the worst one, start times as before.

    Raises
    ------
    InputError
        Naming the job and its hosts, if no path joins them.
    """
    placed = [job for job in jobs if job.placement]
    if not placed:
        return []
    rate = dict(zip(link_names(after.network), after.network.bandwidth.tolist(), strict=True))
    names = link_names(before.network)
    hurt = np.array([rate.get(name, 0.0) for name in names]) < before.network.bandwidth
    seeds = settings.hash_seeds if is_hashed(before.network.routing) else (settings.seed,)
    uses = [job_uses(before, placed, seed) for seed in seeds]
    crossing = np.flatnonzero(np.any([(use[:, hurt] > 0).any(axis=1) for use in uses], axis=0)).tolist()
    if not crossing:
        return []
    first = _evaluated(before, placed, uses[0], settings, seeds[0])
    started = [replace(job, start=first.shifts[job.name]) for job in placed]
    try:
        uses_after = [job_uses(after, placed, seed) for seed in seeds]
    except RoutingError:
        raise _cut_off(after, [placed[i] for i in crossing], settings) from None
    was, now = (
        np.array(
            [
                _stretch(_evaluated(on, started, use, settings, seed), placed)
                for seed, use in zip(seeds, of, strict=True)
            ]
        )
        for on, of in ((before, uses), (after, uses_after))
    )
    usual = [np.sort(each, axis=0)[(len(seeds) - 1) // 2] for each in (was, now)]
    worst, told = now.max(axis=0), []
    for i in sorted(crossing, key=lambda i: -worst[i] / usual[0][i]):
        more = f", {worst[i]:.4f}x with the worst hash" if round(worst[i] - usual[1][i], 4) > 0 else ""
        told.append(f"{placed[i].name} ({usual[0][i]:.4f}x before, {usual[1][i]:.4f}x after{more})")
    loss = float(np.abs(usual[1] / usual[0] - 1)[crossing].max())
    return [
        Remark("fault-crossed", f"stretch of jobs over failed or slower links: {', '.join(told)}", loss, needed=True)
    ]


def _stretch(found: PlacementCandidate, jobs: Sequence[PeriodicJob]) -> list[float]:
    return [found.predicted[job.name] / job.period for job in jobs]


def _evaluated(
    cluster: Cluster, jobs: Sequence[PeriodicJob], use: NDArray[np.float64], settings: ScoreSettings, seed: int
) -> PlacementCandidate:
    scores = Scores(jobs, settings)
    own = own_paths(cluster, jobs, seed)
    classes = link_classes(cluster.network, np.where(scores.peak[:, None] > 0, use, 0.0), own)
    return evaluate_placed(cluster, "given", jobs, classes, scores, "merged")


def _cut_off(cluster: Cluster, jobs: Sequence[PeriodicJob], settings: ScoreSettings) -> InputError:
    """Name the first job that no path joins."""
    for job in jobs:
        try:
            link_uses(cluster, [job.placement or ()], settings.seed)
        except RoutingError:
            break
    text = f"job {job.name} on {counted_names(job.placement or ())}"
    network = cluster.network
    away = {network.nodes[i]: host_names(network)[i] for i in cut_off_hosts(network)}
    lost = dict.fromkeys(away[name] for name in job.placement or () if name in away)
    first = next(iter(lost), None)
    only = f"; {' '.join([*lost][:_MAX_NAMED])} cannot be reached: --fail host:{first} moves only its ranks on {first}"
    return InputError(f"{text} is cut off: without its placement it is moved{only if lost else ''}")
