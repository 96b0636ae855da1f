"""``commsim advise --sweep FILE``: the cheapest topology of a sweep that keeps a time within a bound."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth, format_time
from commsim.report.table import print_table, write_results

if TYPE_CHECKING:
    from commsim.sweep.cheapest import Goal, Offer
    from commsim.sweep.price import Prices

ONLY_TOPOLOGY = ("topology", "workers", "size", "density", "block", "gradients", "servers", "routing", "overhead",
                 "reduce_rate")  # fmt: skip
MAX_ROWS = 40


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this way to ask."""
    add = parser.add_argument_group("instead of --topology").add_argument
    add("--sweep", metavar="FILE.toml", help="the cheapest topology of a sweep, by its tables [cost] and [goal]")
    add("-o", "--output", metavar="DIR", help="keep the results of the sweep, and go on with those that are there")
    add("--jobs", type=int, metavar="N", help="workers (one for each processor)")


def advise_sweep(args: argparse.Namespace) -> int:
    """Run the sweep, rank its topologies, and print."""
    from commsim.sweep.cheapest import rank_offers, read_bills, read_goal
    from commsim.sweep.config import read_config
    from commsim.sweep.price import read_prices
    from commsim.sweep.progress import shown
    from commsim.sweep.run import run_sweep
    from commsim.sweep.table import read_table

    given = [name for name in ONLY_TOPOLOGY if getattr(args, name) is not None]
    if given:
        raise InputError(f"--{given[0].replace('_', '-')} does not go with --sweep: the file says it")
    config = read_config(args.sweep)
    prices, goal = read_prices(config.tree, args.sweep), read_goal(config.tree, args.sweep)
    bills = read_bills(config, prices)
    with tempfile.TemporaryDirectory() as scratch, shown() as say:
        directory = args.output or scratch
        run_sweep(config, directory, jobs=args.jobs, say=say)
        offers = rank_offers(read_table(directory), config, bills, goal)
    _print(offers, prices, goal)
    if args.json:
        more = {"goal": {"keep": goal.keep, "bound": goal.bound}, "currency": prices.currency}
        write_results(args.json, {"sweep": args.sweep, "config_hash": config.hash}, map(_row, offers), **more)
    return 0


def _print(offers: Sequence[Offer], prices: Prices, goal: Goal) -> None:
    columns = ["rank", "topology", f"cost({prices.currency})" if prices.currency else "cost", goal.keep, "keeps",
               "front", "ports", "cables", "switches", "with"]  # fmt: skip
    rows = [
        [
            f"{i}", offer.topology, f"{offer.cost:.10g}", _shown(offer, goal), "yes" if offer.keeps else "no",
            "*" if offer.is_on_front else "", *(str(_count(offer, *items)) for items in _COUNTED),
            offer.chosen or offer.problem,
        ]
        for i, offer in enumerate(offers[:MAX_ROWS], 1)
    ]  # fmt: skip
    side = "at least" if goal.more_is_better else "within"
    print_table(columns, rows, f"{goal.keep} {side} {_written(goal.bound, goal)}: the worst of all that is asked, each "
                "with what is best for it; * no other is cheaper and as good")  # fmt: skip
    if len(offers) > MAX_ROWS:
        print(f"# {len(offers) - MAX_ROWS} more are in the JSON")
    best = offers[0]
    if best.keeps:
        print(f"# cheapest: {best.topology} at {best.cost:.10g} {prices.currency}".rstrip())
        for line in best.bill:
            print(f"#   {line.count} x {line.item} {line.what}: {line.count * line.each:.10g}")
    else:
        print(f"# none of the {len(offers)} topologies keeps {goal.keep} {side} {_written(goal.bound, goal)}")


_COUNTED = (("nic", "port"), ("cable",), ("switch",))


def _count(offer: Offer, *items: str) -> int:
    return sum(line.count for line in offer.bill if line.item in items)


def _shown(offer: Offer, goal: Goal) -> str:
    return "-" if offer.value is None else _written(offer.value, goal)


def _written(value: float, goal: Goal) -> str:
    if goal.column.endswith("_Bps"):
        return format_bandwidth(value)
    return format_time(value) if goal.column.endswith("_s") else f"{value:.4g}"


def _row(offer: Offer) -> dict[str, Any]:
    row = {
        key: getattr(offer, key) for key in ("topology", "cost", "value", "keeps", "is_on_front", "chosen", "problem")
    }
    return row | {"bill": [dataclasses.asdict(line) for line in offer.bill]}
