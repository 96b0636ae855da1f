"""``commsim workload profile``: gradients of a torch module, and when each is ready."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

from commsim.cli.flags import DefaultOf, WithJson, flag, repeated
from commsim.core.errors import BackendError, InputError
from commsim.core.extras import needs
from commsim.core.units import format_size, format_time
from commsim.report.answer import Answer, Facts, Lines, Part

_INPUT = re.compile(r"(\d{1,9}(?:x\d{1,9})*)?(?::(\d{1,9}))?", re.ASCII)


class ProfileConfig(WithJson):
    """All flags of ``commsim workload profile``."""

    model: str = flag(
        "model", metavar="MODULE:CLASS", help="class or function that makes the model, called without arguments"
    )
    batch: int = flag(default=8, metavar="N", help="samples per batch")
    input: tuple[str, ...] = repeated(
        required=True, metavar="SHAPE[:N]",
        help="shape of a sample, such as 3x32x32; 128:30522 for integers below 30522; repeatable",
    )  # fmt: skip
    iterations: int = flag(
        default=DefaultOf("commsim.training.profile_model:profile_model.iterations"), metavar="N", help="measured runs"
    )
    warm_up: int = flag(
        default=DefaultOf("commsim.training.profile_model:profile_model.warm_up"),
        metavar="N",
        help="runs before the measured ones",
    )
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
        raise BackendError(needs("torch is not installed", "torch")) from None
    if config.device == "cuda" and not torch.cuda.is_available():
        raise BackendError("--device cuda: torch finds no GPU")
    from commsim.training.backward_trace import write_backward_trace
    from commsim.training.profile_model import profile_model

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
        model = getattr(importlib.import_module(module), name)()
    except Exception as error:  # whatever the user's module may raise
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{text}: cannot be made: {type(error).__name__}: {first}") from None
    finally:
        sys.path.remove(str(Path.cwd()))
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"{text}: must make a torch.nn.Module, got {type(model).__name__}")
    return model
