"""State of the service: the cluster, and the known jobs with their GPUs and links."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from commsim.core.errors import shorten
from commsim.core.files.fields import Keys, TableFields
from commsim.core.names.nodes_and_links import host_names
from commsim.core.network_queries import locality_levels
from commsim.core.units import count_text
from commsim.placement.cluster import Cluster
from commsim.placement.node_names import nodes_of
from commsim.placement.strategies.host_gpus import HostGpus
from commsim.training.sharing.periodic import PeriodicJob, parse_jobs
from commsim.training.timeline import job_row

from .beside.kept_jobs import KeptJobs, seeds_of, with_links
from .guard import Refusal
from .limits import (
    MAX_JOBS,
    MAX_KNOWN_JOBS,
    MAX_NAME,
    MAX_PERIOD_MS,
    MAX_PHASES,
    MAX_SEARCHED_GPUS,
)

MAX_NAMED = 8  # jobs in a message
# Fields of a job, the most that each may have, and of what.
_LENGTHS = (
    ("job", MAX_NAME, "letters"), ("phases", MAX_PHASES, "phases"), ("placement", MAX_SEARCHED_GPUS, "names"),
    ("placed", MAX_SEARCHED_GPUS, "names"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that runs, or waits.

    Parameters
    ----------
    job : PeriodicJob
        Its traffic; its own placement is not looked at.
    placed : tuple of str
        Nodes of the network that its first ranks have, one per GPU; fewer than its GPUs while it is being placed.
    """

    job: PeriodicJob
    placed: tuple[str, ...] = ()

    @property
    def n_left(self) -> int:
        """GPUs that are still to be placed."""
        return self.job.n_gpus - len(self.placed)

    def row(self) -> dict[str, Any]:
        """Return the job as ``POST /jobs`` takes it."""
        job = self.job
        started = {} if job.start is None else {"start_ms": round(job.start * 1e3, 9)}
        gang = {} if job.gpus_per_host is None else {"gpus_per_host": job.gpus_per_host}
        row = job_row(job.name, job.n_gpus, job.period, job.phases)
        return row | gang | {"placed": list(self.placed), **started}


_Saved: TypeAlias = tuple[dict[str, JobRecord], KeptJobs, int]


class ClusterState:
    """The cluster and its jobs.

    Attributes
    ----------
    version : int
        Grows with every change.
    jobs : dict of str to JobRecord
        Jobs by name.
    kept : KeptJobs
        Those of them that have places, with their links; a job without a start keeps the one that was found for it.
    seeds : tuple of int
        Seeds of the hashes that choose paths.
    gpus : dict of str to tuple of str
        Nodes of each host's GPUs that jobs may take.
    hosts : HostGpus
        Hosts of the nodes, for jobs with a number of GPUs on each.
    place : dict of str to tuple of int
        Rack, pod and so on of each host, the innermost first.
    """

    def __init__(self, cluster: Cluster, hashes: int | None = None) -> None:
        self.cluster, self.version = cluster, 0
        self.jobs: dict[str, JobRecord] = {}
        self.seeds = seeds_of(cluster, hashes=hashes)
        self.kept = KeptJobs.none(cluster, self.seeds)
        network = cluster.network
        self.hosts, host_of = HostGpus(network), host_names(network)
        gpus: dict[str, list[str]] = {}
        self.place: dict[str, tuple[int, ...]] = {}
        self._order: dict[tuple[int, ...], list[str]] = {}
        levels = locality_levels(network)
        for i, node in enumerate(network.endpoints.tolist()):
            gpus.setdefault(host_of[node], []).extend([network.nodes[node]] * int(cluster.free[node]))
            self.place.setdefault(host_of[node], tuple(int(level.group[i]) for level in (levels[1:] or levels)))
        self.gpus = {host: tuple(names) for host, names in gpus.items()}
        self.host_of = {network.nodes[node]: host_of[node] for node in network.endpoints.tolist()}

    def put(self, known: Sequence[JobRecord]) -> None:
        """Add jobs, or replace those of their names: all, or none if one is refused.

        Raises
        ------
        Refusal
            If one is larger than the cluster, placed on a node without GPUs or on GPUs that others have, or there are
            too many jobs.
        """
        before = self.saved()
        try:
            for one in known:
                self._put(one)
            placed = {one.job.name: self.jobs[one.job.name] for one in known}
            self._keep({name: record for name, record in placed.items() if record.placed}, placed)
        except Exception:
            self.restore(before)
            raise
        self.version += 1

    def _put(self, known: JobRecord) -> None:
        known, name = self.located(known), known.job.name
        self.check(known)
        if name not in self.jobs and len(self.jobs) >= MAX_KNOWN_JOBS:
            raise Refusal(409, f"{MAX_KNOWN_JOBS} jobs are known; remove some")
        self.jobs = {**self.jobs, name: known}

    def _keep(self, placed: Mapping[str, JobRecord], replaced: Iterable[str]) -> None:
        """Find links and starts of jobs, and keep the starts of those that are placed wholly."""
        jobs = [placed_job(record.job, record.placed) for record in placed.values()]
        self.kept = self.kept.changed(with_links(self.cluster, jobs, self.seeds) if jobs else {}, tuple(replaced))
        for name, record in placed.items():
            start = self.kept.jobs[name].job.start
            if not record.n_left and start is not None:
                self.jobs[name] = replace(record, job=replace(record.job, start=start))

    def located(self, known: JobRecord) -> JobRecord:
        """Return a job with a node for each place that it has; a machine's name stands for its free GPUs, in order.

        Raises
        ------
        InputError
            If it has more of a machine than is free.
        """
        others = (other.placed for other in self.jobs.values() if other.job.name != known.job.name)
        counts = Counter(itertools.chain(known.placed, *others))
        return replace(known, placed=nodes_of(self.cluster, known.placed, counts, known.job.name))

    def check(self, known: JobRecord) -> None:
        """Raise unless the cluster could hold the job, and it can be where it is placed.

        Raises
        ------
        Refusal
            As in :meth:`put`.
        """
        name, wanted = known.job.name, Counter(known.placed)
        if known.job.n_gpus > (total := sum(map(len, self.gpus.values()))):
            raise Refusal(400, f"job {name} needs {count_text(known.job.n_gpus, 'GPU')}, and the cluster has {total}")
        for node in wanted:
            if node not in self.host_of:
                first = next(iter(self.host_of))
                raise Refusal(
                    400, f"job {name} is placed on {shorten(repr(node))}, which has no GPUs here; the first is {first}"
                )
        self.hosts.require(known.job, known.placed, is_part=known.n_left > 0)
        counts = Counter(node for other in self.jobs.values() if other.job.name != name for node in other.placed)
        have = Counter(gpu for gpus in self.gpus.values() for gpu in gpus)
        for node, count in wanted.items():
            if count + counts[node] > have[node]:
                at = self.cluster.network.nodes.index(node)
                n_gpus, n_busy = int(self.cluster.gpus[at]), int(self.cluster.busy[at])
                others = (f"{n_busy} of them busy, " if n_busy else "") + f"{counts[node]} of them taken by other jobs"
                raise Refusal(
                    409, f"job {name} takes {count_text(count, 'GPU')} of {node}, which has {n_gpus}, {others}"
                )

    def remove(self, name: str) -> None:
        """Forget a job.

        Raises
        ------
        Refusal
            If it is not known.
        """
        if name not in self.jobs:
            raise Refusal(404, f"job {shorten(repr(name))} is not known")
        self.jobs = {key: known for key, known in self.jobs.items() if key != name}
        self.kept = self.kept.changed({}, (name,))
        self.version += 1

    def free(self, but: str, nodes: Iterable[str] = ()) -> dict[str, list[str]]:
        """By host, the node of each free GPU; those of job `but` count as free, those in `nodes` do not."""
        busy = Counter(node for known in self.jobs.values() if known.job.name != but for node in known.placed)
        busy.update(nodes)
        free: dict[str, list[str]] = {}
        for host, gpus in self.gpus.items():
            left = free[host] = []
            for gpu in gpus:
                if busy[gpu] > 0:
                    busy[gpu] -= 1
                else:
                    left.append(gpu)
        return free

    def nearest(self, host: str) -> list[str]:
        """Return the hosts, those of the same rack first, then those of the same pod, and so on."""
        here = self.place[host]
        if here not in self._order:
            levels = range(len(here))[::-1]
            away = {other: [at[k] != here[k] for k in levels] for other, at in self.place.items()}
            self._order[here] = sorted(away, key=lambda other: away[other])
        return self._order[here]

    def saved(self) -> _Saved:
        """Return what :meth:`restore` takes; both tables are replaced by changes, never changed."""
        return self.jobs, self.kept, self.version

    def restore(self, saved: _Saved) -> None:
        """Go back to what was saved, before anything was rated with what came after it."""
        self.jobs, self.kept, self.version = saved


def placed_job(job: PeriodicJob, placed: tuple[str, ...]) -> PeriodicJob:
    """Return a job as it is placed; one that is placed in part counts as no larger than that."""
    gang = job.gpus_per_host if len(placed) == job.n_gpus else None  # of a part there may be fewer
    return replace(job, placement=placed, placed=(), n_gpus=len(placed), gpus_per_host=gang) if placed else job


def read_known_jobs(
    rows: object,
    source: str,
    keys: Keys = (),
    known: Mapping[str, JobRecord] | None = None,
    most: int = MAX_JOBS,
) -> list[JobRecord]:
    """Read jobs as in ``jobs.json``, with ``placement`` if all of a job is placed, or ``placed`` for a part.

    Parameters
    ----------
    known : mapping of str to JobRecord, optional
        Jobs for which a name stands. One that is placed wholly is then to be placed anew. Default: no names.
    most : int
        How many there may be.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    if isinstance(rows, list) and len(rows) > most:
        TableFields({}, source, keys).fail(None, f"are at most {most}, got {len(rows)}")
    if known is not None and isinstance(rows, list):
        rows = [_spelled_out(row, known, TableFields({}, source, (*keys, i))) for i, row in enumerate(rows)]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        parse_jobs(rows, source, keys)
    for i, row in enumerate(table := cast("list[dict[str, Any]]", rows)):
        fields = TableFields(row, source, (*keys, i))
        for key, most, what in _LENGTHS:
            if isinstance(value := row.get(key), (list, str)) and len(value) > most:
                fields.fail(key, f"must have at most {most} {what}, got {len(value)}")
        for key in ("placement", "placed"):
            for k, name in enumerate(row[key] if isinstance(row.get(key), list) else ()):
                if isinstance(name, str) and len(name) > MAX_NAME:
                    fields.member(key, k, f"must have at most {MAX_NAME} letters, got {shorten(repr(name))}")
    jobs = parse_jobs(table, source, keys)
    for i, (job, row) in enumerate(zip(jobs, table, strict=True)):
        fields = TableFields(row, source, (*keys, i))
        if job.period > MAX_PERIOD_MS / 1e3:
            fields.refuse("iter_time_ms", f"at most {MAX_PERIOD_MS:g}")
    return [JobRecord(job, job.placement or job.placed) for job in jobs]


def _spelled_out(row: object, known: Mapping[str, JobRecord], fields: TableFields) -> object:
    """Return the row of a known job for its name; anything else as it is."""
    if not isinstance(row, str):
        return row
    if row not in known:
        names = ", ".join(list(known)[:MAX_NAMED]) + (", ..." if len(known) > MAX_NAMED else "")
        fields.fail(None, f"is the name of no known job: {shorten(repr(row))}; known: {names or 'none'}")
    job = known[row]
    return {key: value for key, value in job.row().items() if key != "placed" or job.n_left}
