"""The configuration of a sweep: cases of a TOML file, each with parameters, sampling and filters."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, shorten, wrong_kind
from commsim.core.files.fields import TableFields
from commsim.core.files.opening import check_regular, opening
from commsim.core.files.own_files import ALLOWED_BY, Code, allowed, allowed_command, files_in
from commsim.core.files.whole_files import read_tree
from commsim.core.spec import OwnFile

from .axis import Axis, kind_in, read_axis
from .expression import Expression
from .profiled_step import files_of

TABLES = ("topology", "collective", "engine", "placement", "workload")
# Ways to sample, and the class of scipy.stats.qmc that draws; a grid is walked.
SAMPLES = {"grid": "", "latin_hypercube": "LatinHypercube", "sobol": "Sobol"}
MAX_CASES = 1000
MAX_REPEATS = 1_000_000
# Points of a sample: they are drawn together, in memory, while a grid is walked.
MAX_DRAWN = 1_000_000
# Walked last: points that differ only here need the same preparation.
FASTEST = ("collective.size",)
_FAST_TABLES = ("engine", "workload")


@dataclass(frozen=True, slots=True)
class SweepCase:
    """Points that have the same parameters.

    Parameters
    ----------
    axes : tuple of Axis
        The parameters, in the order in which a grid walks them: the last one changes with every point.
    filters : tuple of Expression
        Filters that a point must pass.
    """

    axes: tuple[Axis, ...]
    filters: tuple[Expression, ...]

    @property
    def n_prepared(self) -> int:
        """How many of the axes, the first ones, need preparation anew when they change."""
        return sum(not _speed(axis.name) for axis in self.axes)


@dataclass(frozen=True, slots=True)
class SweepConfig:
    """A sweep as it was written, read and checked.

    Parameters
    ----------
    path : str
        Path of the file, named in messages.
    tree : mapping
        What the file said.
    sample : {"grid", "latin_hypercube", "sobol"}
        How points are chosen.
    n : int
        Points of a sample, in each case.
    seed : int
        Seed of the sample, and of the first repetition of each point.
    repeats : int
        How often each point is run, with the seeds that follow.
    cases : tuple of SweepCase
        Cases, at least one.
    kinds : mapping of str to str
        Kind of every parameter, by table and key.
    files : mapping of str to str
        SHA-256 of every file that a parameter names.
    hash : str
        Hash of all that decides the points, and of those files.
    """

    path: str
    tree: Mapping[str, Any]
    sample: str
    n: int
    seed: int
    repeats: int
    cases: tuple[SweepCase, ...]
    kinds: Mapping[str, str]
    files: Mapping[str, str]
    hash: str

    @property
    def is_workload(self) -> bool:
        """Whether points are training iterations."""
        return any(name.startswith("workload.") for name in self.kinds)


def read_config(config: str | Path | Mapping[str, Any], code: Code = ()) -> SweepConfig:
    """Read a sweep from a .toml or .json file, or from such a tree.

    Parameters
    ----------
    config : path or mapping
        The file, or what it says.
    code : sequence of path
        Files of Python that the sweep may name: collectives, topologies, policies and programs.

    Raises
    ------
    InputError
        If a field is unknown or wrong, naming it, or names code that is not in `code`.
    """
    if isinstance(code, (str, Path)):
        raise wrong_kind("code", "a list such as ['my_ring.py']", code)
    for file in code:
        check_regular(file)
    tree = config if isinstance(config, Mapping) else read_tree(config)
    path = "the sweep" if isinstance(config, Mapping) else str(config)
    top = TableFields(tree, path)
    top.schema(required=False)
    how = top.table("sweep")
    sample = how.one_of("sample", tuple(SAMPLES), "grid")
    n = how.whole("n", 1, MAX_DRAWN) if sample != "grid" else 0
    seed, repeats = how.whole("seed", 0, 2**31 - 1, 0), how.whole("repeats", 1, MAX_REPEATS, 1)
    filters = _filters(how, "filters")
    how.finish()
    base = _tables(top)
    overlays = top.tables("case") if "case" in top else [TableFields({}, path)]
    if not 1 <= len(overlays) <= MAX_CASES:
        top.fail("case", f"must be 1 to {MAX_CASES} cases, got {len(overlays)}")
    for extra in ("cost", "goal"):
        top.table(extra)
    top.finish()
    read = [(_overlaid(base, overlay), _filters(overlay, "filters")) for overlay in overlays]
    for overlay in overlays:
        overlay.finish()
    try:
        kinds = _kinds([parameters for parameters, _ in read])
        cases = tuple(
            SweepCase(_axes(parameters, kinds, sample != "grid", code), (*filters, *own)) for parameters, own in read
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    files = _files(cases)
    decides = [sample, n, seed, repeats, {k: v for k, v in tree.items() if k not in ("goal", "cost")}, files]
    return SweepConfig(path, tree, sample, n, seed, repeats, cases, kinds, files, _hash(decides))


def _hash(decides: list[Any]) -> str:
    try:
        text = json.dumps(decides, sort_keys=True)
    except TypeError as error:  # TOML has dates and times
        raise InputError(f"a sweep has numbers, text, true and false: {error}") from None
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _filters(fields: TableFields, key: str) -> tuple[Expression, ...]:
    if key not in fields:
        return ()
    texts: list[str] = fields.items(key, str, "text")
    filters = []
    for i, text in enumerate(texts):
        try:
            filters.append(Expression(text))
        except InputError as error:
            fields.member(key, i, f": {error}")
    return tuple(filters)


def _tables(fields: TableFields) -> dict[str, dict[str, Any]]:
    """Parameters by table, as they were written."""
    tables = {}
    for table in TABLES:
        inner = fields.table(table)
        tables[table] = {key: inner.raw(key) for key in inner}
    return tables


def _overlaid(base: Mapping[str, Mapping[str, Any]], case: TableFields) -> dict[str, Any]:
    """Parameters of one case by table and key; its own come before those of all cases."""
    own = _tables(case)
    return {f"{table}.{key}": value for table in TABLES for key, value in {**base[table], **own[table]}.items()}


def _kinds(cases: list[dict[str, Any]]) -> dict[str, str]:
    everything: dict[str, list[Any]] = {}
    for parameters in cases:
        for name, value in parameters.items():
            everything.setdefault(name, []).append(value)
    return {name: kind_in(name, values) for name, values in everything.items()}


def _axes(parameters: Mapping[str, Any], kinds: Mapping[str, str], sampled: bool, code: Code) -> tuple[Axis, ...]:
    axes = [_with_code(read_axis(name, value, kinds[name], sampled), code) for name, value in parameters.items()]
    return tuple(sorted(axes, key=lambda axis: _speed(axis.name)))


def _with_code(axis: Axis, code: Code) -> Axis:
    """Let values be executed that name only files in `code`; refuse others that name code.

    Raises
    ------
    InputError
        Naming the parameter and the file.
    """
    if axis.kind != "text":
        return axis
    try:
        if axis.name == "workload.program":
            return dataclasses.replace(axis, values=tuple(allowed_command(value, code) for value in axis.values))
        values = tuple(allowed(value, code) for value in axis.values)
        for value in values:
            if not isinstance(value, OwnFile) and (files := files_in(value)):
                raise InputError(f"{shorten(str(files[0]))} is code, which {ALLOWED_BY}")
    except InputError as error:
        raise InputError(f"{axis.name}: {error}") from None
    return dataclasses.replace(axis, values=values)


def _speed(name: str) -> int:
    """Return 0 for what needs preparation anew, 2 for what changes with every point."""
    return 2 if name in FASTEST else int(name.split(".")[0] in _FAST_TABLES)


def _files(cases: tuple[SweepCase, ...]) -> dict[str, str]:
    files = {v for case in cases for axis in case.axes if axis.kind == "text" for v in axis.values}
    files |= {word for case in cases for axis in case.axes if axis.name == "workload.program"
              for command in axis.values for word in str(command).split()}  # fmt: skip
    paths: set[Path | None] = {_file_in(text) for text in sorted(files)} - {None}
    paths |= {path for case in cases for axis in case.axes if axis.name == "workload.profile"
              for pattern in axis.values for path in files_of(str(pattern))}  # fmt: skip
    return {str(path): _hash_of(path) for path in paths if path is not None}


def _hash_of(path: Path) -> str:
    with opening(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_in(text: str) -> Path | None:
    """Return the file that a value names: itself, or the part before its arguments."""
    machine, _, fabric = text.partition("@")
    for part in dict.fromkeys((text, text.partition(":")[0], machine, fabric)):
        try:
            if part and Path(part).is_file():
                return Path(part)
        except (OSError, ValueError):
            continue
    return None
