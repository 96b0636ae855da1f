"""``commsim run --jobs FILE``: several jobs and background traffic on one network at once."""

from __future__ import annotations

from commsim.cli.run_flags import RunConfig
from commsim.cli.run_kinds import RENDERED, SIZES, Answered, Kind, Refused
from commsim.jobs.job_entries import JOBS_ONLY


def answer_jobs(config: RunConfig) -> Answered:
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
    return Answered(parts, rows, solution.results, solution.plan.network, more, chosen=chosen)


JOBS = Kind(
    lambda config, _: answer_jobs(config),
    (Refused(("algorithm", "synthesized", "datatype", *SIZES, *RENDERED), JOBS_ONLY),),
)
