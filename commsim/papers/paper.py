"""Papers as files: their figures, what is computed for each, and the rows of theirs beside ours."""

from __future__ import annotations

import importlib.resources
import inspect
import itertools
import math
import statistics
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import InputError, located, unknown_name
from commsim.core.files.opening import read_regular
from commsim.core.units import parse_size

from . import clusters, layers, training  # each registers its measures
from .measures import MEASURES, SIMULATED, UNITS, units_like

assert all((clusters, layers, training))  # imported for what they register

SETUPS = ("known", "assumed", "consistency")
KEYS = {"name", "measure", "unit", "source", "setup", "arguments", "sweep", "theirs", "fitted", "recalled", "note"}

# What arguments of measures are called, by their types; others are written as in Python.
WANTED = {
    str: "text", str | None: "text", int: "a whole number", int | None: "a whole number", float: "a number",
    bool: "true or false",
}  # fmt: skip

MAX_BYTES = 2**20  # of a paper's file
SAME = 1e-3  # relative difference of ours that is none: published numbers are read to no more


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One published number beside ours.

    Parameters
    ----------
    paper, figure, case : str
        Paper, figure and case of the number.
    theirs, ours : float
        Numbers in `unit`.
    unit, source : str
        Unit of both; place where the published one is found.
    setup : str
        ``known`` or ``assumed``: whether all of the set-up was published. ``consistency``: theirs follows from the
        same constants as ours, so that a difference would be a slip, and none says nothing.
    fitted : bool
        Whether a constant was fitted to this number: then its error says nothing.
    recalled : bool
        Whether the number was not read at its source.
    note : str
        What is assumed, and why it misses.
    simulated : bool
        Whether an engine decides ours, not a formula, a count or a search.
    swept : mapping of str to value
        What differs between the rows of the figure.
    """

    paper: str
    figure: str
    case: str
    theirs: float
    ours: float
    unit: str
    source: str
    setup: str
    fitted: bool
    recalled: bool
    note: str
    simulated: bool
    swept: Mapping[str, Any]

    @property
    def error(self) -> float:
        """Relative to theirs."""
        return self.ours / self.theirs - 1

    @property
    def counts(self) -> bool:
        """Whether its error says how good the model is: nothing fitted, assumed or recalled."""
        return self.setup == "known" and not (self.fitted or self.recalled)


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute relative errors of the rows that count.

    Parameters
    ----------
    n_counted : int
        Rows whose set-up is known and that no constant was fitted to.
    median, largest : float
        Median and largest of their errors; 0 where no row counts.
    n_papers : int
        Papers with rows that count and that an engine decides.
    by_paper : float
        Median over these papers of the median over those rows: each paper has one vote. 0 without such a paper.
    """

    n_counted: int
    median: float = 0.0
    largest: float = 0.0
    n_papers: int = 0
    by_paper: float = 0.0


def errors_of(rows: Sequence[PaperRow]) -> Errors:
    """Return the errors of the rows that count."""
    counted = [abs(row.error) for row in rows if row.counts]
    if not counted:
        return Errors(0)
    of_paper: dict[str, list[float]] = {}
    for row in rows:
        if row.counts and row.simulated:
            of_paper.setdefault(row.paper, []).append(abs(row.error))
    votes = [statistics.median(errors) for errors in of_paper.values()]
    by_paper = statistics.median(votes) if votes else 0.0
    return Errors(len(counted), statistics.median(counted), max(counted), len(votes), by_paper)


@dataclass(frozen=True, slots=True)
class PairOrder:
    """The rows of each figure two by two, where the published numbers differ.

    Parameters
    ----------
    n_pairs : int
        Pairs that differ in ours, too.
    n_equal : int
        Pairs that are equal in ours: neither the published order nor the reverse.
    other_way : tuple of (PaperRow, PaperRow)
        Those of the `n_pairs` that are the other way round in ours.
    """

    n_pairs: int
    n_equal: int
    other_way: tuple[tuple[PaperRow, PaperRow], ...]


def order_of(rows: Sequence[PaperRow]) -> PairOrder:
    """Compare the rows of each figure two by two."""
    n_pairs, n_equal, other_way = 0, 0, list[tuple[PaperRow, PaperRow]]()
    for _, group in itertools.groupby(rows, key=lambda row: (row.paper, row.figure)):
        for a, b in itertools.combinations(group, 2):
            if a.theirs == b.theirs:
                continue
            if abs(a.ours - b.ours) <= SAME * abs(b.ours):
                n_equal += 1
                continue
            n_pairs += 1
            if (a.theirs - b.theirs) * (a.ours - b.ours) < 0:
                other_way.append((a, b))
    return PairOrder(n_pairs, n_equal, tuple(other_way))


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """One figure or table of a paper, as its file has it.

    Parameters
    ----------
    name, measure, unit, source, setup, note : str
        What it is, which of MEASURES it is of, and the fields of its rows.
    arguments : mapping
        Arguments of the measure; text may have the names of swept values in braces.
    sweep : mapping of str to list
        What differs between the rows; values of several names go together. ``case`` says it in a word.
    theirs : list of float
        One for each.
    fitted, recalled : list of int
        Rows that a constant was fitted to; rows that were not read at their source.
    """

    name: str
    measure: str
    unit: str
    source: str
    setup: str
    theirs: Sequence[float]
    arguments: Mapping[str, Any]
    sweep: Mapping[str, Sequence[Any]]
    fitted: Sequence[int] = ()
    recalled: Sequence[int] = ()
    note: str = ""

    def rows(self, paper: str) -> Iterator[PaperRow]:
        """Compute ours."""
        parameters = inspect.signature(MEASURES[self.measure]).parameters
        like = units_like(self.measure)
        scale = like[UNITS[self.measure]] / like[self.unit] if like else 1.0
        for i, theirs in enumerate(self.theirs):
            values = {name: column[i] for name, column in self.sweep.items()}
            arguments = {key: _filled(value, values) for key, value in self.arguments.items()}
            arguments |= {name: value for name, value in values.items() if name in parameters}
            arguments = {key: _in_bytes(key, value) for key, value in arguments.items()}
            case = values.get("case") or ", ".join(f"{name}={_short(value)}" for name, value in values.items())
            with located(f"{paper}: figure {self.name!r}"):
                ours = scale * MEASURES[self.measure](**arguments)
            yield PaperRow(
                paper,
                self.name,
                case,
                float(theirs),
                ours,
                self.unit,
                self.source,
                self.setup,
                i in self.fitted,
                i in self.recalled,
                self.note,
                self.measure in SIMULATED,
                values,
            )


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    return value.format(**values) if isinstance(value, str) else value


def _in_bytes(key: str, value: Any, where: str = "") -> Any:
    """Read a size that is given as text, such as ``1MiB``."""
    return int(parse_size(value, f"{where}{key}")) if key == "size" and isinstance(value, str) else value


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, int | float) else "given"


@dataclass(frozen=True, slots=True)
class Paper:
    """What a file says.

    Parameters
    ----------
    name, title : str
        The file's, and that of the paper.
    figures : tuple of PaperFigure
        Figures in the file's order.
    """

    name: str
    title: str
    figures: tuple[PaperFigure, ...]

    def rows(self, figure: str | None = None) -> Iterator[PaperRow]:
        """Compute one figure, or all.

        Raises
        ------
        InputError
            If the figure is unknown.
        """
        names = [figure.name for figure in self.figures]
        if figure is not None and figure not in names:
            raise InputError(f"{self.name} has no figure {figure!r}; known: {'; '.join(names)}")
        return itertools.chain.from_iterable(one.rows(self.name) for one in self.figures if figure in (None, one.name))


def paper_names() -> list[str]:
    """Names of the papers that come with the package, in the order of the alphabet."""
    folder = importlib.resources.files("commsim.papers").joinpath("published")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def load_paper(name: str) -> Paper:
    """Read a paper by name, or a ``FILE.toml`` of one's own.

    Raises
    ------
    InputError
        If the name is unknown, or the file is wrong; it names the field.
    """
    if name.endswith(".toml"):
        try:
            text = read_regular(name, MAX_BYTES).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: not UTF-8 text at byte {error.start}") from None
    else:
        known = paper_names()
        if name not in known:
            raise unknown_name("paper", name, known, more="or a FILE.toml")
        text = importlib.resources.files("commsim.papers").joinpath("published", f"{name}.toml").read_text("utf-8")
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: {error}") from None
    figures = tree.get("figures")
    if not isinstance(tree.get("title"), str) or not isinstance(figures, list) or not figures:
        raise InputError(f"{name}: a paper has a title and at least one [[figures]]")
    return Paper(name, tree["title"], tuple(_figure(name, figure) for figure in figures))


def _figure(paper: str, tree: Mapping[str, Any]) -> PaperFigure:
    where = f"{paper}: figure {tree.get('name', '?')!r}"
    if unknown := set(tree) - KEYS:
        raise InputError(f"{where}: unknown field {min(unknown)}; known: {', '.join(sorted(KEYS))}")
    if missing := {"name", "measure", "unit", "source", "setup", "theirs"} - set(tree):
        raise InputError(f"{where}: {min(missing)} is missing")
    if tree["measure"] not in MEASURES:
        raise InputError(f"{where}: unknown measure {tree['measure']!r}; known: {', '.join(sorted(MEASURES))}")
    if tree["setup"] not in SETUPS:
        raise InputError(f"{where}: setup must be one of {', '.join(SETUPS)}, got {tree['setup']!r}; rows "
                         "that are fitted or recalled are listed in the fields fitted and recalled")  # fmt: skip
    like = units_like(tree["measure"])
    if like and tree["unit"] not in like:
        raise InputError(f"{where}: the unit of {tree['measure']} is one of {', '.join(like)}, got {tree['unit']!r}")
    theirs, sweep, arguments = tree["theirs"], tree.get("sweep", {}), tree.get("arguments", {})
    numbers = isinstance(theirs, list) and all(isinstance(x, int | float) and math.isfinite(x) and x for x in theirs)
    if not theirs or not numbers:
        raise InputError(f"{where}: theirs must be a list of numbers other than 0, got {theirs!r}")
    for key, column in sweep.items():
        if not isinstance(column, list) or len(column) != len(theirs):
            n = len(column) if isinstance(column, list) else 1
            raise InputError(f"{where}: {key} has {n} values and theirs {len(theirs)}; every row needs one")
    parameters = inspect.signature(MEASURES[tree["measure"]]).parameters
    if unknown := set(arguments) - set(parameters):
        raise InputError(f"{where}: {tree['measure']} has no argument {min(unknown)}; known: {', '.join(parameters)}")
    needed = {key for key, one in parameters.items() if one.default is inspect.Parameter.empty}
    if missing := needed - set(arguments) - set(sweep):
        raise InputError(f"{where}: {tree['measure']} needs the argument {min(missing)}")
    hints = typing.get_type_hints(MEASURES[tree["measure"]])
    for key, column in [*((key, [argument]) for key, argument in arguments.items()), *sweep.items()]:
        for value in column if key in parameters else ():
            if not _fits(_in_bytes(key, value, f"{where}: "), hints[key]):
                wanted = WANTED.get(hints[key], str(hints[key]).removesuffix(" | None"))
                raise InputError(f"{where}: {key} must be {wanted}, got {value!r}")
    return PaperFigure(**({"arguments": {}, "sweep": {}} | dict(tree)))


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of a file is of the type that a measure declares."""
    inside = typing.get_args(hint)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    if hint is Any or (isinstance(hint, type) and not inside):
        return hint is Any or isinstance(value, hint)
    if typing.get_origin(hint) is Mapping:
        return isinstance(value, dict) and all(_fits(one, inside[1]) for one in value.values())
    if typing.get_origin(hint) in (list, Sequence):
        return isinstance(value, list) and all(_fits(one, inside[0]) for one in value)
    return any(_fits(value, one) for one in inside)
