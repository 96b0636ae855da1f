"""``commsim bound``: a lower bound on the time of any schedule, and each algorithm's distance from it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import TOPOLOGY, CostFlags, DefaultOf, Placing, Sizes, Verb, WithJson, flag, repeated, switched
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.limits import check_room_for_libraries
from commsim.core.operations import OPERATIONS, no_bytes, operation
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.prediction.options import COSTS
from commsim.ranking.tables_of_questions import RANKS, table_of_ratios
from commsim.report.answer import Answer, Part, remarks

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.prediction.scenario import Scenario
    from commsim.ranking.synthesis import LowerBound

EXAMPLES = {
    "bound": """
        commsim bound --topology star:n_hosts=8 --operation all_reduce
        commsim bound --topology star:n_hosts=8 --operation all_to_all -b 1K -e 1M -f 32
        commsim bound --topology torus:dims=3x3 --operation all_gather --algorithm none
        commsim bound --topology star:n_hosts=8 --operation gather --root 3 --algorithm none
        commsim bound --topology star:n_hosts=8 --operation all_reduce --algorithm ring_all_reduce""",
}


class BoundConfig(Hashes, Faults, CostFlags, Sizes, Placing, WithJson):
    """All flags of ``commsim bound``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8; latency= is per link")
    operation: str = flag(required=True, choices=OPERATIONS, metavar="NAME", help=", ".join(OPERATIONS))
    algorithm: str = flag(default="all", metavar="NAME|all|none", help="algorithms to compare with the bound")
    collective: tuple[str, ...] = repeated(
        metavar="NAME|FILE.py|FILE.npz", help="further algorithm to compare; repeatable"
    )
    best: bool = switched(help="print only the fastest algorithm for each size")
    root: int = flag(default=0, metavar="RANK", help="root of the operation, with --algorithm none")
    engine: str = flag(
        default=DefaultOf("commsim.ranking.optimum:over_bound.engine"),
        help="engine that predicts the algorithms' times",
    )
    seed: int | None = flag(
        metavar="N", help="seed of faults, of random placement and of hashes in routing (default: 0)"
    )

    def costs(self) -> dict[str, Any]:
        """Return what a message and a reduction cost, as a scenario takes it."""
        return {name: getattr(self, name) for name in COSTS}

    def scenario(self, network: Network) -> Scenario:
        """Return the scenario of all algorithms on a network, with the faults of the flags."""
        from commsim.prediction.read import scenario_of

        return scenario_of(
            "", network, n_ranks=self.ranks, placement=self.placement, seed=self.seed, hashes=self.hashes,
            fail=self.fail,
            scale=self.scale, engine=self.engine, **self.costs(),
        )  # fmt: skip


def run(config: BoundConfig) -> Answer:
    """Bound, and predict the algorithms beside it."""
    check_room_for_libraries()
    from commsim.prediction.inputs import load_network
    from commsim.prediction.read import changed_network
    from commsim.ranking.contenders import skipped
    from commsim.ranking.synthesis.over_bound import bound_of, over_bound

    sizes, notes = _sizes(config)
    whole = load_network(config.topology)
    scenario = config.scenario(whole)
    title = f"{config.operation} on {scenario.network.name}"
    if config.algorithm == "none" and not config.collective:
        bounds = [bound_of(scenario, config.operation, root=config.root, anywhere=a) for a in (False, True)]
        parts, more = _parts_of_bounds(title, bounds, sizes)
        return Answer([*remarks((*notes, *scenario.remarks)), *parts], [], more=more)
    if config.root:
        text = "--root: no effect, each algorithm has its own root: --collective NAME:root=RANK"
        notes.append(Remark("option-unused", text, needed=True))
    algorithms = [] if config.algorithm in ("all", "none") else [config.algorithm]
    specs = [*algorithms, *config.collective]
    has_faults = bool(config.fail or config.scale)
    excess = over_bound(
        scenario, config.operation, sizes, whole=changed_network(whole, **config.costs())[0] if has_faults else None,
        algorithms=specs if config.algorithm != "all" else (), named=specs,
    )  # fmt: skip
    parts, more = _parts_of_bounds(title, excess.bounds, sizes)
    notes = [*notes, *excess.derived, *skipped(excess.left_out)]
    engine = f"engine {scenario.wish.engine}"
    if config.best:  # the answer stands first, and what it is compared with below
        excess = excess.best
        first = table_of_ratios(excess, f"{title}: the fastest algorithm of each size, {engine}")
        shown = [first, *remarks((*notes, *excess.remarks)), *parts]
    else:
        shown = [*remarks(notes), *parts, table_of_ratios(excess, engine), *remarks(excess.remarks)]
    return Answer(shown, [ratio.row() for ratio in excess.ratios], more=more)


def _sizes(config: BoundConfig) -> tuple[list[int], list[Remark]]:
    """Return the sizes that the operation can have, and a remark where those of the flags have no effect."""
    sizes = config.sizes()
    if not operation(config.operation).signals:
        return sizes, []
    return [0], [Remark(SIZE_UNUSED, no_bytes(config.operation))] if config.asks_sizes else []


def _parts_of_bounds(
    title: str, bounds: Sequence[LowerBound], sizes: Sequence[int]
) -> tuple[list[Part], dict[str, Any]]:
    """Return the lower bound and what limits it, at every size; and the same for the JSON."""
    from commsim.ranking.tables_of_questions import table_of_bounds

    notes = [note for bound in bounds for note in bound.notes]
    notes += [Remark("attained", _attained(bound)) for bound in bounds if best_trees_of(bound) is not None]
    more = {"bounds": [_bound_row(bound, size) for bound in bounds for size in sizes]}
    return [table_of_bounds(bounds, sizes, title), *remarks(notes)], more


@functools.cache
def best_trees_of(bound: LowerBound) -> float | None:
    """How many times the bound the best trees take at large sizes; None where that is not known."""
    from commsim.ranking.synthesis.attained import best_trees

    return best_trees(bound)


def _attained(bound: LowerBound) -> str:
    """Describe whether trees attain the bound, and which command makes them."""
    times = best_trees_of(bound)
    if times == 1:
        return f"bound of {RANKS}, large sizes: attained by trees from commsim synthesize"
    best = f"the best trees take {times:.3f} times the bound; commsim synthesize makes them"
    return f"bound of {RANKS}, large sizes: {best}"


def _bound_row(bound: LowerBound, size: int) -> dict[str, Any]:
    return {
        "size_B": size, "anywhere": bound.anywhere, "bound_s": bound.time(size), "limited_by": bound.why(size),
        "best_trees": best_trees_of(bound), "notes": [str(note) for note in bound.notes],
    }  # fmt: skip


COMMANDS = {"bound": Verb(BoundConfig, run)}
