"""Rows of the files of published steps, read into questions: model, GPU, parallelism, batch, and the measured step."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.steps.own_steps import of_own_row
from benchmarks.steps.recipes import EXPOSED_2021, of_submission, with_recipe
from benchmarks.steps.setup import Setup
from commsim.core.errors import CommsimError, InputError
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.roofline import UNFUSED
from commsim.training.steps.transformer import known_transformers, transformer

FILES = ("megatron_bridge.csv", "mlperf_steps.csv", "published.csv", "steps.csv")
# What is looked for in the name of a system, the longest first.
GPUS = ("GB300", "GB200", "B300", "B200", "H200", "H100", "H800", "H20", "A100", "MI300X", "V100", "TPU v4", "TPU v5e",
        "TPU v5p", "TPU v6e", "TPU-v4", "TPU-v5e", "TPU-v5p", "TPU-v6e")  # fmt: skip
# Published names of models that differ from ours by more than signs.
MODELS = {
    "llama31405b": "llama3-405b", "llama318b": "llama3-8b", "llama3170b": "llama3-70b", "gpt3": "gpt3-175b",
    "405b": "llama3-405b", "llama270blora": "llama2-70b", "nemotron340b": "nemotron-4-340b",
    "nemotron15b": "nemotron-4-15b", "nemotron4340b": "nemotron-4-340b", "nemotron415b": "nemotron-4-15b",
    "qwen330ba3b": "qwen3-30b-a3b", "qwen3235ba22b": "qwen3-235b-a22b",
}  # fmt: skip
PRECISIONS = {"bf16": "bf16", "fp8": "fp8", "fp8-cs": "fp8", "mxfp8": "fp8", "fp8-mx": "fp8", "nvfp4": "fp4"}
# Share of the forward pass that torchtitan's selective recomputation repeats: every second layer, or product.
SELECTIVE = 0.5
# Chunks of a stage where a row of a pipeline does not say them.
CHUNKS = {"gpt3-175b": 6, "llama3-405b": 8}


def read_setups(folder: str) -> list[Setup]:
    """Read all files of a folder that are there.

    Raises
    ------
    InputError
        If none is there, or a file cannot be read.
    """
    found: list[Setup] = []
    paths = [Path(folder) / name for name in FILES]
    if not any(path.is_file() for path in paths):
        raise InputError(f"{folder} has none of {', '.join(FILES)}")
    for path in paths:
        if path.is_file():
            try:
                with path.open(newline="", encoding="utf-8") as stream:
                    rows = list(csv.DictReader(stream))
            except (OSError, UnicodeDecodeError, csv.Error) as error:
                raise InputError(f"{path}: cannot be read: {error}") from None
            found += _READERS[path.name](rows)
    return found


def _own(rows: list[dict[str, str]]) -> list[Setup]:
    found = []
    for row in rows:
        text = f"{row.get('system') or ''} {row.get('model')} on {row.get('ranks')}".strip()
        one = Setup("steps.csv", row.get("system") or "", text, row.get("source") or "", given=dict(row))
        found.append(_guarded(one, row, of_own_row))
    return found


def _mlperf(rows: list[dict[str, str]]) -> list[Setup]:
    found = []
    for row in rows:
        round_ = re.search(r"training_results_v([\d.]+)", row.get("source") or "")
        software = f"MLPerf {round_[1]}" if round_ else "MLPerf"
        one = Setup("mlperf_steps.csv", row.get("system", ""), row.get("benchmark", ""), row.get("source", ""),
                    software=software, given=dict(row))  # fmt: skip
        found.append(_guarded(one, row, _of_mlperf))
    return found


def _guarded(one: Setup, row: dict[str, str], read: Callable[[Setup, dict[str, str]], Setup]) -> Setup:
    """Read a row; what is wrong with it is why it is left out."""
    try:
        found = read(one, row)
        if found.left_out or 0 < found.measured < math.inf:
            return found
        return replace(found, measured=0.0, left_out=f"the measured step must be above 0 s, got {found.measured}")
    except (CommsimError, ValueError, AttributeError, OverflowError, KeyError, TypeError, ZeroDivisionError) as error:
        return replace(one, left_out=f"cannot be read: {error}")


def _of_mlperf(one: Setup, row: dict[str, str]) -> Setup:
    name, gpu = model_of(row["benchmark"]), gpu_of(f"{row['gpu']} {row['system']}")
    ranks, assumed = int(float(row["ranks"])), []
    measured = float(row["step_s"])
    if why := _unknown(row["benchmark"], name, row["gpu"], gpu):
        return replace(one, model=name, gpu=gpu, left_out=why, measured=measured)
    if gpu.startswith("tpu"):
        why = "the parallelism of the TPU submissions and what their blocks evaluate are not known"
        return replace(one, model=name, gpu=gpu, measured=measured, left_out=why)
    sizes = {}
    for key in ("tp", "pp", "cp"):
        if not row.get(key) and key != "cp":
            assumed.append(f"{key} 1")
        sizes[key] = int(float(row.get(key) or 1))
    data, left = divmod(ranks, sizes["tp"] * sizes["pp"] * sizes["cp"])
    if left:
        return replace(one, model=name, gpu=gpu, measured=measured, left_out="tp x pp x cp does not divide the ranks")
    chunks = int(float(row.get("vp") or 1))
    if not row.get("vp") and sizes["pp"] > 1:
        chunks = CHUNKS.get(name, 1)
        assumed.append(f"vp {chunks}")
    micro = int(float(row.get("micro_batch") or 0))
    batch = int(float(row["global_batch"]))
    if not micro:
        counted = float(row.get("micro_batches") or 1)
        micro = max(1, round(batch / data / counted))
        assumed.append(f"micro-batch {micro}")
    if batch < data and not row.get("cp") and data % batch == 0:
        sizes["cp"], data = data // batch, batch
        assumed.append(f"cp {sizes['cp']}")
    found = replace(
        one,
        model=name,
        gpu=gpu,
        micro_batch=micro,
        global_batch=batch,
        layout=ParallelSizes(sizes["tp"], sizes["pp"], sizes["cp"], data, 1, chunks),
        sequence=int(float(row["sequence"])),
        measured=measured,
        frozen="lora" in row["benchmark"],
        assumed=tuple(assumed),
    )
    return of_submission(found)


def _bridge(rows: list[dict[str, str]]) -> list[Setup]:
    ratios: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row.get("metric") == "model_tflops_per_gpu":
            value = _first(row.get("value") or "")
            ratios[_named(row)] = value * 1e12 if value else 0.0
    found = []
    for row in rows:
        if row.get("metric") == "tokens_per_s_per_gpu":
            one = Setup(
                "megatron_bridge.csv",
                row.get("system", ""),
                row.get("setup", ""),
                row.get("source", ""),
                given=dict(row),
            )
            rate = ratios.get(_named(row), 0.0)
            found.append(_guarded(one, row | {"flops": str(rate)}, _of_bridge))
    return found


def _named(row: dict[str, str]) -> tuple[str, ...]:
    """Return what two metrics of one step have in common."""
    return tuple(row.get(key) or "" for key in ("system", "setup", "source"))


def _of_bridge(one: Setup, row: dict[str, str]) -> Setup:
    called, _, rest = row["setup"].partition(";")
    name, gpu = model_of(called), gpu_of(row["system"])
    given = {key.lower(): value for key, value in re.findall(r"(\w+)=([^\s=]+)", rest)}
    ranks, value = int(float(row["ranks"])), _first(row["value"])
    batch, sequence = int(given["gbs"]), int(given["sequence_length"])
    measured = batch * sequence / (value * ranks) if value else 0.0
    if why := _unknown(called, name, row["system"], gpu):
        return replace(one, model=name, gpu=gpu, left_out=why, measured=measured)
    if not measured:
        return replace(one, model=name, gpu=gpu, left_out=f"the measured value is no number: {row['value']!r}")
    if "(" in re.sub(r"Precision=\S+ \([^)]*\)", "", rest):
        one = replace(one, assumed=("the first of two settings",))
    text = given.get("precision", "").lower()
    assumed = list(one.assumed)
    if text not in PRECISIONS:
        text = (
            "fp8-cs"
            if gpu in ("h100", "h200", "gh200")
            else "fp8-mx"
            if "DeepSeek" in called or "Qwen" in called
            else "fp8-cs"
        )
        assumed.append(f"precision {text}")
    variant = {"mxfp8": "mxfp8", "fp8-mx": "mxfp8"}.get(text, "")
    fsdp = int(_first(given.get("fsdp", "0")) or 0)
    size = {key: int(_first(given.get(key, "1")) or 1) for key in ("tp", "pp", "cp", "vp", "ep")}
    data, left = divmod(ranks, size["tp"] * size["pp"] * size["cp"])
    if left:
        return replace(one, model=name, gpu=gpu, measured=measured, left_out="tp x pp x cp does not divide the ranks")
    micro = int(given["mbs"])
    flops = transformer(name).flops(sequence)
    counted = float(row["flops"]) / value if value else 0.0
    frozen = bool(counted and counted < 0.8 * flops and not transformer(name).experts)
    if frozen:
        assumed.append(f"only adapters are trained: {counted / flops:.0%} of the model's operations are counted")
    release = re.search(r"\(([\d.]+) NeMo", one.source)
    found = replace(
        one, model=name, gpu=gpu, precision=PRECISIONS[text], variant=variant, micro_batch=micro, global_batch=batch,
        layout=ParallelSizes(size["tp"], size["pp"], size["cp"], data, size["ep"], size["vp"]), sequence=sequence,
        measured=measured, sharding="full" if fsdp > 1 else "optimizer", frozen=frozen, assumed=tuple(assumed),
    )  # fmt: skip
    return with_recipe(found, release[1] if release else "")


def _published(rows: list[dict[str, str]]) -> list[Setup]:
    found = []
    for row in rows:
        if row.get("metric") in ("tokens_per_s_per_gpu", "tflops_per_gpu", "tflops_per_chip"):
            one = Setup(
                "published.csv", row.get("system", ""), row.get("setup", ""), row.get("source", ""), given=dict(row)
            )
            found.append(_guarded(one, row, _of_published))
    return found


def _of_published(one: Setup, row: dict[str, str]) -> Setup:
    text, ranks, value = row["setup"], int(float(row["ranks"])), _first(row["value"])
    gpu = gpu_of(row["system"])
    if gpu.startswith("tpu") or "MaxText" in text:
        return replace(one, gpu=gpu, software="maxtext", left_out="sharded over pods: see the page's table of MaxText")
    number = re.match(r"([\d.]+)B\b", text)
    megatron = bool(number) and "Megatron" in row["source"]
    name = f"megatron-{number[1]}b" if megatron and number else model_of(re.sub(r",.*", "", text).split(" BF16")[0])
    if why := _unknown(text, name, row["system"], gpu):
        return replace(one, model=name, gpu=gpu, left_out=why)
    size = {
        key: int(found[1]) if (found := re.search(rf"\b{key} ?(\d+)", text)) else 1
        for key in ("TP", "PP", "CP", "FSDP")
    }
    data, assumed = ranks // (size["TP"] * size["PP"] * size["CP"]), []
    sequence = int(found[1]) if (found := re.search(r"seq (\d+)", text)) else 8192
    if "seq" not in text:
        assumed.append(f"sequence {sequence}")
    local = int(found[1]) if (found := re.search(r"(?:local batch|batch/DP) (\d+)", text)) else 0
    batch = local * data if local else int(re.search(r"batch (\d+)", text)[1])  # type: ignore[index]
    pipelined = size["PP"] > 1 or megatron
    micro = 1 if pipelined else max(1, batch // data)
    chunks = 1
    if pipelined and not megatron:
        chunks = CHUNKS.get(name, 1)
        assumed.append(f"vp {chunks}")
    precision = "fp8" if "fp8" in text.lower() else "bf16"
    model = transformer(name)
    recompute = 1.0 if megatron or re.search(r"\bfull AC|AC full", text) else SELECTIVE * ("elective" in text)
    if row["metric"] == "tokens_per_s_per_gpu":
        measured = batch * sequence / (value * ranks)
    else:  # Megatron counts what it computes again
        again = model.layers * (2 * (model.dense_active + model.expert_active) + model.core(sequence))
        measured = (model.flops(sequence) + again * megatron) * batch * sequence / (value * 1e12 * ranks)
    software = "megatron-sc21" if megatron else "meta"
    if "torchtitan" in row["source"]:
        eager = "compile" not in text and "performance.md" not in row["source"]
        software = "torchtitan eager" if eager else "torchtitan"
    return replace(
        one,
        model=name,
        gpu=gpu,
        precision=precision,
        micro_batch=micro,
        global_batch=batch,
        sequence=sequence,
        layout=ParallelSizes(size["TP"], size["PP"], size["CP"], data, 1, chunks),
        measured=measured,
        recompute=recompute,
        software=software,
        sharding="full" if "FSDP" in text else "none" if megatron else "optimizer",
        attention=UNFUSED if megatron else "",
        exposes=EXPOSED_2021 if megatron else "",
        assumed=tuple(assumed),
    )


def _unknown(called: str, name: str, system: str, gpu: str) -> str:
    if not name or name not in known_transformers():
        return f"the shape of {called.strip()} is not known"
    return "" if gpu else f"no accelerator of the table in {system!r}"


def gpu_of(system: str) -> str:
    """Return our name of the accelerator in a system's name; empty if there is none."""
    found = next((name for name in GPUS if re.search(rf"(?<![A-Za-z0-9]){name}(?![0-9])", system)), "")
    return found.lower().replace(" ", "-")


def model_of(text: str) -> str:
    """Return our name of a published model; empty if it is not known."""
    plain = re.sub(r"[^a-z0-9]", "", re.sub(r"\(.*?\)", "", text.lower()))
    ours = {re.sub(r"[^a-z0-9]", "", name): name for name in known_transformers()}
    return MODELS.get(plain) or ours.get(plain, "")


def _first(text: str) -> float:
    """First number of a text; 0 if there is none."""
    found = re.match(r"\s*([\d.]+)", text)
    return float(found[1]) if found else 0.0


_READERS = {"megatron_bridge.csv": _bridge, "mlperf_steps.csv": _mlperf, "published.csv": _published,
            "steps.csv": _own}  # fmt: skip
