"""Accelerators by name: dense peaks by precision, memory, and what kernels reach of the peaks (``gpus.toml``)."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass

from commsim.core.errors import InputError, look_up
from commsim.core.units import parse_rate, parse_size

# Precisions from the narrowest to the widest.
PRECISIONS = ("fp4", "fp8", "bf16", "tf32", "fp32")
# Those of which no factor of a product is cast.
WIDE = ("bf16", "tf32", "fp32")
# Share of the peak of a large matrix product where nobody measured one on that accelerator: the median of those
# that are measured in gpus.toml.
ASSUMED_MATMUL = 0.75
# Shares of operators that are no products where nobody measured them on that accelerator: those of an H100.
LIKE = "h100"
# Attention kernels where flash attention 2 was not measured: those of cuDNN, which Blackwell's libraries take too.
FUSED = {"attention": "attention_fused", "attention_backward": "attention_fused_backward"}
# Seconds of a matrix product beside its operations and bytes: launch, first and last tiles. With the shares of
# `reached` it is the curve through the products of 128 rows and more of docs/data/gpus.md, one H100 and one H200: mean
# error 6 %.
PRODUCT_START = 4e-6


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator.

    Parameters
    ----------
    name, summary : str
        Name on the command line, and what it is.
    generation, machine : str
        Generation, and the preset of ``topologies`` in which it is assumed where no network is named.
    peaks : mapping of str to float, FLOP/s
        Dense peak of each precision that it has.
    memory : float, bytes/s
        Bandwidth of its memory.
    capacity : float, bytes
        Size of its memory.
    exponential : float, FLOP
        Operations of BF16 products in the time of one exponential of a softmax; 0 where that is not known.
    matmul : mapping of str to float
        Share of the peak that a large matrix product reached, of the precisions that somebody measured.
    source, matmul_source : str
        Sources of the peaks, and of the shares.
    reached : mapping of str to float
        Shares of the peaks that operators of usual sizes reached in the median: products by precision, ``attention``,
        ``attention_backward`` and ``memory``; empty where nobody measured them.
    reached_source : str
        Source of these.
    """

    name: str
    summary: str
    generation: str
    machine: str
    peaks: Mapping[str, float]
    memory: float
    capacity: float
    exponential: float
    matmul: Mapping[str, float]
    source: str
    matmul_source: str
    reached: Mapping[str, float]
    reached_source: str

    @property
    def is_measured(self) -> bool:
        """Whether matrix products of usual sizes were measured on it, not only the best one, or none."""
        return "bf16" in self.reached

    def usual(self, what: str) -> float:
        """Share of the peak that operators of usual sizes reach: ``attention``, ``memory`` or products by precision."""
        if what in self.reached:
            return self.reached[what]
        return self.efficiency(what) if what in PRECISIONS else gpu(LIKE).reached[what]

    def product_time(self, operations: float, n_bytes: float, precision: str) -> float:
        """Seconds of one matrix product: the accelerator's curve over its size and precision.

        Small products take the bytes of memory, or the time in which a kernel starts and ends; large ones reach the
        share of the peak that usual sizes have.

        Parameters
        ----------
        operations, n_bytes : float
            Operations of the product, and bytes of its three matrices.
        precision : str
            Precision of the factors.
        """
        busy = max(operations / (self.peak(precision) * self.reach(precision)), n_bytes / self.memory_rate)
        return busy + PRODUCT_START

    def reach(self, what: str) -> float:
        """Share of the peak that usual sizes of an operator reach: of products by precision, or of attention kernels.

        Where only the best product of the accelerator was measured, usual ones are taken to reach what they reach of
        the best on an H100.
        """
        if what in self.reached:
            return self.reached[what]
        like = gpu(LIKE)
        if what not in PRECISIONS:
            return like.reached[FUSED.get(what, what)]
        found, best = self._measured(what)
        return best * like.reached["bf16"] / like.matmul["bf16"] if found else best

    @property
    def memory_rate(self) -> float:
        """Bytes per second that kernels reach."""
        return self.memory * self.usual("memory")

    def told_usual(self) -> str:
        """One line on where the shares of operators are from."""
        if self.reached:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.reached.items())
            return f"{self.name}: operators reach of the peaks {shares}; {self.reached_source}"
        return f"{self.source_line('bf16')}; attention and memory are assumed to reach the shares of {LIKE}"

    def peak(self, precision: str) -> float:
        """Dense peak of a precision, FLOP/s.

        Raises
        ------
        InputError
            If the accelerator does not have it.
        """
        if precision not in self.peaks:
            raise InputError(f"precision of {self.name} must be one of {', '.join(self.peaks)}, got {precision!r}")
        return self.peaks[precision]

    def efficiency(self, precision: str) -> float:
        """Share of the peak that a large matrix product reaches: measured, else that of the nearest wider precision."""
        return self._measured(precision)[1]

    def source_line(self, precision: str) -> str:
        """One line on where the share of the peak is from."""
        found, share = self._measured(precision)
        if not found:
            return f"{self.name}: matrix products are assumed to reach {share:.0%} of the peak, nobody measured it here"
        other = f", measured with {found}" if found != precision else ""
        return f"{self.name}: matrix products reach {share:.1%} of the {precision} peak{other}; {self.matmul_source}"

    def _measured(self, precision: str) -> tuple[str, float]:
        self.peak(precision)
        wider = PRECISIONS[PRECISIONS.index(precision) :]
        return next(((p, self.matmul[p]) for p in wider if p in self.matmul), ("", ASSUMED_MATMUL))


@functools.cache
def known_gpus() -> dict[str, Gpu]:
    """Read all of them, by name."""
    import tomllib  # few runs name one

    rows = tomllib.loads(importlib.resources.files("commsim.training").joinpath("gpus.toml").read_text("utf-8"))
    gpus = {}
    for name, own in rows.items():
        row = rows[own["like"]] | own if "like" in own else own
        gpus[name] = Gpu(
            name,
            row["summary"],
            row["generation"],
            row["machine"],
            {p: row["peak_tflops"][p] * 1e12 for p in PRECISIONS if p in row["peak_tflops"]},
            parse_rate(row["memory"], f"{name}: memory"),
            parse_size(row["capacity"], f"{name}: capacity"),
            row.get("exponential", 0.0),
            row.get("matmul", {}),
            row["source"],
            row.get("matmul_source", ""),
            row.get("reached", {}),
            row.get("reached_source", ""),
        )
    return gpus


def gpu(name: str) -> Gpu:
    """Return the accelerator of that name.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    return look_up("GPU", name, known_gpus(), "commsim workload models")
