"""Measure a torch module: when its gradients are ready, how large they are, and what its forward pass takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from commsim.core.errors import InputError

from .backward_trace import BackwardTrace, trace_from_gaps


def profile_model(model: Any, inputs: Sequence[Any], *, iterations: int = 5, warm_up: int = 2) -> BackwardTrace:
    """Run forward and backward passes, and take the median of each time.

    A gradient is ready when torch has added it up. What the forward pass takes until a layer's end, from the end of the
    layer before, is that layer's, so that what has no parameters counts for the next layer that has; it is dealt
    evenly to the layer's parameters. On a GPU both are measured by events of its stream.

    Parameters
    ----------
    model : torch.nn.Module
        What to run; it is left in training mode and without gradients.
    inputs : sequence of torch.Tensor
        What it is called with, on its device.
    iterations, warm_up : int
        Runs that are measured, and runs before them that are not.

    Returns
    -------
    BackwardTrace
        Of the parameters that got a gradient in every run, in the order of their median ready times.

    Raises
    ------
    InputError
        If no parameter got a gradient, the output holds nothing to differentiate, or a pass fails.
    """
    if iterations < 1 or warm_up < 0:
        raise InputError(f"iterations must be at least 1 and warm-up 0 or more, got {iterations} and {warm_up}")
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise InputError(f"{type(model).__name__} has no parameter that gets a gradient")
    model.train()
    watch = _Watch(model, parameters, _marker(next(iter(parameters.values())).device))
    try:
        runs = [watch.run(inputs) for _ in range(warm_up + iterations)][warm_up:]
    finally:
        watch.close()
        model.zero_grad(set_to_none=True)
    names = [name for name in parameters if all(name in times for times, _ in runs)]
    if not names:
        raise InputError(f"{type(model).__name__}: no parameter got a gradient in every run")
    times = np.median([[run[0][name] for name in names] for run in runs], axis=0)
    forward = np.median([[run[1].get(name, 0.0) for name in names] for run in runs], axis=0)
    order = np.argsort(times, kind="stable")
    n_bytes = np.array([float(parameters[name].numel() * parameters[name].element_size()) for name in names])
    return trace_from_gaps(
        n_bytes[order], np.diff(times[order], prepend=0.0), forward[order], [names[i] for i in order]
    )


class _Watch:
    """Hooks on a model that note when gradients are ready and layers are done."""

    def __init__(self, model: Any, parameters: Mapping[str, Any], mark: Callable[[], Any]) -> None:
        self._model, self._mark = model, mark
        self._ready: dict[str, Any] = {}
        self._ends: list[tuple[tuple[str, ...], Any]] = []
        self._handles = [p.register_post_accumulate_grad_hook(self._note(name)) for name, p in parameters.items()]
        for prefix, module in model.named_modules():
            own = [name for name, _ in module.named_parameters(recurse=False)]
            names = tuple(name for name in (f"{prefix}.{n}" if prefix else n for n in own) if name in parameters)
            if names:
                self._handles.append(module.register_forward_hook(self._note_end(names)))

    def _note(self, name: str) -> Callable[[Any], None]:
        def hook(_: Any) -> None:
            self._ready[name] = self._mark()

        return hook

    def _note_end(self, names: tuple[str, ...]) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            self._ends.append((names, self._mark()))

        return hook

    def run(self, inputs: Sequence[Any]) -> tuple[dict[str, float], dict[str, float]]:
        """Run one forward and backward pass; return seconds of ready times and of forward times, by parameter."""
        self._ready.clear()
        self._ends.clear()
        self._model.zero_grad(set_to_none=True)
        try:
            begin = self._mark()
            output = self._model(*inputs)
            middle = self._mark()
            losses = [t.float().mean() for t in _tensors(output) if t.requires_grad]
            if not losses:
                raise InputError(f"{type(self._model).__name__}: the output holds no tensor that depends on parameters")
            loss = sum(losses[1:], losses[0])
            start = self._mark()
            loss.backward()
            self._mark().wait()
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{type(self._model).__name__} cannot run on this input: {_first_line(error)}") from None
        times = {name: start.until(mark) for name, mark in self._ready.items()}
        return times, self._forward(begin, middle)

    def _forward(self, begin: Any, end: Any) -> dict[str, float]:
        seconds: dict[str, float] = {}
        for i, (names, mark) in enumerate(self._ends):
            until = end if i == len(self._ends) - 1 else mark
            for name in names:
                seconds[name] = seconds.get(name, 0.0) + begin.until(until) / len(names)
            begin = mark
        return seconds

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()


class _Now:
    """A moment of this process."""

    def __init__(self) -> None:
        self._time = time.perf_counter()

    def until(self, other: _Now) -> float:
        """Seconds from this moment to the other."""
        return other._time - self._time

    def wait(self) -> None:
        """Wait for nothing: what a processor did is done."""


class _Event:
    """A moment of a GPU's stream."""

    def __init__(self) -> None:
        import torch

        self._event = torch.cuda.Event(enable_timing=True)
        self._event.record()

    def until(self, other: _Event) -> float:
        """Seconds from this moment to the other."""
        return float(self._event.elapsed_time(other._event)) / 1e3

    def wait(self) -> None:
        """Wait until the stream has come here."""
        self._event.synchronize()


def _marker(device: Any) -> Callable[[], Any]:
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"models are measured on cpu or cuda, got {device.type}")
    return _Event if device.type == "cuda" else _Now


def _tensors(output: Any) -> Iterator[Any]:
    """Yield the tensors of a model's output: itself, or what a tuple, list or mapping holds."""
    import torch

    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, (Mapping, tuple, list)):
        for member in output.values() if isinstance(output, Mapping) else output:
            yield from _tensors(member)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
