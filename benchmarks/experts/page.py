"""The page of measured exchanges of experts: classes, every table, and the constants of every kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from benchmarks.experts.answers import Answer
from commsim.experts.kernels import ExpertKernel, known_kernels

Groups = Callable[..., Iterable[tuple[str, list[Answer]]]]
HEAD = """# Expert parallelism: predictions against public tables

Written by `python -m benchmarks.experts --data DIR --page docs/data/experts.md`.
[collectives.md](../collectives.md) and [workloads.md](../workloads.md) describe how to run `ep_dispatch` and
`ep_combine`. The tables (DeepEP and TensorRT-LLM,
ai-dynamo/aiconfigurator at 095f58a51, Apache-2.0) are public, and are not part of this repository. Errors are
absolute values of the relative error of the time.

## The model

A call takes the time of its launch, then the longest of three times that pass concurrently, each of the busiest rank:

- the links, which the flow engine simulates: copies of tokens cross NVLinks and NICs at a share of their rates. In
  normal mode a token crosses once to each other machine, and a relay sends it on to each rank; in low-latency mode a
  separate copy goes to the rank of each of its experts;
- the SMs: each copies at a fixed rate, and takes a fixed time for each copy; with several machines, a copy to a
  machine counts like a copy to a rank. A low-latency kernel gives each expert a group of warps, so that 8 experts
  keep 8 SMs busy, and 160 experts keep 80 of 132 SMs busy;
- the channel between two ranks (TensorRT-LLM).

The launch time grows with the number of groups of experts per SM, with the number of experts on other machines that
get a count of tokens, and with the number of peers of a token. The pipeline of a normal kernel is full only after
some microseconds.

Routing: DeepEP's tables agree with experts drawn uniformly (8 experts are on 5.25 different ranks of 8), NVL72's with
experts on as many different ranks as possible. Precision, where a table gives none: FP8 with scales in dispatch and
BF16 in combine. One machine and several have the same constants; NICs beside other GPUs have the constants measured
with H100. Racks of 72
GPUs are one machine, whatever trays a table names. An unknown system has the constants of the nearest GPU, and its
row says so.

## What was fitted

Low latency on one machine: 6 of 16 combinations of hidden size, experts per token and number of experts. Normal: 256
experts
with 4, 12, 20 and 24 SMs. Two machines: all low-latency tables, and normal tables with the same numbers of SMs.
NVL72: 2, 4 and 8 ranks. Nothing of 4
machines, of 16 ranks of NVL72, of 384 experts in normal mode. A campaign (system, machines, ranks) counts as much as
any other.

Held back means that no number was fitted on a table; the form of the model was chosen with all tables in sight. The
tables of 4 machines determined the following: notification in normal dispatch takes the same time per expert as in the
low-latency kernel, its NICs reach the same share of their rate, and relays pipeline in 32 pieces. The tables of 16
ranks of NVL72 determined that the channel of a pair is the same for all of a library's kernels. The values of these
constants come from the other tables.

Known misses: one-machine dispatch on H100 took 26 us without tokens in one campaign and 37 us in the other, but one
constant is used for both; combines of few tokens on 4 machines take 10 us longer than on 2, which the tables of two
machines cannot show; a normal dispatch with 12 SMs on two machines is unhealthy from 2,048 tokens on.
"""
PUBLISHED = """
## Beyond the tables

DeepEP's README gives low-latency times of 128 tokens on H800 with NICs of 400 Gb/s, to which nothing is fitted. The
predictions are those of `run` on `dgx-h100@star:machines=M`, with
`ep_dispatch:tokens=128,mode=low_latency,library=deepep` and `ep_combine`:

| ranks | dispatch, published | predicted | combine, published | predicted |
|---|---|---|---|---|
| 16 | 118 us | 104 us | 195 us | 188 us |
| 32 | 155 us | 149 us | 273 us | 277 us |
| 64 | 173 us | 177 us | 314 us | 333 us |

`run` draws the routing of the call's own tokens; for the tables, the copies are scaled from those of 1,024 tokens a
rank. A call of few tokens therefore takes up to 15 % longer in `run`, because its busiest rank has more than its
share.
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


def _constants(of_gpu: Mapping[str, ExpertKernel]) -> list[str]:
    """Table of the constants that some GPU has, a column for each GPU."""
    lines = [f"| constant | {' | '.join(of_gpu)} |", "|---|" + "---|" * len(of_gpu)]
    for field in fields(ExpertKernel):
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
