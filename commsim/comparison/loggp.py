"""LogGP's numbers as far as point-to-point tables show them, and which of them they cannot.

A message alone takes ``o + L + S G`` until it has arrived, as everywhere in commsim. Of messages that do not wait for
each other, one leaves every ``max(g, o) + S G``. So a table of single messages gives L + o and G, a table of streams
gives the larger of g and o, and G once more; L and o on their own need a sender that does something else meanwhile.

References
----------
Alexandrov, Ionescu, Schauser and Scheiman, "LogGP", SPAA 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.formats.measured import Measured

from .hockney import Fit, fit_table
from .sampling import Estimate


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of LogGP's four numbers.

    Parameters
    ----------
    latency_and_overhead : Estimate or None, s
        L + o of one message.
    gap_or_overhead : Estimate or None, s
        The larger of g and o: what each further message adds.
    per_byte : Estimate, s/byte
        G.
    hidden : tuple of str
        What these tables cannot tell, and what would.
    """

    latency_and_overhead: Estimate | None
    gap_or_overhead: Estimate | None
    per_byte: Estimate
    hidden: tuple[str, ...]


def fit_loggp(rows: Sequence[Measured], seed: int = 0) -> Found:
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
    return Found(_startup(single), _startup(many), per_byte, tuple(hidden))


def _startup(fit: Fit | None) -> Estimate | None:
    return None if fit is None else fit.startup
