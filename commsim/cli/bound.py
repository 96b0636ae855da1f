"""``commsim bound``: a lower bound on the time of any schedule, and the distance of each algorithm from it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS, operation
from commsim.core.units import counted, format_size, format_time
from commsim.report.answer import Answer, Part, Table, remarks
from commsim.report.terminal import progress

from .flags import Verb, WithJson, flag, repeated
from .flags.costs import TOPOLOGY, Placing, Sizes
from .flags.faults import Faults, with_faults

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.scenario import Plan
    from commsim.synthesis import LowerBound

COLUMNS = ["size(B)", "algorithm", "time(us)", "bound(us)", "times_bound", "sums_and_copies_at"]


class Config(Faults, Sizes, Placing, WithJson):
    """All flags of ``commsim bound``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8")
    operation: str = flag(required=True, metavar="NAME", help=", ".join(OPERATIONS))
    algorithm: str = flag(default="all", metavar="NAME|all|none", help="algorithms to compare with the bound")
    collective: tuple[str, ...] = repeated(
        metavar="NAME|FILE.py|FILE.npz", help="further algorithm to compare; repeatable"
    )
    root: int = flag(default=0, metavar="RANK", help="root of the operation, with --algorithm none")
    engine: str = flag(default="flow", help="engine that predicts the algorithms' times")
    seed: int | None = flag(metavar="N", help="seed of faults, of random placement and of hashes in routing")

    @property
    def placing(self) -> dict[str, Any]:
        """What places ranks and routes their messages, for :func:`commsim.scenario.prepare`."""
        return {"placement": self.placement, "seed": self.seed or 0}


def run(config: Config) -> Answer:
    """Bound, and predict the algorithms beside it."""
    from commsim.scenario.contenders import without_overhead
    from commsim.scenario.inputs import load_network

    sizes, said = _sizes(config)
    whole = load_network(config.topology)
    network, drawn = with_faults(whole, config)
    _check(config, network)
    plans, left_out = _prepared(config, network)
    said += [*drawn, *_left_out(config, left_out)]
    title, rows, predicted = f"{config.operation} on {network.name}", list[dict[str, Any]](), list[Part]()
    if not plans:
        bounds = _bounds_without_plans(config, network)
    else:
        before = _prepared(config, whole)[0] if network is not whole else {}
        if config.root:
            said.append("--root: no effect, each algorithm has its own root: --collective NAME:root=RANK")
        of_plan = _bounds(plans)
        bounds = _with_both_kinds(plans, list(dict.fromkeys(of_plan.values())))
        rows, predicted = _predicted(config, plans, before, of_plan, sizes)
        predicted += remarks(without_overhead(network, sizes))
    more = {"bounds": [_bound_row(bound, size) for bound in bounds for size in sizes]}
    return Answer([*remarks(said), *_parts_of_bounds(title, bounds, sizes), *predicted], rows, more=more)


def _sizes(config: Config) -> tuple[list[int], list[str]]:
    """Return the sizes that the operation can have, and a remark where those of the flags have no effect."""
    sizes = config.sizes()
    if not operation(config.operation).signals:
        return sizes, []
    return [0], [f"-b, -e, -f: no effect, a {config.operation} carries no bytes"]


def _bounds_without_plans(config: Config, network: Network) -> list[LowerBound]:
    """Return the bounds of the operation on the ranks' nodes, without and with servers or switches."""
    from commsim.scenario.inputs import PACKED, load_placement
    from commsim.synthesis import lower_bound

    p = len(network.endpoints) if config.ranks is None else config.ranks
    nodes = load_placement(config.placement or PACKED, network, p, config.seed or 0).nodes
    bound_of = functools.partial(lower_bound, config.operation, network, nodes, root=config.root)
    return [bound_of(anywhere=anywhere) for anywhere in (False, True)]


def _predicted(
    config: Config, plans: Mapping[str, Plan], before: Mapping[str, Plan], bounds: Mapping[str, LowerBound],
    sizes: Sequence[int],
) -> tuple[list[dict[str, Any]], list[Part]]:  # fmt: skip
    """Predict all algorithms, and on the network without faults those of `before`; return rows and what is shown."""
    rows: list[dict[str, Any]] = []
    left_out: dict[str, str] = {}
    for name in progress(sorted(plans, key=lambda name: plans[name].schedule.n_transfers), ""):
        try:
            found = [_row(name, plans[name], bounds[name], size, config.engine) for size in sizes]
            if name in before:
                for row in found:
                    _add_cost_of_faults(row, before[name], config.engine)
            rows += found
        except InputError as error:
            left_out[name] = str(error)
    rows.sort(key=lambda row: (row["size_B"], row["time_s"], row["algorithm"]))
    columns = COLUMNS + (["whole(us)", "faults_cost"] if before else [])
    table = Table(columns, [_cells(row, bool(before)) for row in rows], f"engine {config.engine}")
    return rows, [*remarks(_left_out(config, left_out)), table]


def _parts_of_bounds(title: str, bounds: Sequence[LowerBound], sizes: Sequence[int]) -> list[Part]:
    """Return the lower bound and what limits it, at every size."""
    from commsim.report.tables_of_questions import table_of_bounds

    said = [note for bound in bounds for note in bound.notes]
    said += [_attained(bound) for bound in bounds if best_trees_of(bound) is not None]
    return [table_of_bounds(bounds, sizes, title), *remarks(said)]


@functools.cache
def best_trees_of(bound: LowerBound) -> float | None:
    """How many times the bound the best trees take at large sizes; None where that is not known."""
    from commsim.synthesis.attained import best_trees

    return best_trees(bound)


def _attained(bound: LowerBound) -> str:
    """Describe whether trees attain the bound, and which command makes them."""
    times = best_trees_of(bound)
    if times == 1:
        return "large sizes: attained, by trees that commsim synthesize makes"
    return f"large sizes: the best trees take {times:.3f} times the bound; commsim synthesize makes them"


def distance(plan: Plan, results: Iterable[Any]) -> list[Part]:
    """Return the ratio of the results of one collective to the bound."""
    from commsim.synthesis.bound import bound_for

    bound = bound_for(plan)
    lines = []
    for r in results:
        least = bound.time(r.size)
        times = f"the time is {times_bound(r.time, least):.3f} times the bound"
        lines.append(f"bound: {format_size(r.size)}: at least {format_time(least)} ({bound.why(r.size)}); {times}")
    return remarks((*lines, *(f"bound: {note}" for note in bound.notes)))


def times_bound(time: float, bound: float) -> float:
    """Return the ratio; 1 where both are nothing."""
    return time / bound if bound else 1.0


def _check(config: Config, network: Network) -> None:
    """Refuse what no algorithm could do, before each of them is tried."""
    from commsim.scenario import ENGINES

    if config.engine not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}, got {config.engine!r}")
    n_hosts = len(network.endpoints)
    if config.ranks is not None and not 1 <= config.ranks <= n_hosts:
        hosts = counted(n_hosts, "host")
        raise InputError(f"--ranks must be 1..{n_hosts}, since {network.name} has {hosts}; got {config.ranks}")


def _prepared(config: Config, network: Network) -> tuple[dict[str, Plan], dict[str, str]]:
    """Return the plans of the algorithms that are asked for and can run on a network, and why the others cannot."""
    own = config.collective
    if config.algorithm == "none" and not own:
        return {}, {}
    from collectives import COLLECTIVES
    from commsim.scenario.contenders import algorithms_for, prepare_all, require_operation

    ours = set(COLLECTIVES)  # before one's own file adds itself, which is then there under the file's name
    named = [*([] if config.algorithm in ("all", "none") else [config.algorithm]), *own]
    for spec in named:
        require_operation(spec, config.operation)
    every = [one for one in algorithms_for(config.operation) if one in ours] if config.algorithm == "all" else []
    specs = dict.fromkeys([*every, *named])
    return prepare_all(list(specs), network, n_ranks=config.ranks, named=named, **config.placing)


def _left_out(config: Config, reasons: Mapping[str, str]) -> list[str]:
    """Describe which algorithms are left out.

    Raises
    ------
    InputError
        If one of them was asked for by name.
    """
    from commsim.scenario.contenders import skipped

    for spec, why in reasons.items():
        if spec in (config.algorithm, *config.collective):
            raise InputError(why)
    return skipped(reasons)


def _bounds(prepared: Mapping[str, Plan]) -> dict[str, LowerBound]:
    """Bound of every algorithm: one for those that use the same kinds of nodes on the same data."""
    from commsim.scenario.bounds.floor import uses_more_than_ranks
    from commsim.synthesis.bound import bound_for

    known: dict[Any, LowerBound] = {}
    of_algorithm = {}
    for name, one in prepared.items():
        ranks = one.placement.nodes[: one.schedule.n_ranks]
        key = (uses_more_than_ranks(one), one.schedule.layout, one.schedule.root, ranks.tobytes())
        if key not in known:
            known[key] = bound_for(one)
        of_algorithm[name] = known[key]
    return of_algorithm


def _with_both_kinds(prepared: Mapping[str, Plan], bounds: list[LowerBound]) -> list[LowerBound]:
    """Add the bound for the kind of schedules, with servers or switches or without, that none here is of."""
    from commsim.synthesis import lower_bound

    one = next(iter(prepared.values()))
    schedule, ranks = one.schedule, one.placement.nodes[: one.schedule.n_ranks]
    for anywhere in (False, True):
        if all(bound.anywhere != anywhere for bound in bounds):
            given = functools.partial(lower_bound, schedule.operation, one.network, ranks)
            bounds.append(given(root=schedule.root, layout=schedule.layout, anywhere=anywhere))
    return sorted(bounds, key=lambda bound: bound.anywhere)


def _row(name: str, prepared: Plan, bound: LowerBound, size: int, engine: str) -> dict[str, Any]:
    time, least = prepared.predict(size, engine=engine).time, bound.time(size)
    return {
        "size_B": size, "algorithm": name, "time_s": time, "bound_s": least, "times_bound": times_bound(time, least),
        "anywhere": bound.anywhere,
    }  # fmt: skip


def _add_cost_of_faults(row: dict[str, Any], before: Plan, engine: str) -> None:
    """Add to a row what the algorithm takes on the network without faults, and how many times that it takes now."""
    whole = before.predict(row["size_B"], engine=engine).time
    row |= {"whole_s": whole, "faults_cost": times_bound(row["time_s"], whole)}


def _bound_row(bound: LowerBound, size: int) -> dict[str, Any]:
    return {
        "size_B": size, "anywhere": bound.anywhere, "bound_s": bound.time(size), "limited_by": bound.why(size),
        "best_trees": best_trees_of(bound), "notes": list(bound.notes),
    }  # fmt: skip


def _cells(row: dict[str, Any], faults: bool) -> list[str]:
    from commsim.report.tables_of_questions import where

    times = f"{row['time_s'] * 1e6:.2f}", f"{row['bound_s'] * 1e6:.2f}", f"{row['times_bound']:.3f}x"
    cells = [f"{row['size_B']}", row["algorithm"], *times, where(row["anywhere"])]
    if not faults:
        return cells
    known = "whole_s" in row  # an algorithm may be possible with the faults only
    return [*cells, f"{row['whole_s'] * 1e6:.2f}" if known else "-", f"{row['faults_cost']:.3f}x" if known else "-"]


COMMANDS = {"bound": Verb(Config, run)}
