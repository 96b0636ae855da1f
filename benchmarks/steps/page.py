"""``docs/data/steps.md``: every group of rows, its errors, the line beside them, and where the network decides."""

from __future__ import annotations

import json
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.steps.predictions import Predicted, line_errors, step_of
from benchmarks.steps.pushes import Push
from benchmarks.steps.slices import Slices
from commsim.training.steps.ask import training_step
from commsim.training.steps.step_setting import KINDS
from commsim.training.steps.transformer import transformer

HEAD = """# Training steps: predictions against published ones

Written by `python -m benchmarks.steps --data DIR --page docs/data/steps.md`.
`commsim workload step` predicts a step from
its configuration. Compute is a roofline of every operator: a matrix product takes what the curve of the GPU says for
its size and precision (`reached` and `matmul` of `commsim/training/gpus.toml`: measured on one H100 and one H200, see
[gpus](gpus.md); of other GPUs the best product that others published, with the H100's ratio of usual ones to the best),
attention the share of the peak that its kernels reach with heads of 128 and one exponential for each score whatever the
width of a head, element-wise work its bytes. What a program loses beside this is
one factor, beside the host's launches in layers with experts
(`commsim/training/steps/launches.py`). Traffic of tensor, context, expert, pipeline and data parallelism is that of the
network, less the part that hides behind computation; parameters that are sharded are gathered layer by layer in every
pass.

The factor is calibrated on one published step for each model, GPU and precision, and for MLPerf and torchtitan also for
each release (`commsim/training/calibrations.toml` names each row). A model without a calibration takes what programs
lose in the median of all other models with, or without, experts: no other model's factor. On GPUs of which only the
best product was measured it is the median of their generation, since the factor also has the error of their curve; of
four such rules that were compared on these rows it is the one with a reason. One further constant, what a hidden data
parallel exchange still costs, is from one MLPerf row. The published files are not part of this repository.

80 % of published steps, of each setup one, lie between 0.93 and 1.17 of what is predicted of a model that nobody
calibrated (experts: 0.83 and 1.27), and between 0.98 and 1.11 (0.96 and 1.25) where another row of the model on the GPU
is calibrated (`commsim/training/intervals.toml`). Of 132 dense rows of `steps.csv`, which these intervals are not from,
73 % lie inside. No published step tells what its traffic exposes: that has no interval.
"""
BLIND = """
Every row predicted with all calibrations of its own model left out: what an answer for a model that nobody calibrated
is worth; beside it, with all calibrations from its own file left out too. `before` is the first of the version before.
The rule of thumb takes 45 % of the peak for the model's operations. The rows of `steps.csv` (all of MPT in llm-foundry,
Llama 2 of fms-fsdp, NeMo 24.07 to 25.04, NeMo AutoModel) were looked at after the roofline was written, and nothing is
fitted to them. AutoModel's configurations compute activations again, which its rows did not say before; its mixtures of
experts were 35 to 52 % too slow with that, some of it launches of each expert, which its grouped kernels do not have.
Programs that run its attention by cuDNN are asked with `--attention fused`.
"""
MECHANISMS = """
Errors with the model left out, and all calibrations made anew each time; times of collectives are bytes over one rate
in the last seven, so that their figures differ by a point from those above. Exchanges of experts that hide behind
another micro-batch are no row's: with them the rows whose recipes name them were 22 % too fast (median), without them 2
%.

| mechanism | rows | with it (median, p90, worst) | taken back |
|---|---|---|---|
| precision as configurations say, and FP4 below | MLPerf, 48 | 4.1%, 13.7%, 22.3% | 6.7%, 20.2%, 28.1% |
| FP4 hides no tensor exchange, and all below | FP4, tp above 1, 18 | 10.3%, 20.6%, 21.9% | 17.3%, 26.1%, 27.2% |
| programs of 2021 hid and sharded nothing | Megatron-LM of 2021, 10 | 4.5%, 16.7%, 16.7% | 9.2%, 12.2%, 16.9% |
| FP32 gradients with full sharding | H100, `steps.csv`, 66 | 6.9%, 18.2%, 23.0% | 7.2%, 19.4%, 26.7% |
| | torchtitan, 18 | 6.6%, 22.6%, 25.5% | 8.3%, 22.7%, 25.2% |
| usual factor of the generation | A100, 57 | 5.9%, 19.0%, 24.4% | 9.1%, 19.9%, 24.9% |
| | Blackwell, without experts, 71 | 3.3%, 10.2%, 20.9% | 4.8%, 13.8%, 22.3% |
| one exponential for each score | Megatron-Bridge, experts, 100 | 11.0%, 23.5%, 47.8% | 11.4%, 24.9%, 47.8% |
| | gpt-oss, 18 | 12.8%, 26.8%, 36.2% | 14.7%, 28.4%, 38.3% |
| biases of experts | Megatron-Bridge, experts, 100 | 11.0%, 23.5%, 47.8% | 11.7%, 27.9%, 47.8% |
| | gpt-oss, 18 | 12.8%, 26.8%, 36.2% | 19.3%, 33.3%, 45.8% |
| BF16 casts nothing | Megatron-Bridge, experts, 100 | 11.0%, 23.5%, 47.8% | 11.1%, 23.8%, 47.8% |
| launches of layers with experts | Megatron-Bridge, experts, 100 | 14.4%, 31.8%, 50.8% | 15.8%, 51.5%, 69.6% |
| | other publishers, experts, 15 | 10.4%, 15.8%, 20.6% | 26.5%, 46.6%, 47.7% |
| a step as one graph launches nothing | of these releases, 12 | 19.0%, 28.7%, 48.3% | 51.7%, 69.6%, 71.0% |
| one copy of a token for each rank | 8 ranks, Megatron-Bridge, 47 | 11.5%, 24.1%, 48.5% | 11.8%, 29.0%, 52.6% |
| | 8 ranks, other publishers, 8 | 10.3%, 14.1%, 17.2% | 12.4%, 14.3%, 14.8% |
| flash attention 2 with full sharding in FP8 too | torchtitan, 18 | 8.8%, 22.1%, 24.3% | 11.1%, 39.8%, 55.4% |
| scores of attention in memory | Megatron-LM of 2021, 10 | 9.5%, 12.8%, 17.1% | 17.6%, 21.4%, 22.7% |
"""
LINE = """
The line is `a + b x micro-batches`, fitted to all other rows of the setup, so it uses more rows than the prediction,
which uses one; where a setup has a single other row, a is 0. It cannot predict another parallelism or model.
"""
NOTES = {
    "scale": "other number of GPUs or global batch, same parallelism but for data parallel ranks",
    "parallelism": "other tensor, pipeline, context or expert parallel sizes, chunks or sharding",
    "release": "the same setup with another release of the software: what a prediction cannot know",
    "unseen": "the calibrated row is in no file of the folder",
    "adapters": "weights frozen: from the calibration of full training",
    "model": "no row of the model is calibrated on that GPU: what programs lose in the median of all other models",
    "precision": "the factor is another precision's",
    "calibrated": "the row of the calibration itself",
}
ASKED = """
The aims: 3 % (median) and 8 % (worst) for scales that were not calibrated, 10 % (median) for a parallelism that was not
calibrated, 10 % and 25 % (p90) for a model that was not calibrated. What misses them and why: steps of mixtures of
experts change by a third and more between releases of the same setup (fused dispatch, overlap, kernels of groups of
products): the nine worst rows are of these. Then, with causes that are not proved: sequences of 32,768 tokens and more
(torchtitan, MPT; -15 to -25 %), whose attention may be of other kernels; Llama 3.1 8B on 512 GB200 (-20 %), a step of
89 ms; torchtitan's H100, of 500 W and other memory (-20 %); MPT 30B on 8 GPUs with 8,192 tokens (-22 %), whose memory
is nearly full. For mixtures of experts 25 % (p90) is near what any model can reach: the median of a setup's own rows,
over releases, misses them by 1.4 % (median), 21.8 % (p90) and 57 % (largest). Bytes of permutations and of casts of
experts' inputs, added to the roofline with all calibrations made anew, left a model that is left out where it was, so
they are not in it. Tried since, and not in it either (experts, model left out): graphs of attention and router alone,
as the recipes of each release name them (11.3 and 24.2 % -> 11.4 and 27.5); launches beside the GPU's work and not in
addition (12.4 -> 15.9 % then); MTP layers, Mamba-2's scans and element-wise work of experts in their layers only
(12.4 -> 18.3 %).
"""
ROW = ("kind", "model", "GPU", "precision", "GPUs", "tp pp cp vp ep", "batch", "measured s", "error", "before",
       "model left out", "before", "45 %")  # fmt: skip
FAULTS = (
    ("", "non-blocking", ()),
    (",oversubscription=2", "oversubscription 2:1", ()),
    ("", "one dead uplink", ("link:leaf0:spine0",)),
)
FABRIC = "rail_optimized:n_hosts=64,preset=dgx-h100,hosts_per_group=4"


Before = dict[tuple[str, ...], list[dict[str, Any]]]


def read_before(path: str | None) -> Before:
    """Read the rows that an earlier version wrote with ``--json``, by what their files say; none without a path."""
    if path is None:
        return {}
    found: Before = defaultdict(list)
    for row in json.loads(Path(path).read_text("utf-8"))["rows"]:
        found[_said(row)].append(row)
    return found


def _said(row: Mapping[str, Any]) -> tuple[str, ...]:
    keys = ("system", "setup", "source", "metric", "value", "step_s", "model", "gpu", "ranks", "sequence", "recompute")
    return tuple(str(row.get(key) or "") for key in keys if not (key in ("model", "gpu") and "setup" in row))


def blind_groups(rows: Sequence[Predicted]) -> dict[str, list[Predicted]]:
    """Return the rows of models without and with experts by file."""
    found: dict[str, list[Predicted]] = {}
    for experts in (False, True):
        for one in rows:
            if one.blind and bool(transformer(one.setup.model).experts) == experts:
                name = f"{'mixtures of experts' if experts else 'dense'}, {one.setup.file}"
                found.setdefault(name, []).append(one)
                found.setdefault("mixtures of experts" if experts else "dense", []).append(one)
    return found


def summary(errors: Sequence[float]) -> str:
    """Return median, p90 and worst of magnitudes."""
    if not errors:
        return "-"
    return f"{np.median(errors):.1%}, {np.quantile(errors, 0.9):.1%}, {max(errors):.1%}"


def _of_before(one: Predicted, before: Before, key: str) -> float | None:
    row = next((r for r in before.get(_said(one.row()), ()) if r.get(key) and r.get("measured_s")), None)
    return row[key] / row["measured_s"] - 1 if row else None


def _blind(rows: Sequence[Predicted], before: Before) -> list[str]:
    cells = []
    for name, members in blind_groups(rows).items():
        old = [abs(e) for one in members if (e := _of_before(one, before, "blind_s")) is not None]
        cells.append([name, str(len(members)), summary([abs(one.blind_error) for one in members]), summary(old),
                      summary([abs(one.foreign_error) for one in members]),
                      summary([abs(one.naive_error) for one in members])])  # fmt: skip
    head = ["rows of", "rows", "median, p90, worst", "before", "without any row of its file too", "45 % of the peak"]
    return [BLIND, *_table(head, cells)]


def write_page(
    path: str, rows: Sequence[Predicted], slices: Sequence[Slices], pushes: Sequence[Push], before: Before
) -> None:
    """Write the page."""
    lines = line_errors(list(rows))
    parts = [
        HEAD,
        "## A model that nobody calibrated",
        *_blind(rows, before),
        "## Mechanisms, taken back one at a time",
        MECHANISMS,
        "## Errors by what differs from the calibrated row",
        *_groups(rows, lines),
        LINE,
        ASKED,
        "## Without mixtures of experts",
        *_groups(_dense(rows), None),
    ]
    parts += ["## Every row", *_rows(rows, before)]
    parts += [
        "## Where the network decides",
        *_exposed(rows),
        "## Llama 3.1 405B on 512 H100: oversubscription and a fault",
    ]
    parts += [*_faults(), "## TPU slices", *_slices(slices), "## KV caches, rails and weights", *_pushes(pushes)]
    parts += ["## Left out", *_left(rows)]
    wrapped = [part if part[:1] in "|#-" else "\n".join(map(_wrapped, part.split("\n"))) for part in parts]
    Path(path).write_text("\n".join(wrapped) + "\n", encoding="utf-8")


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 120, break_on_hyphens=False, break_long_words=False)


def _dense(rows: Sequence[Predicted]) -> list[Predicted]:
    return [one for one in rows if one.step is None or not transformer(one.setup.model).experts]


def _table(columns: Sequence[str], cells: Iterable[Sequence[str]]) -> list[str]:
    return ["", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(c)} |" for c in cells), ""]


def _groups(rows: Sequence[Predicted], lines: dict[int, float] | None) -> list[str]:
    found = line_errors(list(rows)) if lines is None else lines
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, one in enumerate(rows):
        if one.time:
            groups[one.kind, one.setup.file].append(i)
    cells = []
    for (kind, file), members in sorted(groups.items()):
        errors = [abs(rows[i].error) for i in members]
        line = [abs(found[i]) for i in members if i in found]
        cells.append([f"{kind}: {NOTES.get(kind, kind)}", file, str(len(members)), f"{np.median(errors):.1%}",
                      f"{max(errors):.1%}", f"{np.median(line):.1%}" if line else "-"])  # fmt: skip
    return _table(["what differs from the calibrated row", "file", "rows", "median", "worst", "line, median"], cells)


def _rows(rows: Sequence[Predicted], before: Before) -> list[str]:
    def shown(error: float | None) -> str:
        return "-" if error is None else f"{error:+.1%}"

    cells = []
    for one in rows:
        lay = one.setup.layout
        if one.kind == "left out" or lay is None:
            continue
        sizes = f"{lay.tensor} {lay.pipeline} {lay.context} {lay.chunks} {lay.expert}"
        cells.append([one.kind, one.setup.model, one.setup.gpu, one.setup.variant or one.setup.precision,
                      str(lay.n_ranks), sizes, f"{one.setup.micro_batch}/{one.setup.global_batch}",
                      f"{one.setup.measured:.4g}", shown(one.error), shown(_of_before(one, before, "predicted_s")),
                      shown(one.blind_error), shown(_of_before(one, before, "blind_s")),
                      shown(one.naive_error)])  # fmt: skip
    return _table(ROW, cells)


def _exposed(rows: Sequence[Predicted]) -> list[str]:
    """Return what each kind of traffic exposes, of one calibrated row of each model and GPU."""
    first: dict[tuple[str, str], Predicted] = {}
    for one in rows:
        if one.kind == "calibrated":
            first.setdefault((one.setup.model, one.setup.gpu), one)
    cells = []
    for one in first.values():
        if one.step is not None and one.setup.layout is not None:
            step = step_of(one.setup, one.step.setting.factor, by_kind=True)
            shares = [f"{step.exposed[kind] / step.time:.1%}" for kind in KINDS]
            bubble = f"{step.bubble / step.time:.1%}"
            cells.append([one.setup.model, one.setup.gpu, str(one.setup.layout.n_ranks), *shares, bubble])
    told = (
        "Share of the step that a kind of traffic exposes, in the first calibrated row of each model and GPU. Below a "
        "few percent the step takes as long as its computation, and the line is as accurate; where experts, tensor or "
        "data parallelism expose more, the network decides."
    )
    return [told, *_table(["model", "GPU", "GPUs", *KINDS, "bubble"], cells)]


def _faults() -> list[str]:
    cells = []
    first = 0.0
    for suffix, name, fail in FAULTS:
        step = training_step(
            "llama3-405b",
            "h100",
            FABRIC + suffix,
            ranks=512,
            tp=8,
            pp=8,
            cp=2,
            vp=8,
            global_batch=1152,
            precision="fp8",
            fail=fail,
        )
        first = first or step.time
        shares = [f"{step.exposed[kind]:.3g} s" for kind in ("context", "pipeline", "data")]
        cells.append([name, f"{step.time:.4g} s", f"{step.time / first - 1:+.2%}", *shares])
    text = f"`{FABRIC}`: 4 machines under the leaves of their rails, so data parallel rings cross the spines."
    return [text, *_table(["network", "step", "against the first", "context", "pipeline", "data"], cells)]


def _slices(slices: Sequence[Slices]) -> list[str]:
    text = (
        "MaxText on slices of TPUs (`tpu-v5e-slices` and others): parameters sharded in a slice, FP32 gradients added "
        "up between slices after the backward pass. TFLOP/s per chip; losses in points against one slice, which is "
        "calibrated. 128B hides that sum (with two slices it loses nothing), and 52B gains, which no model of the "
        "network explains."
    )
    cells = [
        [s.model, s.chip, str(s.slices), f"{s.measured:g}", f"{s.predicted:.1f}", f"{100 * s.lost:.1f}",
         f"{100 * s.predicted_lost:.1f}"] for s in slices
    ]  # fmt: skip
    return [text, *_table(["model", "chip", "slices", "measured", "predicted", "loss", "predicted loss"], cells)]


def _pushes(pushes: Sequence[Push]) -> list[str]:
    text = (
        "KV caches by `commsim workload kv`, with two fitted rows (`mooncake-rdma`); their rates are published beside "
        "the times. Exchanges over rails and weight updates: a fixed time and a rate through the smallest and the "
        "largest row."
    )
    cells = [
        [p.what, f"{p.measured:.4g}", f"{p.predicted:.4g}", "fitted" if p.fitted else f"{p.error:+.1%}"] for p in pushes
    ]
    return [text, *_table(["what", "measured", "predicted", "error"], cells)]


def _left(rows: Sequence[Predicted]) -> list[str]:
    why: dict[str, int] = defaultdict(int)
    for one in rows:
        if one.setup.left_out and "MaxText" not in one.setup.left_out:
            why[one.setup.left_out] += 1
    return ["", *(f"- {n} row{'s' * (n > 1)}: {text}" for text, n in sorted(why.items()))]
