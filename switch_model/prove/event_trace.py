"""The way to a state, step by step with the same workers throughout, and what each step says as a sequence diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switch_model import slot_kernel as rule

from .exploration import VERDICT, Exploration, room_for, steps_of
from .question import ATP, EPOCHS, ProofQuestion
from .seeded import ONCE, PROGRESS, SAME
from .step_labels import COMES, PARTIAL, REBOOT, RESENT, RESTART, RESULT, SERVED

KINDS = {COMES: "packet", RESENT: "resent", PARTIAL: "sum", SERVED: "answer", RESULT: "result", RESTART: "restart",
         REBOOT: "reboot"}  # fmt: skip
COLUMN = 7  # characters of a diagram from one participant to the next
ROOM = 1 << 12


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step.

    Parameters
    ----------
    kind : str
        "packet" or "resent": a worker's packet comes to the switch. "sum": one comes from there to the server.
        "answer": the server's comes to the switch. "result": a result comes to a worker. "restart" and "reboot".
    worker : int
        Worker; of a sum, the set of workers, as bits.
    chunk : int
        Chunk.
    ago : int
        How many epochs ago the packet was sent.
    action : int
        What the rule said, -1 if the packet was refused before.
    right : bool
        Whether the result, or the sum, is right.
    verdict : int
        What the step shows to be wrong.
    """

    kind: str
    worker: int
    chunk: int
    ago: int
    action: int
    right: bool
    verdict: int


def step_of(label: int) -> TraceStep:
    """Read a label of `step_labels`."""
    kind = KINDS[label & 0xFF]
    more = label >> 32 & 0xFFFFFF
    in_ago = label >> 24 & 0xFF
    right = bool(in_ago) if kind == "sum" else bool(more)
    return TraceStep(kind, label >> 8 & 0xFF, label >> 16 & 0xFF, 0 if kind == "sum" else in_ago, more - 1, right,
                label >> VERDICT)  # fmt: skip


def way_to(found: Exploration, at: int, label: int = 0) -> list[TraceStep]:
    """Return the shortest way to a state, and one step more where there is a label.

    Parameters
    ----------
    found : Exploration
        All states.
    at : int
        Number of the state.
    label : int
        TraceStep from there, or 0.

    Returns
    -------
    list of TraceStep
    """
    chain = [at]
    while found.parents[chain[-1]] >= 0:
        chain.append(int(found.parents[chain[-1]]))
    named, known = steps_of(found.question, symmetric=False), steps_of(found.question)
    here, labels = found.states[chain[-1] : chain[-1] + 1].copy(), []
    for number in reversed(chain[:-1]):
        step, here = _step_to(named, known, here, found.states[number])
        labels.append(step)
    if label:
        room, n = _next(named, here)
        labels.append(next(int(x) for x in room.labels[:n] if x >> VERDICT == label >> VERDICT))
    steps = [step_of(each) for each in labels]
    return steps + _repetitions(named, here) if found.broken == PROGRESS and at == found.at else steps


def _repetitions(named: Any, here: NDArray[np.uint64]) -> list[TraceStep]:
    """Return what happens when each worker repeats what it waits for, once; nothing of it leads to completion."""
    steps: list[TraceStep] = []
    for worker, chunk in named.waits(here):
        room, n = _next(named, here)
        for row in range(n - 1, -1, -1):  # where a worker has two kinds of packets, the resent one
            step = step_of(int(room.labels[row]))
            if step.kind in ("packet", "resent") and (step.worker, step.chunk, step.ago) == (worker, chunk, 0):
                steps, here = [*steps, step], room.new[row : row + 1].copy()
                break
        else:
            steps.append(TraceStep("packet", worker, chunk, 0, -1, False, 0))
    return steps


def _next(named: Any, here: NDArray[np.uint64]) -> tuple[Any, int]:
    room = room_for(named.n_words, ROOM)
    return room, named.expand(here, 0, 1, room)[0]


def _step_to(
    named: Any, known: Any, here: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> tuple[int, NDArray[np.uint64]]:
    """Return the step from a state to one that is known under this name, and that state with its own workers."""
    room, n = _next(named, here)
    row = int(np.flatnonzero((known.same(room.new[:n]) == wanted).all(axis=1))[0])
    return int(room.labels[row]), room.new[row : row + 1].copy()


def diagram(question: ProofQuestion, steps: list[TraceStep], broken: str) -> list[str]:
    """Draw a way as a sequence diagram: one line a step, from who sends to who gets, and what that does."""
    names = [f"w{w}" for w in range(question.workers)] + ["switch"] + ["server"] * (question.system == ATP)
    lines = ["     " + "".join(name.ljust(COLUMN) for name in names).rstrip()]
    came: set[tuple[str, int, int, int]] = set()
    epoch = 0
    for number, step in enumerate(steps, 1):
        lines.append(f"{number:3}  {_arrow(question, names, step)}  {_says(question, step, came, epoch)}".rstrip())
        if step.kind == "packet":
            came.add((step.kind, step.worker, step.chunk, epoch - step.ago))
        epoch += question.recovery == EPOCHS and step.kind in ("restart", "reboot")
    return [*lines, f"     broken: {_ending(steps, broken)}"]


def _arrow(q: ProofQuestion, names: list[str], step: TraceStep) -> str:
    switch = q.workers
    ends = {"packet": (step.worker, switch), "resent": (step.worker, switch), "sum": (switch, switch + 1),
            "answer": (switch + 1, switch), "result": (switch, step.worker), "restart": (step.worker, step.worker),
            "reboot": (switch, switch)}  # fmt: skip
    begin, end = (COLUMN * place for place in ends[step.kind])
    cells = [" "] * (COLUMN * (len(names) - 1) + 1)
    for place in range(len(names)):
        cells[COLUMN * place] = "|"
    low, high = min(begin, end), max(begin, end)
    cells[low : high + 1] = "-" * (high - low + 1)
    cells[begin], cells[end] = "o", ">" if end > begin else "<" if end < begin else "X"
    return "".join(cells)


def _says(q: ProofQuestion, step: TraceStep, came: set[tuple[str, int, int, int]], epoch: int) -> str:
    if step.kind in ("restart", "reboot"):
        who = "the switch reboots" if step.kind == "reboot" else f"w{step.worker} restarts"
        return who + (", the job begins again" if q.recovery == EPOCHS else "")
    if step.kind == "result":
        return f"chunk {step.chunk}: {'the sum' if step.right else 'a wrong sum'}"
    if step.kind == "answer":
        return f"chunk {step.chunk}: the server's sum, to all"
    if step.kind == "sum":
        who = "".join(f"w{w}" for w in range(q.workers) if step.worker >> w & 1)
        return f"chunk {step.chunk} of {who}{'' if step.right else ', wrong'}: {_effect(step)}"
    again = " again" if (step.kind, step.worker, step.chunk, epoch - step.ago) in came else ""
    again = " of before" if step.ago else " resent" if step.kind == "resent" else again
    return f"chunk {step.chunk}{again}: {_effect(step)}"


def _effect(step: TraceStep) -> str:
    action = step.action
    if action < 0:
        return "out of sequence"
    if action & rule.COLLISION:
        return "the slot is taken, on to the server"
    said = [word for bit, word in ((rule.OVERWRITE, "overwrites"), (rule.ADD, "added"), (rule.DUPLICATE, "counted"))
            if action & bit]  # fmt: skip
    if step.kind == "sum":
        said += ["answered"] if action & rule.READ else []
    elif action & rule.READ:
        goes = ((rule.ALL, "sum to all"), (rule.SENDER, "sum to it alone"), (rule.UP, "sum to the server"))
        said += [word for bit, word in goes if action & bit]
    elif action & rule.UP:
        said += ["on to the server"]
    return ", ".join(said) or "counted, nothing added"


def _ending(steps: list[TraceStep], broken: str) -> str:
    if broken == PROGRESS:
        return "it is never complete, whatever the workers repeat and nothing lost"
    last = steps[-1]
    what = "takes a sum that does not hold each contribution once"
    if broken == SAME:
        what = "has had another sum of this chunk"
    return f"w{last.worker} {what}" if broken in (ONCE, SAME) else ""
