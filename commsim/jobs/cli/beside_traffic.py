"""``commsim run --beside FROM:TO=SIZE``: a collective beside traffic between hosts, such as that of a store."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from commsim.cli.run_flags import RunConfig
from commsim.cli.run_kinds import RENDERED, Answered, Kind, Refused
from commsim.core.errors import InputError
from commsim.jobs.composition import read_beside
from commsim.jobs.job_entries import Composition, JobEntry
from commsim.prediction.collective_names import require_operation, spelled_out, usual_collective
from commsim.prediction.inputs import load_network
from commsim.prediction.node_lists import ranks_named


def answer_beside(config: RunConfig, sizes: Sequence[int]) -> Answered:
    """Simulate a collective of one size together with the traffic, and alone.

    Raises
    ------
    InputError
        If there are several collectives or sizes, or hosts are named that are not there.
    """
    from commsim.jobs.table_of_jobs import parts_of_jobs, rows_of_jobs
    from commsim.prediction.solve import solve

    if len(config.collective) > 1 or len(sizes) > 1:
        raise InputError("--beside takes one collective and one size")
    background = tuple(read_beside(text) for text in config.beside)
    network = load_network(config.topology)
    spec = spelled_out(config.collective[0], config.operation) if config.collective else None
    spec = spec or usual_collective(network, config.operation or "all_reduce")[0]
    if config.operation:
        require_operation(spec, config.operation)
    named = ranks_named(config.placement, network) if config.placement else None
    n_ranks = config.ranks or (len(network.endpoints) if named is None else len(named))
    ranks = tuple(range(n_ranks))
    asked = dataclasses.replace(config, ranks=None, placement=None if named is not None else config.placement)
    name, placement = spec.partition(":")[0], "" if named is None else config.placement or ""
    job = JobEntry(name, spec, ranks if named is None else (), float(sizes[0]), placement=placement)
    solution = solve(asked.scenario("", network, jobs=Composition((job,), background)), [0.0])
    more = {"background": solution.details.background(), "shared_links": []}
    chosen, parts = {"engine": solution.scenario.wish.engine}, parts_of_jobs(solution, config.verbose)
    return Answered(parts, rows_of_jobs(solution), solution.results, solution.plan.network, more, chosen=chosen)


BESIDE = Kind(
    answer_beside,
    (
        Refused(
            ("algorithm", "synthesized", "datatype", "group", *RENDERED), "{} cannot be used with --beside",
        ),
    ),
)  # fmt: skip
