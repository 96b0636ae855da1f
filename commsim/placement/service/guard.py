"""ASGI middleware: token, web pages kept out, time limit of bodies."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from .limits import HELD_BODIES, MAX_CONNECTIONS, Limits

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/healthz",)
FAULT = "an error of the service; see its log"


class Refusal(Exception):  # noqa: N818  # an answer, not a fault of ours
    """A request that is answered with a status and one line.

    Parameters
    ----------
    status : int
        Status of HTTP, 4xx or 503.
    message : str
        What was wanted and what came.
    retry_after : int, s, optional
        When to ask again.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {} if self.retry_after is None else {"Retry-After": f"{self.retry_after}"}


class Guard:
    """Hands on requests of those who may ask, and refuses the others before anything of a body is read.

    Parameters
    ----------
    app : ASGI application
        What answers good requests.
    limits : Limits
        What a client may do.
    observe : callable
        Called with path, status and seconds of each request.
    n_connections : callable, optional
        How many connections there are; beyond `MAX_CONNECTIONS` requests are refused.
    """

    def __init__(
        self,
        app: App,
        limits: Limits,
        observe: Callable[[str, int, float], None],
        n_connections: Callable[[], int] | None = None,
    ) -> None:
        self._app, self._limits, self._observe = app, limits, observe
        self.n_connections = n_connections
        self._held = 0  # bytes of bodies whose requests are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        start, status, held, seconds = time.perf_counter(), 0, 0, self._limits.seconds
        body_end = asyncio.get_running_loop().time() + seconds

        async def timed_receive() -> Message:
            nonlocal held
            try:
                async with asyncio.timeout_at(body_end):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"a body must arrive within {seconds:g} s") from None
            held += (size := len(message.get("body", b"")))
            self._held += size
            most = HELD_BODIES * self._limits.body_bytes
            if self._held > most and held > most // MAX_CONNECTIONS:  # each connection has its part of as much again
                raise HTTPException(503, "too many large requests at once; try again", {"Retry-After": "1"})
            return message

        async def watched_send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            if self.n_connections is not None and self.n_connections() > MAX_CONNECTIONS:
                raise Refusal(503, f"more than {MAX_CONNECTIONS} connections; try again", retry_after=1)
            self._check_token(scope)
            self._check_sender(scope)
            await self._app(scope, timed_receive, watched_send)
        except Refusal as refusal:
            await _answer(watched_send, refusal)
        finally:
            self._held -= held
            self._observe(str(scope["path"]), status, time.perf_counter() - start)

    def _check_token(self, scope: Scope) -> None:
        if self._limits.token is None or scope["path"] in OPEN_PATHS:
            return
        header = dict(scope["headers"]).get(b"authorization", b"")
        kind, _, token = header.partition(b" ")
        right = hmac.compare_digest(token.strip(), self._limits.token.encode())
        if kind.lower() != b"bearer" or not right:
            raise Refusal(401, "the header Authorization: Bearer TOKEN is " + ("wrong" if header else "missing"))

    def _check_sender(self, scope: Scope) -> None:
        """Refuse what a web page in a browser of this machine can send; only a token would tell it apart otherwise.

        A page names its own origin, and may give its own name our address (DNS rebinding). What it may post unasked is
        no JSON by its Content-Type, which FastAPI refuses.
        """
        if self._limits.token is not None:
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not _is_loopback(host):
            raise Refusal(403, f"without --token-file, Host is an address of this machine's loopback, got {host!r}")
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refusal(403, f"without --token-file, requests from web pages are refused, got Origin {origin!r}")


def _is_loopback(host: str) -> bool:
    """Whether the value of a Host header, with its port, is ``localhost`` or a loopback address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _answer(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"error": str(refusal)}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close")]  # fmt: skip
    headers += [(name.lower().encode(), value.encode()) for name, value in refusal.headers.items()]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
