"""Fences of programs: computations of no time that end a stage of their rank.

A fence of a schedule waits until messages have arrived at their other end, which no rank can know. Where programs are
executed it waits for what the rank knows: that its sends have left and its receives are complete. Marked with the
number of the stage that begins, it is a fence again where programs become a schedule.
"""

from __future__ import annotations

from dataclasses import replace

from commsim.core.errors import InputError

from .operations import CALC, MatchedMessage, Programs, RankOperation, deadlock, sorted_after

# Stages are numbered below this, so that a number fits where formats leave room for one.
MAX_STAGE = 2**24


def stages_of(rank: int, ops: tuple[RankOperation, ...]) -> list[int]:
    """Stage of every operation of a rank: the largest number of the fences that it comes after.

    Raises
    ------
    InputError
        If operations wait for each other, or a fence ends a stage that is later than the one it begins.
    """
    stage = [op.stage for op in ops]
    if not any(stage):
        return stage
    waits = [{*op.after, *op.after_start} for op in ops]
    order = sorted_after(waits)
    if order is None:
        raise deadlock(waits, lambda i: f"rank {rank}'s operation {i}")
    for i in order:
        before = max((stage[j] for j in (*ops[i].after, *ops[i].after_start)), default=0)
        if ops[i].stage and before >= ops[i].stage:
            raise InputError(f"rank {rank}: a fence begins stage {ops[i].stage}, and waits for stage {before}")
        stage[i] = max(stage[i], before)
    return stage


def cut_into_stages(programs: Programs, messages: list[MatchedMessage]) -> tuple[Programs, list[list[int]]]:
    """Take out what fences say: no operation waits for another stage any more.

    Returns
    -------
    Programs, list of list of int
        Without dependencies between stages, and the stage of every operation.

    Raises
    ------
    InputError
        If the two ends of a message are in different stages, or a rank's stages contradict each other.
    """
    stages = [stages_of(rank, ops) for rank, ops in enumerate(programs.ranks)]
    for m in messages:
        ends = stages[m.src][m.send], stages[m.dst][m.recv]
        if ends[0] != ends[1]:
            raise InputError(
                f"rank {m.src} sends with tag {m.tag} in stage {ends[0]} what rank {m.dst} receives in stage {ends[1]}"
            )
    cut = zip(programs.ranks, stages, strict=True)
    return Programs(tuple(_stage_operations(ops, stage) if any(stage) else ops for ops, stage in cut)), stages


def _stage_operations(ops: tuple[RankOperation, ...], stage: list[int]) -> tuple[RankOperation, ...]:
    def same(i: int, waited: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(j for j in waited if stage[j] == stage[i] and not ops[j].stage)

    return tuple(
        RankOperation(CALC, 0)
        if op.stage
        else replace(op, after=same(i, op.after), after_start=same(i, op.after_start))
        for i, op in enumerate(ops)
    )


def fenced(ops: list[RankOperation], stage: list[int]) -> tuple[RankOperation, ...]:
    """Put fences between the stages of a rank.

    Parameters
    ----------
    ops : list of RankOperation
        Operations without fences; what they wait for in other stages is left to the fences.
    stage : list of int
        Stage of each operation.
    """
    if not any(stage):
        return tuple(ops)
    members: dict[int, list[int]] = {}
    for i, s in enumerate(stage):
        members.setdefault(s, []).append(i)
    fence = {s: len(ops) + k for k, s in enumerate(sorted(members.keys() - {0}))}
    out = []
    for op, s in zip(ops, stage, strict=True):
        same_stage = tuple(j for j in op.after if stage[j] == s)
        out.append(replace(op, after=(fence[s], *same_stage) if s else same_stage))
    earlier: list[int] = members.get(0, [])
    for s in fence:
        out.append(RankOperation(CALC, 0, after=tuple(earlier), stage=s))
        earlier = members[s]
    return tuple(out)
