"""HTTP server (uvicorn): address, token, start and end."""

from __future__ import annotations

import contextlib
import copy
import functools
import ipaddress
import json
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from commsim.core.errors import InputError
from commsim.core.files.opening import read_regular

from .application import application
from .guard import Guard
from .limits import LOOPBACK, MAX_CONNECTIONS, Limits
from .metrics import Metrics
from .placement_service import PlacementService

UNIX = "unix:"
_SHORTEST_TOKEN = 16
MAX_TOKEN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to listen, and what for.

    Parameters
    ----------
    host : str
        An address of this machine, or ``unix:PATH``.
    port : int
        Number of the port, 0 for any.
    limits : Limits
        What clients may do.
    log : bool
        Whether to write one line for each request on standard error.
    """

    host: str = LOOPBACK
    port: int = 0
    limits: Limits = field(default_factory=Limits)
    log: bool = False

    def __post_init__(self) -> None:
        if self.host.startswith(UNIX):
            return
        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            raise InputError(
                f"--host is an address to listen on, such as 127.0.0.1, or unix:PATH, got {self.host!r}"
            ) from None
        if not address.is_loopback and self.limits.token is None:
            raise InputError(
                f"{self.host} can be reached from other machines: give --token-file, or listen on 127.0.0.1"
            )


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


def serve(service: PlacementService, listening: Listening, started: Callable[[str], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; then let those under way end, and return.

    Parameters
    ----------
    service : PlacementService
        Does the work.
    listening : Listening
        Address and limits.
    started : function of str
        Called with the URL when requests can be sent.

    Raises
    ------
    InputError
        If the address cannot be listened on.
    """
    with bound(listening.host, listening.port) as listener:
        try:
            server = server_of(service, listening)
            # uvicorn raises a signal again when it has ended, which would be an error here
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, server.handle_exit)
            started(url_of(listener))
            server.run(sockets=[listener])
        finally:
            service.close()


def server_of(service: PlacementService, listening: Listening) -> uvicorn.Server:
    """Return a server that is to run on a socket of :func:`bound`; it stops when ``should_exit`` is set."""
    metrics = Metrics(service)
    if listening.log:
        service.tell = functools.partial(print, file=sys.stderr, flush=True)
    guard = Guard(application(service, metrics, listening.limits), listening.limits, metrics.observe)
    config = uvicorn.Config(
        guard, http=_Connection, ws="none", lifespan="off", log_config=_log_config(), access_log=listening.log,
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=5, timeout_keep_alive=75,
    )  # fmt: skip
    server = uvicorn.Server(config)
    guard.n_connections = lambda: len(server.server_state.connections)  # uvicorn's own refusal is no JSON
    return server


class _Connection(H11Protocol):
    """A connection with one answer to a request whose body turns out to be no HTTP.

    Uvicorn refuses the body and lets the application answer as well, which is a traceback in the log.
    """

    def send_400_response(self, msg: str) -> None:
        """Say as JSON that the request is no HTTP, unless it has its answer; then nothing more is sent."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": msg}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", f"{len(body)}"),
                ("connection", "close"),
            ]
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()
        else:
            self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()


def _log_config() -> dict[str, Any]:
    """Return uvicorn's own, with requests and errors on standard error, and nothing else."""
    config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["uvicorn.error"]["level"] = "ERROR"
    return config


def url_of(listener: socket.socket) -> str:
    """Return what clients ask."""
    if listener.family == socket.AF_UNIX:
        return f"{UNIX}{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket on an address, or at a path, where its owner and their group can reach it; it listens already.

    Raises
    ------
    InputError
        If that is not possible.
    """
    path = Path(host.removeprefix(UNIX)) if host.startswith(UNIX) else None
    family = socket.AF_UNIX if path else socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is; with it an answer takes 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, 0 if path else socket.IPPROTO_TCP) as listener:
        try:
            if path is None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((host, port))
            else:
                _remove_socket(path)
                listener.bind(str(path))
                path.chmod(0o660)
            listener.listen(MAX_CONNECTIONS)
        except (OSError, OverflowError) as error:
            where = path or f"{host}, port {port}"
            raise InputError(f"cannot listen on {where}: {getattr(error, 'strerror', None) or error}") from None
        try:
            yield listener
        finally:
            if path is not None:
                _remove_socket(path)


def _remove_socket(path: Path) -> None:
    """Remove the socket of a service that has ended; what is no socket stays."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
