"""Runs of ``commsim run`` once more, from what its JSON says: a simulation gives the same each time."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import CommsimError, InputError
from commsim.core.units import share

if TYPE_CHECKING:
    from commsim.report.simulated_run import SimulatedRun
    from commsim.run import Prepared

MAX_RUNS = 4
TOLERANCE = 1e-9


def arguments_of(config: Mapping[str, Any], source: str) -> argparse.Namespace:
    """Read flags of ``commsim run`` as a file says they were; what is no flag is left out.

    Raises
    ------
    InputError
        If a flag has a value that the command line cannot give it.
    """
    from .options import add_arguments

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(["--topology", ""])
    for action in parser._actions:
        name, value = action.dest, config.get(action.dest)
        if name not in config or value is None or not hasattr(args, name):
            continue
        numbers = {int: int, float: float, share: float}
        wanted = bool if action.nargs == 0 else numbers.get(action.type, str)
        listed = isinstance(action, argparse._AppendAction)
        values = value if listed and isinstance(value, list) else [value]
        if not all(type(one) is wanted for one in values) or listed != isinstance(value, list):
            raise InputError(f"{source}: config.{name} is no value of commsim run's flag, got {value!r}")
        setattr(args, name, value)
    return args


def prepare_one(args: argparse.Namespace, spec: str) -> tuple[Prepared, dict[str, Any]]:
    """Prepare one collective as ``commsim run`` does.

    Returns
    -------
    Prepared, dict
        And the options with which it is predicted.
    """
    from commsim.run import prepare, with_costs
    from commsim.run.inputs import load_network

    from ..flags.costs import read_costs
    from ..flags.faults import damaged
    from ..flags.packets import packet_options
    from .options import read_options

    network, _ = damaged(load_network(args.topology), args)
    network = with_costs(network, **read_costs(args))
    options = read_options(args) | packet_options(args, network)
    if options["engine"] == "auto":
        options["engine"] = "flow"
    placing = {"placement": args.placement, "routing": args.routing, "seed": args.seed or 0}
    return prepare(spec, network, n_ranks=args.ranks, **placing), options


def play_again(
    args: argparse.Namespace, rows: Sequence[Mapping[str, Any]], *, trusted: bool
) -> tuple[list[SimulatedRun], dict[str, str]]:
    """Play every collective at its largest size again, and compare with what the rows say.

    Parameters
    ----------
    args : Namespace
        Flags of ``commsim run``.
    rows : sequence of mapping
        Its results.
    trusted : bool
        Whether Python code that the flags name may be executed.

    Returns
    -------
    list of SimulatedRun, dict of str to str
        At most ``MAX_RUNS``, and why others are not there.
    """
    runs: list[SimulatedRun] = []
    left_out: dict[str, str] = {}
    for spec, row in _wanted(args, rows).items():
        try:
            if len(runs) == MAX_RUNS:
                raise InputError(f"only the first {MAX_RUNS} runs are shown in detail")
            runs.append(_play(args, spec, row, trusted))
        except CommsimError as error:
            left_out[spec] = str(error)
    return runs, left_out


def line_rate(prepared: Prepared) -> float:
    """Rate at which the links of a rank send, bytes/s: of the rank whose links are slowest."""
    network = prepared.network
    of_node = np.bincount(network.src, weights=network.bandwidth, minlength=network.n_nodes)
    return float(of_node[prepared.placement.nodes[: prepared.schedule.n_ranks]].min())


def _wanted(args: argparse.Namespace, rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Return collectives, each with the row of its largest size; of an operation the one that is fastest there."""
    sized = [
        row
        for row in rows
        if isinstance(row.get("size_B"), (int, float)) and isinstance(row.get("time_s"), (int, float))
    ]
    if not sized:
        return {}
    last = max(row["size_B"] for row in sized)
    at_last = [row for row in sized if row["size_B"] == last]
    if args.operation is not None or args.algorithm is not None:
        best = min(at_last, key=lambda row: row["time_s"])
        return {str(best.get("collective")): best}
    specs = args.collective or ["ring_all_reduce"]
    if len(rows) % len(specs):
        return dict.fromkeys(specs, at_last[0])
    each = len(rows) // len(specs)
    return {spec: rows[(i + 1) * each - 1] for i, spec in enumerate(specs)}


def _play(args: argparse.Namespace, spec: str, row: Mapping[str, Any], trusted: bool) -> SimulatedRun:
    from commsim.core.registry import names_own_file
    from commsim.report.simulated_run import simulate_run

    if args.group or args.compressor:
        raise InputError(f"{'--group' if args.group else '--compressor'} has no timeline")
    if not trusted and any(map(names_own_file, (spec, args.topology, args.placement))):
        raise InputError("it names Python code, which a report does not execute; use `commsim run ... --report FILE`")
    prepared, options = prepare_one(args, spec)
    size, time = row.get("size_B"), row.get("time_s")
    if not isinstance(size, (int, float)) or not isinstance(time, (int, float)):
        raise InputError("its row has no size and time")
    run = simulate_run(spec, prepared, size, options)
    if abs(run.result.time - time) > TOLERANCE * max(time, run.result.time):
        raise InputError(
            f"computed again it takes {run.result.time:.9g} s, but the file says {time:.9g} s: another version, "
            "or a file that it names has changed"
        )
    return run
