"""Runs of ``commsim run`` simulated again from their JSON, for figures of details that the JSON does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import CommsimError, InputError

from .operation import assumes_overhead, is_ranking

if TYPE_CHECKING:
    from commsim.report.simulated_run import SimulatedRun
    from commsim.run import Prepared

    from .config import Config, PlayConfig

MAX_RUNS = 4
TOLERANCE = 1e-9


def prepare_one(config: PlayConfig, spec: str) -> tuple[Prepared, dict[str, Any]]:
    """Prepare one collective as ``commsim run`` does.

    Returns
    -------
    Prepared, dict
        And the options with which it is predicted.
    """
    from commsim.run import prepare

    from .config import network_and_options

    config, network, options, _ = network_and_options(config)
    if options["engine"] == "auto":
        options["engine"] = "flow"
    return prepare(spec, network, n_ranks=config.ranks, **config.placing), options


def replay(
    config: Config, rows: Sequence[Mapping[str, Any]], *, trusted: bool
) -> tuple[list[SimulatedRun], dict[str, str]]:
    """Simulate every collective at its largest size again, and compare with what the rows say.

    Parameters
    ----------
    config : Config
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
    for spec, row in _wanted(config, rows).items():
        try:
            if len(runs) == MAX_RUNS:
                raise InputError(f"only the first {MAX_RUNS} runs are shown in detail")
            runs.append(_replay(config, spec, row, trusted))
        except CommsimError as error:
            left_out[spec] = str(error)
    return runs, left_out


def line_rate(prepared: Prepared) -> float:
    """Rate at which the links of a rank send, bytes/s: of the rank whose links are slowest."""
    network = prepared.network
    of_node = np.bincount(network.src, weights=network.bandwidth, minlength=network.n_nodes)
    return float(of_node[prepared.placement.nodes[: prepared.schedule.n_ranks]].min())


def _wanted(config: Config, rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
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
    if config.operation is not None or config.algorithm is not None:
        best = min(at_last, key=lambda row: row["time_s"])
        return {str(best.get("collective")): best}
    specs = config.collective or ("ring_all_reduce",)  # what files of versions before 0.2 leave out
    if len(rows) % len(specs):
        return dict.fromkeys(specs, at_last[0])
    each = len(rows) // len(specs)
    return {spec: rows[(i + 1) * each - 1] for i, spec in enumerate(specs)}


def _prepare_ranked(config: Config, spec: str) -> tuple[Prepared, dict[str, Any]]:
    """Prepare one collective as a ranking does: with an assumed overhead, and parameters that suit it."""
    from commsim.run.good_parameters import with_partitions_that_fit
    from commsim.run.ranking import prepare_all

    from .config import network_and_options

    resolved, network, options, _ = network_and_options(config)
    ready, _ = prepare_all(
        [spec], network, n_ranks=config.ranks, assume_overhead=assumes_overhead(config), **resolved.placing
    )
    return with_partitions_that_fit(ready[spec]), options


def _replay(config: Config, spec: str, row: Mapping[str, Any], trusted: bool) -> SimulatedRun:
    from commsim.core.registry import names_own_file
    from commsim.report.simulated_run import simulate_run

    if config.group or config.compressor:
        raise InputError(f"{'--group' if config.group else '--compressor'} has no timeline")
    if not trusted and any(map(names_own_file, (spec, config.topology, config.placement or ""))):
        raise InputError("it names Python code, which a report does not execute; use `commsim run ... --report FILE`")
    prepared, options = _prepare_ranked(config, spec) if is_ranking(config) else prepare_one(config, spec)
    if config.flap:
        options["flaps"] = config.flaps(prepared.network)
    size, time = row.get("size_B"), row.get("time_s")
    if not isinstance(size, (int, float)) or not isinstance(time, (int, float)):
        raise InputError("its row has no size and time")
    run = simulate_run(spec, prepared, size, options, time)
    if abs(run.result.time - time) > TOLERANCE * max(time, run.result.time):
        raise InputError(
            f"repeated, it takes {run.result.time:.9g} s, but the file says {time:.9g} s: another version, "
            "or a file that it names has changed"
        )
    return run
