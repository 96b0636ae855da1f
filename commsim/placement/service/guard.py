"""ASGI middleware: token, web pages kept out, limit of body size, timeouts, log."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/healthz",)
FAULT = "an error of the service; see its log"
_HELD_BODIES = 8  # as many full bodies may be in memory at once
_DRAIN_TIME = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may do.

    Parameters
    ----------
    token : str or None
        That must come as ``Authorization: Bearer``; ``/healthz`` is open.
    body_bytes : int
        Of a request's body, whether it is announced or comes in chunks.
    seconds : float
        For a body to arrive, and again for each part of the answer to be taken.
    """

    token: str | None = None
    body_bytes: int = 8 * 2**20
    seconds: float = 10.0


class Refusal(Exception):  # noqa: N818  # an answer, not a fault of ours
    """A request that is answered with a status and one line.

    Parameters
    ----------
    status : int
        Of HTTP, 4xx or 503.
    message : str
        What was wanted and what came.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """Reads whole bodies within the limits, and hands requests on; answers what is refused, and what fails, in JSON.

    Parameters
    ----------
    app : ASGI application
        What answers good requests.
    limits : Limits
        What a client may do.
    log : bool
        Whether to write one line for each request on standard error.
    observe : callable
        Called with path, status and seconds of each request that was answered.
    """

    def __init__(
        self, app: App, limits: Limits, log: bool = False, observe: Callable[[str, int, float], None] | None = None
    ) -> None:
        self._app, self._limits, self._log, self._observe = app, limits, log, observe
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        start, status, held = time.perf_counter(), 0, 0

        async def timed_send(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            async with asyncio.timeout(self._limits.seconds):
                await send(message)

        try:
            self._check_token(scope)
            self._check_sender(scope)
            body = await self._body(scope, receive)
            held = len(body)
            await self._app(scope, _once(body), timed_send)
        except Refusal as refusal:
            if status == 0:
                await self._drain(scope, receive)
                await _answer(timed_send, refusal.status, str(refusal))
        except TimeoutError:
            status = status or 408  # the client takes no bytes; uvicorn closes the connection
            raise
        except Exception:
            traceback.print_exc()
            if status == 0:
                await _answer(timed_send, 500, FAULT)
        finally:
            self._held -= held
            seconds = time.perf_counter() - start
            if self._observe is not None:
                self._observe(str(scope["path"]), status, seconds)
            if self._log:
                took = seconds * 1e3
                client = (scope.get("client") or ("-",))[0]
                path = scope.get("raw_path", b"").decode("ascii", "replace")
                print(f"{client} {scope['method']} {path} {status} {took:.1f}ms {held}B", file=sys.stderr, flush=True)

    def _check_token(self, scope: Scope) -> None:
        if self._limits.token is None or scope["path"] in OPEN_PATHS:
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        kind, _, token = given.partition(b" ")
        right = hmac.compare_digest(token.strip(), self._limits.token.encode())
        if kind.lower() != b"bearer" or not right:
            raise Refusal(401, "the header Authorization: Bearer TOKEN is " + ("wrong" if given else "missing"))

    def _check_sender(self, scope: Scope) -> None:
        """Refuse what a web page in a browser of this machine can send; only a token would tell it apart otherwise.

        A page may post text unasked, names its own origin, and may give its own name our address (DNS rebinding).
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
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            raise Refusal(415, f"without --token-file, Content-Type is application/json, got {kind!r}")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body within the limits; its bytes count as held until the request is answered."""
        limit = self._limits.body_bytes
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > limit:
            raise Refusal(413, f"a body has at most {limit} bytes, this one {int(announced)}")
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(self._limits.seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the connection ended before the body")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    if len(body) + len(part) > limit:
                        raise Refusal(413, f"a body has at most {limit} bytes, this one more")
                    if self._held + len(part) > _HELD_BODIES * limit:
                        raise Refusal(503, "too many large requests at once; try again")
                    self._held += len(part)
                    body += part
        except BaseException as error:
            self._held -= len(body)
            if isinstance(error, TimeoutError):
                raise Refusal(408, f"a body must arrive within {self._limits.seconds:g} s") from None
            raise
        return bytes(body)

    async def _drain(self, scope: Scope, receive: Receive) -> None:
        """Take a little more of what the client is sending, since many read the answer only after that."""
        if b"expect" in dict(scope["headers"]):
            return
        left = 4 * self._limits.body_bytes
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(_DRAIN_TIME, self._limits.seconds)):
                while left > 0:
                    message = await receive()
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
                    left -= len(message.get("body", b""))


def _is_loopback(host: str) -> bool:
    """Whether the value of a Host header, with its port, is ``localhost`` or a loopback address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _once(body: bytes) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


async def _answer(send: Send, status: int, message: str) -> None:
    body = json.dumps({"error": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"connection", b"close")]  # fmt: skip
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
