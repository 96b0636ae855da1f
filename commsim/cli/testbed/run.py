"""``commsim testbed run``: collectives in a testbed for real, with the prediction and the counters beside them."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.report.table import print_table, write_results

from ..flags.costs import add_size_arguments, read_sizes
from .up import routed

if TYPE_CHECKING:
    from commsim.testbed.layout import Layout
    from commsim.testbed.measure import Cell
    from commsim.testbed.places import Place

COLUMNS = ["collective", "size(B)", "time(ms)", "p5(ms)", "p95(ms)", "predicted(ms)", "error", "bytes_error", "wrong",
           "remark"]  # fmt: skip
USUAL = ("ring_all_reduce", "halving_doubling_all_reduce", "pairwise_all_to_all")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--collective", action="append", metavar="NAME:key=value,...",
        help=f"repeatable; switchml runs on a live switch ({', '.join(USUAL)})")  # fmt: skip
    add("--native", action="append", metavar="OPERATION", help="the library's own collective, beside ours")
    add_testbed_arguments(parser)
    add("--ranks", type=int, metavar="N", help="how many (all seats, less what helpers need)")
    add("--placement", default="packed", metavar="NAME|FILE", help="packed, spread, random, or a file (packed)")
    add("--backend", default="mpi", metavar="mpi|gloo", help="what carries the messages (mpi)")
    add("--no-calibration", action="store_true", help="predict with the network's own numbers and headers alone")
    add("--seed", type=int, default=0, metavar="N", help="of random placement and of ECMP (0)")
    add_size_arguments(parser, "64K", "4M")
    add("--json", metavar="FILE", help="also write the results as JSON")


def add_testbed_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say in which testbed."""
    parser.add_argument("--name", metavar="NAME", help="a testbed that is up; or")
    parser.add_argument("--network", metavar="NETWORK", help="one to build for this run alone")
    parser.add_argument("--routing", metavar="NAME", help="of that network, instead of its own")


def main(args: argparse.Namespace) -> int:
    """Measure, print, and write; 1 if a result was wrong."""
    sizes = read_sizes(args)
    from commsim.testbed.runs import run_cells

    with testbed_of(args) as (place, layout):
        found, costs = run_cells(place, layout, tuple(args.collective or USUAL), sizes, native=tuple(args.native or ()),
                                 backend=args.backend, n_ranks=args.ranks, placement=args.placement, seed=args.seed,
                                 calibrated=not args.no_calibration, warmup=_given(args.warmup_iters, 1),
                                 iterations=_given(args.iters, 9), tell=_tell)  # fmt: skip
        name, cells = layout.network.name, [cell for _, cell in found]
    if costs is not None:
        _tell(f"point to point: o {costs.o * 1e6:.1f} us, L {costs.L * 1e6:.1f} us, "
              f"{costs.efficiency:.2%} of the links' rates")  # fmt: skip
    print_table(COLUMNS, [_text(cell) for cell in cells], f"{name}, for real over {args.backend}")
    if args.json:
        config = {k: v for k, v in vars(args).items() if k not in ("json", "what")}
        write_results(args.json, config, [cell_row(cell) for cell in cells])
    return 1 if any(cell.result.counters.get("wrong") for cell in cells) else 0


@contextlib.contextmanager
def testbed_of(args: argparse.Namespace) -> Iterator[tuple[Place, Layout]]:
    """Find the testbed that the flags name, or build one for the time of the run.

    Raises
    ------
    InputError
        If the flags name both, or neither and the usual one is not up.
    """
    from commsim.run.inputs import load_network
    from commsim.testbed.runs import built, up

    if args.name and args.network:
        raise InputError("--name is of a testbed that is up, --network builds one: give one of them")
    if args.routing and not args.network:
        raise InputError("--routing is decided when a testbed is built: give it with --network, or to testbed up")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was built for the run goes with it
    if args.network:
        with built(routed(load_network(args.network), args.routing), _tell) as found:
            yield found
    else:
        yield up(args.name or "testbed")


def cell_row(cell: Cell) -> dict[str, Any]:
    """Return a cell as the JSON has it."""
    low, high = cell.spread
    return cell.result.row() | {
        "predicted_s": cell.predicted.time,
        "error": cell.error,
        "p5_s": low,
        "p95_s": high,
        "bytes_error": cell.bytes_error,
        "foreign_load": cell.load.foreign,
        "invalid": cell.invalid or None,
    }


def _text(cell: Cell) -> list[str]:
    result, (low, high) = cell.result, cell.spread
    return [result.collective, f"{result.size:.0f}", f"{result.time * 1e3:.2f}", f"{low * 1e3:.2f}",
            f"{high * 1e3:.2f}", f"{cell.predicted.time * 1e3:.2f}", f"{cell.error:+.1%}", f"{cell.bytes_error:.2%}",
            f"{result.counters.get('wrong', 0):.0f}", cell.invalid]  # fmt: skip


def _tell(what: str) -> None:
    print(f"commsim testbed: {what}", file=sys.stderr)


def _given(value: int | None, usual: int) -> int:
    return usual if value is None else value
