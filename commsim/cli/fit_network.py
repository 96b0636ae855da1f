"""What a fit says of the network, as flags of ``commsim run`` that predict the measurements again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_time, write_time

if TYPE_CHECKING:
    from commsim.comparison.hockney import Fit
    from commsim.comparison.sampling import Estimate
    from commsim.formats.measured import Measured


def print_network(collective: str, fits: Sequence[Fit]) -> dict[str, Any]:
    """Print the network that the fit of the algorithm asks for, as flags of ``commsim run``."""
    from collectives import COLLECTIVES
    from commsim.comparison.network_of_fit import network_costs

    operation = COLLECTIVES[collective].facts["operation"] if collective in COLLECTIVES else ""
    chosen = [fit for fit in fits if fit.operation == operation]
    if len(chosen) != 1:
        raise InputError(f"--collective {collective}: {len(chosen)} of the fits are of it; choose one with --operation")
    middle, fastest, slowest = network_costs(chosen[0], collective)
    spec = f"star:n_hosts={chosen[0].n_ranks},bandwidth={middle.B:.6g}B/s,latency={_short(middle.L / 2)}"
    print(f"# {collective} on {chosen[0].n_ranks} ranks: L + o = {format_time(middle.L)} a message "
          f"({format_time(fastest.L)}..{format_time(slowest.L)}), B = {format_bandwidth(middle.B)} "
          f"({slowest.B / 1e9:.4g}..{fastest.B / 1e9:.4g} GB/s, reducing included); L and o come as a sum")  # fmt: skip
    print(f"commsim run --collective {collective} --topology '{spec}'")
    return {"collective": collective, "alpha_s": middle.L, "bandwidth_Bps": middle.B, "topology": spec}


def print_loggp(rows: Sequence[Measured], seed: int) -> dict[str, Any]:
    """Print what is known of LogGP's numbers, and the flags of ``commsim run`` that stand for them."""
    from commsim.comparison.loggp import fit_loggp

    found = fit_loggp(rows, seed)
    parts = [
        f"{name} = {format_time(value.value)} ({format_time(value.low)}..{format_time(value.high)})"
        for name, value in (("L + o", found.latency_and_overhead), ("max(g, o)", found.gap_or_overhead))
        if value is not None
    ]
    print(
        f"# LogGP: {', '.join(parts)}, G = {found.per_byte.value * 1e9:.4g} ns/B, "
        f"which is {1 / found.per_byte.value / 1e9:.4g} GB/s"
    )
    for text in found.hidden:
        print(f"# LogGP: not known: {text}")
    if found.latency_and_overhead is not None:
        overhead = min(found.gap_or_overhead.value if found.gap_or_overhead else 0.0, found.latency_and_overhead.value)
        latency = (found.latency_and_overhead.value - overhead) / 2
        flags = f" --overhead {_short(overhead)}" if overhead else ""
        print(f"commsim run --topology 'star:n_hosts=2,bandwidth={1 / found.per_byte.value:.6g}B/s,"
              f"latency={_short(latency)}'{flags}")  # fmt: skip
        if overhead:
            print("# the whole gap is taken to be o: commsim has no g of its own")
    return {
        "L_plus_o": as_json(found.latency_and_overhead),
        "max_g_o": as_json(found.gap_or_overhead),
        "G": as_json(found.per_byte),
        "not_known": list(found.hidden),
    }


def as_json(estimate: Estimate | None) -> dict[str, float] | None:
    """Return an estimate as the files have it."""
    return None if estimate is None else {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def _short(seconds: float) -> str:
    """Write a time to be read back, with no more digits than a fit has."""
    return write_time(float(f"{seconds:.6g}"))
