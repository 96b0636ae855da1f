"""Fit a start-up time and a time per byte to measurements, and from them what a network must have.

Hockney's model of a whole operation is ``t = a + S b``. A closed form says how often an algorithm pays latency and how
many times the size crosses the slowest link: then a and b are those counts times alpha = L + o, and times 1/B + gamma's
share, and the network's own numbers follow. LogGP tells more only from more kinds of runs: messages that do not wait
for each other (``stream``) show g, the gap between messages; L and o always come as a sum.

A message alone takes ``o + L + S G`` until it has arrived, as everywhere in commsim. Of messages that do not wait for
each other, one leaves every ``max(g, o) + S G``. So a table of single messages gives L + o and G, a table of streams
gives the larger of g and o, and G once more; L and o on their own need a sender that does something else meanwhile.

References
----------
Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", SPAA 1995.

From a fit to the network that would give it: an algorithm's closed form says how often it pays what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.operations import operation as known_operation
from commsim.formats.measurement import Measurement
from commsim.real.relative_error_fit import fit_costs

from .bootstrap import FittedValue, bootstrap

# A cost that is nowhere this share of a measured time cannot be told from the error of the others.
VISIBLE = 0.05
# Of more, as many are drawn at random: the others would only make the interval narrower than a model deserves.
MAX_ROWS = 10_000
# And one whose interval is wider than this, relative to its value, on either side, is not known.
SURE = 0.5


@dataclass(frozen=True, slots=True)
class Fit:
    """What one table of measurements says.

    Parameters
    ----------
    operation, algorithm : str
        What was measured.
    n_ranks : int or None
        Number of ranks that took part.
    n_rows : int
        Rows that it rests on.
    startup : FittedValue, s
        a: what the operation costs however small it is.
    per_byte : FittedValue, s/byte
        b: what each byte of its size costs.
    residuals : tuple of float
        Relative error of the fit, ``fitted / measured - 1``, of each row.
    hidden : tuple of str
        Names of those that these rows cannot tell, and why.
    """

    operation: str
    algorithm: str
    n_ranks: int | None
    n_rows: int
    startup: FittedValue
    per_byte: FittedValue
    residuals: tuple[float, ...]
    hidden: tuple[str, ...]

    @property
    def half_size(self) -> float:
        """Size at which half of the largest rate is reached, a/b, bytes."""
        return self.startup.value / self.per_byte.value if self.per_byte.value else float("inf")

    @property
    def busbw(self) -> FittedValue | None:
        """Bus bandwidth of an endless message, bytes/s; None where the ranks are not known."""
        if self.n_ranks is None:
            return None
        factor = known_operation(self.operation).busbw_factor(self.n_ranks)
        b = self.per_byte
        return FittedValue(factor / b.value, factor / b.high, factor / b.low if b.low else float("inf"))

    def efficiency(self, line_rate: float | None) -> float | None:
        """Bus bandwidth of an endless message over the line rate in bytes/s; None where one of them is not known."""
        return None if line_rate is None or self.busbw is None else self.busbw.value / line_rate

    @property
    def median_residual(self) -> float:
        """Median of the absolute residuals."""
        return float(np.median(np.abs(self.residuals)))


def kinds_of(rows: Sequence[Measurement], in_place: bool = False) -> list[list[Measurement]]:
    """Group the rows to which one line each is fitted: those in place, or out of place where there are any."""
    wanted = in_place or all(row.in_place for row in rows)
    groups: dict[tuple[str, str, str, int], list[Measurement]] = {}
    for row in rows:
        if row.in_place == wanted and row.time > 0:
            groups.setdefault((row.operation, row.algorithm, row.protocol, row.n_ranks or 0), []).append(row)
    return list(groups.values())


def fit_table(rows: Sequence[Measurement], seed: int = 0) -> Fit:
    """Fit ``t = a + S b`` to rows of one operation, algorithm and number of ranks.

    Parameters
    ----------
    rows : sequence of Measurement
        Rows of at least two sizes.
    seed : int
        Seed of the draws for the intervals.

    Raises
    ------
    InputError
        If there are fewer sizes than two, a time is 0, or the seed is negative.
    """
    first = rows[0]
    if seed < 0:
        raise InputError(f"the seed of a fit must be 0 or more, got {seed}")
    if len(rows) > MAX_ROWS:
        drawn = np.random.default_rng(seed).choice(len(rows), MAX_ROWS, replace=False)
        rows = [rows[i] for i in np.sort(drawn).tolist()]
    sizes, seconds = np.array([r.size for r in rows]), np.array([r.time for r in rows])
    if len(np.unique(sizes)) < 2:
        raise InputError(
            f"{first.source}: a fit needs at least 2 sizes of {first.operation}, got {len(np.unique(sizes))}"
        )
    if not (seconds > 0).all():
        raise InputError(f"{first.source}: a fit needs times that are not 0")
    columns = np.column_stack((np.ones_like(sizes), sizes))

    def fit(chosen: NDArray[np.intp]) -> NDArray[np.float64]:
        return fit_costs(columns[chosen], seconds[chosen])

    startup, per_byte = bootstrap(fit, sizes, seed)
    fitted = columns @ (startup.value, per_byte.value)
    hidden = _hidden(startup, "s", sizes * 0 + 1, fitted, "start-up time", "smaller")
    hidden += _hidden(per_byte, "s/B", sizes, fitted, "time per byte", "larger")
    if len(sizes) < 3:
        hidden.append("how sure the two are: a line goes through any two rows; measure more sizes")
    return Fit(first.operation, first.algorithm, first.n_ranks, len(rows), startup, per_byte,
               tuple((fitted / seconds - 1).tolist()), tuple(hidden))  # fmt: skip


def _hidden(
    cost: FittedValue, unit: str, column: NDArray[np.float64], fitted: NDArray[np.float64], name: str, wanted: str
) -> list[str]:
    share = float((cost.value * column / fitted).max())
    if share < VISIBLE:
        return [f"the {name} is nowhere more than {share:.1%} of the time; measure {wanted} messages"]
    if cost.width > SURE:
        return [
            f"the {name} lies anywhere from {cost.low:.3g} to {cost.high:.3g} {unit}; measure more and {wanted} "
            "messages"
        ]
    return []


@dataclass(frozen=True, slots=True)
class LogGPFit:
    """What is known of LogGP's four numbers.

    Parameters
    ----------
    latency_and_overhead : FittedValue or None, s
        L + o of one message.
    gap_or_overhead : FittedValue or None, s
        The larger of g and o: what each further message adds.
    per_byte : FittedValue, s/byte
        G.
    hidden : tuple of str
        What these tables cannot tell, and what would.
    """

    latency_and_overhead: FittedValue | None
    gap_or_overhead: FittedValue | None
    per_byte: FittedValue
    hidden: tuple[str, ...]

    def costs(self) -> LogGP | None:
        """Return the costs of a message, the whole gap as o, since no engine has a g; None where L + o is not known."""
        if self.latency_and_overhead is None:
            return None
        gap = self.gap_or_overhead.value if self.gap_or_overhead else 0.0
        overhead = min(gap, self.latency_and_overhead.value)
        return LogGP(self.latency_and_overhead.value - overhead, overhead, 1 / self.per_byte.value)


def fit_loggp(rows: Sequence[Measurement], seed: int = 0) -> LogGPFit:
    """Fit point-to-point rows: single messages, streams (algorithm ``stream``), or both.

    Raises
    ------
    InputError
        If there are none, or fewer than two sizes of a kind.
    """
    ours = [row for row in rows if row.operation == "send_recv"]
    alone, stream = ([r for r in ours if (r.algorithm == "stream") == streams] for streams in (False, True))
    if not ours:
        raise InputError("LogGP's numbers need messages between two ranks: OSU's latency and bandwidth tables")
    single = fit_table(alone, seed) if alone else None
    many = fit_table(stream, seed) if stream else None
    hidden = ["L and o come as a sum: telling them apart needs a sender that computes while a message is under way"]
    hidden += [text for fit in (single, many) if fit is not None for text in fit.hidden]
    if many is None:
        hidden.append("g: needs messages that do not wait for each other (OSU's bandwidth table)")
    if single is None:
        hidden.append("L + o: needs single messages (OSU's latency table)")
    per_byte = next(fit.per_byte for fit in (many, single) if fit is not None)
    return LogGPFit(_startup(single), _startup(many), per_byte, tuple(hidden))


def _startup(fit: Fit | None) -> FittedValue | None:
    return None if fit is None else fit.startup


def network_costs(fit: Fit, collective: str) -> tuple[LogGP, LogGP, LogGP]:
    """Turn the fit of one algorithm into the network's alpha and bandwidth, by the algorithm's closed form.

    Parameters
    ----------
    fit : Fit
        Fit with a number of ranks.
    collective : str
        The algorithm, as a registered collective, such as ``ring_all_reduce``.

    Returns
    -------
    LogGP, LogGP, LogGP
        The costs, and those of the two ends of the intervals: the fastest and the slowest network. L holds all of
        alpha, since nothing here tells L from o; gamma is in B.

    Raises
    ------
    InputError
        If the collective is another operation, or has no closed form that is linear in the size.
    """
    from collectives import COLLECTIVES

    if collective not in COLLECTIVES:
        raise InputError(f"unknown collective {collective!r}")
    entry = COLLECTIVES[collective]
    if entry.metadata["operation"] != fit.operation:
        raise InputError(f"{collective} implements {entry.metadata['operation']}, and {fit.operation} was measured")
    cost = entry.metadata["cost"]
    if cost is None or fit.n_ranks is None or fit.n_ranks < 2:
        raise InputError(f"{collective}: needs a closed form and at least 2 ranks to compute the required network")
    try:
        hops = float(cost(fit.n_ranks, 0.0, LogGP(L=1.0, B=float("inf"))))
        share, twice = (float(cost(fit.n_ranks, size, LogGP(B=1.0))) for size in (1.0, 2.0))
    except TypeError:
        raise InputError(f"{collective}: its closed form needs to know the network, so it cannot be fitted") from None
    if abs(twice - 2 * share) > 1e-9 * share or not hops or not share:
        raise InputError(f"{collective}: its closed form is not linear in the size, so it cannot be fitted")
    ends = (("value", "value"), ("low", "low"), ("high", "high"))
    costs = [LogGP(L=getattr(fit.startup, a) / hops, B=share / max(getattr(fit.per_byte, b), 1e-300)) for a, b in ends]
    return costs[0], costs[1], costs[2]
