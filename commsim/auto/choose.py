"""Choose the cheapest engine whose known error is under a tolerance, and say why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.auto.case import PredictionCase
from commsim.auto.estimated_seconds import estimated_seconds
from commsim.auto.known_error import PACKET
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_size

from .case import case_of, labels_of
from .evidence import KnownError, evidence, never, say, say_labels
from .exact import alpha_beta_differs, closed_form_differs

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

BY_HAND = "choose by hand, such as engine flow"
# Engines that were not compared with anything real, but equal the flow engine where this finds no difference.
SAME_AS_FLOW: dict[str, Callable[[Plan], str]] = {
    "closed-form": closed_form_differs,
    "alpha-beta": alpha_beta_differs,
}


@dataclass(frozen=True, slots=True)
class Option:
    """What is known of one engine in one case.

    Parameters
    ----------
    engine : str
        Name of the engine.
    seconds : float, s
        Estimated CPU time.
    known : tuple of KnownError
        Comparisons that cover the case, the most telling first; none where nothing does.
    why_not : str
        Why the engine cannot be chosen; empty where it can.
    same_as_flow : bool
        Whether it gives the flow engine's answer here, so that the comparisons are that engine's.
    reference : str
        What it is itself, where it is what the flow engine was compared with; no error is known of it then.
    """

    engine: str
    seconds: float
    known: tuple[KnownError, ...]
    why_not: str
    same_as_flow: bool = False
    reference: str = ""

    @property
    def error(self) -> float | None:
        """The known error, of the most telling comparisons; 0 of the reference itself, None where nothing is known."""
        return 0.0 if self.reference else self.known[0].error if self.known else None


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine, and why.

    Parameters
    ----------
    engine : str
        The cheapest one whose known error is at most the tolerance.
    tolerance : float
        Relative.
    size : float, bytes
        Size of the operation.
    options : tuple of Option
        All engines, the cheapest first.
    """

    engine: str
    tolerance: float
    size: float
    options: tuple[Option, ...]

    @property
    def option(self) -> Option:
        """What is known of the engine that was chosen."""
        return next(option for option in self.options if option.engine == self.engine)

    @property
    def remark(self) -> Remark:
        """Say what was chosen and why, in one line, with the others as details."""
        first, *others = self.lines
        return Remark("engine-chosen", first, self.option.error, True, "; ".join(line.strip() for line in others))

    @property
    def lines(self) -> tuple[str, ...]:
        """Describe what was chosen and why, and what the known error is a statistic of."""
        option, wanted = self.option, f"tolerance {self.tolerance:.3g}"
        if option.reference:
            told = f"it is the {option.reference}"
            lines = [
                f"  the flow engine was compared with it; {wanted}",
                "  how far that model is from a real network is not known in such a case",
            ]
        else:
            known = option.known[0]
            told = f"known error {known.error:.1%} against the {known.against}"
            same = ["  its times are those of the flow engine in this case"] if option.same_as_flow else []
            kind = "" if known.real else f"the {known.against} is a model, not a measurement; "
            lines = [*same, f"  {kind}{wanted}", f"  known from {say(known)}"]
        lines.insert(0, f"{format_size(self.size)}: engine {self.engine}: {told}")
        lines += [f"  but it was further off in {say(o)}" for o in option.known[1:] if o.error > self.tolerance]
        lines += [f"  not {o.engine} (about {_seconds(o.seconds)}): {o.why_not}" for o in self.options if o.why_not]
        later = [f"{o.engine} {_seconds(o.seconds)}" for o in self.options if not o.why_not and o is not option]
        more = f"; these are also accurate enough, but cost more: {', '.join(later)}" if later else ""
        return (*lines, f"  about {_seconds(option.seconds)} of CPU time{more}")


def choose(prepared: Plan, size: float, tolerance: float, transport: str = "window") -> EngineChoice:
    """Choose the cheapest engine whose known error is at most `tolerance` for this very case.

    The known error of real runs, in the testbed, else of others, is the 90th percentile of the absolute relative errors
    of the flow engine's predictions, frame headers included: of ten, nine were that close or closer. Where nothing real
    was run in such a case it is the largest difference from the packet engine in the cases around it, which is an error
    against a model, and said to be. That engine is itself chosen where the flow engine differs more from it. Closed
    form and alpha-beta can be chosen where they provably give the flow engine's times, and then have its error. Nothing
    is extrapolated; :mod:`commsim.auto.evidence` says what has to have been compared.

    Parameters
    ----------
    prepared : Plan
        A collective on a network.
    size : float, bytes
        Size of the operation.
    tolerance : float
        Relative: 0.1 is a tenth.
    transport : {"window", "dctcp", "dcqcn"}
        Transport of the packet engine, where that is what was compared with.

    Raises
    ------
    InputError
        If the tolerance is not positive, the transport is unknown, nothing is known of this case, or no engine is known
        to be close enough; it says what was compared.
    """
    if not 0 < tolerance < float("inf"):
        raise InputError(f"a tolerance is a relative error above 0, such as 10%, got {tolerance:g}")
    if transport not in PACKET:
        raise InputError(f"a transport is one of {', '.join(PACKET)}, got {transport!r}")
    what = f"{prepared.schedule.operation} of {format_size(size)} on {count_text(prepared.schedule.n_ranks, 'rank')} of"
    what = f"{what} {prepared.network.name}"
    labels = labels_of(prepared)
    if never("flow", labels, prepared.schedule.n_ranks):  # before anything is measured or laid out, which may be large
        raise InputError(f"the error of {what} is not known; {say_labels('flow', labels)}; {BY_HAND}")
    case = case_of(prepared, size)
    known, lacking = evidence("flow", case, transport)
    if not known:
        why = "; ".join(f"against the {against}: {reason}" for against, reason in lacking.items())
        raise InputError(f"the error of {what} is not known; {why}; {BY_HAND}")
    prepared = prepared.in_pieces(size)  # below only what is sent counts, not its name
    options = tuple(
        _option(engine, seconds, prepared, case, tolerance, known, transport)
        for engine, seconds in estimated_seconds(prepared, size).items()
    )
    for option in options:
        if not option.why_not:
            return EngineChoice(option.engine, tolerance, size, options)
    best = min((o for o in options if o.error is not None), key=lambda o: o.error or 0.0)
    closest = f"the closest is {best.engine}, {say(best.known[0])}"
    raise InputError(f"no engine is known to be within {tolerance:.3g} of {what}; {closest}; {BY_HAND}")


def _option(
    engine: str,
    seconds: float,
    prepared: Plan,
    case: PredictionCase,
    tolerance: float,
    flow: tuple[KnownError, ...],
    transport: str,
) -> Option:
    differs = SAME_AS_FLOW[engine](prepared) if engine in SAME_AS_FLOW else ""
    if differs:
        return Option(engine, seconds, (), f"may differ from the flow engine: {differs}")
    if engine == "packet" and not flow[0].real:
        return Option(engine, seconds, (), "", reference=PACKET[transport])
    same = engine in SAME_AS_FLOW
    known = flow if same or engine == "flow" else evidence(engine, case, transport)[0]
    why_not = ""
    if not known:
        why_not = "never compared in such a case"
    elif known[0].error > tolerance:
        why_not = f"known error {known[0].error:.1%}"
    return Option(engine, seconds, known, why_not, same)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2g} ms" if seconds < 1 else f"{seconds:.3g} s"
