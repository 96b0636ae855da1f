"""Requests at the placement service: damaged heads and bodies, sent byte by byte over loopback by some threads."""

from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from commsim.core.interrupts import signals_held

from .corpus import ANSWERS
from .draws import damaged
from .trials import Defect

THREADS = 4
# Time for an answer, s; and memory of the service, bytes.
LIMIT_S, MAX_MEMORY = 60.0, 500e6
# Time without another byte after which an answer is taken as whole, s.
QUIET_S = 1.0
_JOB = {"gpus": 2, "iter_time_ms": 200.0, "phases": [{"offset_ms": 0.0, "dur_ms": 100.0, "rate_Gbps": 40.0}]}
_KEPT = {**_JOB, "job": "kept", "placement": ["h0", "h1"]}
_POD = {
    "metadata": {"name": "pod", "annotations": {"commsim/job": json.dumps({**_JOB, "job": "new"})}},
    "spec": {"containers": [{"name": "w", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
_BODIES: tuple[tuple[bytes, Any], ...] = (
    (b"POST /prioritize", {"Pod": _POD, "NodeNames": ["h0", "h3"]}),
    (b"POST /filter", {"Pod": _POD, "Nodes": {"items": [{"metadata": {"name": "h2"}}]}}),
    (b"POST /place", {"jobs": [{**_JOB, "job": "new"}], "candidates": 1, "seed": 3}),
    (
        b"POST /place",
        {
            "jobs": [{**_JOB, "job": "new", "placed": ["h1"], "start_ms": 5.0}],
            "check": False,
            "fail": ["links:1"],
            "scale": ["links:10%=0.5"],
            "rank_by": "mean",
            "candidates": 2,
        },
    ),
    (b"POST /jobs", {"jobs": [{**_JOB, "job": "drawn", "placement": ["h4", "h5"]}]}),
    (b"DELETE /jobs/drawn", None),
    (b"GET /jobs", None),
    (b"GET /metrics", None),
    (b"GET /healthz", None),
    (b"GET /schema", None),
)
_HEADS = (
    b"Host: a, b", b"Content-Length: 3", b"Content-Length: 0x10", b"Content-Length: -0", b"Transfer-Encoding: chunked",
    b"Content-Type: application/xml", b"Accept: \xfe", b"Origin: http://localhost", b"Expect: 200-ok", b"\t: x",
    b"Z:" + b"z" * 9000, b"Range: bytes=0-", b"Content-Encoding: br", b"Connection: keep-alive", b"Host: localhost",
    b"If-Match: *", b"Authorization: Basic !",
)  # fmt: skip
# Texts of an answer, and numbers that JSON does not have.
TEXT, NO_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"'), re.compile(rb"NaN|Infinity")


def drawn(seed: int, number: int) -> bytes:
    """Return the bytes of a request."""
    draw = random.Random(f"{seed} requests {number}")
    first, tree = draw.choice(_BODIES)
    body = b"" if tree is None else json.dumps(tree).encode()
    if body and draw.random() < 0.7:
        body = damaged(draw, body, draw.choice(_HEADS) + body)
    lines = [
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        b"Connection: close",
    ]
    if draw.random() < 0.3:
        lines.insert(draw.randrange(4), draw.choice(_HEADS))
    if draw.random() < 0.1:
        lines.pop(draw.randrange(3))
    head = first + b" HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n"
    return (damaged(draw, head, body or head) if draw.random() < 0.2 else head) + body


def attack(seed: int, numbers: range) -> Iterator[Defect]:
    """HTTP requests to a placement service of its own; no job that is kept may be lost."""
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, "-m", "commsim", "place", "serve", "--port", "0", "--timeout", "2s",
                   "--cluster", str(ANSWERS / "inputs" / "cluster.toml")]  # fmt: skip
        with (Path(name) / "err").open("w+b") as err, (Path(name) / "out").open("w+b") as out:
            service, pool = None, ThreadPoolExecutor(THREADS)
            try:
                with signals_held():  # one that ends us before the service has a name would leave it
                    service = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
                port = _port(Path(name), service)
                _asked(port, _request("POST /jobs", {"jobs": [_KEPT]}))
                tried = pool.map(lambda number: (number, _wrong(port, drawn(seed, number))), numbers)
                for number, problem in tried:
                    if problem:
                        yield Defect("requests", number, problem, repr(drawn(seed, number)[:300]))
                kept = _asked(port, _request("GET /jobs", None))
                if b'"kept"' not in kept:
                    yield Defect("requests", numbers.stop, f"the job that was there is lost: {kept[-300:]!r}")
                peak = _peak(service.pid)
                if peak > MAX_MEMORY:
                    yield Defect("requests", numbers.stop, f"the service took {peak / 1e6:.0f} MB")
                print(f"requests: the service took {peak / 1e6:.0f} MB at most", file=sys.stderr)
            finally:
                pool.shutdown(cancel_futures=True)  # else all that is left is asked first
                if service is not None:
                    service.terminate()
                    status = service.wait(LIMIT_S)
            err.seek(0)
            said = err.read()
            if b"Traceback" in said or status not in (0, 143, -15):
                yield Defect("requests", numbers.stop, f"the service ended with {status}: {said[-600:]!r}")


def _port(folder: Path, service: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 10 * LIMIT_S
    while service.poll() is None and time.monotonic() < deadline:
        for word in ((folder / "out").read_text() + (folder / "err").read_text()).replace("/", " ").split():
            if word.startswith("127.0.0.1:"):
                return int(word.partition(":")[2].rstrip(",.;:"))
        time.sleep(0.1)
    raise RuntimeError((folder / "err").read_text())


def _peak(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _request(first: str, tree: Any) -> bytes:
    body = b"" if tree is None else json.dumps(tree).encode()
    return (f"{first} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Connection: close\r\n\r\n").encode() + body  # fmt: skip


def _asked(port: int, request: bytes) -> bytes:
    """Return what comes until the other side closes, or says nothing more as it waits for the next request.

    A request whose end is missing is ended by us, but not sooner: who closes takes no answer that needs a search.
    """
    parts, deadline = list[bytes](), time.monotonic() + LIMIT_S
    with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), LIMIT_S) as connection:
        connection.sendall(request)
        if b"\r\n\r\n" not in request:
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(QUIET_S)
        while True:
            try:
                part = connection.recv(65536)
            except TimeoutError:
                if parts:
                    break
                if time.monotonic() > deadline:
                    raise
                continue
            if not part:
                break
            parts.append(part)
    return b"".join(parts)


def _wrong(port: int, request: bytes) -> str:
    began = time.monotonic()
    try:
        answer = _asked(port, request)
    except TimeoutError:
        return f"no answer within {time.monotonic() - began:.0f} s"
    statuses = [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
    if any(not 100 <= status < 500 for status in statuses):
        return f"statuses {statuses}: {answer[-300:]!r}"
    if 200 in statuses and NO_NUMBER.search(TEXT.sub(b'""', answer)):  # texts quote what was sent
        return f"a number that is none: {answer[-300:]!r}"
    return ""
