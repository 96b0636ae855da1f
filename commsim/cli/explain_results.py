"""``commsim explain --from``: the fastest algorithms of results as rules for NCCL's tuner plugin."""

from __future__ import annotations

import argparse

from commsim.core.errors import InputError

from .table import print_remarks, print_table


def rules_from_results(args: argparse.Namespace) -> int:
    """Print and write the rules.

    Raises
    ------
    InputError
        If a flag is missing or wrong, or no result is of an algorithm that NCCL knows.
    """
    from commsim.formats.nccl_tuner import rules_of_rows, write_tuner
    from commsim.formats.read_measured import read_measured

    if args.tuner_csv is None:
        raise InputError("--from FILE makes rules; say where to, with --tuner-csv FILE")
    if args.nodes != -1 and not 1 <= args.nodes < 2**31:
        raise InputError(f"--nodes must be a number of nodes, or -1 for any, got {args.nodes}")
    notes: list[str] = []
    wanted = args.operation or [""]
    rows = [row for name in wanted for row in read_measured(args.rows, operation=name, n_ranks=args.ranks, notes=notes)]
    rules = rules_of_rows(rows, args.nodes, notes)
    print_remarks(dict.fromkeys(notes))
    table = [[r.operation, str(r.low), str(r.high), r.algorithm, r.protocol, str(r.n_ranks)] for r in rules]
    print_table(
        ["operation", "from(B)", "to(B)", "algorithm", "protocol", "ranks"], table, f"the fastest of {args.rows}"
    )
    write_tuner(args.tuner_csv, rules, f"the fastest in {args.rows}, by commsim explain")
    print(f"{args.tuner_csv}: written, {len(rules)} rules")
    return 0
