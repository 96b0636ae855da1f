"""``commsim calls`` and ``commsim profile``: collective calls of a profile, and gradients of a torch module."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import BackendError, InputError
from commsim.core.units import format_size, format_time, parse_time
from commsim.report.answer import Answer, Facts, Lines, Part, Remarks, Table, remarks

from .flags import Verb, WithJson, flag, repeated
from .flags.outputs import check_written

if TYPE_CHECKING:
    from commsim.formats.calls import Call
    from commsim.formats.one_iteration import Iteration

COLUMNS = ["operation", "size", "group", "ranks", "calls", "median", "untimed"]
_INPUT = re.compile(r"(\d{1,9}(?:x\d{1,9})*)?(?::(\d{1,9}))?", re.ASCII)


class Config(WithJson):
    """All flags of ``commsim calls``."""

    files: tuple[str, ...] = flag(
        "files", nargs="+", metavar="FILE", help="flight recorder (JSON, pickle) or Kineto trace, one per rank"
    )
    name: str | None = flag(metavar="TEXT", help="name of the job (default: that of the first file)")
    period: str | None = flag(metavar="TIME", help="length of an iteration, if nothing in the profile repeats")
    gap: str = flag(default="0ms", metavar="TIME", help="phases of the job at most this far apart are merged")
    job: str | None = flag(metavar="FILE.json", help="write the job for `commsim place`: its phases on a link")
    graph: str | None = flag(metavar="FILE.toml", help="write one iteration as tasks, for `workload run --graph`")


def run(config: Config) -> Answer:
    """Read the profiles, and write what is asked for."""
    from commsim.formats.one_iteration import last_iteration, periodic_job, task_tables
    from commsim.formats.profiles import read_calls

    check_written([config.job, config.graph, config.json, config.csv], config.files)
    period = _period(config.period)
    if config.graph and Path(config.graph).suffix not in (".toml", ".json"):
        raise InputError(f"{config.graph}: a graph of tasks is a file that ends with .toml or .json")
    gap = parse_time(config.gap, "--gap")
    notes: list[str] = []
    profiles = [read_calls(path, notes) for path in config.files]
    said = (*notes, *_missing_ranks([calls for calls, _ in profiles]))
    calls, steps = profiles[0]
    title = f"{config.files[0]}: {len(calls)} calls of rank {_shown(calls[0].rank)}"
    parts: list[Part] = [*remarks(said), Table(COLUMNS, _rows(calls), title)]
    if not (config.job or config.graph or config.json or config.csv or config.period):
        return Answer(parts)
    iteration = last_iteration(calls, steps, period)
    name = config.name or Path(config.files[0]).name.split(".")[0]
    seen = f"{iteration.n_seen} in the profile" if iteration.n_seen > 1 else "the only one in the profile"
    parts.append(Remarks([f"iteration: {len(iteration.calls)} calls in {format_time(iteration.period)}, {seen}"]))
    if config.job:
        from commsim.files.whole_files import write_json

        write_json(config.job, [periodic_job(iteration, name, gap)])
    if config.graph:
        from commsim.files.whole_files import write_tree

        write_tree(config.graph, task_tables(iteration))
    parts.append(Lines([f"{path}: written" for path in filter(None, (config.job, config.graph))]))
    return Answer(parts, _json_rows(iteration), more={"period_s": iteration.period})


def _period(text: str | None) -> float | None:
    if text is None:
        return None
    period = parse_time(text, "--period")
    if not period:
        raise InputError(f"--period must be more than 0, got {text!r}")
    return period


def _rows(calls: tuple[Call, ...]) -> list[list[str]]:
    """One row for each kind of call, those that send the most first."""
    import statistics

    kinds: dict[tuple[str, float, str, int | None], list[float | None]] = {}
    for call in calls:
        kinds.setdefault((call.operation, call.size, call.group, call.n_ranks), []).append(call.duration)
    rows = []
    for kind, durations in sorted(kinds.items(), key=lambda item: -item[0][1] * len(item[1])):
        operation, size, group, n_ranks = kind
        times = [time for time in durations if time is not None]
        median = format_time(statistics.median(times)) if times else "-"
        rows.append([operation, format_size(size), group or "-", _shown(n_ranks), f"{len(durations)}", median,
                     f"{len(durations) - len(times)}"])  # fmt: skip
    return rows


def _missing_ranks(profiles: list[tuple[Call, ...]]) -> list[str]:
    """Name the ranks without a file, and refuse two files of one rank."""
    ranks = [calls[0].rank for calls in profiles]
    known = [rank for rank in ranks if rank is not None]
    if len(set(known)) < len(known):
        twice = next(rank for rank in known if known.count(rank) > 1)
        raise InputError(f"two files are of rank {twice}; give one file for each rank")
    expected = max((call.n_ranks or 0 for calls in profiles for call in calls), default=0)
    missing = list(islice((rank for rank in range(expected) if rank not in known), 9))
    if len(known) < len(ranks) or not missing:
        return []
    names = ", ".join(map(str, missing[:8])) + (" and so on" if len(missing) > 8 else "")
    return [f"{len(known)} of {expected} ranks have a file; without one: {names}"]


def _json_rows(iteration: Iteration) -> list[dict[str, object]]:
    return [
        {"operation": c.operation, "size_B": c.size, "n_ranks": c.n_ranks, "group": c.group,
         "start_s": c.start - iteration.begin, "time_s": c.duration}
        for c in iteration.calls
    ]  # fmt: skip


def _shown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


class ProfileConfig(WithJson):
    """All flags of ``commsim profile``."""

    model: str = flag(
        "model", metavar="MODULE:CLASS", help="class or function that makes the model, called without arguments"
    )
    batch: int = flag(default=8, metavar="N", help="samples per batch")
    input: tuple[str, ...] = repeated(
        required=True, metavar="SHAPE[:N]",
        help="shape of a sample, such as 3x32x32; 128:30522 for whole numbers below 30522; repeatable",
    )  # fmt: skip
    iterations: int = flag(default=5, metavar="N", help="measured runs")
    warm_up: int = flag(default=2, metavar="N", help="runs before the measured ones")
    device: str = flag(choices=("cpu", "cuda"), default="cpu", help="device")
    seed: int = flag(default=0, metavar="N", help="seed of the model's weights and of the input")
    output: str | None = flag("-o", metavar="FILE.csv", help="write the trace, for `commsim workload run --trace`")


def profile(config: ProfileConfig) -> Answer:
    """Measure the gradients of a model."""
    shapes = [_shape(text) for text in config.input]
    if config.batch < 1:
        raise InputError(f"--batch must be at least 1, got {config.batch}")
    try:
        import torch
    except ImportError:
        raise BackendError("torch is not installed: pip install 'commsim[torch]'") from None
    if config.device == "cuda" and not torch.cuda.is_available():
        raise BackendError("--device cuda: torch finds no GPU")
    from commsim.workload.backward_trace import write_backward_trace
    from commsim.workload.profile_model import profile_model

    torch.manual_seed(config.seed)
    model = _make_model(config.model, torch).to(config.device)
    inputs = [_input(torch, config.batch, shape, below).to(config.device) for shape, below in shapes]
    trace = profile_model(model, inputs, iterations=config.iterations, warm_up=config.warm_up)
    n_parameters = sum(p.requires_grad for p in model.parameters())
    facts = {
        "model": config.model,
        "gradients": f"{len(trace.n_bytes)} tensors, {format_size(float(trace.n_bytes.sum()))}",
        "largest": f"{trace.name(int(trace.n_bytes.argmax()))}, {format_size(float(trace.n_bytes.max()))}",
        "forward": format_time(float(trace.forward.sum())),
        "backward": format_time(trace.backward_time),
    }
    if n_parameters > len(trace.n_bytes):
        facts["without"] = f"{n_parameters - len(trace.n_bytes)} parameters got no gradient and are not in the trace"
    parts: list[Part] = [Facts(facts)]
    if config.output:
        write_backward_trace(config.output, trace)
        parts.append(Lines([f"{config.output}: written"]))
    rows = [
        {"tensor": trace.name(i), "size_B": float(trace.n_bytes[i]), "ready_s": float(trace.ready[i]),
         "forward_s": float(trace.forward[i])} for i in range(len(trace.n_bytes))
    ]  # fmt: skip
    more = {"forward_s": float(trace.forward.sum()), "backward_s": trace.backward_time}
    return Answer(parts, rows, config.flags("output"), more)


def _shape(text: str) -> tuple[tuple[int, ...], int]:
    """Read ``3x32x32`` or ``128:30522`` as a shape, and the bound of whole numbers or 0."""
    match = _INPUT.fullmatch(text)
    shape = tuple(map(int, match[1].split("x"))) if match is not None and match[1] else ()
    if match is None or not text or not all(shape) or (match[2] is not None and int(match[2]) < 1):
        raise InputError(f"--input must be a shape such as 3x32x32, or 128:30522 for whole numbers, got {text!r}")
    return shape, int(match[2] or 0)


def _input(torch: Any, batch: int, shape: tuple[int, ...], below: int) -> Any:
    try:
        return torch.randint(below, (batch, *shape)) if below else torch.randn(batch, *shape)
    except RuntimeError as error:  # more than there is memory for
        raise InputError(f"--input {'x'.join(map(str, shape))}: {str(error).splitlines()[0]}") from None


def _make_model(text: str, torch: Any) -> Any:
    """Import the module, from the working folder too, and call what it names."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise InputError(f"the model must be MODULE:CLASS, such as torchvision.models:resnet50, got {text!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        made = getattr(importlib.import_module(module), name)()
    except Exception as error:  # whatever the user's module may raise
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{text}: cannot be made: {type(error).__name__}: {first}") from None
    finally:
        sys.path.remove(str(Path.cwd()))
    if not isinstance(made, torch.nn.Module):
        raise InputError(f"{text}: must make a torch.nn.Module, got {type(made).__name__}")
    return made


COMMANDS = {"calls": Verb(Config, run), "profile": Verb(ProfileConfig, profile)}
