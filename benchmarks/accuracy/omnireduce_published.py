"""OmniReduce's published times beside ours: by density, by number of ranks, through the host's memory, by block size.

python -m benchmarks.accuracy.omnireduce_published [--json FILE]

"two constants" and "three constants" are ``benchmarks.accuracy.omnireduce_model``, "protocol" is
``commsim.papers.omnireduce_protocol``. "flow engine" plays the schedule of
``omnireduce`` over the bytes of blocks drawn with seed = rank, on a star of links of the goodput 86.4 Gb/s, and adds
the fixed 2.36 ms. Nothing is fitted to a single cell; rows that miss stay in.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accuracy.omnireduce_model import BOTH_WAYS, DOWNLINK_ONLY, MEASURED_SIZE
from benchmarks.results_file import write_results
from benchmarks.sparse_measures import expected_union_density
from commsim.papers.omnireduce_protocol import (
    ELEMENT,
    FIXED,
    MESSAGE,
    THREADS,
    OmniReduceInput,
    direct_time,
    protocol_time,
)
from commsim.prediction.build import prepare
from commsim.report.terminal import print_table

SOURCE = "authors' artifact (sands-lab/omnireduce-experiments), digitised, "
DENSITIES = (1.0, 0.8, 0.4, 0.2, 0.1, 0.08, 0.04, 0.02, 0.01)
DIRECT_MS = (15.55, 14.36, 12.27, 10.45, 7.86, 7.09, 5.09, 3.82, 3.09)
STAGED_MS = (20.6, 20.45, 19.64, 19.45, 17.3, 17.1, 17.0, 16.75, 16.4)
NCCL_GBPS = {2: 81.4, 4: 85.0, 8: 85.6}
# Dense, by elements of a block that is a message of its own; those of 64 and 128 from 1.13 and 1.40 us per message.
UNFUSED_MS = {32: 104.5, 64: 57.9, 128: 35.8, 256: 25.4}
UNFUSED_32_MS = (104.5, 94.6, 78.4, 62.5, 42.8, 37.7, 25.4, 18.2, 17.0)
FEW_MS = {(2, 0.01): 2.05, (4, 0.01): 2.55, (4, 0.1): 5.7}
SPARSEST_OF_TWO = 0.2
RING_GBPS = 85.0
COPY_RATE = 13e9  # bytes/s, what PCIe 3.0 x16 gives: the time at the lowest density through the host, 16.4 ms


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure, in the unit that `what` names, and ours."""

    what: str
    published: float
    ours: float
    how: str
    source: str

    @property
    def error(self) -> float:
        """Relative to what was published."""
        return self.ours / self.published - 1


def staged_time(case: OmniReduceInput, element: float = ELEMENT) -> float:
    """Seconds through the host's memory.

    The tensor crosses PCIe to the host and, as a copy engine does one copy at a time, after that back. A thread begins
    when its part has arrived: the last of T after (T - 1)/T of the way there. The time is the longer of both ways, and
    of the last thread's arrival and protocol.

    Parameters
    ----------
    element : float, s
        Time of copying an element into a message and out of one; 0 where several blocks share a message.
    """
    one_way = 4 * case.n_elements / COPY_RATE
    arrived = one_way * (THREADS - 1) / THREADS
    return max(2 * one_way, arrived + FIXED + protocol_time(case, MESSAGE + element * case.block))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.accuracy.omnireduce_published", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    found = rows()
    print_table(
        ["what", "published", "ours", "error", "how", "source"],
        [[r.what, f"{r.published:.2f}", f"{r.ours:.2f}", f"{r.error:+.1%}", r.how, r.source] for r in found],
        "OmniReduce, 100 MB, 8 + 8 machines at 100 Gb/s unless said",
    )
    if args.json:
        config = {"what": "omnireduce_published", "size": MEASURED_SIZE}
        write_results(args.json, config, [dataclasses.asdict(r) | {"error": r.error} for r in found])
    return 0


def rows() -> list[Row]:
    """All rows of the table."""
    return [*by_density(), *by_ranks(), *by_protocol(), *through_host(), *by_block()]


def by_density(n_ranks: int = 8) -> list[Row]:
    """GPU-direct at nine densities; two constants and the flow engine up to the density for which they hold."""
    found = []
    source = SOURCE + "+-0.1 ms"
    for density, published in zip(DENSITIES, DIRECT_MS, strict=True):
        what = f"GPU-direct, density {density:g}, ms"
        if density <= SPARSEST_OF_TWO:
            two = DOWNLINK_ONLY.time(MEASURED_SIZE, density, n_ranks)
            found.append(Row(what, published, two * 1e3, "two constants", source))
            found.append(Row(what, published, flow_time(density, n_ranks) * 1e3, "flow engine", source))
        three = BOTH_WAYS.time(MEASURED_SIZE, density, n_ranks)
        found.append(Row(what, published, three * 1e3, "three constants", source))
    four = DOWNLINK_ONLY.time(MEASURED_SIZE, 0.1, 4)
    return [*found, Row("GPU-direct, density 0.1, 4 + 4 machines, ms", 5.7, four * 1e3, "two constants", source)]


def by_ranks() -> list[Row]:
    """NCCL's dense ring by number of ranks; beside it OmniReduce's dense time, which does not grow."""
    source = SOURCE + "by bus bandwidth"
    found = []
    for n, gbps in NCCL_GBPS.items():
        published = 2 * (n - 1) / n * MEASURED_SIZE * 8 / (gbps * 1e9)
        ready = prepare("ring_all_reduce", f"star:n_hosts={n},bandwidth={RING_GBPS}Gbps,latency=1us")
        ours = ready.predict(MEASURED_SIZE).time
        found.append(Row(f"NCCL, {n} machines, dense, ms", published * 1e3, ours * 1e3, "flow engine", source))
    return found


def through_host() -> list[Row]:
    """Without GPU-direct, four blocks to a message: copies both ways, or the last thread's arrival and its protocol."""
    return [
        Row(
            f"through the host, density {density:g}, ms",
            published,
            staged_time(_case(256, density), element=0.0) * 1e3,
            "protocol",
            SOURCE + "+-0.3 ms",
        )
        for density, published in zip(DENSITIES, STAGED_MS, strict=True)
    ]


def by_block() -> list[Row]:
    """Messages of one block through the host's memory: dense by block size, and blocks of 32 by density."""
    source = SOURCE + "+-0.5 ms"
    cases = [(block, 1.0, ms) for block, ms in UNFUSED_MS.items()]
    cases += [(32, *row) for row in zip(DENSITIES[1:], UNFUSED_32_MS[1:], strict=True)]
    return [
        Row(f"blocks of {block}, density {density:g}, ms", ms, seconds * 1e3, "protocol", source)
        for block, density, ms in cases
        for seconds in [staged_time(_case(block, density))]
    ]


def by_protocol() -> list[Row]:
    """GPU-direct by density, and with fewer workers."""
    cases = [(8, *row) for row in zip(DENSITIES, DIRECT_MS, strict=True)]
    cases += [(n, density, ms) for (n, density), ms in FEW_MS.items()]
    source = SOURCE + "+-0.1 ms"
    return [
        Row(f"GPU-direct, {n} workers, density {density:g}, ms", ms, seconds * 1e3, "protocol", source)
        for n, density, ms in cases
        for seconds in [direct_time(_case(256, density, n))]
    ]


def _case(block: int, density: float, n_workers: int = 8) -> OmniReduceInput:
    return OmniReduceInput(MEASURED_SIZE // 4, block, density, n_workers)


def flow_time(density: float, n_ranks: int, n_aggregators: int = 8) -> float:
    """Seconds by the flow engine, on links of the measured goodput, and the fixed part."""
    hosts = n_ranks + n_aggregators
    spec = f"omnireduce:density={density},n_aggregators={n_aggregators}"
    network = f"star:n_hosts={hosts},bandwidth={8e-9 / DOWNLINK_ONLY.down}Gbps,latency=1us"
    ready = prepare(spec, network, n_ranks=n_ranks)
    return DOWNLINK_ONLY.fixed + ready.predict(MEASURED_SIZE).time


def union_rows(n_ranks: int = 8) -> list[tuple[float, float, float]]:
    """Density, expected union density, and that of the blocks drawn, for each density of the paper below 1."""
    found = []
    for density in DENSITIES[1:]:
        ready = prepare(f"omnireduce:density={density},n_aggregators=1", f"star:n_hosts={n_ranks + 1}", n_ranks=n_ranks)
        assert ready.data is not None
        drawn = ready.data.counters(MEASURED_SIZE)["union_density"]
        found.append((density, expected_union_density(density, n_ranks), drawn))
    return found


if __name__ == "__main__":
    sys.exit(main())
