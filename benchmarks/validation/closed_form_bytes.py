"""Counting bytes: parameter servers by theorem, volumes of sparse collectives, unions of sparse blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.accuracy import omnireduce_published
from benchmarks.accuracy.byteps_fig12 import colocated_time, dedicated_time
from benchmarks.sparse_measures import densifications
from collectives import COLLECTIVES
from collectives.servers.byteps import byteps_split
from commsim.core.schedule import Schedule
from commsim.prediction.build import prepare
from commsim.sparse.encodings import coo
from commsim.sparse.generate import drawn_occupancy
from commsim.sparse.occupancy import Occupancy
from commsim.sparse.propagate import transfer_contents
from commsim.sparse.union_density import densification

from .row import Row

GBPS = 1e9 / 8
NIC, SIZE = 90.0, 1e9
N_ELEMENTS, DENSITY = 400_000, 0.05
PIPELINE = "theory cuts nothing into partitions: here the first push and the last pull of 64 overlap with nothing"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has one case of each."""
    cases = ((8, 4),) if quick else tuple((n, k) for n in (2, 4, 8, 16) for k in sorted({1, n // 2, n - 1, n}))
    for n, k in cases:
        yield from servers(n, k)
    yield from volumes((8,) if quick else (2, 4, 8, 16))
    yield from unions()


def servers(n: int, k: int) -> Iterator[Row]:
    """Flow engine against BytePS's theorem 1, and against the bytes of servers' NICs."""
    many, few = f"n_servers={k}", f"n_servers={k},colocated=true"
    dedicated, colocated = float(dedicated_time(n, k)), float(colocated_time(n, k))
    yield _served("byteps", f"byteps:{many}", (n, n + k), k, float(byteps_split(n, k).time), "theorem 1 of BytePS")
    yield _served("parameter_server", f"parameter_server:{many}", (n, n + k), k, dedicated, "max(1, n/s)")
    yield _served("parameter_server, colocated", f"parameter_server:{few}", (n, n), k, colocated, "1 + (n-2)/s")


def _served(model: str, spec: str, ranks_and_hosts: tuple[int, int], k: int, theory: float, formula: str) -> Row:
    n, hosts = ranks_and_hosts
    ready = prepare(spec, f"star:n_hosts={hosts},bandwidth={NIC:.0f}Gbps,latency=1us", n_ranks=n)
    return Row(
        id=f"closed_form/{model}/{n}+{k}",
        kind="closed_form",
        against="theory of bytes",
        model=model,
        engine="flow",
        operation="all_reduce",
        reference=theory * SIZE / (NIC * GBPS),
        ours=ready.predict(SIZE).time,
        unit="s",
        source=f"bytes of the busiest NIC: {formula} (benchmarks.accuracy.byteps_fig12)",
        ranks=n,
        network="star",
        size=SIZE,
        note=PIPELINE,
    )


def volumes(ranks: tuple[int, ...]) -> Iterator[Row]:
    """Bytes that a rank sends on average against the formulas of papers, on drawn data."""
    pair = 2 * 4 * N_ELEMENTS * DENSITY
    formulas: dict[str, tuple[Callable[[int, Occupancy], float], str]] = {
        "zen": (lambda n, o: (n - 1) / n * (densification(o) + 1) * pair, "(n-1)/n (gamma^n + 1) 2 M d, ZEN"),
        "sparcml_ssar": (lambda n, o: sum(_doubled(n, o)) * pair, "sum over rounds of gamma^(2^(i-1)) 2 M d, ZEN"),
        "topk_a": (lambda n, _: (n - 1) * pair, "2 k (P-1), README of gTop-k"),
        "agsparse": (lambda n, _: (n - 1) * pair, "every list to every rank"),
    }
    for name, (formula, text) in formulas.items():
        for n in ranks:
            occupancy = drawn_occupancy(n, N_ELEMENTS, density=DENSITY)
            schedule = COLLECTIVES[name].build(n)
            transfers = schedule.expand()
            sent = _sent(name, schedule, occupancy)
            yield Row(
                id=f"closed_form/{name}/bytes/{n}",
                kind="closed_form",
                against="theory of bytes",
                model=f"{name}, bytes",
                engine="sparse bytes",
                operation="all_reduce",
                reference=formula(n, occupancy),
                ours=float(sent[transfers["src"] != transfers["dst"]].sum() / n),
                unit="bytes",
                source=text,
                ranks=n,
                size=4.0 * N_ELEMENTS,
            )


def _sent(name: str, schedule: Schedule, occupancy: Occupancy) -> Any:
    """Bytes of each transfer; ZEN's formula is that of lists both ways, where the system itself sends a bitmap back."""
    if name == "zen":
        return coo(transfer_contents(schedule, occupancy, hashed=True))
    return COLLECTIVES[name].metadata["sparse"].transfer_bytes(schedule, occupancy, {})


def _doubled(n: int, occupancy: Occupancy) -> list[float]:
    gamma = densifications(occupancy)
    return [float(gamma[2**i - 1]) for i in range(n.bit_length() - 1)]


def unions() -> Iterator[Row]:
    """Union density of blocks drawn with seed = rank against 1 - (1 - d)^n."""
    for density, expected, drawn in omnireduce_published.union_rows():
        yield Row(
            id=f"closed_form/union/{density:g}",
            kind="closed_form",
            against="theory of bytes",
            model="union of drawn blocks",
            engine="sparse bytes",
            operation="all_reduce",
            reference=expected,
            ours=drawn,
            unit="share of blocks",
            source="1 - (1 - d)^n, of independent draws",
            ranks=8,
            note="one draw, not the mean of many",
        )
