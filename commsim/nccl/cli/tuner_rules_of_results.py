"""``commsim nccl --from``: rules for NCCL's tuner, of the algorithms that were the fastest in results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.remark import as_remarks
from commsim.report.answer import Answer, Lines, Table, remarks

if TYPE_CHECKING:
    from .nccl_flags import NcclConfig


def rules_from_results(config: NcclConfig) -> Answer:
    """Write the rules, and return them.

    Raises
    ------
    InputError
        If a flag is missing or wrong, or no result is of an algorithm that NCCL knows.
    """
    from commsim.formats.measured import read_measured
    from commsim.nccl.tuner_and_graph_files import rules_of_rows, write_tuner

    if config.nccl_version is not None:
        raise InputError("--nccl-version goes with --topology, not with --from: results are of their own version")
    if config.tuner_csv is None:
        raise InputError("--from FILE writes rules; give the output with --tuner-csv FILE")
    if config.nodes != -1 and not 1 <= config.nodes < 2**31:
        raise InputError(f"--nodes must be a number of nodes, or -1 for any, got {config.nodes}")
    notes: list[str] = []
    path = config.rows or ""
    rows: list[Any] = []
    for name in config.operation or ("",):
        rows += read_measured(path, operation=name, n_ranks=config.ranks, notes=notes)
    rules = rules_of_rows(rows, config.nodes, notes)
    cells = [[r.operation, str(r.low), str(r.high), r.algorithm, r.protocol, str(r.n_ranks)] for r in rules]
    columns = ["operation", "from(B)", "to(B)", "algorithm", "protocol", "ranks"]
    table = Table(columns, cells, f"the fastest of {config.rows}")
    write_tuner(config.tuner_csv, rules, f"the fastest in {config.rows}, by commsim nccl")
    return Answer(
        [*remarks(as_remarks(notes, "read")), table, Lines([f"{config.tuner_csv}: written, {len(rules)} rules"])]
    )
