"""``commsim place serve``: the HTTP service that schedulers ask."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import BackendError, InputError
from commsim.core.units import parse_size, parse_time

from ..switch.serve import port_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--cluster", required=True, metavar="cluster.toml", help="the cluster")
    add("--jobs", metavar="jobs.json", help="jobs that run already, with their placement (none)")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (127.0.0.1); others need --token-file")
    add("--port", type=int, default=0, metavar="N", help="0: any that is free (0)")
    add("--token-file", metavar="FILE", help="what clients must send as Authorization: Bearer; over plain HTTP it can "
        "be read on the way, so put TLS in front")  # fmt: skip
    add("--max-body", default="8MiB", metavar="SIZE", help="of a request (8MiB)")
    add("--head-timeout", default="5s", metavar="TIME", help="for the head of a request to arrive (5s)")
    add("--timeout", default="10s", metavar="TIME", help="for a body to arrive, or an answer to be taken (10s)")
    add("--gpu-resource", default="nvidia.com/gpu", metavar="NAME", help="resource that pods ask for (nvidia.com/gpu)")
    add("--min-score", type=float, metavar="S", help="filter out nodes whose score is below this (none)")
    add("--log", action="store_true", help="one line for each request, on standard error")


def main(args: argparse.Namespace) -> int:
    """Serve until told to stop by SIGINT or SIGTERM."""
    from commsim.placement.cluster import read_cluster

    _require_extra()
    from commsim.placement.service.guard import Limits
    from commsim.placement.service.placement_service import Desk, Preferences
    from commsim.placement.service.server import Listening, read_token, serve

    if args.min_score is not None and not args.min_score <= 1:
        raise InputError(f"--min-score is a score, at most 1, got {args.min_score}")
    token = read_token(args.token_file) if args.token_file else None
    body_bytes = int(parse_size(args.max_body, "--max-body"))
    if body_bytes < 1024:
        raise InputError(f"--max-body is at least 1KiB, or no request has room for a job, got {args.max_body}")
    seconds, head_time = _time(args.timeout, "--timeout"), _time(args.head_timeout, "--head-timeout")
    host = "127.0.0.1" if args.host == "localhost" else args.host
    limits = Limits(token, body_bytes, seconds)
    listening = Listening(host, port_number(args.port, 0), limits, head_time, args.log)
    cluster = read_cluster(args.cluster)
    desk = Desk(cluster, Preferences(args.gpu_resource, args.min_score))
    if args.jobs:
        desk.load(_rows(args.jobs), args.jobs)
    desk.warm_up()

    def started(address: str, port: int) -> None:
        shown = f"[{address}]" if ":" in address else address
        print(f"# serving on http://{shown}:{port}: {cluster.network.name}, {len(desk.state.seats)} hosts, "
              f"{int(cluster.free.sum())} GPUs; /docs describes it", flush=True)  # fmt: skip

    serve(desk, listening, started)
    return 0


def _rows(path: str) -> Any:
    from commsim.files.whole_files import read_any

    return read_any(path)


def _time(text: str, name: str) -> float:
    seconds = parse_time(text, name)
    if not 0.1 <= seconds <= 3600:
        raise InputError(f"{name} is from 100ms to 1h, got {text}")
    return seconds


def _require_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise BackendError(f"{error.name} is missing: pip install 'commsim[serve]'") from None
