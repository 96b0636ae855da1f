"""A watched job as Prometheus' text, and a server of it on this machine's own address.

References
----------
Prometheus, "Exposition formats": text format 0.0.4.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from commsim.core.errors import BackendError

from .check_log import BELOW
from .watched_job import UNKNOWN, SlowRail, WatchedSeries

LOOPBACK, PAGE = "127.0.0.1", "/metrics"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
__all__ = ["prometheus_text", "serve_page"]


def prometheus_text(rows: Sequence[WatchedSeries], rails: Iterable[SlowRail], n_records: int, n_left_out: int) -> str:
    """Return all values of a job.

    Parameters
    ----------
    rows : sequence of WatchedSeries
        Its communicators, operations and sizes.
    rails : iterable of SlowRail
        Its rails.
    n_records, n_left_out : int
        Records that were read, and lines and files of another kind.
    """
    known = [row for row in rows if row.verdict != UNKNOWN]
    lines = [
        *_metric("commsim_measured_busbw_bytes_per_second", "Median bus bandwidth of the last calls.",
                 [(_labels(row), row.measured) for row in rows]),
        *_metric("commsim_expected_busbw_bytes_per_second", "Bus bandwidth that the machines should reach.",
                 [(_labels(row), row.expected) for row in known]),
        *_metric("commsim_floor_busbw_bytes_per_second", "Bus bandwidth that few healthy machines do not reach.",
                 [(_labels(row), row.floor) for row in known]),
        *_metric("commsim_busbw_ratio", "Measured over expected bus bandwidth.",
                 [(_labels(row), row.ratio) for row in known]),
        *_metric("commsim_below_floor", "Whether the measured bus bandwidth is below the floor.",
                 [(_labels(row), float(row.verdict == BELOW)) for row in known]),
        *_metric("commsim_late_rank_share", "Part of the calls in which the others wait for this rank.",
                 [(_late(row), row.late_share) for row in rows if row.late_rank >= 0]),
        *_metric("commsim_rail_ratio", "Median ratio of the communicators that are on one rail.",
                 [(f'rail="{one.rail}"', one.ratio) for one in rails]),
        *_metric("commsim_records_total", "Records that were read.", [("", float(n_records))], "counter"),
        *_metric("commsim_left_out_total", "Lines and files of another kind.", [("", float(n_left_out))], "counter"),
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def serve_page(port: int, text: Callable[[], str]) -> ThreadingHTTPServer:
    """Serve the page on this machine's own address, from a thread; ``shutdown`` ends it.

    Parameters
    ----------
    port : int
        Port; 0 for any free one.
    text : callable
        Function that returns the page.

    Raises
    ------
    BackendError
        If the port is taken.
    """

    class Page(BaseHTTPRequestHandler):
        """The page, and nothing else."""

        timeout = 30  # of a client that asks for nothing

        def do_GET(self) -> None:
            """Answer one request."""
            body = text().encode("utf-8", "backslashreplace") if self.path == PAGE else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", CONTENT)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            """Say nothing of each request."""

    try:
        server = ThreadingHTTPServer((LOOPBACK, port), Page)
    except OSError as error:
        raise BackendError(f"port {port} of {LOOPBACK} cannot be had: {error.strerror}") from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _metric(name: str, what: str, values: Sequence[tuple[str, float]], kind: str = "gauge") -> list[str]:
    """Return the lines of one metric; none where it has no value."""
    if not values:
        return []
    lines = [f"{name}{{{labels}}} {value:.10g}" if labels else f"{name} {value:.10g}" for labels, value in values]
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}", *lines]


def _labels(row: WatchedSeries) -> str:
    values = {
        "communicator": row.communicator, "comm_name": row.name, "nranks": row.n_ranks, "n_nodes": row.n_nodes,
        "operation": row.operation, "size_class": f"{_power(row.size)}",
    }  # fmt: skip
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in values.items())


def _late(row: WatchedSeries) -> str:
    return f'{_labels(row)},rank="{row.late_rank}",host="{_escaped(row.late_host)}"'


def _power(size: float) -> int:
    """Return the power of two that a size is in: the label of a series must not change from call to call."""
    return 1 << (int(size).bit_length() - 1)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
