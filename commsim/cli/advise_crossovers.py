"""What ``commsim advise`` says beside its table: up to which density sparse pays, and how many CPU servers do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commsim.advice import Advice, Question
    from commsim.advice.payoff import SparsePays
    from commsim.advice.server_gains import Servers
    from commsim.core.network import Network


def print_density_crossover(question: Question, advice: Advice) -> dict[str, Any] | None:
    """Find from which density on dense ways are faster, print it, and return it for the JSON."""
    from commsim.advice.payoff import can_search, density_crossover

    sparse = [row.candidate for row in advice.ranked if row.candidate.way == "sparse"]
    dense = next((row for row in advice.ranked if row.candidate.way not in ("sparse", "lossy")), None)
    if not question.densities or question.gradients is not None or not sparse or dense is None or not dense.result.time:
        return None
    first = {candidate.group[0]: candidate.spec for candidate in reversed(sparse)}  # of several densities one will do
    tried = [spec for spec in reversed(first.values()) if can_search(advice.ready[spec], question)]
    untried = sorted({spec.partition(":")[0] for spec in first.values() if spec not in tried})
    if untried:
        print(f"# crossover without {', '.join(untried)}: drawing so much data at many densities would take minutes")
    if not tried:
        return None
    found = density_crossover(question, advice.ready, tried, dense.candidate.spec, dense.result.time)
    labels = {candidate.spec: candidate.group[0] for candidate in sparse}
    print(f"# {_density_sentence(found, labels.get(found.sparse, ''), dense.candidate.label)}")
    return {
        "low": found.low,
        "high": found.high if found.high < float("inf") else None,
        "before": found.sparse or None,
        "after": found.dense,
        "without": untried,
    }


def _density_sentence(found: SparsePays, sparse: str, dense: str) -> str:
    if not sparse:
        return f"sparse never pays here: {dense} is faster at every density from {found.low:.3g} on"
    if found.high == float("inf"):
        return f"sparse pays at every density up to {found.low:.3g}: there {sparse} is still faster than {dense}"
    return f"sparse pays up to a density of about {found.low:.3g}: until then {sparse}, then {dense} is faster"


def print_server_gains(question: Question, network: Network) -> dict[str, Any] | None:
    """Find after how many CPU servers BytePS stops gaining, print it, and return it for the JSON."""
    from commsim.advice.server_gains import server_gains

    if not question.n_servers or question.n_workers < 2:
        return None
    found = server_gains(question, network)
    print(f"# {servers_sentence(found)}")
    return {
        "simulated_s": {str(k): time for k, time in found.simulated.items()},
        "theory_S_over_B": {str(k): time for k, time in found.theory.items()},
        "enough": found.enough,
        "enough_in_theory": found.enough_in_theory,
    }


def servers_sentence(found: Servers) -> str:
    """Say how many CPU servers do."""
    most = max(found.simulated)
    theory = f"on equal links by theorem 1 up to {found.enough_in_theory}"
    if not most:
        return f"BytePS with CPU servers is too large to be simulated here in seconds; {theory}"
    if not found.enough:
        return f"BytePS gains nothing by up to {most} CPU servers here; {theory}"
    gain = found.simulated[0] / found.simulated[found.enough]
    more = ", and more would help" if found.enough == most < found.enough_in_theory else ""
    return f"BytePS gains by CPU servers up to {found.enough} of {most} tried ({gain:.2f}x of none{more}); {theory}"
