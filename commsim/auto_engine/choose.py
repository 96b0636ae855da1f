"""Choose the cheapest engine whose known error is under a tolerance, and say why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.known_error import KnownError
from commsim.core.units import format_size
from commsim.run import ENGINES, Prepared

from .evidence import compared_cases, compared_operations, evidence, say
from .exact import alpha_beta_differs, closed_form_differs
from .work import estimated_seconds

SAME_AS_FLOW: dict[str, Callable[[Prepared], str]] = {
    "closed-form": closed_form_differs,
    "alpha-beta": alpha_beta_differs,
}
"""Engines that were not compared with anything real, but equal the flow engine where this finds no difference."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of one engine in one case.

    Parameters
    ----------
    engine : str
        Which.
    seconds : float, s
        Estimated CPU time.
    known : tuple of KnownError
        Comparisons that cover the case, the most telling first; none where nothing does.
    why_not : str
        Why the engine cannot be chosen; empty where it can.
    same_as_flow : bool
        Whether it gives the flow engine's answer here, so that the comparisons are that engine's.
    """

    engine: str
    seconds: float
    known: tuple[KnownError, ...]
    why_not: str
    same_as_flow: bool = False

    @property
    def error(self) -> float | None:
        """The known error: the 90th percentile of the most telling comparisons; None where there are none."""
        return self.known[0].p90 if self.known else None


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and why.

    Parameters
    ----------
    engine : str
        The cheapest one whose known error is at most the tolerance.
    tolerance : float
        Relative.
    size : float, bytes
        Of the operation.
    options : tuple of Option
        All engines, the cheapest first.
    """

    engine: str
    tolerance: float
    size: float
    options: tuple[Option, ...]

    @property
    def chosen(self) -> Option:
        """What is known of the engine that was chosen."""
        return next(option for option in self.options if option.engine == self.engine)

    @property
    def lines(self) -> tuple[str, ...]:
        """Say what was chosen and why, and what the known error is a statistic of."""
        one = self.chosen
        same = ", whose times are the flow engine's here" if one.same_as_flow else ""
        error = 0.0 if one.error is None else one.error
        wanted = f"at most {self.tolerance:.3g} was asked for"
        lines = [
            f"{format_size(self.size)}: engine {one.engine}{same}: known error {error:.1%} (p90), {wanted}",
            f"  known from {say(one.known[0])}",
        ]
        lines += [f"  but it was further off in {say(o)}" for o in one.known[1:] if o.p90 > self.tolerance]
        lines += [f"  not {o.engine} (about {_seconds(o.seconds)}): {o.why_not}" for o in self.options if o.why_not]
        later = [f"{o.engine} {_seconds(o.seconds)}" for o in self.options if not o.why_not and o is not one]
        more = f"; these would do and cost more: {', '.join(later)}" if later else ""
        return (*lines, f"  about {_seconds(one.seconds)} of CPU time{more}")


def choose(prepared: Prepared, size: float, tolerance: float) -> Choice:
    """Choose the cheapest engine whose known error is at most `tolerance` for this very case.

    The known error is the 90th percentile of the absolute relative errors of comparisons with real runs in the
    testbed, else with what others measured, else with the packet engine: of ten predictions, nine were that close or
    closer. A median would promise only every second one. Closed form and alpha-beta were compared with nothing real;
    they can be chosen where they provably give the flow engine's times, and then have its error. Nothing is
    extrapolated: an operation, a size, a number of ranks or a kind of network that was not compared has no known error.

    Parameters
    ----------
    prepared : Prepared
        A collective on a network.
    size : float, bytes
        Of the operation.
    tolerance : float
        Relative: 0.1 is a tenth.

    Raises
    ------
    InputError
        If the tolerance is not positive, nothing is known of this case, or no engine is known to be close enough; it
        says what was compared.
    """
    if not 0 < tolerance < float("inf"):
        raise InputError(f"a tolerance is a relative error above 0, such as 10%, got {tolerance:g}")
    operation, n_ranks, network = prepared.schedule.operation, prepared.schedule.n_ranks, prepared.network.name
    if not any(evidence(engine, operation, size, n_ranks, network) for engine in ENGINES):
        raise InputError(_refusal(prepared, size, tolerance, ()))  # before anything is laid out, which may be large
    options = tuple(
        _option(engine, seconds, prepared, size, tolerance)
        for engine, seconds in estimated_seconds(prepared, size).items()
    )
    for option in options:
        if not option.why_not:
            return Choice(option.engine, tolerance, size, options)
    raise InputError(_refusal(prepared, size, tolerance, options))


def _option(engine: str, seconds: float, prepared: Prepared, size: float, tolerance: float) -> Option:
    operation, n_ranks = prepared.schedule.operation, prepared.schedule.n_ranks
    differs = SAME_AS_FLOW[engine](prepared) if engine in SAME_AS_FLOW else ""
    if differs:
        return Option(engine, seconds, (), f"may differ from the flow engine: {differs}")
    same = engine in SAME_AS_FLOW
    known = evidence("flow" if same else engine, operation, size, n_ranks, prepared.network.name)
    why_not = ""
    if not known:
        why_not = "never compared in such a case"
    elif known[0].p90 > tolerance:
        why_not = f"known error {known[0].p90:.1%}"
    return Option(engine, seconds, known, why_not, same)


def _refusal(prepared: Prepared, size: float, tolerance: float, options: tuple[Option, ...]) -> str:
    operation = prepared.schedule.operation
    case = f"{operation} of {format_size(size)} on {prepared.schedule.n_ranks} ranks of {prepared.network.name}"
    by_hand = "choose by hand, such as --engine flow"
    best = min((o for o in options if o.error is not None), key=lambda o: o.error or 0.0, default=None)
    if best is not None:
        say_best = f"the closest is {best.engine}, {say(best.known[0])}"
        return f"no engine is known to be within {tolerance:.3g} of {case}; {say_best}; {by_hand}"
    compared = compared_cases("flow", operation)
    if not compared:
        return f"{operation} was never compared with real runs, only {', '.join(compared_operations())} were; {by_hand}"
    return f"the error of {case} is not known; compared were {'; '.join(compared)}; {by_hand}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2g} ms" if seconds < 1 else f"{seconds:.3g} s"
