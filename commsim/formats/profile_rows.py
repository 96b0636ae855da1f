"""Read a profile of PyTorch, whichever of the two kinds it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.files.bounded import read_bytes, read_text, refused_by_name
from commsim.files.whole_files import parse_json

from .calls import Call, measured_calls
from .flight_recorder import flight_recorder_calls
from .kineto import is_kineto, kineto_calls, kineto_tree, step_times
from .measured import MAX_BYTES, Asked, Measured
from .plain_pickle import MAX_PICKLE_BYTES, load_plain_pickle


def read_calls(path: str | Path, notes: list[str] | None = None) -> tuple[tuple[Call, ...], tuple[float, ...]]:
    """Read the collective calls of a profile.

    Parameters
    ----------
    path : path
        A record of the flight recorder (JSON or pickle), or a trace of Kineto; either may be packed with gzip.
    notes : list of str, optional
        Receives what was left out, and why.

    Returns
    -------
    tuple of Call, tuple of float
        In the order in which they started; and when the steps did that the profiler marked, s.

    Raises
    ------
    InputError
        If the file is neither, is damaged or too large, or has no calls.
    """
    path, notes = Path(path), [] if notes is None else notes
    tree = _tree(path)
    calls = calls_of_tree(tree, path, notes)
    if not calls:
        raise InputError(f"{path}: has no collective calls" + (f" ({notes[-1]})" if notes else ""))
    return tuple(calls), tuple(step_times(tree, path) if "traceEvents" in tree else ())


def calls_of_tree(tree: Mapping[str, Any], path: Path, notes: list[str]) -> list[Call]:
    """Read the calls of a decoded profile, in the order in which they started."""
    read = kineto_calls if "traceEvents" in tree else flight_recorder_calls
    return sorted(read(tree, path, notes), key=lambda call: call.start)


def read_profile_rows(path: Path, asked: Asked) -> Sequence[Measured]:
    """Read a pickle of the flight recorder as rows of measurements."""
    return measured_calls(calls_of_tree(_tree(path), path, asked.notes), path, asked)


def _json(path: Path) -> Any:
    text = read_text(path, MAX_BYTES)
    with refused_by_name(path):
        return kineto_tree(text) if is_kineto(text) else parse_json(text)


def _tree(path: Path) -> dict[str, Any]:
    is_pickle = read_bytes(path, MAX_BYTES)[:1] == b"\x80"
    tree = load_plain_pickle(read_bytes(path, MAX_PICKLE_BYTES), str(path)) if is_pickle else _json(path)
    if not isinstance(tree, dict) or not ("entries" in tree or "traceEvents" in tree):
        raise InputError(
            f"{path}: neither a record of the flight recorder (entries) nor a trace of Kineto (traceEvents)"
        )
    return tree
