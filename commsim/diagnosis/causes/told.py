"""What is said of ranked causes: the first with what shows it, the next ones, or that nothing distinguishes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY
from commsim.diagnosis.causes.next_run import run_that_tells

# Times as likely as the next from which a cause is told from it (less is "not worth more than a bare mention": Kass and
# Raftery, Bayes factors, JASA 90, 1995, section 3.2); and what is able to give a number.
TOLD_FROM, ABLE = 3.0, 0.02
# Odds that are no longer told as a number.
MANY_TIMES = 1e4
# Causes that are named at once, since more are no help; and that follow a first one. All are in the JSON.
NAMED, NEXT = 3, 2
MEASURE_NEXT = "measure next: -b 1K -e 8G -f 2 on the same ranks, and on two hosts only; NCCL_DEBUG=INFO"


def told(causes: Sequence[RankedCause], *, n_sizes: int = 3, has_reference: bool = False) -> list[str]:
    """Return the lines about causes.

    Parameters
    ----------
    causes : sequence of RankedCause
        The most likely first; at least one.
    n_sizes : int
        Sizes of the slow table; few of them tell little.
    has_reference : bool
        Whether there is a healthy table.
    """
    first, alike = causes[0], [one for one in causes if one.likelihood * TOLD_FROM > causes[0].likelihood]
    if n_sizes < 3 and not has_reference and first.label != HEALTHY:
        able = [one for one in causes if one.likelihood >= ABLE]
        return [f"able to give this: {_named(able)}", MEASURE_NEXT]
    lines = []
    if len(alike) > 1:
        lines.append(f"nothing distinguishes: {_named(alike)}")
        lines += run_that_tells(alike[0], alike[1])
        lines += [f"check: {CAUSES[one.label].check}" for one in alike[:NAMED] if one.label != HEALTHY]
        then = [one for one in causes if one not in alike][:NEXT]
    else:
        others = sum(one.likelihood for one in causes[1:])  # several of which may give the same times
        odds = f"{first.likelihood / others:.3g} times" if others * MANY_TIMES > first.likelihood else "many times"
        than = "as all others together"
        if first.likelihood < others:
            odds, than = f"{first.likelihood / causes[1].likelihood:.3g} times", "as the next"
        within = f"predicted within {first.far:.0%} at every size; " if first.far < 1 else ""
        apart = ", " if first.label == HEALTHY else ": "
        lines.append(f"{first.text}{apart}{odds} as likely {than}; {within}check: {CAUSES[first.label].check}")
        then = list(causes[1 : 1 + NEXT])
    if then := [one for one in then if one.likelihood >= 0.005]:
        lines.append("then: " + "; ".join(f"{one.text} ({one.likelihood:.0%})" for one in then))
    if n_sizes < 3:
        lines.append(MEASURE_NEXT)
    return lines


def _named(causes: Sequence[RankedCause]) -> str:
    """Return the most likely of some causes, and how many there are beside."""
    named = ", ".join(f"{one.text} ({one.likelihood:.0%})" for one in causes[:NAMED])
    more = len(causes) - NAMED
    return f"{named}, and {more} less likely" if more > 0 else named


def json_of(causes: Sequence[RankedCause]) -> list[dict[str, Any]]:
    """Return what the JSON of ``compare`` says of causes."""
    return [
        {
            "label": one.label, "likelihood": one.likelihood, "text": one.text, "within": one.far,
            "check": CAUSES[one.label].check, "predicted_s": one.times.tolist(),
        }
        for one in causes
    ]  # fmt: skip
