"""``commsim run --jobs FILE``: several jobs and background traffic on one network at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commsim.cli.run.tables import RunTables

if TYPE_CHECKING:
    from commsim.cli.run.config import RunConfig


def answer_jobs(config: RunConfig) -> RunTables:
    """Simulate all jobs of the file together, and each on its own; say what sharing costs.

    Raises
    ------
    InputError
        If the file is wrong, or the engine does not know a job's kind.
    """
    from commsim.jobs.table_of_jobs import parts_of_jobs, rows_of_jobs, shared_links
    from commsim.prediction.solve import solve

    scenario = config.scenario(config.collective[0] if config.collective else "", jobs=config.jobs)
    solution = solve(scenario, [0.0])
    chosen, more = {"engine": solution.scenario.wish.engine}, {"background": solution.details.background()}
    more["shared_links"] = shared_links(solution)
    parts, rows = parts_of_jobs(solution, config.verbose), rows_of_jobs(solution)
    return RunTables(parts, rows, solution.results, solution.plan.network, more, chosen=chosen)
