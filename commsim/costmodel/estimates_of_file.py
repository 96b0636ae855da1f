"""Estimates from the file of a cost model: what ``cs.estimate`` answers where a file takes the place of the machine."""

from __future__ import annotations

from collections.abc import Callable

from commsim.core.errors import InputError
from commsim.core.units import first_of

from .cost_model_file import read_cost_model
from .evaluators.cost_model import CostModel


def model_of_file(path: str) -> Callable[[str, float, int], tuple[float, float, float]]:
    """Return the function from operation, size and ranks to time, low and high of a file.

    Ranks fill machines: 12 ranks are 3 machines of 4 GPUs, or one of 12, whichever the file has with the most GPUs.

    Raises
    ------
    InputError
        If the file is wrong; the function raises it where the file does not have what is asked for.
    """
    model = CostModel(read_cost_model(path))
    shapes: dict[tuple[str, int], tuple[int, int]] = {}
    for operation, machines, gpus, faults in model.curves():
        if not faults:
            known = shapes.get((operation, machines * gpus), (0, 0))
            shapes[operation, machines * gpus] = max(known, (gpus, machines))

    def answer(operation: str, n_bytes: float, ranks: int) -> tuple[float, float, float]:
        if (operation, ranks) not in shapes:
            known = [f"{name} of {n} ranks" for name, n in shapes]
            raise InputError(f"{path} has no {operation} of {ranks} ranks; it has {first_of(known)}")
        gpus, machines = shapes[operation, ranks]
        if not n_bytes <= model.largest:
            raise InputError(f"{path} has sizes up to {model.largest} bytes, got {n_bytes}")
        return model.answer(operation, machines, gpus, n_bytes)

    return answer
