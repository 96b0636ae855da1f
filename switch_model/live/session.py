"""A worker's side of the control server: joining a job, agreeing on tensors, and learning that something has failed."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from commsim.core.errors import BackendError, InputError

from .authentication import LineSeal, new_nonce
from .control_messages import MAX_FROM_SWITCH, LineReader, read_line, whole_field, write_line

# Seconds between two attempts to reach a switch that is not up yet.
PAUSE = 0.1


def _connection(host: str, port: int, timeout: float, until: float) -> socket.socket:
    """Connect; where nothing listens, again until a time: workers are often started together with their switch."""
    while True:
        try:
            return socket.create_connection((host, port), timeout)
        except ConnectionRefusedError:
            if time.monotonic() >= until:
                raise
            time.sleep(PAUSE)


class Session:
    """A connection to the control server of a switch, until it is closed.

    Parameters
    ----------
    host, port
        Address of the switch's control server.
    timeout : float, s
        Timeout for connecting, and for whatever the switch should answer at once.
    patience : float, s
        How long to try again where nothing listens.
    secret, job : str
        Secret that the switch asks for, and the job that has it; empty where switch and workers have none.

    Attributes
    ----------
    socket : socket
        The connection.
    hello : dict
        What the switch says of itself.
    switch : (str, int)
        Address that its packets go to.

    Raises
    ------
    BackendError
        Without a switch.
    """

    def __init__(
        self, host: str, port: int, timeout: float = 5.0, patience: float = 0.0, secret: str = "", job: str = ""
    ) -> None:
        self._where, self._messages = f"{host}, port {port}", list[dict[str, Any]]()
        self._reader, self._sending = LineReader(MAX_FROM_SWITCH), threading.Lock()
        self._waited_for: list[int] = []
        self._first_line, self._seal = b"", None  # type: bytes, LineSeal | None
        until = time.monotonic() + patience
        try:
            self.socket = _connection(socket.gethostbyname(host), port, timeout, until)  # IPv4
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise BackendError(f"no switch answers at {self._where}: {why}") from None
        self._closed = threading.Event()
        self._alive: threading.Thread | None = None
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.hello = self.answer("switch", timeout)
            self.switch: tuple[str, int] = self.socket.getpeername()[0], fact(self.hello, "port", 1, 65535)
            self._agree(secret, job)
        except (BackendError, OSError):
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._closed.set()
        if self._alive is not None:
            self._alive.join()
        self.socket.close()

    def say(self, message: Mapping[str, Any]) -> None:
        """Send a message; that the switch has gone is found out when it is listened to."""
        with self._sending, contextlib.suppress(OSError):
            line = write_line(message)
            self.socket.sendall(self._seal.sealed(line) if self._seal else line)

    def stay_alive(self) -> None:
        """Tell the switch from now on, whatever the caller does, that this process lives."""
        period = float(self.hello["worker_timeout_s"]) / 4

        def repeat() -> None:
            while not self._closed.wait(period):
                self.say({"do": "alive"})

        self._alive = threading.Thread(target=repeat, name="commsim-alive", daemon=True)
        self._alive.start()

    def answer(self, key: str, timeout: float) -> dict[str, Any]:
        """Wait for the message that has this key.

        Raises
        ------
        BackendError
            If the switch says that something failed, goes, or does not answer in time.
        """
        end = time.monotonic() + timeout
        while True:
            for i, message in enumerate(self._messages):
                if key in message:
                    return self._messages.pop(i)
            left = end - time.monotonic()
            if left <= 0:
                missing = f"; ranks {self._waited_for} have not joined" if self._waited_for else ""
                raise BackendError(f"the switch at {self._where} did not answer for {timeout:g} s{missing}")
            if select.select([self.socket], [], [], left)[0]:
                self.listen()

    def listen(self) -> None:
        """Read what has come, which must be something.

        Raises
        ------
        BackendError
            If the job has failed, or the switch has gone.
        """
        try:
            data = self.socket.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            raise BackendError(f"the switch at {self._where} has gone: its connection ended")
        try:
            lines = self._reader.lines(data)
            messages = [read_line(self._seal.opened(line) if self._seal else line) for line in lines]
        except InputError as error:
            what = "does not have the job's secret" if self._seal else "is no switch of commsim"
            text = "".join(c for c in data[:200].decode("ascii", "replace") if c.isprintable())
            untagged = f"; its answer, without a tag: {text}" if self._seal and text.startswith("{") else ""
            raise BackendError(f"what answers at {self._where} {what}: {error}{untagged}") from None
        self._first_line = self._first_line or (lines[0] if lines else b"")
        for message in messages:
            self._sort(message)

    def _agree(self, secret: str, job: str) -> None:
        """Answer the switch's nonce, so that from now on every line has a tag."""
        if not secret and "nonce" not in self.hello:
            return
        if not secret:
            raise BackendError(f"the switch at {self._where} takes only workers with its secret: --secret-file FILE")
        if "nonce" not in self.hello:
            raise BackendError(
                f"the switch at {self._where} has no secret, so that it cannot prove that it is the right one"
            )
        answer = write_line({"nonce": new_nonce(), "job": job})
        self.socket.sendall(answer)
        self._seal = LineSeal(secret, self._first_line, answer, is_switch=False)

    def _sort(self, message: dict[str, Any]) -> None:
        for key in ("failed", "error"):
            if key in message:
                raise BackendError(str(message[key]))
        if "waiting_for" in message and "joined" not in message and "jobs" not in message:
            self._waited_for = list(message["waiting_for"])
        else:
            self._messages.append(message)


def ask_status(host: str, port: int, timeout: float = 5.0, secret: str = "", job: str = "job") -> dict[str, Any]:
    """Ask a switch for its jobs, slots and counters.

    Raises
    ------
    BackendError
        Without a switch.
    """
    session = Session(host, port, timeout, secret=secret, job=job)
    try:
        session.say({"do": "status"})
        return session.answer("counters", timeout)
    finally:
        session.close()


def fact(message: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return a whole number from an answer of the switch.

    Raises
    ------
    BackendError
        If it is none.
    """
    return _blamed(lambda: whole_field(message, name, least, most))


def _blamed(read: Callable[[], int]) -> int:
    try:
        return read()
    except InputError as error:
        raise BackendError(f"unexpected message from the switch: {error}") from None
