"""HTTP server: address, token, timeouts, start and end.

One connection of the service: HTTP/1.1 as uvicorn speaks it, but slow heads of requests are cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import json
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from commsim.core.errors import InputError
from commsim.opening import check_regular, read_regular

from .application import application
from .guard import Guard, Limits
from .metrics import Metrics
from .placement_service import PlacementService


class TimedProtocol(H11Protocol):
    """Times the head of every request; the guard times its body, and uvicorn times idle connections.

    Attributes
    ----------
    head_time : float, s
        From the first byte of a request's head, or from the opening of the connection, to the end of the head.
    """

    head_time = 5.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.head_time, self._cut_off)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the timer runs as long as they are a part of a head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._timer is None and self.conn.trailing_data[0]:
            self._timer = self.loop.call_later(self.head_time, self._cut_off)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are no HTTP."""
        self._refuse(400, f"this is not a request: {msg}")

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._refuse(408, f"the head of a request must arrive within {self.head_time:g} s")

    def _refuse(self, status: int, message: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": message}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            events: list[Any] = [h11.Response(status_code=status, headers=headers), h11.Data(data=body)]
            for event in (*events, h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


_MAX_CONNECTIONS = 512
_SHORTEST_TOKEN = 16
MAX_TOKEN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, and what for.

    Parameters
    ----------
    host : str
        An address of this machine.
    port : int
        0 for any.
    limits : Limits
        What clients may do.
    head_time : float, s
        For the head of a request to arrive.
    log : bool
        Whether to write one line for each request on standard error.
    certificate, key : str, optional
        PEM files for TLS; the key may stand in the certificate's file.
    """

    host: str = "127.0.0.1"
    port: int = 0
    limits: Limits = field(default_factory=Limits)
    head_time: float = 5.0
    log: bool = False
    certificate: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        self._check_certificate()
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            raise InputError(f"--host is an address to listen on, such as 127.0.0.1, got {self.host!r}") from None
        if not address.is_loopback and self.limits.token is None:
            raise InputError(
                f"{self.host} can be reached from other machines: give --token-file, or listen on 127.0.0.1"
            )

    def _check_certificate(self) -> None:
        if self.certificate is None:
            if self.key is not None:
                raise InputError("--tls-key needs --tls-certificate")
            return
        for path in (self.certificate, self.key):
            if path is not None:
                check_regular(path)
        try:
            # An encrypted key would make OpenSSL ask at the terminal; an empty password makes it refuse.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            what = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
            raise InputError(
                f"{self.certificate}: not a certificate in PEM with its key, unencrypted: {what}"
            ) from None


def read_token(path: str | Path) -> str:
    """Read the token that clients must send.

    Raises
    ------
    InputError
        If the file is not one word of at least 16 printable ASCII characters.
    """
    try:
        token = read_regular(path, MAX_TOKEN_BYTES).decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if len(token) < _SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise InputError(f"{path}: a token is one word of at least {_SHORTEST_TOKEN} printable ASCII characters")
    return token


def serve(service: PlacementService, listening: Listening, started: Callable[[str, int], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; then let those under way end, and return.

    Parameters
    ----------
    service : PlacementService
        Does the work.
    listening : Listening
        Where, and what for.
    started : function of (str, int)
        Called with address and port as soon as requests are answered.

    Raises
    ------
    InputError
        If the address cannot be listened on.
    """
    with bound(listening.host, listening.port) as listener:
        try:
            server_of(service, listening, lambda: started(*listener.getsockname()[:2])).run(sockets=[listener])
        finally:
            service.close()


def server_of(service: PlacementService, listening: Listening, started: Callable[[], None]) -> uvicorn.Server:
    """Return a server that is to run on a socket of :func:`bound`; it stops when ``should_exit`` is set."""
    protocol = type("Protocol", (TimedProtocol,), {"head_time": listening.head_time})
    metrics = Metrics(service)
    if listening.log:
        service.tell = functools.partial(print, file=sys.stderr, flush=True)
    guard = Guard(application(service, metrics), listening.limits, listening.log, metrics.observe)
    config = uvicorn.Config(
        guard, http=protocol, ws="none", lifespan="off", loop="asyncio",
        log_config=None, log_level="critical", access_log=False, server_header=False, proxy_headers=False,
        ssl_certfile=listening.certificate, ssl_keyfile=listening.key,
        timeout_keep_alive=75, timeout_graceful_shutdown=5, limit_concurrency=_MAX_CONNECTIONS,
    )  # fmt: skip
    return _Server(config, started)


class _Server(uvicorn.Server):
    """Says when it has started, and takes signals without raising them again."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._say_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        is_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        before = [signal.signal(number, self.handle_exit) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Open a TCP socket on an address.

    Raises
    ------
    InputError
        If that is not possible.
    """
    family: Any = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is; with it an answer takes 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            raise InputError(f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', error)}") from None
        yield listener
