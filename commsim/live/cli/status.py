"""``commsim switch status``: what a running switch says of its jobs, slots and counters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commsim.cli.flags import DefaultOf, flag, switched
from commsim.core.units import format_time
from commsim.report.answer import Answer, Facts, Lines, Table

from .serve import port_number

if TYPE_CHECKING:
    pass
from .all_reduce import Server

STATUS = ["job", "workers", "slots", "busy", "tensors", "waits for"]


class SwitchStatusConfig(Server):
    """All flags of ``commsim switch status``."""

    job: str = flag(
        default=DefaultOf("switch_model.live.session:ask_status.job"),
        metavar="NAME",
        help="job whose secret is used, where the switch has secrets",
    )
    json: bool = switched(help="print the whole status as JSON")


def run(config: SwitchStatusConfig) -> Answer:
    """Ask the switch."""
    from switch_model.live.session import ask_status

    job_status = ask_status(config.host, port_number(config.port), secret=config.secret_of(config.job), job=config.job)
    if config.json:
        return Answer([Lines(json.dumps(job_status, indent=2).splitlines(), is_file=True)])
    jobs = [*job_status["jobs"], *job_status.get("static_jobs", [])]
    table = Table(STATUS, [_row(job) for job in jobs], f"{len(jobs)} job{'s' * (len(jobs) != 1)}")
    return Answer([Facts(_facts(job_status)), table])


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
            f"{job.get('tensors', '-')}", ", ".join(f"rank {rank}" for rank in late) or "-"]  # fmt: skip
