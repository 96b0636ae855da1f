"""The result: how long a collective took, and what each link carried. Simulated and real runs give the same type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError, wrong_kind
from .operations import OPERATIONS, operation
from .units import count_text, format_size, format_time
from .value import Value, freeze

if TYPE_CHECKING:
    from .network import Network


class BusiestLink(NamedTuple):
    """The link that needs the longest for its bytes: its name, its bytes, and its mean rate in bytes/s."""

    name: str | None
    bytes: float
    rate: float


class OverHashes(NamedTuple):
    """Draws of the hash of routes that a result is the median of.

    Parameters
    ----------
    n : int
        Number of draws, the seed's own included.
    fastest, slowest : float, s
        Least and largest time of a draw.
    seed : int, optional
        Seed of the hash of the draw whose result this is: that with the median time, the lower one of an even number.
        Default: the scenario's own.
    """

    n: int
    fastest: float
    slowest: float
    seed: int | None = None

    def row(self) -> dict[str, float]:
        """Return the part of a JSON row."""
        return {"fastest_s": self.fastest, "slowest_s": self.slowest, "n_hashes": self.n}


@dataclass(frozen=True, slots=True, eq=False)
class Trace(Value):
    """When each transfer started, left its sender and was complete at its receiver.

    Parameters
    ----------
    start, sent, done : float64[n_transfers], s
        Times of each transfer, in the schedule's program order.
    """

    start: NDArray[np.float64]
    sent: NDArray[np.float64]
    done: NDArray[np.float64]

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(self, start: ArrayLike, sent: ArrayLike, done: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        for name in ("start", "sent", "done"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, name=f"trace: {name}"))
        if not (self.start.ndim == 1 and self.start.shape == self.sent.shape == self.done.shape):
            shapes = f"{self.start.shape}, {self.sent.shape}, {self.done.shape}"
            raise InputError(f"a trace is one start, sent and done per transfer, got the shapes {shapes}")


@dataclass(frozen=True, slots=True, eq=False)
class Result(Value):
    """One collective, run once (simulated) or many times (real).

    Parameters
    ----------
    collective, operation, engine : str
        What ran, and how.
    n_ranks : int
        Ranks.
    size : float, bytes
        Size of the operation, as nccl-tests counts it (the whole array).
    time : float, s
        Last finish minus earliest start; of real runs the median.
    time_from_last_start : float, s
        Last finish minus latest start: the same, unless ranks start late.
    link_bytes : float64[n_links], bytes
        What each link really carried, headers included; empty for a real run.
    bytes_on_wire : float, bytes
        Message bytes that left a sender, headers included; packets count each time that they are sent, answers do not.
    samples : float64[n], s
        Single measurements of a real run, or of a simulation that was repeated with jitter.
    counters : mapping of str to float
        What else the engine counted.
    trace : Trace or None
        Every transfer, when asked for.
    interval : (float, float) or None, s
        Prediction interval of a single run, where there is evidence for one.
    hashes : OverHashes or None
        Draws of the hash of routes, where their times differ.
    whole : float or None, s
        Time on the network without its faults, with the same hashes.
    method : str
        Way by which the flow engine computed it, one of ``commsim.engine.flow_paths.METHODS``; no part of rows and
        files, because all ways give the same answer.

    Raises
    ------
    InputError
        Without a rank, or if the operation is unknown, or a number is not finite or negative.
    """

    collective: str
    operation: str
    engine: str
    n_ranks: int
    size: float
    time: float
    time_from_last_start: float
    link_bytes: NDArray[np.float64] = ()  # type: ignore[assignment]  # frozen in __post_init__
    bytes_on_wire: float = 0.0
    samples: NDArray[np.float64] = ()  # type: ignore[assignment]  # frozen in __post_init__
    counters: Mapping[str, float] = field(default_factory=dict)
    trace: Trace | None = None
    interval: tuple[float, float] | None = None
    hashes: OverHashes | None = None
    whole: float | None = None
    method: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("link_bytes", "samples"):
            object.__setattr__(self, name, freeze(getattr(self, name), np.float64, name=f"result: {name}"))
        object.__setattr__(self, "counters", dict(self.counters))
        if self.operation != "custom":
            operation(self.operation)
        if self.n_ranks < 1:
            raise InputError(f"a result has at least 1 rank, got n_ranks={self.n_ranks}")
        if self.interval is not None and not 0 <= self.interval[0] <= self.interval[1] < float("inf"):
            raise InputError(f"a result's interval must be two finite times in order, got {self.interval}")
        for name in ("size", "time", "bytes_on_wire", "link_bytes", "samples"):
            values = np.atleast_1d(getattr(self, name))
            # of millions of links: no columns of booleans; NaN is neither
            if values.ndim > 1 or not (values.min(initial=0) >= 0 and values.max(initial=0) < np.inf):
                raise InputError(f"a result's {name} must be finite and not negative, got {getattr(self, name)}")

    def __repr__(self) -> str:
        factor = self.operation != "custom" and self.time > 0
        rate = f", busbw {self.busbw / 1e9:.4g} GB/s" if factor else ""
        size, time = format_size(self.size), format_time(self.time)
        return f"Result({self.collective}, {count_text(self.n_ranks, 'rank')}, {size}, {self.engine}: {time}{rate})"

    def to_frame(self, library: str | None = None) -> Any:
        """Return the row as a data frame of pandas or polars.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Default: pandas if it is installed, else polars.
        """
        from .data_frames import frame_of

        return frame_of([self.row()], library)

    @property
    def algbw(self) -> float:
        """Size over time, bytes/s; infinite when nothing had to be sent."""
        return self.size / self.time if self.time else float("inf")

    @property
    def busbw(self) -> float:
        """Algbw times the operation's factor: the rate of the busiest link of an optimal point-to-point algorithm.

        Raises
        ------
        InputError
            If the operation is ``custom``, which has no factor.
        """
        factor = operation(self.operation).busbw_factor(self.n_ranks)
        return self.algbw * factor if factor else 0.0

    @property
    def faults_cost(self) -> float | None:
        """How many times that on the network without its faults the time is; None where that is not known."""
        return None if self.whole is None else self.time / self.whole if self.whole else 1.0

    def busiest_link(self, network: Network) -> BusiestLink:
        """Return the link that needs the longest for its bytes; one without a name where no link carries any.

        Parameters
        ----------
        network : Network
            Network on which the time was predicted.
        """
        if not self.link_bytes.any():
            return BusiestLink(None, 0.0, 0.0)
        link = int((self.link_bytes / network.bandwidth).argmax())
        load = float(self.link_bytes[link])
        return BusiestLink(network.link_name(link), load, load / self.time if self.time else 0.0)

    def spread_row(self) -> dict[str, float]:
        """Return the part of the row on draws of the hash of routes; empty where their times do not differ."""
        return {} if self.hashes is None else self.hashes.row()

    def row(self, asked: str = "") -> dict[str, Any]:
        """Return the JSON row of the command line's contract; a rate is null if undefined.

        Parameters
        ----------
        asked : str
            Collective as it was asked for: with its parameters, or its file. It is in the row where it is more than the
            name.
        """
        finite = np.isfinite(self.algbw)
        row: dict[str, Any] = {
            "collective": self.collective,
            **({"asked": asked} if asked not in ("", self.collective) else {}),
            "operation": self.operation,
            "engine": self.engine,
            "n_ranks": self.n_ranks,
            "size_B": int(self.size) if self.size == int(self.size) else self.size,  # as it is given, by any engine
            "time_s": self.time,
            "time_from_last_start_s": self.time_from_last_start,
            "algbw_Bps": self.algbw if finite else None,
            "busbw_Bps": self.busbw if finite and self.operation != "custom" else None,
            "bytes_on_wire": self.bytes_on_wire,
            "max_link_bytes": float(self.link_bytes.max()) if self.link_bytes.size else None,
        }
        if self.interval is not None:
            row["low_s"], row["high_s"] = self.interval
        row |= self.spread_row()
        if self.whole is not None:
            row["whole_s"], row["faults_cost"] = self.whole, self.faults_cost
        if self.samples.size:
            row["p5_s"], row["p95_s"] = (float(q) for q in np.percentile(self.samples, (5, 95)))
            row["n_samples"] = int(self.samples.size)
        return row | {"counters": dict(self.counters)}


def mean_busbw(results: Iterable[Result]) -> float:
    """Return the mean bus bandwidth of results that have one, bytes/s: what nccl-tests prints below its table."""
    several = list(results) if isinstance(results, Iterable) else [results]
    if not all(isinstance(result, Result) for result in several):
        raise wrong_kind("results", "a list of results, as cs.predict returns them", results)
    rates = [r.busbw for r in several if r.time > 0 and r.operation in OPERATIONS]  # 'custom' has no factor
    return sum(rates) / max(1, len(rates))
