"""OmniReduce beside its authors' measurements, most of which its few constants were fitted to."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.omnireduce_model import DOWNLINK_ONLY, MEASURED_SIZE, messages_time, staged_time

from .. import omnireduce_published as published
from .row import Row

Measured = functools.partial(
    Row, kind="published", against="measured", operation="all_reduce", network="star", size=float(MEASURED_SIZE)
)
ENGINES = {"flow engine": "flow"}
STAGED = "network and copies overlap less than max() assumes if both take about the same time"
BLOCKS_OF_32 = (104.5, 94.6, 78.4, 62.5, 42.8, 37.7, 25.4, 18.2, 17.0)
ONE_WAY = "counts only the messages that a rank sends; its threads also receive the union of all blocks"
FEW_RANKS = {2: 2.05, 4: 2.55}
CONSTANT = "the fixed part was fitted to 8 ranks; it grows with the number of ranks, which the model does not have"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; nothing here takes long."""
    yield from tables()
    if not quick:
        yield from few_ranks()
        yield from blocks_of_32()


def tables() -> Iterator[Row]:
    """Tables of the benchmark; what was fitted to a measurement does not count."""
    predicted = "4 + 4 machines"
    for i, row in enumerate(published.rows()):
        what, _, unit = row.what.rpartition(", ")
        engine = ENGINES.get(row.how, "fitted law")
        nccl, staged = what.startswith("NCCL"), what.startswith("through")
        yield Measured(id=f"published/omnireduce/{i}/{what}", model="NCCL ring" if nccl else f"OmniReduce, {row.how}",
                       engine=engine, ranks=int(what.split()[1]) if nccl else 4 if predicted in what else 8,
                       reference=row.published, ours=row.ours, unit=unit, source=f"{what}: {row.source}",
                       note=STAGED if staged else "", fitted=predicted not in what and not staged)  # fmt: skip


def few_ranks() -> Iterator[Row]:
    """Density 0.01 with fewer ranks than the constants were fitted to."""
    for n, measured in FEW_RANKS.items():
        yield Measured(id=f"published/omnireduce/ranks/{n}", model="OmniReduce, two constants", engine="fitted law",
                       ranks=n, reference=measured, ours=DOWNLINK_ONLY.time(MEASURED_SIZE, 0.01, n) * 1e3, unit="ms",
                       source=published.SOURCE + "density 0.01, +-0.1 ms", note=CONSTANT)  # fmt: skip


def blocks_of_32() -> Iterator[Row]:
    """Messages of one block of 32 elements, by density, through the host's memory."""
    for density, measured in zip(published.DENSITIES, BLOCKS_OF_32, strict=True):
        messages = messages_time(MEASURED_SIZE // 4, 32, density=density)
        yield Measured(id=f"published/omnireduce/block32/{density:g}", model="OmniReduce, law of messages",
                       engine="fitted law", ranks=8, reference=measured,
                       ours=staged_time(messages, MEASURED_SIZE) * 1e3, unit="ms", note=ONE_WAY,
                       source=published.SOURCE + f"blocks of 32 unfused, density {density:g}, +-0.5 ms",
                       fitted=density == 1.0)  # fmt: skip
