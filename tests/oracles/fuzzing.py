"""Seeded attacks: how many, with which values, and what a command may do at worst."""

import contextlib
import io
import os
import random
import re
import signal
import warnings
from collections import Counter

from commsim.cli import main

# `make fuzz` sets it; a number of attacks in CI takes about a second.
TIMES = int(os.environ.get("COMMSIM_FUZZ", "1"))
SEED = int(os.environ.get("COMMSIM_FUZZ_SEED", "1"))
LIMIT_S = 100  # a machine may be busy
# Attacks of this process, by area; `make fuzz` prints them.
ATTACKS: Counter[str] = Counter()
NASTY = (
    "--", "-1", "0", "1", "nan", "inf", "-inf", "1e400", "1e-320", "-0", "2147483648", "9223372036854775808",
    "99999999999999999999999", "1e30GiB", "1e-320B", "-5us", "1e300s", "5%", "", " ", "é", "\u202e", "\u0663", "\x00",
    "a" * 5000, "[" * 2000, "{}", "../..", "/dev/null", "None", "true", "1,2,,3", "0x10", "1_000", "4:", ":", "=",
    "a=b", "star:n_hosts=-1", "star:n_hosts=1e9", "ring_all_reduce:n_chunks=0", "h0-h1", "1:2:3",
    "%s%n", "${HOME}", "*",
)  # fmt: skip
NUMBERS = (b"-1", b"0", b"1e400", b"1e-320", b"NaN", b"-Infinity", b"99999999999999999999999", b"2147483648", b"true",
           b'"x"', b"null", b"[]", b"{}", b"0.1e1")  # fmt: skip


class Hung(BaseException):
    """A command that does not end; no handler of the program may catch it."""


@contextlib.contextmanager
def in_time(what):
    """Let nothing last longer than 20 s."""

    def too_long(*_):
        raise Hung(what)

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def attempt(argv, area="command lines"):
    """Run a command line in this process; return what is wrong with how it ended, or nothing."""
    ATTACKS[area] += 1
    out, err = io.StringIO(), io.StringIO()
    try:
        with in_time(argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = main(argv)
    except SystemExit as stop:
        code = stop.code
    except Hung:
        return f"{argv}: does not end within {LIMIT_S} s"
    except Exception as error:
        return f"{argv}: {type(error).__name__}: {error}"
    said = err.getvalue()
    if code not in (0, 1, 2) or "Traceback" in said:
        return f"{argv}: exit {code}: {said[-300:]}"
    if code == 2 and not any("error:" in line for line in said.splitlines()):
        return f"{argv}: exit 2 without a word: {said[-300:]!r}"
    return ""


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Return a damaged copy of a file."""
    kind, at = rng.randrange(8), rng.randrange(len(data) + 1)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at + rng.randrange(9) :]
    if kind == 2:
        copy = bytearray(data)
        for _ in range(rng.randrange(1, 5)):
            copy[rng.randrange(len(copy))] ^= 1 << rng.randrange(8)
        return bytes(copy)
    if kind == 3:  # a piece twice: keys, rows, blocks
        end = min(len(data), at + rng.randrange(1, 200))
        return data[:end] + data[at:end] + data[end:]
    if kind == 4:  # nesting
        return data[:at] + rng.choice([b"[", b"{", b'{"a":', b"<a>"]) * rng.choice([3, 5000]) + data[at:]
    lines = data.split(b"\n")
    if kind == 5:
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
        return b"\n".join(lines)
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    if not found:
        return data[:at] + data[at + 1 :]
    number = rng.choice(found)
    return data[: number.start()] + rng.choice(NUMBERS) + data[number.end() :]
