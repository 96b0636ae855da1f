"""The operation of a log of nccl-tests that does not name it: what is said of it, held against its columns."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from commsim.core.errors import InputError
from commsim.formats.measurement import ReadingContext, interval

from .log_lines import lines_of_log
from .nccl_columns import NUMBER, aligned, column_names, halves_of, implied_columns, rates_of

# Whether a program prints a reduction, and a root, in its rows; sendrecv_perf prints one that it does not do.
_COLUMNS_OF = {
    "all_reduce": (True, False), "reduce_scatter": (True, False), "reduce": (True, True), "send_recv": (True, False),
    "all_gather": (False, False), "all_to_all": (False, False), "all_to_all_v": (False, False),
    "broadcast": (False, True), "gather": (False, True), "scatter": (False, True),
}  # fmt: skip
_FACTOR_ONE = ("reduce", "send_recv", "broadcast")


def unnamed_operation(text: str, usual: str, path: Path, context: ReadingContext) -> str:
    """Return the operation of a log that does not name it: what is said of it, if its columns allow it, or they say.

    Raises
    ------
    InputError
        If the columns are those of other operations, or of several.
    """
    columns, fits = _by_columns(text)
    if usual and fits and usual not in fits:
        raise InputError(f"{path}: is no table of {usual}: {columns} and its rates are of {' or '.join(fits)}")
    if not usual and len(fits) != 1:
        refuse_unknown(path, f"{columns} and its rates are of {' or '.join(fits)}" if fits else "", *fits[:1])
    why = "as given" if context.operation else "as the file's name says" if usual else f"by {columns} and its rates"
    context.notes.append(f"{path}: names no operation: {usual or fits[0]}, {why}")
    return usual or fits[0]


def _by_columns(text: str) -> tuple[str, list[str]]:
    """Return redop and root of all rows in words, and the operations with these and with such rates.

    Both are empty where rows differ in redop or root: tables of several operations.
    """
    columns, kinds, higher = list[str](), set[tuple[str, str]](), set[bool]()
    for line in lines_of_log(text):
        cells = line.split()
        columns, names = columns or implied_columns(cells), column_names(cells)
        if names[:1] == ["size"] and halves_of(names):
            columns = names
        elif columns and names[:1] and names[0].isdecimal():
            names = aligned(columns, names)
            half = halves_of(columns)[0]
            if len(names) >= half + 3 and all(map(NUMBER.fullmatch, names[half : half + 3])):
                row = dict(zip(columns, names, strict=False))
                kinds.add((row.get("redop", "none"), row.get("root", "none")))
                (a_low, a_high), (b_low, b_high) = (interval(rate) for rate in rates_of(columns, names))
                higher |= {True} if b_low >= a_high > 0 else {False} if b_high <= a_low else set()
    if len(kinds) != 1:
        return "", []
    redop, root = next(iter(kinds))
    fits = [
        name
        for name, (reduces, has_root) in _COLUMNS_OF.items()
        if (reduces is (redop != "none") or name == "send_recv")
        and (root == "none" or (root != "-1") is has_root)
    ]  # fmt: skip
    if higher:  # busbw over algbw is 2 (n - 1) / n, 1 or (n - 1) / n; equal rates of a few digits say none of them
        fits = [name for name in fits if higher == {name == "all_reduce"} and name not in _FACTOR_ONE]
    return f"redop {redop}, root {root}", fits


def refuse_unknown(path: Path, known: str = "", likely: str = "all_reduce") -> NoReturn:
    """Refuse a file of which nothing says the operation.

    Raises
    ------
    InputError
        Always; `known` is what its columns say, `likely` an operation that they allow.
    """
    raise InputError(
        f"{path}: the measured operation is unknown{f' ({known})' if known else ''}; give it, as in --operation"
        f" {likely}, or in the file's name, as in {likely}.txt"
    )
