"""Rates of nccl-tests as they are printed: busbw over algbw is a function of the number of ranks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from commsim.core.operations import operation

_PRINTED = re.compile(r"\d{1,16}(?:\.\d{1,16})?", re.ASCII)
# Above this the printed digits cannot tell two numbers of ranks apart.
MAX_RANKS = 4096


def ranks_of_rates(name: str, rates: Sequence[tuple[str, str]]) -> int | None:
    """Find the one number of ranks for which all rates are right as they are rounded; None if there is not just one.

    Parameters
    ----------
    name : str
        The operation.
    rates : sequence of (str, str)
        Algbw and busbw of each row, as printed.
    """
    low, high = 0.0, math.inf
    for algbw, busbw in rates:
        (a_low, a_high), (b_low, b_high) = interval(algbw), interval(busbw)
        if a_low > 0:
            low, high = max(low, float(b_low / a_high)), min(high, float(b_high / a_low))
    factor = operation(name).busbw_factor
    if not low or factor(2) == factor(3):
        return None
    fitting = [n for n in range(2, MAX_RANKS + 1) if low <= factor(n) <= high]
    return fitting[0] if len(fitting) == 1 else None


def interval(text: str) -> tuple[Fraction, Fraction]:
    """Return the least and the largest number that is printed so; 0 and 0 of what is no number.

    Parameters
    ----------
    text : str
        Number as printed, such as ``23.66``.
    """
    if not _PRINTED.fullmatch(text):
        return Fraction(0), Fraction(0)
    value = Fraction(text)
    half = Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
    return max(Fraction(0), value - half), value + half
