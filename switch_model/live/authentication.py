"""Secrets of jobs: lines of the control server that only who has the secret can write, and the keys of datagrams.

A switch with secrets begins its connection with a nonce, the worker answers with one of its own, and both derive a key
for each direction from the secret and those two lines. From then on every line begins with a tag over its number and
its content, so that nobody else can write, replay, leave out or reorder one unnoticed. A job's datagrams have a key of
their own, from the secret and a salt that the switch draws for the job. Contents are not hidden.

References
----------
RFC 7693 (BLAKE2, keyed mode); Python's `hashlib`. A nonce of both sides in the key: RFC 8446, section 7.1.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from commsim.core.errors import InputError

SHORTEST_SECRET = 16  # characters
NONCE_BYTES = 16
_TAG_HEX = 32  # characters of a line's tag


@dataclass(frozen=True, slots=True)
class Secrets:
    """Who may take part in which job.

    Parameters
    ----------
    common : str
        Secret of all jobs that have none of their own; nothing without such jobs.
    of_job : mapping of str to str
        Secrets of jobs by name.

    Raises
    ------
    InputError
        If none is given, or one is short.
    """

    common: str = field(default="", repr=False)
    of_job: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        given = [*self.of_job.values(), *([self.common] if self.common else [])]
        if not given or min(map(len, given)) < SHORTEST_SECRET:
            raise InputError(f"a secret has at least {SHORTEST_SECRET} characters; `openssl rand -hex 32` makes one")

    def of(self, job: str) -> str:
        """Return the secret of a job.

        Raises
        ------
        InputError
            If it has none.
        """
        secret = self.of_job.get(job, self.common)
        if not secret:
            raise InputError(f"job {job!r} has no secret on this switch")
        return secret


def new_nonce() -> str:
    """Return 16 random bytes, as a message has them."""
    return secrets.token_hex(NONCE_BYTES)


def job_key(secret: str, salt: str) -> bytes:
    """Return the key of a job's datagrams; uint8[32]."""
    return _derived(secret, salt.encode(), b"commsim job")


class LineSeal:
    """Tags of the lines of one connection, in both directions.

    Parameters
    ----------
    secret : str
        Secret that both sides have.
    hello, answer : bytes
        The first line of the switch, and that of the worker.
    is_switch : bool
        Whether this side is the switch.
    """

    def __init__(self, secret: str, hello: bytes, answer: bytes, is_switch: bool) -> None:
        names = (b"from switch", b"to switch")
        self._mine, self._theirs = (
            _derived(secret, hello.strip() + b"\n" + answer.strip(), name) for name in names[:: 1 if is_switch else -1]
        )
        self._n_out = self._n_in = 0

    def sealed(self, line: bytes) -> bytes:
        """Return a line with its tag in front."""
        tag = _line_tag(self._mine, self._n_out, line.strip())
        self._n_out += 1
        return tag + b" " + line

    def opened(self, line: bytes) -> bytes:
        """Return a line without its tag.

        Raises
        ------
        InputError
            If another one than the peer wrote it, or it is not the peer's next one.
        """
        tag, content = line[:_TAG_HEX], line[_TAG_HEX + 1 :]
        if not hmac.compare_digest(tag, _line_tag(self._theirs, self._n_in, content.strip())):
            raise InputError("a line has the wrong tag: switch and worker do not have the same secret")
        self._n_in += 1
        return content


def _line_tag(key: bytes, number: int, content: bytes) -> bytes:
    return blake2b(number.to_bytes(8, "big") + content, key=key, digest_size=_TAG_HEX // 2).hexdigest().encode()


def _derived(secret: str, context: bytes, purpose: bytes) -> bytes:
    # A key of BLAKE2 has at most 64 bytes, a secret may be longer.
    key = blake2b(secret.encode(), digest_size=32, person=b"commsim secret").digest()
    return blake2b(context, key=key, digest_size=32, person=purpose).digest()
