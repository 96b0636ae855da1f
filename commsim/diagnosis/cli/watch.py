"""``commsim watch FILE|DIR``: a running job's communicators beside what they should reach, as a table and a page."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from commsim.cli.flags import TOPOLOGY, Verb, WithJson, flag
from commsim.core.errors import InputError
from commsim.core.units import count_text, format_size, parse_time, share
from commsim.report.answer import Answer, Part, Table, comments

from .expect import FALSE_ALARMS

if TYPE_CHECKING:
    from commsim.diagnosis.watched_job import SlowRail, WatchedJob, WatchedSeries

EXAMPLES = {
    "watch": """
        commsim watch examples/inspector --topology hgx-h100
        commsim watch examples/inspector --topology hgx-h100 --json -
        commsim watch examples/inspector --topology hgx-h100 --false-alarms 5%
        commsim watch examples/inspector --topology hgx-h100@star:machines=2 --csv watched.csv
        commsim watch examples/inspector --topology hgx-h100 --port 0 --during 1s""",
}
COLUMNS = ["communicator", "operation", "size", "calls", "GB/s", "expected", "ratio", "verdict", "late rank"]
SHOWN = 40


class WatchConfig(WithJson):
    """All flags of ``commsim watch``."""

    path: str = flag(
        "path", metavar="FILE|DIR", help="lines of NCCL's inspector, or records of PyTorch's flight recorder"
    )
    topology: str = flag(required=True, metavar=TOPOLOGY, help="machines on a fabric, or one machine such as dgx-h100")
    collective: str | None = flag(metavar="NAME", help="library with its release, such as nccl:version=2.27")
    false_alarms: str = flag(
        default=FALSE_ALARMS,
        metavar="RATE",
        help="share of healthy machines that are below the floor of a size",
    )  # fmt: skip
    port: int | None = flag(
        metavar="N", help="follow the records, and serve http://127.0.0.1:N/metrics to Prometheus; 0: any free port"
    )
    interval: str = flag(default="1s", metavar="TIME", help="with --port: interval between reads of the files")
    during: str | None = flag(metavar="TIME", help="with --port: end after this time (default: on Ctrl-C or SIGTERM)")


def run(config: WatchConfig) -> Answer:
    """Hold the records against what the machines should reach, once or until the end."""
    from commsim.diagnosis.live_expectations import LiveExpectations
    from commsim.diagnosis.machines_asked import check_rate
    from commsim.diagnosis.watched_job import WatchedJob

    rate = share(config.false_alarms, "--false-alarms")
    check_rate(rate)
    if config.port is None and (flags := config.given("interval", "during")):
        raise InputError(f"{flags[0]} goes with --port N")
    job = WatchedJob.of_path(config.path, LiveExpectations(config.topology, rate, config.collective))
    if config.port is not None:
        _follow(config, job)
    job.read(is_end=True)
    job.require_records()
    rows = job.rows()
    rails = job.rails(rows)
    below = sum(row.verdict == "below" for row in rows)
    n_records = job.communicators.n_records
    said = f"{below} of {count_text(len(rows), 'series', 'series')} below the floor, {n_records} records"
    parts: list[Part] = [table_of_job(rows[:SHOWN], config.path), *comments([said, *_about(rows, rails, job)])]
    more = {"n_records": n_records, "n_left_out": job.files.n_left_out,
            "rails": [one._asdict() for one in rails]}  # fmt: skip
    return Answer(parts, [row.row() for row in rows], more=more, code=int(below > 0 and config.port is None))


def table_of_job(rows: list[WatchedSeries], path: str) -> Table:
    """Return the table of a job's communicators.

    Parameters
    ----------
    rows : list of WatchedSeries
        Communicators, operations and sizes.
    path : str
        Where their records come from.
    """
    cells = [
        [
            row.name or row.communicator, row.operation, format_size(row.size), f"{row.n_calls}",
            f"{row.measured / 1e9:.4g}", f"{row.expected / 1e9:.4g}" if row.expected else "-",
            f"{row.ratio:.2f}" if row.expected else "-", row.verdict,
            f"{row.late_rank} {row.late_host}".strip() if row.late_rank >= 0 else "",
        ]
        for row in rows
    ]  # fmt: skip
    return Table(COLUMNS, cells, f"{path}: bus bandwidth of the last calls", least=["calls"])


def _about(rows: list[WatchedSeries], rails: list[SlowRail], job: WatchedJob) -> list[str]:
    """Return what stands below the table: rails, why something is not known, and what is left out."""
    lines = []
    if len(rails) > 1:
        lines.append("rails: " + ", ".join(f"{one.rail} {one.ratio:.2f}" for one in rails) + " of what is expected")
    unknown = [row.why for row in rows if row.why]
    if unknown:
        lines.append(f"{count_text(len(unknown), 'series', 'series')} without expectation: {unknown[0]}")
    if len(rows) > SHOWN:
        lines.append(f"the {SHOWN} lowest of {len(rows)}; --csv - has all")
    dropped = job.communicators.n_dropped
    return lines + ([f"{dropped} records left out: too many communicators, operations and sizes"] if dropped else [])


def _follow(config: WatchConfig, job: WatchedJob) -> None:
    """Serve the page until the end; the files are looked at in between."""
    from commsim.diagnosis.prometheus_page import LOOPBACK, PAGE, prometheus_text, serve_page
    from commsim.live.cli.serve import port_number
    from commsim.report.terminal import announce

    wait = _time(config.interval, "--interval")
    left = float("inf") if config.during is None else _time(config.during, "--during")
    lock, over = threading.Lock(), threading.Event()

    def page() -> str:
        with lock:
            rows = job.rows()
            return prometheus_text(rows, job.rails(rows), job.communicators.n_records, job.files.n_left_out)

    server = serve_page(port_number(config.port or 0, 0), page)
    announce(f"serving http://{LOOPBACK}:{server.server_address[1]}{PAGE} until Ctrl-C")
    try:
        while left > 0:
            with lock:
                job.read()
            over.wait(min(wait, left))
            left -= wait
    finally:
        server.shutdown()
        server.server_close()


def _time(text: str, name: str) -> float:
    seconds = parse_time(text, name)
    if not 0.01 <= seconds <= 1e6:
        raise InputError(f"{name} is a time from 10ms on, got {text}")
    return seconds


COMMANDS = {"watch": Verb(WatchConfig, run)}
