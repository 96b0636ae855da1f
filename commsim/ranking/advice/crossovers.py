"""From which density, and up to how many servers another way is faster, as rows and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.limits import EXPECTED
from commsim.core.network import SWITCH, Network
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, first_of
from commsim.sparse.sparse_data import FLOAT

from .payoff import SparsePays, can_search, density_crossover, n_drawn
from .question import Question
from .server_gains import GAIN, Servers, server_gains

if TYPE_CHECKING:
    from commsim.prediction.plans.dense import Plan

    from .advise import Advice, TimedAlternative


@dataclass(frozen=True, slots=True)
class CrossoverAnswer:
    """What was found.

    Parameters
    ----------
    row : dict, optional
        Values, as the JSON has them; None where there is nothing to find.
    remarks : tuple of Remark
        The same in sentences.
    """

    row: dict[str, Any] | None = None
    remarks: tuple[Remark, ...] = ()


def way_compared_with(question: Question, advice: Advice, against: str = "") -> TimedAlternative | None:
    """Return the dense way that sparse ones are compared with; None where none is ranked.

    Parameters
    ----------
    question, advice
        What is asked, and its ranking.
    against : str
        Its name, such as ``ring_all_reduce``. Default: the fastest.

    Raises
    ------
    InputError
        If `against` is not ranked, its time depends on the density, or no density is asked about.
    """
    ways = [row for row in advice.ranked if row.candidate.way not in ("sparse", "lossy")]
    rows = [row for row in ways if against in ("", row.candidate.label, row.candidate.spec.partition(":")[0])]
    dense = rows[0] if rows else None
    if against and dense is None:
        known = first_of([row.candidate.label for row in ways])
        raise InputError(f"against is a way that is ranked and not sparse: {known}; got {against!r}")
    if against and (not question.densities or question.gradients is not None):
        raise InputError("against needs a density, and no gradients: the crossover is one of densities")
    return dense


def density_of_crossover(question: Question, advice: Advice, against: str = "") -> CrossoverAnswer:
    """Find from which density on dense ways are faster.

    Parameters
    ----------
    question, advice
        What is asked, and its ranking.
    against : str
        The dense way that sparse ones are compared with, such as ``ring_all_reduce``. Default: the fastest.

    Raises
    ------
    InputError
        As of :func:`way_compared_with`.
    """
    sparse = [row.candidate for row in advice.ranked if row.candidate.way == "sparse"]
    dense = way_compared_with(question, advice, against)
    if not question.densities or question.gradients is not None or not sparse or dense is None or not dense.result.time:
        return CrossoverAnswer()
    first = {candidate.group[0]: candidate.group for candidate in reversed(sparse)}  # of several densities one will do
    specs = [spec for group in reversed(first.values()) for spec in advice.partitioned[group]]
    tried = [spec for spec in specs if can_search(advice.ready[spec], question)]
    untried = sorted({spec.partition(":")[0] for spec in specs if spec not in tried})
    remarks: list[Remark] = []
    if untried:
        text = f"crossover without {', '.join(untried)}: data at many densities would take minutes to draw"
        remarks.append(Remark("crossover-partial", text))
    if not tried:
        return CrossoverAnswer(None, tuple(remarks))
    each: dict[str, SparsePays] = {}
    without_launch = dense.result.time - advice.launch
    for place, (label, group) in enumerate(reversed(first.items())):
        EXPECTED.begin(f"crossover density of {label} ({place + 1} of {len(first)})")
        if mine := [spec for spec in advice.partitioned[group] if spec in tried]:
            each[label] = density_crossover(question, advice.ready, mine, dense.candidate.spec, without_launch)
    EXPECTED.begin("")
    longest = max(each, key=lambda label: each[label].high)
    crossover = each[longest]
    more = 0
    if crossover.sparse:
        more = _n_machines(advice.ready[crossover.sparse]) - _n_machines(advice.ready[dense.candidate.spec])
    remarks.append(Remark("crossover", _density_sentence(crossover, longest, dense.candidate.label, more), needed=True))
    if others := [f"{label} {_until(pays)}" for label, pays in each.items() if label != longest]:
        text = f"other sparse ways against {dense.candidate.label}, faster: {', '.join(others)}"
        remarks.append(Remark("crossover-others", text))
    blocks = [data.block for spec in tried if (data := advice.ready[spec].data) is not None]
    drawn = min((n for block in blocks if (n := n_drawn(question, block, 1.0)) is not None), default=None)
    if drawn is not None:
        text = f"crossovers are of {drawn} drawn elements of a worker in place of {question.size / FLOAT:.0f}"
        remarks.append(Remark("crossover-drawn", text, details="another draw may move a crossover by some per cent"))
    row = _ends(crossover) | {
        "before": crossover.sparse or None,
        "after": crossover.dense,
        "without": untried,
        "drawn_elements": drawn,
        "each": {label: _ends(pays) for label, pays in each.items()},
    }
    return CrossoverAnswer(row, tuple(remarks))


def _ends(pays: SparsePays) -> dict[str, float | None]:
    """Return the interval as the JSON has it: there is no infinity."""
    return {"low": pays.low, "high": pays.high if pays.high < float("inf") else None}


def _until(pays: SparsePays) -> str:
    if not pays.sparse:
        return "never"
    if pays.high < float("inf"):
        return f"up to {pays.low:.3g}"
    return f"always up to {pays.low:.3g}{', where it is a tie' if _is_tie(pays) else ''}"


def _is_tie(pays: SparsePays) -> bool:
    return pays.times_dense > 1 - GAIN


def _n_machines(plan: Plan) -> int:
    """Count the hosts that a way needs beside those of its workers."""
    n, nodes = plan.schedule.n_ranks, plan.placement.nodes
    spare = np.setdiff1d(nodes[n:], nodes[:n])
    return int((plan.network.kind[spare] != SWITCH).sum())


def _density_sentence(crossover: SparsePays, sparse: str, dense: str, more: int) -> str:
    sparse += f" (with {count_text(more, 'more machine')})" if more > 0 else ""
    if not crossover.sparse:
        return f"sparse is never faster: {dense} is faster at every density from {crossover.high:.3g} on"
    if crossover.high == float("inf") and _is_tie(crossover):
        tie = f"a tie with {dense} ({1 - crossover.times_dense:.1%} faster)"
        return f"sparse is slower at no density up to {crossover.low:.3g}, but there {sparse} is {tie}"
    if crossover.high == float("inf"):
        return f"sparse pays at every density up to {crossover.low:.3g}: there {sparse} is still faster than {dense}"
    within = f"between {crossover.low:.4g} and {crossover.high:.4g}"
    return f"sparse pays up to a density {within}: until then {sparse}, then {dense} is faster"


def gains_of_servers(question: Question, network: Network) -> CrossoverAnswer:
    """Find after how many CPU servers BytePS stops gaining."""
    if not question.n_servers or question.n_workers < 2:
        return CrossoverAnswer()
    servers = server_gains(question, network)
    row = {
        "simulated_s": {str(k): time for k, time in servers.simulated.items()},
        "theory_S_over_B": {str(k): time for k, time in servers.theory.items()},
        "enough": servers.enough,
        "enough_in_theory": servers.enough_in_theory,
    }
    return CrossoverAnswer(row, (Remark("servers", servers_sentence(servers), needed=True),))


def servers_sentence(servers: Servers) -> str:
    """Describe the number of CPU servers that is enough."""
    most = max(servers.simulated)
    theory = f"on equal links by theorem 1 up to {servers.enough_in_theory}"
    if not most:
        return f"BytePS with CPU servers is too large to be simulated here in seconds; {theory}"
    if not servers.enough:
        return f"BytePS is not faster with up to {most} CPU servers here; {theory}"
    gain = servers.simulated[0] / servers.simulated[servers.enough]
    more = ", and more would help" if servers.enough == most < servers.enough_in_theory else ""
    return f"BytePS gains by CPU servers up to {servers.enough} of {most} tried ({gain:.2f}x of none{more}); {theory}"


def about_data(question: Question, advice: Advice) -> list[Remark]:
    """Describe the data, and how much denser the sum is."""
    if not question.is_sparse:
        return [Remark("dense-data", "all data is assumed dense; a density or gradients change that")]
    drawn = f"runs of {question.run} non-zero elements, pattern {question.pattern}, seed {question.seed}"
    lines = [f"data: {drawn}" if question.gradients is None else f"data: {question.gradients}"]
    seen: dict[str, str] = {}
    for row in sorted(advice.ranked, key=lambda row: row.block):
        if row.candidate.way == "sparse":
            density, union, ratio = (row.result.counters[k] for k in ("density", "union_density", "densification"))
            of = "elements" if row.block == 1 else f"blocks of {row.block} elements"
            shares = f"a worker has {density:.4g}, all together {union:.4g}: densification {ratio:.4g}"
            seen.setdefault(shares, f"of the {of} {shares}")
    return as_remarks([*lines, *seen.values()], "data")
