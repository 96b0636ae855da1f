"""Relations between answers of verbs: other units, all times longer, all rates and sizes larger, one by one, twice."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import commsim as cs

from .relations import answered, differ

# A quantity in a template: {T} a time of microseconds, {M} of milliseconds, {R} a rate of Gb/s, {S} a size of bytes,
# {a|b} one of some words, {2-8} a number.
_HOLE = re.compile(r"\{([^}]*)\}")
TEMPLATES: dict[str, tuple[str, ...]] = {
    "workload pipeline": (
        "workload pipeline --schedule {gpipe|1f1b|eager_1f1b|interleaved|gems|chimera} --stages {2|4} --micro-batches "
        "{4|8} --forward {M} --backward {M}",
        "workload pipeline --stages {2|4} --micro-batches {2-8} --forward {M} --backward {M} --activation {S} "
        "--weights {S} --data-parallel {1-3} --bandwidth {R} --latency {T} --overhead {T}",
    ),
    "workload moe": (
        "workload moe --policy {fifo|priority|two_micro_batches} --layers {2-4} --ranks {4|8} --attention {M} "
        "--expert {M} --tokens {S} --gradients {S} --bandwidth {R} --latency {T} --overhead {T}",
    ),
    "workload reshard": (
        "workload reshard --size {S} --receivers {2-4} --bandwidth {R} --latency {T} --chunks {1-64} --overhead {T}",
    ),
    "workload kv": (
        "workload kv --layers {2-6} --kv-heads {4|8} --from {1-4} --to {1-4} --tokens {128|1000} --topology "
        "star:n_hosts=8,bandwidth={R},latency={T} --overhead {T}",
    ),
    "workload weights": (
        "workload weights --size {S} --from {1-4} --to {1-4} --topology star:n_hosts=8,bandwidth={R},latency={T} "
        "--overhead {T}",
    ),
    "workload run": (
        "workload run --trace inputs/gradients.csv --workers {2-8} --policy {ddp|p3|bytescheduler|wfbp|zero2|zero3} "
        "--bandwidth {R} --latency {T} --overhead {T}",
    ),
    "traffic": (
        "traffic --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf={2-4},bandwidth={R} --size {64KiB|100KB} "
        "--pattern {permutation|incast} --engine {packet|flow} --seed {0-99}",
    ),
    "switch simulate": (
        "switch simulate --system {switchml_udp|switchml_rdma|atp|sharp|nvls|panama} --workers {2-6} --size "
        "{16KiB|64KiB|100KB} --bandwidth {R} --latency {T}",
        "switch simulate --system {switchml_udp|switchml_rdma|atp} --workers {2-4} --size 32KiB --loss {0.001|0.02} "
        "--rto 50us --seed {0-99}",
    ),
    "nccl": ("nccl --topology {dgx-h100|dgx-a100|dgx-h100@star:machines=2} --operation {all_reduce|all_gather} --size "
             "{1M|64K|1G}",),
    "workload step": (
        "workload step --model llama3-8b --gpu h100 --ranks {8|16} --tp {1|2|4} --pp {1|2} --global-batch {16|32}",
    ),
    "place score": ("place score --capacity {R} inputs/{two|three}.json",),
    "place rank": ("place rank inputs/small_cluster.toml inputs/two.json --candidates {2-4} --seed {0-9}",),
    "bound": ("bound --topology {star:n_hosts=|ring:n_hosts=}{3-7},bandwidth={R},latency={T} --operation "
              "{all_reduce|all_gather|all_to_all|broadcast|gather} --algorithm none --size {S}",),
    "advise": ("advise --topology star:n_hosts={3-8},bandwidth={R},latency={T} --size {1MiB|64KiB} --density "
               "{0.01|0.1|0.5} --overhead {T}",),
    "run": ("run {omnireduce|agsparse|sparcml_dsar|zen|ok_topk|topk_a}:density={0.01|0.1|0.9},seed={0-99} --topology "
            "star:n_hosts=9,bandwidth={R},latency={T} --ranks {2-4} --overhead {T} --size {1M|100K}",
            "run nccl --topology {dgx-h100|hgx-a100|dgx-h100@star:machines=2} --operation {all_reduce|all_gather} "
            "--size {1M|64K|64M}"),
    "expect": ("expect {dgx-h100|hgx-h100} --machines {1-2} --operation all_reduce --size {1M|64M}",),
    "synthesize": ("synthesize --topology ring:n_hosts={3-4},bandwidth={R},latency={T} --operation all_gather --size "
                   "{S}",),
}  # fmt: skip
# Templates in which all times and rates are written, but constants of hardware; and where rates and sizes are all.
SCALED = ("workload pipeline", "workload moe", "workload reshard", "workload kv", "workload weights")
OF_TIME = re.compile(r"(?:^|_)s$|_ms$|time_s$")
NOT_COMPARED = ("cpu_s", "values_cpu_s", "elapsed_s", "config", "network", "text", "details", "remarks", "events",
                "solver_s", "search_s", "seconds")  # fmt: skip
VerbRelation = Callable[[str, str, random.Random], "str | None"]
VERB_RELATIONS: dict[str, VerbRelation] = {}


def relation(check: VerbRelation) -> VerbRelation:
    """Register a relation of a template's answer."""
    VERB_RELATIONS[check.__name__] = check
    return check


def drawn_template(draw: random.Random) -> tuple[str, str]:
    """Draw a verb and a template, of which only quantities are open."""
    verb = draw.choice(list(TEMPLATES))

    def filled(hole: re.Match[str]) -> str:
        low, _, high = hole[1].partition("-")
        if "|" in hole[1]:
            return str(draw.choice(hole[1].split("|")))
        if low.isdecimal() and high.isdecimal():
            return str(draw.randint(int(low), int(high)))
        value = {
            "T": draw.choice((0, 1, 2, 7, 20)),
            "M": draw.choice((1, 3, 10, 25)),
            "R": draw.choice((10, 25, 100, 400)),
            "S": draw.choice((2**20, 3_000_000, 2**24)),
        }[hole[1]]
        return f"{{{hole[1]}{value}}}"

    return verb, _HOLE.sub(filled, draw.choice(TEMPLATES[verb]))


def written(text: str, times: float = 1, rates: float = 1, sizes: float = 1, *, other: bool = False) -> list[str]:
    """Return the words of a template with its quantities scaled, in usual or in other units."""

    def quantity(hole: re.Match[str]) -> str:
        kind, value = hole[1][0], float(hole[1][1:])
        if kind == "T":
            return f"{value * times * 1000:g}ns" if other else f"{value * times:g}us"
        if kind == "M":
            return f"{value * times * 1000:g}us" if other else f"{value * times:g}ms"
        if kind == "R":
            return f"{value * rates / 8:.12g}GB/s" if other else f"{value * rates:g}Gbps"
        return f"{value * sizes / 1000:.12g}kB" if other else f"{value * sizes:.0f}B"

    return _HOLE.sub(quantity, text).split()


def leaves(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what can be compared in an answer: the path of keys, and the value."""
    if isinstance(tree, Mapping):
        for name, value in tree.items():
            if name not in NOT_COMPARED:
                yield from leaves(value, f"{key}.{name}")
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from leaves(value, f"{key}.{i}")
    else:
        yield key, tree


def compared(found: Any, wanted: Any, rel: float = 0.0, time_factor: float = 1.0) -> str:
    """Return the first value that differs; of times, from the given multiple."""
    one, two = dict(leaves(found)), dict(leaves(wanted))
    if one.keys() != two.keys():
        return f"other keys: {sorted(one.keys() ^ two.keys())[:4]}"
    for key, value in one.items():
        right = two[key]
        if isinstance(value, float) and isinstance(right, (int, float)):
            right = right * time_factor if OF_TIME.search(key.rpartition(".")[2]) else right
            if time_factor != 1.0 and not OF_TIME.search(key.rpartition(".")[2]):
                continue
            if not math.isclose(value, right, rel_tol=rel, abs_tol=1e-15 if rel else 0):
                return f"{key}: {value!r} in place of {right!r}"
        elif time_factor == 1.0 and value != right:
            return f"{key}: {value!r} in place of {right!r}"
    return ""


@relation
def other_units(_: str, text: str, __: random.Random) -> str | None:
    """Write the same quantities in other units."""
    usual, other = written(text), written(text, other=True)
    return None if usual == other else compared(answered(other), answered(usual), 1e-9)


@relation
def asked_twice(_: str, text: str, __: random.Random) -> str | None:
    """Ask the same question again."""
    return compared(answered(written(text)), answered(written(text)))


@relation
def all_slower(verb: str, text: str, draw: random.Random) -> str | None:
    """All times k times as long, and all rates a k-th: k times the time."""
    if verb not in SCALED:
        return None
    k = draw.choice((2, 4, 8))
    slower = answered(written(text, times=k, rates=1 / k))
    return compared(slower, answered(written(text)), 1e-9, k)


@relation
def all_larger(verb: str, text: str, draw: random.Random) -> str | None:
    """All sizes and rates k times as large, where no message waits: the same times."""
    if verb not in SCALED or "{S" not in text:
        return None
    k = draw.choice((2, 4, 8))
    larger = compared(answered(written(text, rates=k, sizes=k)), answered(written(text)), 1e-9, 1.0 + 1e-16)
    return larger if "_s" in larger else ""


@relation
def not_slower(verb: str, text: str, _: random.Random) -> str | None:
    """Twice the rates are no slower."""
    if verb not in (*SCALED, "workload run", "bound", "switch simulate") or "{R" not in text:
        return None
    before, after = (dict(leaves(answered(written(text, rates=k)))) for k in (1, 2))
    for key in ("time_s", "iteration_s", "bound_s"):
        for path, value in before.items():
            if path.endswith(f".{key}") and path in after and after[path] > value * (1 + 1e-9):
                return f"{path}: {after[path]!r} at twice the rates, {value!r} before"
    return ""


@relation
def possible(_: str, text: str, __: random.Random) -> str | None:
    """Find times below bounds, intervals without their values, sums of switches that are not exact, and such."""
    answer = answered(written(text))
    for row in _rows(answer):
        low, high = row.get("low_s"), row.get("high_s")
        time = row.get("step_s", row.get("time_s"))
        if low is not None and high is not None and time is not None and not low <= time <= high:
            return f"{time!r} is not within {low!r} to {high!r}"
        least = row.get("bound_s")
        if least is not None and row.get("time_s") is not None and row["time_s"] < least * (1 - 1e-9):
            return f"{row['time_s']!r} is below its bound {least!r}"
        if row.get("exact") is False:
            return "sums of a switch are not exact"
        for key in ("mfu", "bubble", "score_mean", "limit_busy"):
            if isinstance(value := row.get(key), float) and not -1e-12 <= value <= 1 + 1e-9:
                return f"{key} is {value!r}"
        if "step_s" in row:
            parts = sum(value for key, value in row.items() if key.startswith(("compute_s", "bubble_s", "exposed_")))
            if wrong := differ(parts, row["step_s"], "sum of the parts of a step", 1e-6):
                return wrong
        if isinstance(row.get("slowdown"), float) and row["slowdown"] < 1 - 1e-9:
            return f"slowdown is {row['slowdown']!r}"
    return ""


def _rows(answer: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(answer, Mapping):
        yield answer
        for value in answer.values():
            yield from _rows(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _rows(value)


@relation
def python(verb: str, text: str, _: random.Random) -> str | None:
    """Python's function has the number of the command line."""
    words = written(text)
    given = dict(itertools.pairwise(words))
    if verb == "workload step":
        options: dict[str, Any] = {key: int(given[f"--{key}"]) for key in ("ranks", "tp", "pp")}
        found = cs.training_step("llama3-8b", "h100", global_batch=int(given["--global-batch"]), **options)
        return differ(found.time, answered(words)["results"][0]["step_s"], "step in Python")
    if verb == "bound":
        least = cs.lower_bound(given["--operation"], given["--topology"]).time(float(given["--size"][:-1]))
        return differ(least, answered(words)["bounds"][0]["bound_s"], "bound in Python")
    if verb == "run":
        name = words[1]
        flags = {"--operation": "operation", "--overhead": "overhead"} if name == "nccl" else {"--overhead": "overhead"}
        options = {key: given[flag] for flag, key in flags.items() if flag in given}
        options |= {"n_ranks": int(given["--ranks"])} if "--ranks" in given else {}
        size = {"1M": 2**20, "64K": 2**16, "64M": 2**26, "100K": 102_400}[given["--size"]]
        predicted = cs.predict(name, given["--topology"], size, **options)
        return differ(predicted.time, answered(words)["results"][0]["time_s"], "run in Python", 0.0)
    return None
