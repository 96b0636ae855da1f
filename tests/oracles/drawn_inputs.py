"""Inputs that hypothesis draws for several tests: costs of links, names of hosts, schedules."""

from hypothesis import strategies as st

from commsim.core.cost import LogGP
from commsim.core.program import Program
from commsim.core.schedule import INPUT, SCRATCH, Schedule

seconds = st.one_of(st.just(0.0), st.floats(1e-9, 1e-3))
links = st.builds(
    LogGP, L=seconds, o=seconds, B=st.floats(1e6, 1e12), gamma=st.one_of(st.just(0.0), st.floats(1e-13, 1e-8))
)
PREFIXES = st.sampled_from(["n", "node", "gpu-a.", "r1-", "x07y", "0"])


@st.composite
def names(draw, n):
    """`n` different names, some of them numbered with leading zeros."""
    prefix, width, first = draw(PREFIXES), draw(st.integers(0, 4)), draw(st.integers(0, 12))
    step = draw(st.integers(1, 2))
    found = [f"{prefix}{first + step * i:0{width}d}" for i in range(n)]
    return draw(st.permutations(found)) if draw(st.booleans()) else found


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Random copies and sums between inputs and scratch memory of a few ranks, any of which may be in one hop."""
    n_ranks, n_chunks = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    p = Program(n_ranks, n_chunks, n_scratch=n_chunks)
    rank, buffer = st.integers(0, n_ranks - 1), st.sampled_from((INPUT, SCRATCH))
    for _ in range(draw(st.integers(1, 6))):
        reduces = draw(st.booleans())
        rows = {}
        for _ in range(draw(st.integers(1, 4))):
            count = draw(st.integers(1, n_chunks))
            first = st.integers(0, n_chunks - count)
            src, dst = draw(rank), draw(rank)
            row = (src, dst, draw(first), draw(first), count, draw(buffer), INPUT, draw(st.integers(0, 1)))
            written = {(dst, row[3] + i) for i in range(count)}
            busy = any(written & {(r[1], r[3] + i) for i in range(r[4])} for r in rows.values())
            if src != dst and not (busy and not reduces):
                rows[len(rows)] = row
        if rows:
            columns = dict(zip(("src", "dst", "src_chunk", "dst_chunk", "count", "src_buffer", "dst_buffer", "channel"),
                               map(list, zip(*rows.values(), strict=True)), strict=True))  # fmt: skip
            (p.reduce if reduces else p.copy)(**columns)
    return p.build()
