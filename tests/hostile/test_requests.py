"""Damaged heads and bodies at the placement service: refused with 4xx, or answered; never a fault, no job is lost."""

import contextlib
import json
import random
import time

import pytest
from fuzzing import ATTACKS, LIMIT_S, SEED, TIMES, mutated
from place_service import pod, row, running

OLD = row("old", 2, placement=["h0", "h1"])
ARGS = {"Pod": pod(row()), "NodeNames": ["h0", "h3"]}
BODIES = {
    "/prioritize": ARGS,
    "/filter": {"Pod": pod(row("pod"), labels={"job-name": "old"}), "Nodes": {"items": [{"metadata": {"name": "h2"}}]}},
    "/place": {"jobs": [row()], "candidates": 1, "seed": 3},
    "/jobs": {"jobs": [row("drawn", 2, placement=["h4", "h5"])]},
}
HEADS = (
    b"Host: evil.example", b"Host:", b"Host: [::1", b"Origin: null", b"Content-Length: 5", b"Content-Length: -1",
    b"Content-Length: 99999999999999999999", b"Content-Length: 1, 1", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked", b"Content-Type: text/plain", b"Expect: 100-continue", b"Upgrade: websocket",
    b"Connection: upgrade", b"Authorization: Bearer \xff", b"X: " + b"y" * 70_000, b" folded: line", b": nameless",
    b"X\x00Y: z", b"Content-Encoding: gzip",
)  # fmt: skip
METHODS = (b"POST", b"GET", b"DELETE", b"PUT", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"\xff", b"POST" * 5000)
PATHS = (b"/prioritize", b"/jobs/", b"/jobs/%00", b"/jobs/..%2f..", b"//evil", b"*", b"http://evil/jobs", b"/%",
         b"/\xff", b"/jobs/" + b"a" * 9000, b"/docs", b"/openapi.json")  # fmt: skip


def drawn_request(rng):
    """Return the bytes of a request that is right but for a few damages, of its head, its body or both."""
    path, tree = rng.choice(list(BODIES.items()))
    body = json.dumps(tree).encode()
    if rng.random() < 0.7:
        body = mutated(rng, body)
    method, where = b"POST", path.encode()
    length = b"Content-Length: %d" % len(body)
    lines = [b"Host: localhost", b"Content-Type: application/json", length, b"Connection: close"]
    kind = rng.randrange(6)
    if kind == 0:
        method = rng.choice(METHODS)
    elif kind == 1:
        where = rng.choice(PATHS)
    elif kind == 2:
        lines.insert(rng.randrange(4), rng.choice(HEADS))
    elif kind == 3:
        lines.pop(rng.randrange(3))
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (method, where, b"\r\n".join(lines))
    return mutated(rng, head) + body if kind == 4 else head + body


def answered(listener):
    """Return what comes until the other side closes, or says nothing: the head has no end, or the next one may come."""
    parts, deadline = b"", time.monotonic() + LIMIT_S
    listener.settimeout(0.5)
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < deadline:
            try:
                part = listener.recv(65536)
            except TimeoutError:
                break
            if not part:
                break
            parts += part
    return parts


def statuses(answer):
    """Return the statuses of all answers of a connection; a damaged head can make two requests of one."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.fixture(scope="module")
def service():
    with running(seconds=0.1) as service:
        yield service


def test_damaged_requests_are_refused_or_answered_and_no_job_is_lost(service, capfd):
    rng, wrong = random.Random(f"{SEED} requests"), []
    assert service.ask("POST", "/jobs", {"jobs": [OLD]})[0] == 200
    for _ in range(60 * TIMES):
        ATTACKS["requests"] += 1
        request, answer, start = drawn_request(rng), b"", time.monotonic()
        with contextlib.suppress(ConnectionError), service.connect() as listener:
            listener.sendall(request)  # what is refused before all of it has been sent is reset
            answer = answered(listener)
        took, found = time.monotonic() - start, statuses(answer)
        if took > LIMIT_S or any(not 100 <= status < 500 for status in found):
            wrong.append((took, found, request[:500]))
    jobs = {job["job"] for job in service.ask("GET", "/jobs")[1]["jobs"]}
    assert not wrong, wrong[:3]
    assert "old" in jobs
    assert "Traceback" not in capfd.readouterr().err
