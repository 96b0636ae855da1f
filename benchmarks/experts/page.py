"""The page of measured exchanges of experts: classes, every table, and the constants of every kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from benchmarks.experts.answers import Answer
from commsim.software.experts.kernels import Kernel, known_kernels

Groups = Callable[..., Iterable[tuple[str, list[Answer]]]]
HEAD = """# Expert parallelism: predictions against public tables

Written by `python -m benchmarks.experts --data DIR --page docs/experts.md`. How `ep_dispatch` and `ep_combine` are
asked for is in [collectives.md](collectives.md) and [workloads.md](workloads.md). The tables (DeepEP and TensorRT-LLM,
ai-dynamo/aiconfigurator at 095f58a51, Apache-2.0) are public, and no part of this repository. Errors are sizes of
relative errors of the time.

## The model

A call takes its launch, then the longest of three things that run at the same time, all of the busiest rank:

- the links, which the flow engine simulates: of copies of tokens over NVLinks and NICs, at a share of their rates. In
  normal mode a token crosses once to each other machine, and a relay sends it on to each rank; in low-latency mode it
  goes to the rank of each of its experts by itself;
- the SMs: each copies so many bytes a second, and takes a time for each copy; with several machines a copy to a machine
  counts as one to a rank. A low-latency kernel gives each expert a group of warps, so that 8 experts keep 8 SMs busy,
  and 160 experts on 132 SMs 80;
- the channel between two ranks (TensorRT-LLM).

The launch grows with the groups of experts that an SM looks after, with the experts in other machines that are told how
many tokens come, and with the peers of a token. The pipeline of a normal kernel is full only after some microseconds.

Routing: DeepEP's tables agree with experts drawn uniformly (of 8 experts on 8 ranks 5.25 ranks are different), NVL72's
with experts that are as far apart as they can be. Precision: FP8 with scales one way and BF16 back, where a table does
not say. One machine and several have the same constants; NICs of other GPUs have those that H100 shows. Racks of 72
GPUs are one machine, whatever trays a table names. A system that is not known has the constants of the next GPU, and
the row says so.

## What was fitted

Low latency on one machine: 6 of 16 combinations of hidden size, experts of a token and experts. Normal: 256 experts
with 4, 12, 20 and 24 SMs. Two machines: low latency all, normal the same SMs. NVL72: 2, 4 and 8 ranks. Nothing of 4
machines, of 16 ranks of NVL72, of 384 experts in normal mode. A campaign (system, machines, ranks) counts as much as
any other.

Held back means that no number was fitted on a table; the form of the model was chosen with all tables in sight. What
the tables of 4 machines decided: notification in normal dispatch takes the time of each expert that the low-latency
kernel has, its NICs reach the same share, and relays pipeline finely (32 pieces). What 16 ranks of NVL72 decided: the
channel of a pair is the same for all of a library's kernels. The numbers of all these come from the other tables.

Known misses: one-machine dispatch on H100 took 26 us without tokens in one campaign and 37 us in the other, with one
constant between them; combines of few tokens on 4 machines take 10 us longer than on 2, of which two machines say
nothing; a normal dispatch with 12 SMs on two machines is unhealthy from 2,048 tokens on.
"""
PUBLISHED = """
## Beyond the tables

DeepEP's README gives low-latency times of 128 tokens on H800 with NICs of 400 Gb/s, which nothing is fitted on. `run`
predicts on `dgx-h100@star:machines=M`, with `ep_dispatch:tokens=128,mode=low_latency,library=deepep` and `ep_combine`:

| ranks | dispatch, published | predicted | combine, published | predicted |
|---|---|---|---|---|
| 16 | 118 us | 104 us | 195 us | 188 us |
| 32 | 155 us | 149 us | 273 us | 277 us |
| 64 | 173 us | 177 us | 314 us | 333 us |

`run` draws the routing of the very tokens; the tables are predicted with copies in proportion to those of 1,024 tokens
of a rank, so that a call of few tokens, whose busiest rank has more than its share, takes up to 15 % longer in `run`.
"""
COLUMNS = "| {} | fitted | tables | rows | median | 90th |"


def page(
    answers: Sequence[Answer], refused: Mapping[str, str], groups: Groups, of_class: Callable[[Answer], str]
) -> str:
    """Return the page.

    Parameters
    ----------
    answers : sequence of Answer
        All rows.
    refused : mapping of str to str
        Rows without a prediction, and why.
    groups, of_class : callable
        Functions that group answers, and name the class of one.
    """
    lines = [HEAD, "## Classes of tables", "", COLUMNS.format("class"), "|---|---|---|---|---|---|"]
    by_class = groups(answers, lambda one: f"{of_class(one)}{'' if one.fitted else ' (held back)'}")
    lines += [_line(name, some) for name, some in by_class]
    held = [one for one in answers if not one.fitted]
    lines += [_line("all", answers)] + ([_line("all held back", held)] if held else [])
    lines += [PUBLISHED, "## Constants", "", "Microseconds, GB/s and shares.", ""]
    for name, of_gpu in known_kernels().items():
        lines += [f"### {name}", "", *_constants(of_gpu), ""]
    lines += ["## Every table", "", COLUMNS.format("table"), "|---|---|---|---|---|---|"]
    lines += [_line(name, some) for name, some in groups(answers, lambda one: one.row.table)]
    if refused:
        lines += ["", "Not predicted:", "", *(f"- {table}: {why}" for table, why in refused.items())]
    return "\n".join(lines) + "\n"


def _line(name: str, some: Sequence[Answer]) -> str:
    errors, fitted = np.abs([one.error for one in some]), {one.fitted for one in some}
    told = "yes" if fitted == {True} else "no" if fitted == {False} else "partly"
    tables = len({one.row.table for one in some})
    return f"| {name} | {told} | {tables} | {len(some)} | {np.median(errors):.1%} | {np.percentile(errors, 90):.1%} |"


def _constants(of_gpu: Mapping[str, Kernel]) -> list[str]:
    """Table of the constants that some GPU has, a column for each GPU."""
    lines = [f"| constant | {' | '.join(of_gpu)} |", "|---|" + "---|" * len(of_gpu)]
    for field in fields(Kernel):
        if field.name in ("tables", "fitted"):
            continue
        values = [getattr(kernel, field.name) for kernel in of_gpu.values()]
        if all(value == field.default for value in values):
            continue
        lines.append(f"| {field.name} | {' | '.join(_shown(field.name, value) for value in values)} |")
    return [*lines, f"| fitted on | {' | '.join(kernel.fitted.split(' of ai')[0] for kernel in of_gpu.values())} |"]


def _shown(name: str, value: float) -> str:
    if name.endswith("rate"):
        return f"{value / 1e9:.4g} GB/s" if np.isfinite(value) else "-"
    shares = ("nvlink", "network", "between", "sms")
    return f"{value:.4g}" if name in shares else f"{value * 1e6:.4g} us" if value else "-"
