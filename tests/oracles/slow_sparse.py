"""A schedule played on Python sets of blocks, one address at a time: what the bit-packed kernel must agree with."""

from commsim.core.schedule import REDUCE


def hash_of(block):
    """SplitMix64's mixing function, in Python's integers."""
    x = (block + 1) * 0x9E3779B97F4A7C15 % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def blocks_of_chunks(n_blocks, n_chunks, hashed):
    """The set of blocks of each chunk."""
    if hashed:
        return [{b for b in range(n_blocks) if hash_of(b) % n_chunks == c} for c in range(n_chunks)]
    return [set(range(c * n_blocks // n_chunks, (c + 1) * n_blocks // n_chunks)) for c in range(n_chunks)]


def slow_contents(schedule, bitmap, n_elements, block, hashed=False):
    """Return (blocks, elements, all_blocks, all_elements) of each transfer."""
    n_blocks = len(bitmap[0])
    chunks = blocks_of_chunks(n_blocks, schedule.n_chunks, hashed)
    length = [min(block, n_elements - b * block) for b in range(n_blocks)]
    held = {}  # (participant, address) -> (chunk, set of blocks)
    for rank in range(schedule.n_ranks):
        for c, chunk in enumerate(chunks):
            held[rank, c] = c, frozenset(b for b in chunk if bitmap[rank][b])
    rows = []
    transfers = schedule.expand()
    for hop in sorted(set(transfers["hop"].tolist())):
        now = transfers[transfers["hop"] == hop]
        reads = []
        for t, first in zip(now, schedule.src_address(now).tolist(), strict=True):
            reads.append([held[int(t["src"]), first + k] for k in range(t["count"])])
            present = [b for _, blocks in reads[-1] for b in blocks]
            covered = [b for c, _ in reads[-1] for b in chunks[c]]
            rows.append((len(present), sum(length[b] for b in present), len(covered), sum(length[b] for b in covered)))
        for t, first, contents in zip(now, schedule.dst_address(now).tolist(), reads, strict=True):
            for k, (chunk, blocks) in enumerate(contents):
                address = int(t["dst"]), first + k
                if t["op"] == REDUCE and address in held:
                    assert held[address][0] == chunk
                    blocks = blocks | held[address][1]
                held[address] = chunk, blocks
    return rows
