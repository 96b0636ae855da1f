"""One prediction, with all that a notebook asks of it: its transfers in time, a picture, a row of a data frame."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.frames import frame_of
from commsim.core.result import Result
from commsim.run import Prepared, prepare
from commsim.run.usual import known_engine, usual_engine

from .given import (  # fmt: skip
    CollectiveLike,
    NetworkLike,
    PlacementLike,
    SizeLike,
    collective_of,
    network_of,
    placement_of,
    seconds_of,
    size_of,
)

# Ranks of which a picture shows all; of more, the fastest, the median and the slowest.
MAX_RANKS = 64
AUTO = "auto"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Predicted(Result):
    """A result that knows what was predicted; equal to the plain result.

    Parameters
    ----------
    prepared : Prepared or None
        Network, schedule and placement; None of one that comes out of a pickle.
    """

    prepared: Prepared | None = field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, Predicted) else other)

    def __hash__(self) -> int:
        return hash(self.plain())

    def __reduce__(self) -> tuple[Any, ...]:
        return Result.__reduce__(self.plain())

    def plain(self) -> Result:
        """Return the numbers alone."""
        return Result(**{one.name: getattr(self, one.name) for one in dataclasses.fields(Result)})

    def timeline(self, library: str | None = None) -> Any:
        """Return when each transfer started, left its sender and was complete, as a data frame.

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            Default: pandas if it is installed, else polars.

        Raises
        ------
        InputError
            If the engine knows no single transfers, or there are too many.
        """
        transfers, (start, sent, done) = self._traced()
        rows = zip(transfers["src"].tolist(), transfers["dst"].tolist(), transfers["src_chunk"].tolist(),
                   transfers["count"].tolist(), start.tolist(), sent.tolist(), done.tolist(), strict=True)  # fmt: skip
        names = ("src", "dst", "chunk", "n_chunks", "start_s", "sent_s", "done_s")
        return frame_of((dict(zip(names, row, strict=True)) for row in rows), library)

    def plot(self, ax: Any = None) -> Any:
        """Draw what each rank sends, over time, with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; a new figure unless given.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            If matplotlib is not installed, or the engine knows no single transfers.
        """
        from commsim.report.paint import require_matplotlib

        require_matplotlib()
        transfers, (start, sent, _) = self._traced()
        if ax is None:
            ax = importlib.import_module("matplotlib.pyplot").subplots(layout="constrained")[1]
        ranks, told = _shown(transfers["src"], sent, self.n_ranks)
        for row, rank in enumerate(ranks):
            own = transfers["src"] == rank
            ax.broken_barh(
                list(zip(start[own] * 1e6, (sent - start)[own] * 1e6, strict=True)), (row - 0.4, 0.8), edgecolor="white"
            )
        ax.set(xlabel="time (µs)", ylabel="sender", title=f"{self.collective}{told}")
        ax.set_yticks(range(len(ranks)), [f"rank {rank}" for rank in ranks])
        ax.invert_yaxis()
        return ax

    def _traced(self) -> tuple[Any, tuple[Any, Any, Any]]:
        """Return the transfers in program order, and their times; simulated again where they were not kept."""
        if self.prepared is None:
            raise InputError("a result that was read or pickled has no timeline; predict it again")
        from commsim.report.simulated_run import simulate_run

        engine = "flow" if self.engine == "closed-form" else self.engine
        run = simulate_run(self.collective, self.prepared, self.size, {"engine": engine})
        return run.prepared.schedule.expand(), (run.trace.start, run.trace.sent, run.trace.done)


def predict(
    collective: CollectiveLike,
    network: NetworkLike,
    size: SizeLike,
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    engine: str = AUTO,
    start_jitter: float | str = 0.0,
    iterations: int = 1,
    seed: int = 0,
    framing: Framing | None = None,
    trace: bool = False,
    transport: Any = None,
    fabric: Any = None,
    method: str = "auto",
) -> Predicted:
    """Predict how long a collective takes.

    Parameters
    ----------
    collective : str, Schedule or callable
        ``name:key=value,...``, a file, a schedule, or a function from a number of ranks to a schedule, to be proved.
    network : str, Network or NetworkBuilder
        ``name:key=value,...`` of a topology, a preset, a file, or a network.
    size : float, bytes, or str
        Of the operation as nccl-tests counts it, such as ``64MiB``.
    n_ranks : int, optional
        Default: as many as the placement has, or all hosts.
    placement : str, Placement, or sequence of int or str, optional
        A strategy, a file, or the node of each rank, by number or by name; ``packed`` unless given.
    routing : str, optional
        Instead of the network's own.
    engine : {"auto", "flow", "packet", "alpha-beta", "closed-form"}
        ``auto`` is what ``commsim run`` takes where none is named: a closed form for NCCL's collectives, else flow.
    start_jitter : float, s, or str
        Ranks enter between 0 and this, uniformly.
    iterations : int
        With jitter, how many draws; the result has the median time.
    seed : int
        Of the jitter, of random placement and of hashes in routing.
    framing, transport, fabric, method
        As in :meth:`commsim.run.Prepared.predict`.
    trace : bool
        Whether the result keeps the times of every transfer.

    Raises
    ------
    InputError
        If a name is unknown, a number is out of its range, or the placement does not fit.

    Examples
    --------
    >>> import commsim as cs
    >>> result = cs.predict("ring_all_reduce", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "64MiB")
    >>> result
    Result(ring_all_reduce, 4 ranks, 64 MiB, flow: 8.065 ms, busbw 12.48 GB/s)
    >>> on_three = cs.predict("ring_all_reduce", "star:n_hosts=8", "1MiB", placement=[0, 4, 7])
    >>> on_three.n_ranks
    3
    """
    where = network_of(network)
    given, n_ranks = placement_of(placement, where, n_ranks)
    what = collective_of(collective, n_ranks or len(where.endpoints))
    ready = prepare(what, where, n_ranks=n_ranks, placement=given, routing=routing, seed=seed)
    n_bytes = size_of(size)
    if engine == AUTO:
        engine, _ = known_engine(ready, n_bytes, usual_engine([what] if isinstance(what, str) else []))
    result = ready.predict(
        n_bytes, engine=engine, start_jitter=seconds_of(start_jitter, "start_jitter"), iterations=iterations, seed=seed,
        framing=framing, trace=trace, transport=transport, fabric=fabric, method=method,
    )  # fmt: skip
    return Predicted(**{one.name: getattr(result, one.name) for one in dataclasses.fields(Result)}, prepared=ready)


def _shown(senders: Any, sent: Any, n_ranks: int) -> tuple[Sequence[int], str]:
    """Return the ranks that a picture shows, and what its title says of them."""
    if n_ranks <= MAX_RANKS:
        return range(n_ranks), ""
    last = np.zeros(max(n_ranks, int(senders.max(initial=0)) + 1))
    np.maximum.at(last, senders, sent)
    order = np.argsort(last[:n_ranks], kind="stable").tolist()
    return [order[0], order[len(order) // 2], order[-1]], f": fastest, median and slowest of {n_ranks} ranks"
