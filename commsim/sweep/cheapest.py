"""The cheapest topology of a sweep that keeps a time within a bound, and the front of cost against time."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.files.own_files import Code

from .config import SweepConfig
from .point_parameters import network_spec
from .points import points
from .price import Goal, PriceItem, Prices, read_goal, total

if TYPE_CHECKING:
    import pyarrow

# What costs nothing and may be chosen for each question, beside the collective and its parameters.
CHOICES = ("topology.routing", "placement.strategy", "workload.policy")
# Parameters of collectives that are asked for, not chosen: what is sent to whom, and the data.
QUESTIONS = frozenset(
    f"collective.{name}"
    for name in (
        "ranks", "size", "root", "counts",
        "tokens", "top_k", "n_experts", "hidden", "precision", "routing", "skew", "max_machines",
        "density", "block", "pattern", "exponent", "gradients", "threshold", "run", "seed", "dense_share",
    )
)  # fmt: skip

# Columns that a median over hashes has beside it, and those that are such medians.
_SPREAD = ("fastest_s", "slowest_s")
_OVER_HASHES = ("time_s", "algbw_Bps", "busbw_Bps")


@dataclass(frozen=True, slots=True)
class HashMedian:
    """The answer to one question: the median over hashes of routes, where they matter.

    Parameters
    ----------
    value : float
        What the goal is about.
    spread : tuple of two float, or None
        That with the fastest and with the slowest hash; None where the hash does not matter.
    n_hashes : int
        Number of hashes that were drawn; 1 where they do not matter.
    """

    value: float
    spread: tuple[float, float] | None = None
    n_hashes: int = 1


@dataclass(frozen=True, slots=True)
class Offer:
    """One topology of the sweep.

    Parameters
    ----------
    topology : str
        Topology as on the command line.
    bill : tuple of PriceItem
        What it is made of.
    value : float or None
        The worst answer over all questions, each with what is best for it; None if one has no answer. Over hashes of
        routes it is the median.
    chosen : str
        What was best for that question.
    problem : str
        Why a question has no answer.
    keeps : bool
        Whether the value is within the bound.
    spare : int
        Places of its network beyond the most ranks that are asked for; they are paid for, too.
    is_on_front : bool
        Whether no other topology is better and as cheap, or cheaper and as good.
    spread : tuple of two float, or None
        The answer with the fastest and with the slowest hash of routes; None where the hash does not matter.
    n_hashes : int
        Number of hashes that were drawn for it.
    """

    topology: str
    bill: tuple[PriceItem, ...]
    value: float | None
    chosen: str
    problem: str
    keeps: bool
    spare: int = 0
    is_on_front: bool = False
    spread: tuple[float, float] | None = None
    n_hashes: int = 1

    @property
    def cost(self) -> float:
        """Sum of the bill."""
        return total(self.bill)

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        names = ("topology", "cost", "value", "keeps", "is_on_front", "chosen", "problem")
        over = {} if self.spread is None else dict(zip(("fastest", "slowest"), self.spread, strict=True))
        return (
            {name: getattr(self, name) for name in names}
            | over
            | ({"n_hashes": self.n_hashes} if over else {})
            | {
                "spare_hosts": self.spare,
                "bill": [dataclasses.asdict(line) for line in self.bill],
            }
        )


@dataclass(frozen=True, slots=True)
class Offers:
    """The topologies of a sweep, ranked.

    Parameters
    ----------
    offers : tuple of Offer
        Those that keep the bound first, then by cost.
    goal : Goal
        Bound.
    prices : Prices
        Prices of the parts.
    config_hash : str
        Hash of the sweep.
    """

    offers: tuple[Offer, ...]
    goal: Goal
    prices: Prices
    config_hash: str

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each topology, as a data frame of pandas or polars."""
        return frame_of((offer.row() for offer in self.offers), library)


def cheapest_topologies(
    path: str | Path,
    folder: str | Path | None = None,
    *,
    jobs: int | None = None,
    say: Callable[..., None] | None = None,
    code: Code = (),
) -> Offers:
    """Run a sweep, and rank its topologies by the tables ``[cost]`` and ``[goal]`` of its file.

    Parameters
    ----------
    path : path
        File of the sweep.
    folder : path, optional
        Folder that keeps the results, or has some to continue with. Default: none.
    jobs : int, optional
        Number of worker processes; 1 computes in this one. Default: all processors.
    say : callable, optional
        Function that shows progress, as :func:`commsim.run_sweep` takes it.
    code : sequence of path
        Files of Python that the sweep's file may name, as :func:`commsim.run_sweep` takes them.

    Raises
    ------
    InputError
        If the file is wrong, a price is missing, or pyarrow is not installed.
    """
    from .config import read_config
    from .price import read_prices
    from .run_sweep import run_sweep
    from .table import read_table, require_pyarrow

    require_pyarrow()  # before points are computed
    sweep = read_config(path, code)
    prices, goal = read_prices(sweep.tree, path), read_goal(sweep.tree, path)
    bills, spare = read_bills(sweep, prices)
    with tempfile.TemporaryDirectory() as scratch:
        directory = scratch if folder is None else folder
        run_sweep(sweep, directory, "serial" if jobs == 1 else None, jobs=jobs, say=say)
        offers = rank_offers(read_table(directory), sweep, bills, goal)
        asked = {spec: spec for spec in bills}  # which may be code, while the results are data
        offers = tuple(
            dataclasses.replace(offer, topology=asked[offer.topology], spare=spare[offer.topology]) for offer in offers
        )
        return Offers(offers, goal, prices, sweep.hash)


def read_bills(config: SweepConfig, prices: Prices) -> tuple[dict[str, tuple[PriceItem, ...]], dict[str, int]]:
    """Price every topology of a sweep, before anything runs; count its places beyond the most ranks of its points.

    Raises
    ------
    InputError
        If a price that is needed is missing, a case has no topology, or one cannot be built.
    """
    from commsim.prediction.inputs import load_network

    bills: dict[str, tuple[PriceItem, ...]] = {}
    places, most = dict[str, int](), dict[str, int]()
    missing: dict[str, None] = {}
    for point in points(config):
        if "topology.name" not in point.parameters:
            raise InputError(f"{config.path}: sweep cheapest compares topologies, and a case has none")
        spec = _topology_text(point.parameters, config)
        if spec not in bills:
            network, bills[spec] = load_network(spec), ()
            places[spec] = len(network.endpoints)
            try:
                bills[spec] = prices.bill(network)
            except InputError as error:
                missing |= dict.fromkeys(str(error).removeprefix(f"{config.path}: ").split("; "))
        most[spec] = max(most.get(spec, 0), int(point.parameters.get("collective.ranks") or places[spec]))
    if missing:
        raise InputError(f"{config.path}: {'; '.join(missing)}")
    return bills, {spec: max(0, n - most[spec]) for spec, n in places.items()}


def rank_offers(
    table: pyarrow.Table, config: SweepConfig, bills: Mapping[str, tuple[PriceItem, ...]], goal: Goal
) -> tuple[Offer, ...]:
    """Rank the topologies of a sweep: those that keep the bound first, then by cost, then by value.

    Parameters
    ----------
    table : pyarrow.Table
        Results of the sweep.
    config : SweepConfig
        The sweep.
    bills : mapping of str to tuple of PriceItem
        Price of each topology, by its text.
    goal : Goal
        The bound.

    Raises
    ------
    InputError
        If the results have no such column.
    """
    if goal.column not in table.column_names:
        raise InputError(f"{config.path}: goal.keep = {goal.keep!r}, but no point has a result in {goal.column}")
    answers: dict[str, dict[Any, dict[str, HashMedian | str]]] = {}
    of_operation = ["operation"] if "operation" in table.column_names else []
    hashed = [name for name in ("time_s", *_SPREAD, "n_hashes") if name in table.column_names and name != goal.column]
    rows = table.select([*config.kinds, *of_operation, "seed", "error", goal.column, *hashed]).to_pylist()
    # a point that failed has no operation: it is that of the same collective elsewhere
    operations = {row.get("collective.name"): row["operation"] for row in rows if row.get("operation")}
    for row in rows:
        given = {name: row[name] for name in config.kinds if row[name] is not None}
        choice = {k: v for k, v in given.items() if _is_chosen(k)}
        asked_for = ((k, v) for k, v in given.items() if not k.startswith("topology.") and k not in choice)
        name = given.get("collective.name")
        question = (row["seed"], operations.get(name, name), *asked_for)
        of_topology = answers.setdefault(_topology_text(given, config), {})
        value = row[goal.column]
        problem = row["error"] or f"no {goal.keep}"
        label = " ".join(str(v) for v in choice.values())
        of_topology.setdefault(question, {})[label] = problem if value is None else _answer_of(row, goal)
    questions = {question for of_topology in answers.values() for question in of_topology}
    offers = [_offer(spec, of_topology, questions, bills[spec], goal) for spec, of_topology in answers.items()]
    return tuple(sorted(_with_front(offers, goal), key=lambda offer: _order(offer, goal)))


def _topology_text(parameters: Mapping[str, Any], config: SweepConfig) -> str:
    """Text of the topology of a point, without what may be chosen."""
    return network_spec({k: v for k, v in parameters.items() if v is not None and k not in CHOICES}, config.kinds)


def _is_chosen(name: str) -> bool:
    return name in CHOICES or (name.startswith("collective.") and name not in QUESTIONS)


def _answer_of(row: Mapping[str, Any], goal: Goal) -> HashMedian:
    """Return the answer of a point; rates are in inverse proportion to times."""
    value, fastest, slowest = row[goal.column], *(row.get(name) for name in _SPREAD)
    if fastest is None or slowest is None or goal.column not in _OVER_HASHES:
        return HashMedian(value)
    if goal.more_is_better:
        fastest, slowest = (value * row["time_s"] / end for end in (fastest, slowest))
    return HashMedian(value, (fastest, slowest), row["n_hashes"])


def _offer(
    spec: str,
    answers: Mapping[Any, Mapping[str, HashMedian | str]],
    asked: set[Any],
    bill: tuple[PriceItem, ...],
    goal: Goal,
) -> Offer:
    worst: tuple[HashMedian, str] | None = None
    for question in asked:
        found = {label: v for label, v in answers.get(question, {}).items() if isinstance(v, HashMedian)}
        if not found:
            reasons = [v for v in answers.get(question, {}).values() if isinstance(v, str)]
            return Offer(spec, bill, None, "", reasons[0] if reasons else "a question is left out by filters", False)
        values = {label: one.value for label, one in found.items()}
        label = (max if goal.more_is_better else min)(values, key=lambda one: (values[one], one))
        if worst is None or goal.better(values[label], worst[0].value) == worst[0].value:
            worst = (found[label], label)
    assert worst is not None  # a topology is here because something was asked of it
    of, label = worst
    return Offer(spec, bill, of.value, label, "", goal.is_kept(of.value), spread=of.spread, n_hashes=of.n_hashes)


def _with_front(offers: list[Offer], goal: Goal) -> list[Offer]:
    """Mark the offers on the front: sorted by cost, each is better than all cheaper ones."""
    best: float | None = None
    marked = []
    for offer in sorted(offers, key=lambda one: _by_cost(one, goal)):
        front = offer.value is not None and (
            best is None or (offer.value != best and goal.better(offer.value, best) == offer.value)
        )
        if front:
            best = offer.value
        marked.append(dataclasses.replace(offer, is_on_front=front))
    return marked


def _by_cost(offer: Offer, goal: Goal) -> tuple[float, float, str]:
    value = float("inf") if offer.value is None else offer.value
    return (offer.cost, -value if goal.more_is_better and offer.value is not None else value, offer.topology)


def _order(offer: Offer, goal: Goal) -> tuple[bool, bool, float, float, str]:
    return (not offer.keeps, offer.value is None, *_by_cost(offer, goal))
