"""Moves of running jobs: each taken off its GPUs and placed again beside the others, ranked by what that gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from commsim.core.errors import shorten
from commsim.placement.job_costs import paid_after
from commsim.placement.moves import LEAST_GAIN, rank_moves
from commsim.placement.place import GENERATORS
from commsim.placement.scores import ScoreSettings
from commsim.training.sharing.periodic import PeriodicJob

from .beside.kept_jobs import KeptJobs
from .beside.ranking_beside import RankingBeside
from .guard import Refusal
from .limits import require_answer, require_work
from .models import MoveSearch
from .state import ClusterState

_LONGEST = 2.0  # seconds in which the moves of one request are simulated, by what a simulation was measured to take


def read_moves(asked: MoveSearch, state: ClusterState) -> Callable[[], dict[str, Any]]:
    """Read the request, and return what finds the moves.

    Raises
    ------
    Refusal
        If no job is placed wholly, or one of those that are named is not.
    InputError
        If it would be too much work.
    """
    movable = [name for name, one in state.jobs.items() if one.placed and not one.n_left]
    for name in asked.jobs or ():
        if name not in movable:
            raise Refusal(409, f"job {shorten(repr(name))} is not known, or not placed wholly: it cannot be moved")
    if not movable:
        raise Refusal(409, "no known job is placed wholly, so none can be moved")
    if asked.fail or asked.scale or asked.drain:
        jobs = [state.kept.jobs[name].job for name in movable]
        sizes = sorted((job.n_gpus for job in jobs if job.name in (asked.jobs or movable)), reverse=True)
        wanted = sizes if asked.jobs else sizes[: asked.most]
        n_links, n_moves = state.cluster.network.n_links, 1 + len(wanted)  # after those of jobs that have to be moved
        require_work(len(jobs), sum(wanted), asked.candidates, simulated=False, n_links=n_links, n_moves=n_moves)
        return lambda: _after_faults(asked, state, jobs)
    kept, seeds = state.kept, state.seeds
    names = asked.jobs or slowest(kept, movable, asked.most)
    n_gpus = sum(len(state.jobs[name].placed) for name in names)
    require_work(len(names), n_gpus, asked.candidates, simulated=False)
    return lambda: _beside(asked, kept, seeds, names)


def slowest(kept: KeptJobs, movable: Sequence[str], n: int) -> list[str]:
    """Return the jobs that lose the most, at most `n`, with the first hash."""
    slow = kept.of(0)[2].final / kept.period
    of = dict(zip(kept.jobs, slow.tolist(), strict=True))
    return sorted(movable, key=lambda name: -round(of[name], 9))[:n]


def _beside(asked: MoveSearch, kept: KeptJobs, seeds: tuple[int, ...], names: Sequence[str]) -> dict[str, Any]:
    rows = [_move(asked, kept, seeds, name, _LONGEST / (2 * len(names))) for name in names]
    answer = {"moves": sorted(rows, key=lambda row: -float(row["gain"])), "notes": []}
    require_answer(answer)
    return answer


def _move(asked: MoveSearch, kept: KeptJobs, seeds: tuple[int, ...], name: str, longest: float) -> dict[str, Any]:
    """Hold a job's place and start against the best of others, both as candidates beside the jobs that stay."""
    job, others = kept.jobs[name].job, kept.changed({}, (name,))
    now = RankingBeside(others, seeds, [job]).rank(1, GENERATORS, 0, longest)[0]
    ranking = RankingBeside(others, seeds, [replace(job, placement=None, start=None)])
    best = ranking.rank(asked.candidates, asked.generators or GENERATORS, 0, longest)[0]
    row = ranking.row(best)
    by_formula = now.is_estimate or best.is_estimate  # an estimate is held against another one
    before, after = ((one.estimated if by_formula else one.cost) for one in (now, best))
    stays = before - after <= LEAST_GAIN
    times, times_after = (
        one.of_seed[one.median].times.final if by_formula or one.simulated is None else one.simulated[2].after
        for one in (now, best)
    )
    period = np.append(others.period, job.period)
    changed = np.abs(times_after - times) > LEAST_GAIN * period  # of jobs that lose less after it, too
    shown = [(one, i) for i, one in enumerate((*others.jobs, name)) if changed[i] or one == name]
    rate, rate_after = period / times, period / times_after
    pays = paid_after(asked.restart_s, float(rate.sum()), float(rate_after.sum()), float(rate_after[-1]))
    is_simulated = not by_formula and any(one.simulated is not None for one in (now, best))
    return {
        "job": name,
        "gain": 0.0 if stays else round(before - after, 9),
        "cost_now": round(before, 9) + 0.0,
        "cost_after": round(before if stays else after, 9) + 0.0,
        "prediction": "simulation" if is_simulated else "estimate",
        "placement_now": list(job.placement or ()),
        "placement_after": list(job.placement or ()) if stays else row["placement"][name],
        "iteration_now_ms": {one: round(float(times[i]) * 1e3, 9) for one, i in shown},
        "iteration_after_ms": {} if stays else {one: round(float(times_after[i]) * 1e3, 9) for one, i in shown},
        "shifts_after_ms": {} if stays else row["shifts_ms"],
    } | ({"pays_after_s": None if stays else pays} if asked.restart_s else {})


def _after_faults(asked: MoveSearch, state: ClusterState, jobs: Sequence[PeriodicJob]) -> dict[str, Any]:
    """Move jobs off hosts that fail first, as ``commsim place moves`` does."""
    moves = rank_moves(
        state.cluster, jobs, n=asked.candidates, generators=asked.generators or GENERATORS,
        settings=ScoreSettings(hashes=len(state.seeds)), fail=asked.fail, scale=asked.scale,
        drain=asked.drain, restart=asked.restart_s, only=asked.jobs, most=None if asked.jobs else asked.most,
    )  # fmt: skip
    answer = {
        "forced": moves.forced_rows(),
        "moves": [move.row_with_restart(asked.restart_s) for move in moves.moves],
        "notes": [str(remark) for remark in moves.remarks],
    }
    answer |= {"stopped_gpu_s": round(moves.stopped, 9)} if moves.forced and asked.restart_s else {}
    require_answer(answer)
    return answer
