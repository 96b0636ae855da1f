"""Evaluate a cost model that ``commsim export cost-model`` wrote: one file without dependencies, to be copied.

    model = CostModel.read("dgx.json")
    time, low, high = model.answer("all_reduce", 4, 8, 64 << 20)     # 4 machines of 8 GPUs, 64 MiB

The versions in JavaScript and C return the same bits.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

FORMAT, VERSION = "commsim cost model", 1


class CostModel:
    """Times of collectives by operation, machines, GPUs of each machine, faults and size.

    Parameters
    ----------
    tree : mapping
        Content of the file.

    Raises
    ------
    ValueError
        If it is no cost model of this version.
    """

    def __init__(self, tree: Mapping[str, Any]) -> None:
        if tree.get("format") != FORMAT or tree.get("version") != VERSION:
            raise ValueError(f"expected a {FORMAT} of version {VERSION}")
        self.tree = tree
        self.largest: int = tree["largest_size"]
        self._curves = {
            (one["operation"], one["machines"], one["gpus"], one["faults"]): (
                one["size"], one["time"], one.get("low", one["time"]), one.get("high", one["time"]), one,
            )
            for one in tree["curves"]
        }  # fmt: skip

    @classmethod
    def read(cls, path: str) -> CostModel:
        """Read a file."""
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - no more imports than needed
            return cls(json.load(file))

    def answer(
        self, operation: str, machines: int, gpus: int, size: float, faults: str = ""
    ) -> tuple[float, float, float]:
        """Return the time of a collective, and the bounds of its interval, in seconds.

        Parameters
        ----------
        operation : str
            Name of the operation, such as ``all_reduce``.
        machines, gpus : int
            Number of machines, and of GPUs in each.
        size : float, bytes
            Size as nccl-tests counts it: of the whole array. Below the least of the file, the time is that of the
            least.
        faults : str
            Faults, as the file names them; none if empty.

        Raises
        ------
        KeyError
            If the file has no such curve.
        ValueError
            If the size is negative, or larger than the largest of the file.
        """
        sizes, time, low, high, _ = self._curves[operation, machines, gpus, faults]
        if not 0 <= size <= self.largest:
            raise ValueError(f"size must be 0 to {self.largest}, got {size}")
        i = bisect_right(sizes, size) - 1
        if i < 0:
            return time[0], low[0], high[0]
        if i == len(sizes) - 1:
            return time[i], low[i], high[i]
        part = (size - sizes[i]) / (sizes[i + 1] - sizes[i])
        return (
            time[i] + (time[i + 1] - time[i]) * part,
            low[i] + (low[i + 1] - low[i]) * part,
            high[i] + (high[i + 1] - high[i]) * part,
        )

    def choice(self, operation: str, machines: int, gpus: int, size: float, faults: str = "") -> str:
        """Return what the library chooses, such as ``ring/ll128``; empty where it chooses nothing.

        Parameters are those of :meth:`answer`.
        """
        choices = self._curves[operation, machines, gpus, faults][4].get("choices", ())
        return next((name for start, name in reversed(choices) if start <= max(size, 1)), "")

    def curves(self) -> list[tuple[str, int, int, str]]:
        """Return what the file has: operation, machines, GPUs of each, faults."""
        return list(self._curves)
