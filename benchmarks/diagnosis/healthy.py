"""Healthy public tables: how many get another cause than that they are healthy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from benchmarks.nccl_tables.asked import read_asked
from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.networks import question_of
from benchmarks.nccl_tables.rows import usable
from commsim.core.errors import InputError
from commsim.diagnosis.causes.explain import RankedCause
from commsim.diagnosis.causes.of_rows import explain_rows
from commsim.formats.measurement import Measurement
from commsim.nccl.gpu_costs import costs
from commsim.prediction.build import plan_collective
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import scenario_of

# Least size of tables that show the pace of a slow host below.
PACED = 1_000_000


def healthy_causes(data: Path) -> Iterator[tuple[str, tuple[RankedCause, ...]]]:
    """Yield healthy tables of NCCL with their causes; those whose GPUs may not reach each other have no topology.

    Parameters
    ----------
    data : path
        Folder with ``measured`` and ``measured2``.
    """
    for table in read_tables(data / "measured"):
        if table.healthy and table.site is not None and table.site.p2p and not usable(table, costs()):
            yield table.id, explain_rows(_plan_of(table), _rows_of(table))
    for asked in read_asked(data / "measured2"):
        if asked.healthy != "yes" or not asked.collective.startswith("nccl"):
            continue
        try:
            plan = plan_collective(scenario_of(asked.collective, asked.topology, n_ranks=asked.n_ranks))
        except InputError:
            continue
        rows = [Measurement(asked.operation, size, time, asked.n_ranks) for size, time in asked.rows]
        yield asked.id, explain_rows(plan, rows)


def _plan_of(table: Table) -> Plan:
    """Return the plan of a table as a user's topology gives it, with the release of the table."""
    assert table.site is not None
    scenario, _ = question_of(table.site, table.operation, table.algorithm, table.protocol)
    network = scenario.network
    if table.site.network == "efa_staged":
        network = dataclasses.replace(network, hardware=f"{network.hardware},gpudirect=no")
    return plan_collective(scenario_of(scenario.name, network))


def _rows_of(table: Table) -> list[Measurement]:
    assert table.site is not None
    least = max(table.trusted_from, PACED if table.host_pace else 0)
    n = table.site.setting.n_ranks
    return [Measurement(table.operation, size, time, n) for size, time in table.rows if size >= least]
