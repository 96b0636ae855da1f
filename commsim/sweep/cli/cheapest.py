"""``commsim sweep cheapest``: the cheapest topology of a sweep that keeps its goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, WithJson, flag, repeated
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, first_of, format_bandwidth, format_time
from commsim.report.answer import Answer, Part, Table, comments, remarks

if TYPE_CHECKING:
    from commsim.sweep.cheapest import Offer
    from commsim.sweep.price import Goal, Prices

MAX_ROWS = 40
# Piece of the title that a narrow terminal leaves out.
WORST = ": the worst of all that is asked, each with what is best for it; * no other is cheaper and as good"
_COUNTED = (("nic", "port"), ("cable",), ("switch",))


class Code(Flags):
    """Code that the sweep may name."""

    allow_code: tuple[str, ...] = repeated(
        metavar="FILE.py", help="own collective, topology, policy or program that the sweep may execute; repeatable"
    )


class SweepCheapestConfig(WithJson, Code):
    """All flags of ``commsim sweep cheapest``."""

    sweep: str = flag(
        "sweep",
        metavar="SWEEP.toml",
        help="a sweep with the table [goal] and prices in [cost] (default: each cable and switch costs 1)",
    )
    output: str | None = flag("-o", metavar="DIR", help="keep the results of the sweep, or continue with earlier ones")
    jobs: int | None = flag(metavar="N", help="worker processes; with 1, this one computes (default: all processors)")


def run(config: SweepCheapestConfig) -> Answer:
    """Run the sweep, and rank its topologies."""
    from commsim.sweep.cheapest import cheapest_topologies
    from commsim.sweep.progress import progress_shown

    with progress_shown() as say:
        found = cheapest_topologies(config.sweep, config.output, jobs=config.jobs, say=say, code=config.allow_code)
    offers, goal, prices = found.offers, found.goal, found.prices
    flags = {"sweep": config.sweep, "config_hash": found.config_hash}
    more = {"goal": {"keep": goal.keep, "bound": goal.bound}, "currency": prices.currency}
    return Answer(_parts_of_offers(offers, prices, goal), [offer.row() for offer in offers], flags, more)


def _parts_of_offers(offers: Sequence[Offer], prices: Prices, goal: Goal) -> list[Part]:
    lines = [(i, offer) for i, offer in enumerate(offers, 1) if offer.keeps or offer.is_on_front]
    n_hashes = {offer.n_hashes for _, offer in lines[:MAX_ROWS] if offer.spread is not None}
    value = [f"median_{goal.keep}", "fastest", "slowest"] if n_hashes else [goal.keep]
    columns = ["rank", "topology", f"cost({prices.currency})" if prices.currency else "cost", *value, "keeps",
               "ports", "cables", "switches", "with"]  # fmt: skip
    rows = [
        [
            f"{i}", offer.topology, f"{offer.cost:.10g}", *_shown(offer, goal)[: len(value)],
            ("yes" if offer.keeps else "no") + " *" * offer.is_on_front,
            *(str(_count(offer, *items)) for items in _COUNTED), offer.chosen or offer.problem,
        ]
        for i, offer in lines[:MAX_ROWS]
    ]  # fmt: skip
    side = "at least" if goal.more_is_better else "within"
    title = f"{goal.keep} {side} {_written(goal.bound, goal)}{WORST}"
    if n_hashes:
        title += f"; the median of {'/'.join(map(str, sorted(n_hashes)))} hashes decides"
    left = len(offers) - len(rows)
    told_less = f"{left} more are in the JSON: of those that miss the goal, only * are here"
    more = [Remark("shortened", told_less, needed=True)] if left else []
    more += as_remarks(_about_spare(offers, prices), "spare")
    table = Table(
        columns, rows, title, ["ports", "cables", "switches", "rank", "with", *value[:0:-1]], lambda: (WORST,)
    )
    answer = _about_best(offers, prices, f"{goal.keep} {side}", goal)
    return [*comments([answer]), table, *_bill(offers[0]), *remarks(more)]


def _about_spare(offers: Sequence[Offer], prices: Prices) -> list[str]:
    """Name the offers with more hosts than ranks, with the part of the cost that falls on the hosts that are used."""
    from commsim.prediction.inputs import load_network

    shares = {}
    for offer in offers:
        places = len(load_network(offer.topology).endpoints) if offer.spare else 0
        shares[offer.topology] = offer.cost * (places - offer.spare) / places if places else offer.cost
    notes = [
        f"{offer.topology}: {count_text(offer.spare, 'host')} too many, {_money(shares[offer.topology], prices)} of "
        f"{_money(offer.cost, prices)} for those used"
        for offer in offers
        if offer.spare
    ]
    lines = [f"more hosts than ranks, all of which are charged: {first_of(notes)}"] if notes else []
    kept = [offer for offer in offers if offer.keeps]
    best = min(kept, key=lambda offer: shares[offer.topology], default=None)
    if best is not None and best.spare and best is not kept[0]:
        lines.append(
            f"by the cost of used hosts alone {best.topology} would be the cheapest that keeps the goal: "
            "add a topology of the size that is needed to the sweep"
        )
    return lines


def _money(value: float, prices: Prices) -> str:
    return f"{round(value, 2):.10g} {prices.currency}".rstrip()


def _about_best(offers: Sequence[Offer], prices: Prices, kept: str, goal: Goal) -> str:
    """Name the cheapest offer, or say that none keeps the goal."""
    best = offers[0]
    if not best.keeps:
        return f"none of the {len(offers)} topologies keeps {kept} {_written(goal.bound, goal)}"
    return f"cheapest: {best.topology} at {best.cost:.10g} {prices.currency}".rstrip()


def _bill(best: Offer) -> list[Part]:
    """Return the table of what the cheapest offer is made of; none where it does not keep the goal."""
    rows = [
        [f"{line.item} {line.what}".strip(), str(line.count), f"{line.each:.10g}", f"{line.count * line.each:.10g}"]
        for line in best.bill
    ]
    return [Table(["of the cheapest", "count", "each", "cost"], rows)] if best.keeps else []


def _count(offer: Offer, *items: str) -> int:
    return sum(line.count for line in offer.bill if line.item in items)


def _shown(offer: Offer, goal: Goal) -> list[str]:
    """Return an offer's value, and that with the fastest and the slowest hash of routes."""
    if offer.value is None:
        return ["-"] * 3
    return [_written(value, goal) for value in (offer.value, *(offer.spread or (offer.value,) * 2))]


def _written(value: float, goal: Goal) -> str:
    if goal.column.endswith("_Bps"):
        return format_bandwidth(value)
    return format_time(value) if goal.column.endswith("_s") else f"{value:.4g}"
