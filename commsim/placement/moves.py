"""Moves: of running jobs, which one to place again so that it and the others lose less to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_time
from commsim.prediction.checks import texts
from commsim.training.sharing.periodic import JobsLike, PeriodicJob, read_jobs

from .affected import after_faults
from .candidate import MAX_SHOWN, PlacementCandidate, counted_names
from .cluster import Cluster, ClusterLike, read_cluster
from .job_costs import paid_after
from .node_names import on_nodes
from .place import GENERATORS, number_of, place_jobs, rank_placements
from .ranking_remarks import MORE, MOST_ADVISED, PRINTED
from .scores import ScoreSettings

# Slow-downs that are equal as they are printed are no gain.
LEAST_GAIN = 1e-4


@dataclass(frozen=True, slots=True)
class Move:
    """One running job, placed again beside the others.

    Parameters
    ----------
    job : str
        Its name.
    now, after : PlacementCandidate
        All jobs as they are placed, and with this one where it would be best; the same if that is where it is.
    n_tried : int
        Places that were tried for it.
    """

    job: str
    now: PlacementCandidate
    after: PlacementCandidate
    n_tried: int = 0

    @property
    def gain(self) -> float:
        """By how much the stretch of the jobs becomes less; 0 where the job should stay."""
        return self.now.stretch - self.after.stretch

    def to(self, most: int = MAX_SHOWN) -> str:
        """Where to: hosts, at most so many of them; or that it stays, or that no place is better while all lose."""
        if self.after is not self.now and self.after.placement[self.job] == self.now.placement[self.job]:
            return f"stays, starts at {self.after.shifts[self.job] * 1e3:.3f} ms"
        if self.after is not self.now:
            return counted_names(self.after.placement[self.job], most)
        is_good = round(self.now.stretch - 1, PRINTED) <= 0  # or where it is, it could not gain anywhere
        return "stays" if is_good or not self.n_tried else f"none of {self.n_tried} tried is better"

    def pays_after(self, restart: float) -> float | None:
        """Time after which all jobs together have done more than without the move, in s; None where they never do.

        Parameters
        ----------
        restart : float, s
            Time for which the job that moves stands still.
        """
        now, after = (
            {name: one.periods[name] / seconds for name, seconds in one.predicted.items()}
            for one in (self.now, self.after)
        )
        return paid_after(restart, sum(now.values()), sum(after.values()), after[self.job])

    @property
    def others(self) -> tuple[float, float]:
        """Stretch of the other jobs, now and after; 1 without others."""
        now, after = (
            [seconds / one.periods[name] for name, seconds in one.predicted.items() if name != self.job]
            for one in (self.now, self.after)
        )
        return float(np.mean(now or [1.0])), float(np.mean(after or [1.0]))

    def row_with_restart(self, restart: float) -> dict[str, Any]:
        """One JSON row, with the time after which the move has paid for a restart of so many seconds, if any."""
        return self.row() | ({"pays_after_s": self.pays_after(restart) if self.gain else None} if restart else {})

    def row(self) -> dict[str, Any]:
        """One JSON row."""
        now, after = self.now.row(), self.after.row()
        return {
            "job": self.job,
            "gain": round(self.gain, 9) + 0.0,
            "stretch_now": now["stretch"],
            "stretch_after": after["stretch"],
            "slowdown_now": now["slowdown"],
            "slowdown_after": after["slowdown"],
            "others_now": round(self.others[0], 9),
            "others_after": round(self.others[1], 9),
            "placement_now": now["placement"][self.job],
            "placement_after": after["placement"][self.job],
            "iteration_now_ms": now["predicted_iteration_ms"],
            "iteration_after_ms": after["predicted_iteration_ms"],
            "shifts_after_ms": after["shifts_ms"],
        }


@dataclass(frozen=True, slots=True)
class ForcedMove:
    """A job on a host that failed, and where it is best placed beside the others.

    Parameters
    ----------
    job : str
        Its name.
    now, after : tuple of str
        The node of each rank before the failure, and after this move.
    shift : float, s
        Its start in its iteration time.
    """

    job: str
    now: tuple[str, ...]
    after: tuple[str, ...]
    shift: float

    def row(self) -> dict[str, Any]:
        """One JSON row."""
        return {
            "job": self.job,
            "placement_now": [*self.now],
            "placement_after": [*self.after],
            "shift_after_ms": round(self.shift * 1e3, 9),
        }


@dataclass(frozen=True, slots=True)
class Moves:
    """Moves of each running job by itself.

    Parameters
    ----------
    moves : tuple of Move
        Largest gain first; of equals in the order of the jobs.
    remarks : tuple of Remark
        What was left out.
    forced : tuple of ForcedMove
        Moves of the jobs on hosts that failed; `moves` are sought after these.
    before : PlacementCandidate, optional
        All jobs before the failure; None where no job had to be moved.
    restart : float, s
        Time for which a job that is moved stands still.
    """

    moves: tuple[Move, ...]
    remarks: tuple[Remark, ...]
    forced: tuple[ForcedMove, ...] = ()
    before: PlacementCandidate | None = None
    restart: float = 0.0

    @property
    def stopped(self) -> float:
        """GPU-seconds for which jobs that have to be moved stand still, together."""
        return self.restart * sum(len(move.now) for move in self.forced)

    def forced_rows(self) -> list[dict[str, Any]]:
        """JSON rows of the forced moves, with the GPU-seconds that each costs where `restart` is given."""
        return [
            move.row() | ({"stopped_gpu_s": round(self.restart * len(move.now), 9)} if self.restart else {})
            for move in self.forced
        ]

    def remark_lines(self, most: int = MAX_SHOWN) -> list[str]:
        """Return the forced moves, with at most so many hosts, and the stretch of the jobs before and after them."""
        lines = [f"job {move.job} has to be moved: {counted_names(move.after, most)}" for move in self.forced]
        if self.forced and self.restart:
            each = f"{count_text(len(self.forced), 'job')} for {format_time(self.restart)}"
            lines.append(f"stopped: {each}, {self.stopped:.4g} GPU-seconds together (--restart)")
        if self.before is None:
            return lines
        was, now = _stretch(self.before), _stretch(self.moves[0].now)
        text = "this move" if len(self.forced) == 1 else "these moves"
        return [*lines, f"stretch of the jobs: {was} before, {now} with {text}"]

    def __str__(self) -> str:
        """Return a line for each job: its gain, and from where to where; before these what has to be moved."""
        lines = [f"# {line}" for line in self.remark_lines()] + [
            f"{move.job}: stretch {move.now.stretch:.4f}x now, {move.after.stretch:.4f}x after, from "
            f"{counted_names(move.now.placement[move.job])}{' to' if move.gain else ':'} {move.to()}"
            for move in self.moves
        ]
        return "\n".join([*lines, *(f"# {remark}" for remark in self.remarks)])

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each job as a data frame of pandas or polars."""
        return frame_of((move.row() for move in self.moves), library)


def _stretch(candidate: PlacementCandidate) -> str:
    """Return the mean, and the job that loses the most of its period where that is more."""
    slow = {job: candidate.predicted[job] / period for job, period in candidate.periods.items()}
    job = max(slow, key=lambda name: round(slow[name], 9))
    is_more = round(slow[job] - candidate.stretch, PRINTED) > 0
    return f"{candidate.stretch:.4f}x" + (f" (worst: {job} {slow[job]:.4f}x)" if is_more else "")


def rank_moves(
    cluster: ClusterLike,
    jobs: JobsLike,
    *,
    n: int | None = None,
    candidates: int | None = None,
    generators: Sequence[str] = GENERATORS,
    check: bool | None = None,
    settings: ScoreSettings | None = None,
    fail: Sequence[str] = (),
    scale: Sequence[str] = (),
    drain: Sequence[str] = (),
    restart: float = 0.0,
    only: Sequence[str] | None = None,
    most: int | None = None,
) -> Moves:
    """Take each running job off its GPUs, place it again beside the others, and rank these moves by what they gain.

    Parameters
    ----------
    cluster : Cluster, path or dict
        Cluster on which the jobs run, as :func:`commsim.read_cluster` takes it.
    jobs : sequence of PeriodicJob or of dict, or path
        Jobs, as :func:`commsim.read_jobs` takes them. Those without a placement do not run, and are left out.
    n, candidates, generators, check, settings
        Same as in :func:`commsim.place_jobs`, for the places of each job.
    fail, scale : sequence of str
        Same as in :func:`commsim.with_faults`. Jobs on hosts that fail are moved first (`forced` of the answer).
    drain : sequence of str
        Hosts that are to be free, which work: their jobs are moved first, too.
    restart : float, s
        Time for which a job that is moved stands still.
    only : sequence of str, optional
        Names of the jobs that are looked at. Default: all that run.
    most : int, optional
        Number of these that are looked at, those that lose the most. Default: all.

    Returns
    -------
    Moves
        For each of these jobs the slow-downs now and after.
        A job that is moved may start at another time; the others keep their ``start``.

    Raises
    ------
    InputError
        If no job has a placement, a name in `only` or another is unknown, or jobs are placed where no GPUs are free.

    Examples
    --------
    Two jobs of the same phase share the links of two racks, and one of them has room in a rack:

    >>> import commsim as cs
    >>> phases = [{"offset_ms": 0, "dur_ms": 80, "rate_Gbps": 40}]
    >>> far = {"gpus": 2, "iter_time_ms": 100, "phases": phases, "placement": ["h0", "h2"]}
    >>> cluster = {"topology": {"spec": "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=50Gbps"},
    ...            "hosts": {"gpus": 2}}
    >>> best = cs.rank_moves(cluster, [{"job": "a"} | far, {"job": "b"} | far]).moves[0]
    >>> best.now.slowdown > 1.2, best.after.slowdown, best.after.placement["a"]
    (True, 1.0, ('h1', 'h1'))
    """
    generators, drain = texts("packed")("generators", generators), texts("h2")("drain", drain)
    cluster = read_cluster(cluster)
    read = on_nodes(cluster, read_jobs(jobs))
    n = number_of(n, candidates)
    how: dict[str, Any] = {"generators": generators, "check": check, "settings": settings or ScoreSettings()}
    how["costs"] = False
    if not 0 <= restart < float("inf"):
        raise InputError(f"restart is a time of 0 or more, got {restart}")
    if most is not None and most < 1:
        raise InputError(f"most is a number of jobs of 1 or more, got {most}")
    cluster, read, remarks, forced, before = _off_failed(cluster, read, fail, scale, drain, how | {"n": n})
    running = [job for job in read if job.placement is not None]
    if not running:
        raise InputError("no job has a placement, so none can be moved: `commsim place` places jobs")
    waiting = [job.name for job in read if job.placement is None]
    (now,) = rank_placements(cluster, {"now": running}, check=check, settings=how["settings"], new=()).candidates
    moves, alone = [], {name: seconds / now.periods[name] for name, seconds in now.alone.items()}
    for name in [name for name in only or () if name not in alone]:
        raise InputError(f"job {name!r} does not run here, so it cannot be moved; known: {', '.join(alone)}")
    loses = {name: round(now.predicted[name] / now.alone[name], PRINTED) for name in (only or alone)}
    looked_at = sorted(loses, key=lambda name: -loses[name])[:most]
    for i, job in [(i, job) for i, job in enumerate(running) if job.name in looked_at]:
        least = (sum(alone.values()) - alone[job.name] + 1) / len(running)  # none is faster than without the others
        if now.stretch - least <= LEAST_GAIN:
            moves.append(Move(job.name, now, now))
            continue
        freed = [*running[:i], replace(job, placement=None, start=None), *running[i + 1 :]]
        ranking = place_jobs(cluster, freed, n=n, **how)
        after = ranking.candidates[0]
        is_better = now.stretch - after.stretch > LEAST_GAIN
        moves.append(Move(job.name, now, after if is_better else now, ranking.n_tried))
    moves.sort(key=lambda one: -round(one.gain, 9))
    left_out = f"{count_text(len(waiting), 'job')} without a placement left out: {', '.join(waiting)}"
    remarks += [Remark("unplaced", left_out, needed=True)] if waiting else []
    n_tried = max(move.n_tried for move in moves)
    more = min(MORE * n_tried, MOST_ADVISED)
    if round(moves[0].after.stretch, PRINTED) > 1 and n <= n_tried and n < MOST_ADVISED:
        text = f"with the best move jobs are still slower than alone: --candidates {more} tries more places"
        remarks.append(Remark("few-tried", text, moves[0].after.stretch - 1))
    if not restart:
        text = "stopping a job and starting it elsewhere takes no time here (--restart)"
        remarks.append(Remark("restart-left-out", text))
    return Moves(tuple(moves), tuple(remarks), forced, before, restart)


def _off_failed(
    cluster: Cluster,
    jobs: tuple[PeriodicJob, ...],
    fail: Sequence[str],
    scale: Sequence[str],
    drain: Sequence[str],
    how: dict[str, Any],
) -> tuple[Cluster, tuple[PeriodicJob, ...], list[Remark], tuple[ForcedMove, ...], PlacementCandidate | None]:
    """Place the jobs on hosts that failed anew, before moves are sought.

    Returns
    -------
    Cluster, tuple of PeriodicJob, list of Remark, tuple of ForcedMove, PlacementCandidate or None
        What the faults leave, the jobs with the forced moves, remarks, these moves, and the jobs before the failure.
    """
    if not (fail or scale or drain):
        return cluster, jobs, [], (), None
    after, left, remarks = after_faults(cluster, jobs, fail, scale, how["settings"], drain)
    moved = [job for job, now in zip(jobs, left, strict=True) if job.placement and now.placement is None]
    if not moved:
        return after, left, remarks, (), None
    ran = [job for job in jobs if job.placement]
    how_given = {"check": how["check"], "settings": how["settings"], "new": ()}
    (before,) = rank_placements(cluster, {"before": ran}, **how_given).candidates
    stays = [one for one, job in zip(left, jobs, strict=True) if job.placement]
    best = place_jobs(after, stays, **how).candidates[0]
    to = {job.name: best.placement[job.name] for job in moved}
    forced = tuple(ForcedMove(job.name, job.placement or (), to[job.name], best.shifts[job.name]) for job in moved)
    left = tuple(replace(job, placement=to[job.name], placed=()) if job.name in to else job for job in left)
    return after, left, remarks, forced, before
