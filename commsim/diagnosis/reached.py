"""What healthy machines of the same kind reached in public tables, beside what is expected: ``reached.toml``."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from commsim.core.units import count_text, format_size, parse_size

if TYPE_CHECKING:
    from commsim.diagnosis.expectation import Expectation

PATH = Path(__file__).parent / "reached.toml"


class ReachedRate(NamedTuple):
    """One figure of a public table.

    Parameters
    ----------
    operation : str
        Name of the operation.
    size : float, bytes
        Largest size of the table.
    busbw : float, bytes/s
        Bus bandwidth there.
    source : str
        Where it was published.
    """

    operation: str
    size: float
    busbw: float
    source: str

    def row(self) -> dict[str, float | str]:
        """Return the row of the JSON, in SI units."""
        return {"operation": self.operation, "size_B": self.size, "busbw_Bps": self.busbw, "source": self.source}


def reached_by(found: Expectation) -> list[ReachedRate]:
    """Return what tables of the same machines reached, on a fabric that is not oversubscribed.

    Parameters
    ----------
    found : Expectation
        What is expected of them.
    """
    machine, _, fabric = found.network.partition("@")
    if fabric not in ("", f"star:machines={found.n_machines}"):
        return []
    return [
        ReachedRate(operation, size, busbw, source)
        for machines, n_machines, n_ranks, operation, size, busbw, source in _figures()
        if machine in machines and (n_machines, n_ranks) == (found.n_machines, found.n_ranks)
        and operation in found.operations
    ]  # fmt: skip


def reached_lines(rates: list[ReachedRate]) -> list[str]:
    """Return what is said of the figures: a line for each operation."""
    lines = []
    for name in dict.fromkeys(rate.operation for rate in rates):
        own = [rate for rate in rates if rate.operation == name]
        ends = sorted({f"{rate.busbw / 1e9:.4g}" for rate in (min(own, key=_busbw), max(own, key=_busbw))}, key=float)
        sources = ", ".join(dict.fromkeys(rate.source for rate in own))
        at = format_size(min(rate.size for rate in own))
        tables = count_text(len(own), "table")
        lines.append(f"measured: {name} {' to '.join(ends)} GB/s from {at} ({tables}: {sources})")
    return lines


def _busbw(rate: ReachedRate) -> float:
    return rate.busbw


@functools.cache
def _figures() -> tuple[tuple[tuple[str, ...], int, int, str, float, float, str], ...]:
    """Return the figures of the file, each with its machines, how many of them and of ranks, and the operation."""
    tables = tomllib.loads(PATH.read_text(encoding="utf-8"))["tables"]
    return tuple(
        (tuple(one["machines"]), one["n_machines"], one["n_ranks"], one["operation"], float(parse_size(size)),
         busbw * 1e9, source)
        for one in tables for size, busbw, source in one["figures"]
    )  # fmt: skip
