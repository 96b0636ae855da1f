"""What is drawn: values that nobody means, values that are right, and damaged bytes."""

from __future__ import annotations

import random
import re

SIZES = ("1", "8", "1500", "4KiB", "64K", "1MB", "3MiB", "0.5GiB", "1e3", "1e6B", "2^20")
TIMES = ("0s", "1ps", "300ns", "1us", "2.5us", "1ms", "0.1s", "3s", "2min")
RATES = ("1bps", "9600bps", "100Mbps", "10Gbps", "25GB/s", "400Gbps", "3.2Tbps")
COUNTS = ("1", "2", "3", "5", "7", "16", "31", "64")
PARTS = ("0", "1e-9", "0.001", "0.25", "0.5", "0.999", "1", "10%", "100%")
# Beyond what anybody asks for, or no number of the kind at all.
STRANGE = (
    "-1", "0", "-0.0", "1e-300", "1e300", "1e400", "nan", "-inf", "NaN%", "4294967296", "18446744073709551615",
    "1e18", "1e15s", "1e12GiB", "0.1ps", "1e-3bps", "1e30bps", "\u00b5s", "3 us", "1,5", "1;2", "", " ", "\t",
    "\u200b", "\udcff", "x" * 3000, "(" * 500, "a=b=c", "=1", "k=", "h0", "h0-h999", "links:200%", "/", "~", ".",
    "/proc/self/mem", "/dev/full", "inputs", "inputs/jobs.json", "inputs/gradients.csv", "no/such/file.toml", "-",
    "--", "@", "all", "none", "best", "0x1F", "1_0", "1e", "+3", "\u0664", "1:0", "1:2:3:4", "0,0,0", "1,1", "9,8,7",
    "5-1", "0@1s+1s", "all@0s+1us", "switch0", "ring", "star", "torus:dims=0x4", "star:n_hosts=0",
    "star:n_hosts=100000000", "leaf_spine:n_leaves=1", "hypercube:dimension=40", "fat_tree:k=1000000", "dgx-h100",
    "gb200-nvl72", "jellyfish:n_switches=3,degree=9", "ring_all_reduce:n_channels=0", "switchml:n_chunks=1e9",
    "chain_broadcast:n_chunks=2147483647", "random", "spread", "packet", "flow", "alpha-beta", "closed-form",
)  # fmt: skip
POOLS = (SIZES, TIMES, RATES, COUNTS, PARTS)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")
_DIGITS = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WRONG = (b"-2", b"1e999", b"5e-324", b"NaN", b"Infinity", b"18446744073709551616", b"2147483647", b"false", b"''",
          b'"\\ud800"', b"[[]]", b'{"a":1}', b"00", b"1.", b"", b"-0", b"1e9", b"0.0")  # fmt: skip


def other_number(draw: random.Random, text: str) -> str:
    """Return a word with one of its numbers replaced by another, a much larger or a strange one."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return draw.choice(STRANGE)
    at = draw.choice(found)
    old = float(at[0])
    new = draw.choice(
        (f"{old * 2:g}", f"{old + 1:g}", f"{old / 3:g}", f"{old * 1000:g}", f"-{at[0]}", f"{old * 1e9:g}", "0", "1",
         draw.choice(COUNTS), draw.choice(STRANGE))
    )  # fmt: skip
    return text[: at.start()] + new + text[at.end() :]


def value(draw: random.Random) -> str:
    """Return the value of an option, one in four strange."""
    return draw.choice(STRANGE if draw.random() < 0.25 else draw.choice(POOLS))


def damaged(draw: random.Random, data: bytes, others: bytes) -> bytes:
    """Return damaged bytes: one to three of cuts, flips, swaps, repeats, other numbers and pieces of another file."""
    for _ in range(draw.randrange(1, 4)):
        data = _damaged_once(draw, data, others)
    return data


def _damaged_once(draw: random.Random, data: bytes, others: bytes) -> bytes:
    kind, at = draw.randrange(9), draw.randrange(len(data) + 1)
    end = min(len(data), at + draw.randrange(1, 60))
    if kind == 0 and draw.random() < 0.3:
        return data[:at]
    if kind <= 1:
        return data[:at] + draw.randbytes(draw.randrange(1, 5)) + data[end:]
    if kind == 2:
        copy = bytearray(data)
        for _ in range(draw.randrange(1, 4) if copy else 0):
            copy[draw.randrange(len(copy))] ^= 1 << draw.randrange(8)
        return bytes(copy)
    if kind == 3:
        return data[:end] + data[at:end] * draw.choice((1, 1, 2, 40)) + data[end:]
    if kind == 4:
        start = draw.randrange(len(others) + 1)
        return data[:at] + others[start : start + draw.randrange(1, 60)] + data[end:]
    if kind == 5:
        lines = data.split(b"\n")
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i] if draw.random() < 0.5 else b""
        return b"\n".join(lines)
    if kind == 6:
        return data[:at] + data[end:]
    found = list(_DIGITS.finditer(data))
    if not found:
        return data
    number = draw.choice(found)
    return data[: number.start()] + draw.choice(_WRONG) + data[number.end() :]
