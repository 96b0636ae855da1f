"""Execution of the steps of all GPUs with no regard to time: in which order they touch each chunk."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from commsim.core.errors import InputError

from .algorithm import RECEIVING, SENDING, Algorithm, BlockStep

# GPU, thread block, step.
Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A step that was done, and the send whose message it took."""

    place: Place
    step: BlockStep
    send: Place | None


def execute(algorithm: Algorithm, backwards: bool = False) -> Iterator[ExecutedStep]:
    """Execute every step as soon as it can be done, sends without waiting for their receiver.

    Parameters
    ----------
    algorithm : Algorithm
        Checked.
    backwards : bool
        Whether to take the last one of the thread blocks that can go on, in place of the first.

    Raises
    ------
    InputError
        If not all steps can be done, or a receive takes another number of chunks than were sent.
    """
    blocks = [(g, b) for g, gpu in enumerate(algorithm.gpus) for b in range(len(gpu.blocks))]
    done = dict.fromkeys(blocks, 0)
    sent: dict[Place, deque[tuple[Place, int]]] = defaultdict(deque)  # by source, destination, channel
    asleep: dict[object, list[tuple[int, int]]] = defaultdict(list)
    runnable = deque(blocks)
    n_left = sum(len(block.steps) for gpu in algorithm.gpus for block in gpu.blocks)
    while runnable:
        g, b = runnable.pop() if backwards else runnable.popleft()
        block = algorithm.gpus[g].blocks[b]
        while done[g, b] < len(block.steps):
            number = done[g, b]
            step = block.steps[number]
            connection = (block.recv, g, block.channel)
            if step.wait is not None and done[g, step.wait[0]] <= step.wait[1]:
                asleep[g, step.wait[0]].append((g, b))
                break
            if step.kind in RECEIVING and not sent[connection]:
                asleep[connection].append((g, b))
                break
            taken = None
            if step.kind in RECEIVING:
                taken, count = sent[connection].popleft()
                if count != step.count:
                    raise InputError(
                        f"{_name((g, b, number))} takes {step.count} chunks of the {count} that {_name(taken)} sends"
                    )
            if step.kind in SENDING:
                out = (g, block.send, block.channel)
                sent[out].append(((g, b, number), step.count))
                runnable.extend(asleep.pop(out, ()))
            done[g, b] += 1
            n_left -= 1
            runnable.extend(asleep.pop((g, b), ()))
            yield ExecutedStep((g, b, number), step, taken)
    if n_left:
        g, b = next(place for place in blocks if done[place] < len(algorithm.gpus[place[0]].blocks[place[1]].steps))
        raise InputError(f"{_name((g, b, done[g, b]))} never starts (a deadlock), and {n_left - 1} other steps with it")
    for (src, dst, channel), left in sent.items():
        if left:
            raise InputError(f"gpu {dst} never receives what gpu {src} sends it on channel {channel}")


def _name(place: Place) -> str:
    return "gpu {}, thread block {}, step {}".format(*place)
