"""``commsim switch status``: jobs, slots and counters of a switch that serves."""

from __future__ import annotations

import argparse
import json
from typing import Any

from commsim.core.units import format_time
from commsim.report.table import print_facts, print_table

from .serve import PORT, port_number

COLUMNS = ["job", "workers", "slots", "busy", "tensors", "waits for"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="of the switch (127.0.0.1)")
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"of the switch ({PORT})")
    parser.add_argument("--json", action="store_true", help="print all that the switch says, as JSON")


def main(args: argparse.Namespace) -> int:
    """Ask and print."""
    from switch_model.live.session import ask_status

    status = ask_status(args.host, port_number(args.port))
    if args.json:
        print(json.dumps(status, indent=2))
        return 0
    print_facts(_facts(status))
    jobs = [*status["jobs"], *status.get("static_jobs", [])]
    print_table(COLUMNS, [_row(job) for job in jobs], f"{len(jobs)} job{'s' * (len(jobs) != 1)}")
    return 0


def _facts(status: dict[str, Any]) -> dict[str, str]:
    free = ", ".join(f"{first}-{first + n - 1}" for first, n in status["free_slots"]) or "none"
    facts = {"switch": f"{status['host']}, port {status['port']}, datagrams: {status['datagrams']}",
             "slots": f"{status['pool_size']} of {status['elements_per_packet']} elements, free: {free}",
             "serving for": f"{format_time(status['uptime_s'])}, processor {format_time(status['cpu_s'])}"}  # fmt: skip
    return facts | {name.replace("_", " "): f"{count}" for name, count in status["counters"].items() if count}


def _row(job: dict[str, Any]) -> list[str]:
    busy = job.get("busy", [])
    late = job.get("waiting_for") or sorted({rank for slot in busy for rank in slot["waits_for"]})
    first, n = job["first_slot"], job["slots"]
    return [job["name"], f"{job['workers']}", f"{first}-{first + n - 1}", f"{job.get('slots_busy', len(busy))}",
            f"{job.get('tensors', '-')}", ", ".join(f"rank {rank}" for rank in late) or "nobody"]  # fmt: skip
