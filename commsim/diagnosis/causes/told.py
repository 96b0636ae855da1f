"""What is said of ranked causes: the first with what shows it, the next ones, or that nothing distinguishes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.labels import CAUSES, HEALTHY

# Times as likely as the next from which a cause is told from it (less is "not worth more than a bare mention": Kass and
# Raftery, Bayes factors, JASA 90, 1995, section 3.2); and what is able to give a number.
TOLD_FROM, ABLE = 3.0, 0.02
NEXT = 2
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
        named = ", ".join(f"{_name(one)} ({one.likelihood:.0%})" for one in able)
        return [f"able to give this: {named}", MEASURE_NEXT]
    lines = []
    if len(alike) > 1:
        named = ", ".join(f"{_name(one)} ({one.likelihood:.0%})" for one in alike)
        lines.append(f"nothing distinguishes: {named}")
        lines += [f"check: {CAUSES[one.label].check}" for one in alike[:NEXT]]
        others = [one for one in causes if one not in alike][:NEXT]
    else:
        times = f"{first.likelihood / causes[1].likelihood:.3g} times" if len(causes) > 1 else "many times"
        within = f"predicted within {first.far:.0%} at every size; " if first.far < 1 else ""
        lines.append(f"{first.text}: {times} as likely as the next; {within}check: {CAUSES[first.label].check}")
        others = list(causes[1 : 1 + NEXT])
    if others := [one for one in others if one.likelihood >= 0.005]:
        lines.append("then: " + "; ".join(f"{_name(one)} ({one.likelihood:.0%})" for one in others))
    if n_sizes < 3:
        lines.append(MEASURE_NEXT)
    return lines


def _name(cause: RankedCause) -> str:
    return cause.text


def json_of(causes: Sequence[RankedCause]) -> list[dict[str, Any]]:
    """Return what the JSON of ``compare`` says of causes."""
    return [
        {
            "label": one.label, "likelihood": one.likelihood, "text": one.text, "within": one.far,
            "check": CAUSES[one.label].check, "predicted_s": one.times.tolist(),
        }
        for one in causes
    ]  # fmt: skip
