"""``commsim bound``: how fast no schedule can be, and how far from that each algorithm is."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS, operation
from commsim.core.units import format_size, format_time
from commsim.report.table import print_table, progress, write_results

from .flags.costs import add_size_arguments, read_sizes

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.run import Prepared
    from commsim.synthesis import LowerBound

RANKS = "ranks"
ANYWHERE = "servers or switches"
COLUMNS = ["size(B)", "algorithm", "time(us)", "bound(us)", "times_bound", "sums_and_copies_at"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--topology", required=True, metavar="NAME:key=value,...|FILE", help="network, such as star:n_hosts=8")
    add("--operation", required=True, metavar="NAME", help=", ".join(OPERATIONS))
    add("--algorithm", metavar="NAME|all|none", default="all", help="which stand beside the bound (all)")
    add("--collective", action="append", metavar="NAME|FILE.py", help="also this one, such as one of your own; repeat")
    add("--ranks", type=int, metavar="N", help="ranks (all hosts)")
    add("--root", type=int, default=0, metavar="RANK", help="of operations that have one, with --algorithm none (0)")
    add("--engine", default="flow", help="of the algorithms' times (flow)")
    add("--placement", default="packed", help="packed, spread, random or a file (packed)")
    add("--seed", type=int, default=0, help="of random placement, and of hashes in routing (0)")
    add_size_arguments(parser, "32M", "32M")
    add("--json", metavar="FILE", help="also write the bounds and the times as JSON")


def main(args: argparse.Namespace) -> int:
    """Bound, predict and print."""
    sizes = read_sizes(args)
    from commsim.run.inputs import load_network, load_placement
    from commsim.synthesis import lower_bound

    if operation(args.operation).signals:
        print(f"# -b, -e, -f: no effect, a {args.operation} carries no bytes")
        sizes = [0]
    network = load_network(args.topology)
    _check(args, network)
    ready = _prepared(args, network)
    rows: list[dict[str, Any]] = []
    if ready and args.root:
        print("# --root: no effect, roots are the algorithms'; --collective NAME:root=RANK has another one")
    if not ready:
        p = len(network.endpoints) if args.ranks is None else args.ranks
        nodes = load_placement(args.placement, network, p, args.seed).nodes
        found = [lower_bound(args.operation, network, nodes, root=args.root, anywhere=some) for some in (False, True)]
    else:
        bounds = _bounds(ready)
        found = _with_both_kinds(ready, list(dict.fromkeys(bounds.values())))
    print_bounds(f"{args.operation} on {network.name}", found, sizes)
    if ready:
        sys.stdout.flush()  # predictions may take long
        for name in progress(sorted(ready, key=lambda name: ready[name].schedule.n_transfers), ""):
            try:
                rows += [_row(name, ready[name], bounds[name], size, args.engine) for size in sizes]
            except InputError as error:
                _leave_out(args, name, error)
        rows.sort(key=lambda row: (row["size_B"], row["time_s"], row["algorithm"]))
        print_table(COLUMNS, [_cells(row) for row in rows], f"engine {args.engine}")
    if args.json:
        config = {k: v for k, v in vars(args).items() if k != "json"}
        write_results(args.json, config, rows, bounds=[_bound_row(b, size) for b in found for size in sizes])
    return 0


def print_bounds(title: str, found: Sequence[LowerBound], sizes: Sequence[int]) -> None:
    """Print what no schedule beats, and what limits it, at every size."""
    columns = ["size(B)", "sums_and_copies_at", "bound(us)", "limited by"]
    rows = [[f"{s}", _where(b), f"{b.time(s) * 1e6:.2f}", b.why(s)] for s in sizes for b in found]
    print_table(columns, rows, f"{title}, {found[0].n_ranks} ranks: no schedule takes less")
    for note in dict.fromkeys(note for bound in found for note in bound.notes):
        print(f"# {note}")


def print_distance(ready: Prepared, results: Iterable[Any]) -> None:
    """Say of the results of one collective how far from the bound they are."""
    from commsim.synthesis.bound import bound_for

    bound = bound_for(ready)
    for r in results:
        least = bound.time(r.size)
        times = f"this takes {times_bound(r.time, least):.3f} times as long"
        print(f"# bound: {format_size(r.size)}: at least {format_time(least)} ({bound.why(r.size)}); {times}")
    for note in bound.notes:
        print(f"# bound: {note}")


def times_bound(time: float, bound: float) -> float:
    """Return the ratio; 1 where both are nothing."""
    return time / bound if bound else 1.0


def _check(args: argparse.Namespace, network: Network) -> None:
    """Refuse what no algorithm could do, before each of them is tried."""
    from commsim.run import ENGINES

    if args.engine not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}, got {args.engine!r}")
    n_hosts = len(network.endpoints)
    if args.ranks is not None and not 1 <= args.ranks <= n_hosts:
        raise InputError(f"--ranks must be 1..{n_hosts}, since {network.name} has {n_hosts} hosts; got {args.ranks}")


def _prepared(args: argparse.Namespace, network: Network) -> dict[str, Prepared]:
    own = args.collective or []
    if args.algorithm == "none" and not own:
        return {}
    from collectives import COLLECTIVES
    from commsim.run.ranking import algorithms_for, prepare_all, require_operation

    ours = set(COLLECTIVES)  # before one's own file adds itself, which is then there under the file's name
    named = [*([] if args.algorithm in ("all", "none") else [args.algorithm]), *own]
    for spec in named:
        require_operation(spec, args.operation)
    every = [one for one in algorithms_for(args.operation) if one in ours] if args.algorithm == "all" else []
    specs = dict.fromkeys([*every, *named])
    placing = {"placement": args.placement, "seed": args.seed}
    ready, left_out = prepare_all(list(specs), network, n_ranks=args.ranks, named=named, **placing)
    for spec, reason in left_out.items():
        _leave_out(args, spec, InputError(reason))
    return ready


def _leave_out(args: argparse.Namespace, spec: str, error: InputError) -> None:
    """Say why an algorithm is not there, unless it was asked for by name.

    Raises
    ------
    InputError
        If it was.
    """
    if spec in (args.algorithm, *(args.collective or [])):
        raise error
    print(f"# left out: {spec}: {error}")


def _bounds(ready: Mapping[str, Prepared]) -> dict[str, LowerBound]:
    """Bound of every algorithm: one for those that use the same kinds of nodes on the same data."""
    from commsim.synthesis.bound import bound_for, uses_more_than_ranks

    known: dict[Any, LowerBound] = {}
    found = {}
    for name, one in ready.items():
        ranks = one.placement.nodes[: one.schedule.n_ranks]
        key = (uses_more_than_ranks(one), one.schedule.layout, one.schedule.root, ranks.tobytes())
        if key not in known:
            known[key] = bound_for(one)
        found[name] = known[key]
    return found


def _with_both_kinds(ready: Mapping[str, Prepared], found: list[LowerBound]) -> list[LowerBound]:
    """Add the bound for the kind of schedules, with servers or switches or without, that none here is of."""
    from commsim.synthesis import lower_bound

    one = next(iter(ready.values()))
    schedule, ranks = one.schedule, one.placement.nodes[: one.schedule.n_ranks]
    for anywhere in (False, True):
        if all(bound.anywhere != anywhere for bound in found):
            given = functools.partial(lower_bound, schedule.operation, one.network, ranks)
            found.append(given(root=schedule.root, layout=schedule.layout, anywhere=anywhere))
    return sorted(found, key=lambda bound: bound.anywhere)


def _where(bound: LowerBound) -> str:
    return ANYWHERE if bound.anywhere else RANKS


def _row(name: str, ready: Prepared, bound: LowerBound, size: int, engine: str) -> dict[str, Any]:
    time, least = ready.predict(size, engine=engine).time, bound.time(size)
    return {
        "size_B": size, "algorithm": name, "time_s": time, "bound_s": least, "times_bound": times_bound(time, least),
        "anywhere": bound.anywhere,
    }  # fmt: skip


def _bound_row(bound: LowerBound, size: int) -> dict[str, Any]:
    return {
        "size_B": size, "anywhere": bound.anywhere, "bound_s": bound.time(size), "limited_by": bound.why(size),
        "notes": list(bound.notes),
    }  # fmt: skip


def _cells(row: dict[str, Any]) -> list[str]:
    times = f"{row['time_s'] * 1e6:.2f}", f"{row['bound_s'] * 1e6:.2f}", f"{row['times_bound']:.3f}x"
    return [f"{row['size_B']}", row["algorithm"], *times, ANYWHERE if row["anywhere"] else RANKS]
