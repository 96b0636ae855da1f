"""Runs of ``commsim run`` simulated again from their JSON, for figures of details that the JSON does not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commsim.core.errors import CommsimError, InputError

if TYPE_CHECKING:
    from commsim.cli.run_flags import RunConfig
    from commsim.pages.simulated_run import SimulatedRun
    from commsim.pages.study import Study
    from commsim.prediction.plans.dense import Plan
    from commsim.prediction.scenario import Scenario


def replay(config: RunConfig, rows: Sequence[Mapping[str, Any]]) -> tuple[list[SimulatedRun], dict[str, str]]:
    """Simulate every collective at its largest size again, and compare with what the rows say.

    Parameters
    ----------
    config : RunConfig
        Flags of ``commsim run``; those that a file of results says do not execute code.
    rows : sequence of mapping
        Its results.

    Returns
    -------
    list of SimulatedRun, dict of str to str
        At most as many as a page shows, and why others are not there.
    """
    from commsim.pages.repeated_runs import refuse_further

    runs: list[SimulatedRun] = []
    left_out: dict[str, str] = {}
    for spec, row in _rows_by_collective(config, rows).items():
        try:
            refuse_further(runs)
            runs.append(_replay(config, spec, row))
        except CommsimError as error:
            left_out[spec] = str(error)
    return runs, left_out


def replay_one(
    config: RunConfig, rows: Sequence[Mapping[str, Any]], wanted: str
) -> tuple[SimulatedRun | None, dict[str, str]]:
    """Simulate one collective at its largest size again: the wanted one, or the first where that has no timeline.

    Parameters
    ----------
    config, rows
        Same as in :func:`replay`.
    wanted : str
        Name of the collective in the rows.

    Returns
    -------
    SimulatedRun or None, dict of str to str
        And why those that were tried before are not there.
    """
    left_out: dict[str, str] = {}
    for spec, row in sorted(
        _rows_by_collective(config, rows).items(), key=lambda one: one[1].get("collective") != wanted
    ):
        try:
            return _replay(config, spec, row), {}
        except CommsimError as error:
            left_out[spec] = str(error)
    return None, left_out


def with_watched(study: Study, config: RunConfig, rows: Sequence[Mapping[str, Any]], source: str) -> Study:
    """Simulate jobs or groups in packets again, at their largest size, and add figures of the links that they share.

    Parameters
    ----------
    study : Study
        Study of the rows.
    config, rows
        Same as in :func:`replay`; the engine is packet.
    source : str
        The file, for messages.

    Raises
    ------
    InputError
        If times are not those of the rows.
    """
    from commsim.packets.link_samples import LinkWatch
    from commsim.pages.fabric.figures_of_links import figures_of_samples
    from commsim.pages.simulated_run import LOOKS, TOLERANCE
    from commsim.prediction.solve import solve

    largest = max(row["size_B"] for row in rows)
    times = [row["time_s"] for row in rows if config.jobs or row["size_B"] == largest]
    spec = config.collective[0] if config.collective else ""
    scenario = config.scenario(spec, None, **({"jobs": config.jobs} if config.jobs else {}))
    watch = LinkWatch(max(times), LOOKS)
    watching = dataclasses.replace(scenario, wish=scenario.wish.but(watch=watch))
    solution = solve(watching, [0.0 if config.jobs else largest])
    again = [result.time for result in solution.results]
    if any(all(abs(x - y) > TOLERANCE * y for x in again) for y in times):
        raise InputError(f"{source}: simulated again it has other times: another version or other files made it")
    network = solution.plan.network
    figures, left_out = figures_of_samples(network, watch.samples(network.n_links))
    return dataclasses.replace(study, watched=tuple(figures), left_out={**study.left_out, **left_out})


def _rows_by_collective(config: RunConfig, rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
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


def scenario_and_plan(config: Any, spec: str) -> tuple[Scenario, Plan]:
    """Return the scenario of one collective of a run, and its plan."""
    from commsim.prediction.build import plan_collective
    from commsim.ranking.contenders import prepare_all

    scenario: Scenario = config.scenario(spec)
    if not getattr(config, "compares", False):
        return scenario, plan_collective(scenario)
    plans, _ = prepare_all([spec], scenario.network, n_ranks=config.ranks, **scenario.placing)
    return scenario, plans[spec]


def _replay(config: RunConfig, spec: str, row: Mapping[str, Any]) -> SimulatedRun:
    from commsim.pages.repeated_runs import SHARED
    from commsim.pages.simulated_run import simulate_run

    if config.given("jobs", "group"):
        raise InputError(SHARED)
    size, time, engine = row.get("size_B"), row.get("time_s"), row.get("engine")
    if not isinstance(size, (int, float)) or not isinstance(time, (int, float)):
        raise InputError("its row has no size and time")
    # The user's own word for it may be executed, that of a row may not.
    asked = next((one for one in config.collective or () if one == spec), spec)
    scenario, plan = scenario_and_plan(config, asked)
    run = simulate_run(spec, plan, size, scenario.wish.with_engine(str(engine)), time)
    return dataclasses.replace(run, whole=scenario.whole)
