"""``commsim schedule``: list, show, check, save, import and export schedules."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from commsim.core.units import format_size, parse_nccl_size
from commsim.report.table import print_facts, print_table, write_results

from .convert import add_format_arguments, run
from .flags.outputs import check_drawable, draw_transfers

MAX_ROWS = 16
SUFFIX = ".npz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="list|show|check|save|import|export")
    listing = verbs.add_parser("list", help="the collectives, with their operations and parameters")
    show = verbs.add_parser("show", help="hops, messages, bytes, and volume per rank")
    check = verbs.add_parser("check", help="prove that it does what its operation promises")
    save = verbs.add_parser("save", help="write the schedule to an .npz file")
    taking = verbs.add_parser("import", help="read MSCCL, GOAL or Chakra, check it, and write an .npz file")
    giving = verbs.add_parser("export", help="write MSCCL, GOAL, Chakra or htsim's flows")
    taking.add_argument("source", metavar="FILE")
    for one, source in ((taking, True), (giving, False)):
        add_format_arguments(one, source=source, target=not source)
    for one in (show, check, save, giving):
        one.add_argument("collective", metavar="NAME[:key=value,...]|FILE.npz|FILE.py[:NAME]")
        one.add_argument("--ranks", type=int, metavar="N", help="ranks, for a collective that is named")
    show.add_argument("--draw", metavar="FILE", help="draw it, if it is small: .svg or .png")
    show.add_argument("--size", default="1M", metavar="SIZE", help="size of the operation (1M)")
    for one in (listing, show, check):
        one.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    for one in (save, taking):
        one.add_argument("-o", "--output", required=True, metavar="FILE", help=".npz")
    giving.add_argument("-o", "--output", required=True, metavar="FILE", help=".xml, .goal, .bin, .et or .cm")


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    if args.what in ("import", "export"):
        return run(args, args.source if args.what == "import" else args.collective, args.output)
    return {"list": _list, "show": _show, "check": _check, "save": _save}[args.what](args)


def _list(args: argparse.Namespace) -> int:
    from collectives import COLLECTIVES

    rows = []
    for name in COLLECTIVES:
        entry = COLLECTIVES[name]
        own = [k for k in entry.parameters if k != "n_ranks"]
        rows.append({"collective": name, "operation": entry.facts["operation"], "parameters": own,
                     "summary": entry.summary})  # fmt: skip
    for row in rows:
        given = f":{','.join(row['parameters'])}" if row["parameters"] else ""
        print(f"{row['collective']}{given}  [{row['operation']}]\n    {row['summary']}")
    if args.json:
        write_results(args.json, {"what": "collectives"}, rows)
    return 0


def _load(args: argparse.Namespace) -> Any:
    from commsim.core.errors import InputError
    from commsim.run.inputs import load_schedule

    schedule = load_schedule(args.collective, args.ranks)
    if args.ranks is not None and schedule.n_ranks != args.ranks:
        raise InputError(f"{args.collective} has {schedule.n_ranks} ranks, got --ranks {args.ranks}")
    return schedule


def _show(args: argparse.Namespace) -> int:
    if args.draw:
        check_drawable(args.draw)
    schedule, size = _load(args), parse_nccl_size(args.size, "--size")
    if args.draw:
        draw_transfers(schedule, args.draw)
    sent, received, messages = _volumes(schedule)
    chunk = size / schedule.n_chunks
    print_facts(
        {
            "collective": schedule.name,
            "operation": schedule.operation,
            "participants": f"{schedule.n_ranks} ranks, {schedule.n_helpers} helpers",
            "chunks": f"{schedule.n_chunks} of {format_size(chunk)}",
            "hops": str(schedule.n_hops),
            "messages": str(int(messages.sum())),
            "bytes sent": format_size(sent.sum() * chunk),
            "kept as": f"{len(schedule.blocks)} blocks of {sum(len(b.body) for b in schedule.blocks)} transfers",
        }
    )
    rows = [
        {"participant": i, "messages": int(messages[i]), "sent_B": sent[i] * chunk, "received_B": received[i] * chunk}
        for i in range(schedule.n_participants)
    ]
    shown = rows if len(rows) <= MAX_ROWS else rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :]
    left_out = f" ({len(rows) - len(shown)} in the middle left out)" if len(shown) < len(rows) else ""
    print_table(
        ["participant", "messages", "sent(B)", "received(B)", "sent/size"],
        [[str(r["participant"]), str(r["messages"]), f"{r['sent_B']:.0f}", f"{r['received_B']:.0f}",
          f"{r['sent_B'] / size:.4f}"] for r in shown],
        f"volume per rank at {format_size(size)}{left_out}",
    )  # fmt: skip
    if args.json:
        write_results(args.json, {"collective": args.collective, "n_hops": schedule.n_hops, "size_B": size}, rows)
    return 0


def _volumes(schedule: Any) -> tuple[Any, Any, Any]:
    """Chunks that each participant sends and receives, and messages that it sends; local copies do not count."""
    n = schedule.n_participants
    sent, received, messages = np.zeros(n), np.zeros(n), np.zeros(n)
    for transfers in schedule.rounds():
        moving = transfers[transfers["src"] != transfers["dst"]]
        sent += np.bincount(moving["src"], weights=moving["count"], minlength=n)
        received += np.bincount(moving["dst"], weights=moving["count"], minlength=n)
        messages += np.bincount(moving["src"], minlength=n)
    return sent, received, messages


def _check(args: argparse.Namespace) -> int:
    from commsim.core.checking.check import CheckReport, check
    from commsim.core.checking.check_compact import CompactReport, SampleReport, check_builder
    from commsim.run.inputs import read_collective

    report: Any
    if args.collective.endswith(SUFFIX):
        schedule = _load(args)
        name, n_ranks, report = schedule.name, schedule.n_ranks, check(schedule)
    else:
        build, parameters = read_collective(args.collective, args.ranks)
        name, n_ranks, report = build.__name__, args.ranks, check_builder(build, args.ranks, **parameters)
    print(f"{name} on {n_ranks} ranks: {report}")
    if args.json:
        method = {CheckReport: "", SampleReport: "sample", CompactReport: "compact"}[type(report)]
        row = {
            "collective": name,
            "n_ranks": n_ranks,
            "n_transfers": report.n_transfers,
            "method": method or report.method,
            "failure_probability": getattr(report, "failure_probability", None),
        }
        write_results(args.json, {"collective": args.collective}, [row])
    return 0


def _save(args: argparse.Namespace) -> int:
    from commsim.files.store import save

    schedule = _load(args)
    save(schedule, args.output)
    print(f"{args.output}: {schedule.n_transfers} transfers in {len(schedule.blocks)} blocks")
    return 0
