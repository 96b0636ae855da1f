"""OmniReduce beside its authors' measurements, most of which its few constants were fitted to."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.accuracy import omnireduce_published as published
from benchmarks.accuracy.omnireduce_model import DOWNLINK_ONLY, MEASURED_SIZE

from .row import Row

Measured = functools.partial(
    Row, kind="published", against="measured", operation="all_reduce", network="star", size=float(MEASURED_SIZE)
)
ENGINES = {"flow engine": "flow", "protocol": "messages of a thread"}
BEFORE = {
    "GPU-direct": "-15.7% dense where sums cost an aggregator nothing; two constants have 24.5% at 2 and 7.6% at 4"
    " workers, where the fixed part does not grow",
    "through": "max(network, staging) before 0.2: -21.7% dense, median -6.8%",
    "blocks": "a law of sent messages alone before 0.2: median -36.5%, up to -66.7% for blocks of 32",
}
MISSES = {
    "GPU-direct": "a message into the GPU's memory costs what it costs through the host but for the workers' copying,"
    " and what a further worker adds is only a longer column; at low densities both fall short",
    "through": "four blocks to a message are taken as four messages, and nothing for copying them",
    "blocks": "one thread stands for all, and sums cost an aggregator what copying costs a worker",
}
# What a constant of the protocol was taken from.
FITTED = (
    "GPU-direct, 8 workers, density 0.1, ms",
    "through the host, density 0.01, ms",
    "blocks of 32, density 1, ms",
    "blocks of 256, density 1, ms",
)
FEW_RANKS = {2: 2.05, 4: 2.55}
CONSTANT = "the fixed part was fitted to 8 ranks; it grows with the number of ranks, which the model does not have"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset leaves out the protocol."""
    predicted = "4 + 4 machines"
    found = [*published.by_density(), *published.by_ranks()]
    if not quick:
        found += [*published.by_protocol(), *published.through_host(), *published.by_block()]
    for i, row in enumerate(found):
        what, _, unit = row.what.rpartition(", ")
        protocol, nccl = row.how == "protocol", what.startswith("NCCL")
        model = "NCCL ring" if nccl else f"OmniReduce, {row.how}"
        note = _note(what) if protocol else ""
        yield Measured(id=f"published/omnireduce/{i}/{what}", model=model, engine=ENGINES.get(row.how, "fitted law"),
                       ranks=_ranks(what), reference=row.published, ours=row.ours, unit=unit, note=note,
                       source=f"{what}: {row.source}",
                       fitted=row.what in FITTED if protocol else predicted not in what)  # fmt: skip
    if not quick:
        yield from few_ranks()


def _note(what: str) -> str:
    """Say what the same number was before, and why it misses."""
    kind = what.split(",")[0].split()[0]
    return f"{MISSES[kind]}; {BEFORE[kind]}"


def _ranks(what: str) -> int:
    words = what.replace(",", "").split()
    if "workers" in words or what.startswith("NCCL"):
        return int(words[1])
    return 4 if "4 + 4 machines" in what else 8


def few_ranks() -> Iterator[Row]:
    """Density 0.01 with fewer ranks than the constants were fitted to."""
    for n, measured in FEW_RANKS.items():
        yield Measured(id=f"published/omnireduce/ranks/{n}", model="OmniReduce, two constants", engine="fitted law",
                       ranks=n, reference=measured, ours=DOWNLINK_ONLY.time(MEASURED_SIZE, 0.01, n) * 1e3, unit="ms",
                       source=published.SOURCE + "density 0.01, +-0.1 ms", note=CONSTANT)  # fmt: skip
