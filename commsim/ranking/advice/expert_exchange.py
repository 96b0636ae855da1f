"""Which mode of an exchange of experts is faster, and from which number of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.core.spec import split_spec
from commsim.core.units import format_time
from commsim.experts.kernels import gpu_of
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve

MODES = ("low_latency", "normal")
OPERATIONS = ("ep_dispatch", "ep_combine")
# Tokens of a rank that are tried: powers of two, and then between two of them.
FIRST, LAST = 1, 4096


@dataclass(frozen=True, slots=True)
class ExchangeAdvice:
    """Times of both modes by tokens of a rank, and where the other one becomes faster.

    Parameters
    ----------
    rows : tuple of dict
        Tokens, time of dispatch and combine together of each mode, and the faster one.
    normal_from : int, optional
        Fewest tokens from which normal mode is faster; None if it is not up to the last number tried.
    remarks : tuple of Remark
        What was found, assumed and derived.
    """

    rows: tuple[dict[str, Any], ...]
    normal_from: int | None
    remarks: tuple[Remark, ...]


def advise_expert_exchange(network: Network, exchange: str = "", **options: Any) -> ExchangeAdvice:
    """Compare low-latency and normal mode of a dispatch and the combine after it.

    Parameters
    ----------
    network : Network
        Network of the ranks.
    exchange : str
        ``key=value,...`` of :func:`collectives.experts.exchange.ep_dispatch`, without tokens and mode.
    **options
        Keywords of :func:`commsim.prediction.read.scenario_of`.

    Raises
    ------
    InputError
        If a parameter is wrong, or is one that is tried.
    """
    _, given = split_spec(f"ep_dispatch:{exchange}") if exchange else ("", {})
    if keys := given.keys() & {"tokens", "mode"}:
        raise InputError(f"expert_exchange tries every {min(keys)}, leave out {min(keys)}={given[min(keys)]}")
    remarks = dict[Remark, None]()
    if "library" not in given:
        given = {**given, "library": "deepep" if gpu_of(network) else "none"}
        costs = "DeepEP's kernels" if gpu_of(network) else "links only, since its GPUs are not known"
        remarks[Remark("exchange-costs", f"costs of {costs}; another library can be named")] = None

    def time(tokens: int, mode: str) -> float:
        total = 0.0
        for operation in OPERATIONS:
            mine = {key: value for key, value in given.items() if key != "precision" or operation == "ep_dispatch"}
            text = ",".join(f"{key}={value}" for key, value in {**mine, "tokens": tokens, "mode": mode}.items())
            solution = solve(scenario_of(f"{operation}:{text}", network, **options), [1.0])
            total += solution.results[0].time
            remarks.update(dict.fromkeys(note for note in solution.derived if note.code != SIZE_UNUSED))
        return total

    return _compared(time, remarks)


def _compared(time: Callable[[int, str], float], remarks: dict[Remark, None]) -> ExchangeAdvice:
    rows, before, crossover = list[dict[str, Any]](), 0, None
    tokens = FIRST
    while tokens <= LAST:
        times = {mode: time(tokens, mode) for mode in MODES}
        best = min(MODES, key=lambda mode: times[mode])
        rows.append({"tokens": tokens, **{f"{mode}_s": times[mode] for mode in MODES}, "best": best})
        if best == "normal" and crossover is None:
            crossover = _between(time, before, tokens)
        before = tokens if best == "low_latency" else before
        crossover = None if best == "low_latency" else crossover
        tokens *= 2
    if crossover is None:
        text = f"low latency is faster up to {LAST} tokens of a rank"
    elif crossover == FIRST:
        text = "normal mode is faster at every number of tokens"
    else:
        text = f"normal mode pays from {crossover} tokens of a rank, low latency below"
    last = rows[-1]
    far = format_time(last["low_latency_s"]), format_time(last["normal_s"])
    most = f"at {LAST} tokens low latency takes {far[0]} and normal {far[1]}"
    own = Remark("best-mode", text, needed=True), Remark("times-of-modes", most)
    return ExchangeAdvice(tuple(rows), crossover, (*own, *remarks))


def _between(time: Callable[[int, str], float], low: int, high: int) -> int:
    """Return the fewest tokens above `low` at which normal mode is faster, where it is at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        if time(middle, "normal") <= time(middle, "low_latency"):
            high = middle
        else:
            low = middle
    return high
