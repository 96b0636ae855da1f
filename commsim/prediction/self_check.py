"""What ``commsim doctor --deep`` tries: predictions with known answers, kernels without their compiler, the cache."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

LATENCY, BYTE = Fraction(2, 10**6), Fraction(8, 10**11)  # of a path over two links of 1 us, and of a byte at 100 Gb/s
SIZES, RANKS = (1 << 16, 1 << 20), (4, 8)
# Rounding of some dozens of additions; every other difference is a fault.
LARGEST_ERROR = 1e-12
_LIMIT_S = 300


def _steps(p: int) -> int:
    return p.bit_length() - 1


# Seconds on p hosts (a power of two) of a star, with latency a of a path and b for all bytes on one link.
CLOSED_FORMS: dict[str, Callable[[int, Fraction, Fraction], Fraction]] = {
    "ring_all_reduce": lambda p, a, b: 2 * (p - 1) * (a + b / p),
    "ring_all_gather": lambda p, a, b: (p - 1) * (a + b / p),
    "ring_reduce_scatter": lambda p, a, b: (p - 1) * (a + b / p),
    "halving_doubling_all_reduce": lambda p, a, b: 2 * _steps(p) * a + 2 * (p - 1) * b / p,
    "recursive_doubling_all_reduce": lambda p, a, b: _steps(p) * (a + b),
}


def predicted() -> dict[str, float]:
    """Return the times of twenty predictions, and of four runs of packets, by name; seconds."""
    from commsim.prediction.read import scenario_of
    from commsim.prediction.solve import solve

    def predict(name: str, network: str, size: int, **options: Any) -> float:
        return float(solve(scenario_of(name, network, **options), [size]).results[0].time)

    times = {}
    for name, p, size in _cases():
        network = f"star:n_hosts={p},bandwidth=100Gbps,latency=1us"
        times[f"{name}, {p} ranks, {size} B"] = predict(name, network, size, overhead=0.0)
    for name in ("ring_all_reduce", "halving_doubling_all_reduce", "switchml", "atp"):
        times[f"{name}, packets"] = predict(name, "star:n_hosts=5", 1 << 14, n_ranks=4, engine="packet")
    return times


def interpreted() -> dict[str, float]:
    """Return the same times from kernels that run as plain Python, in a process of its own."""
    program = "import json; from commsim.prediction.self_check import predicted; print(json.dumps(predicted()))"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True,
        timeout=_LIMIT_S, check=True,
    )  # fmt: skip
    return {str(name): float(time) for name, time in json.loads(done.stdout.splitlines()[-1]).items()}


def rows() -> Iterator[tuple[str, str, str]]:
    """Try everything; yield what was tried, what came out (it begins with "no" where something is wrong), and why."""
    loaded: dict[str, int] = {"read": 0, "compiled": 0}
    with _watched(loaded):
        times = predicted()
    exact = {f"{name}, {p} ranks, {size} B": float(CLOSED_FORMS[name](p, LATENCY, size * BYTE))
             for name, p, size in _cases()}  # fmt: skip
    yield "predictions", _verdict({k: t for k, t in exact.items() if abs(times[k] / t - 1) > LARGEST_ERROR},
                               f"{len(exact)} equal their closed forms"), "the flow engine"  # fmt: skip
    try:
        plain = interpreted()
        yield "interpreted", _verdict({k: t for k, t in plain.items() if times[k] != t},
                                   f"{len(plain)} answers equal, bit by bit"), "compiled kernels"  # fmt: skip
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        yield "interpreted", f"no: kernels do not run without the compiler ({type(error).__name__})", "compiled kernels"
    yield "entries", f"{loaded['read']} kernels read and sound, {loaded['compiled']} compiled", "the kernel cache"


def _cases() -> Iterator[tuple[str, int, int]]:
    return ((name, p, size) for name in CLOSED_FORMS for p in RANKS for size in SIZES)


def _verdict(wrong: dict[str, float], right: str) -> str:
    return f"no: {len(wrong)} differ, {next(iter(wrong))}" if wrong else right


@contextlib.contextmanager
def _watched(loaded: dict[str, int]) -> Iterator[None]:
    """Count kernels that are read from the cache, whose checksum holds then, and those that are compiled."""
    from commsim.core.compiling.kernel_cache import KernelCache

    load: Any = KernelCache.load_overload

    def counting(cache: Any, signature: Any, target: Any) -> Any:
        overload = load(cache, signature, target)
        loaded["compiled" if overload is None else "read"] += 1
        return overload

    KernelCache.load_overload = counting  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        KernelCache.load_overload = load  # type: ignore[method-assign]
