"""``commsim sweep status``: how far a sweep is, and what failed."""

from __future__ import annotations

import argparse

from commsim.report.table import print_facts, print_table, write_results

MAX_ERRORS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("directory", metavar="DIR", help="of the results")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Count, and print."""
    from collections import Counter

    from commsim.files.sweep_store import read_description
    from commsim.sweep.table import read_table
    from commsim.sweep.worker import MAX_MESSAGE

    about = read_description(args.directory)
    errors = Counter(e for e in read_table(args.directory, ["error"]).column("error").to_pylist())
    n_done, n_points = sum(errors.values()), about.get("n_points")
    errors.pop(None, None)
    where = about["provenance"]
    print_facts({
        "points": f"{n_done} of {n_points} done",
        "failed": f"{sum(errors.values())}",
        "begun by": f"commsim {where.get('commsim')}, commit {where.get('commit')}",
        "sweep": f"{about['config_hash']}, seed {where.get('seed')}",
    })  # fmt: skip
    if errors:
        rows = [[str(n), text[:MAX_MESSAGE]] for text, n in errors.most_common(MAX_ERRORS)]
        print_table(["points", "error"], rows)
        print("# `commsim sweep run FILE --retry-failed` computes them again")
    if args.json:
        failed = [{"error": text, "n_points": n} for text, n in errors.most_common()]
        row = {"n_points": n_points, "n_done": n_done, "n_failed": sum(errors.values()), "errors": failed}
        write_results(args.json, {"directory": args.directory}, [row])
    return 0
