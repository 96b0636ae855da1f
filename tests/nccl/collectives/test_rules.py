"""NCCL's rules: random calls are cut as a slow version says, which is written from the published rules alone."""

import math
import random

import pytest

from collectives.nccl.call import ALLOWED, PROTOCOLS, NcclCall, read_version
from collectives.nccl.rules import chunk_bytes, cut_call, slices_of, split, used_channels
from commsim.core.errors import InputError

KIB, MIB = 1024, 1024**2
# The table of buffers: data of a step, grain, threads, threshold for each thread.
TABLE = {"ll": (32 * KIB, 16, 512, 8), "ll128": (576_000, 1920, 640, 8), "simple": (512 * KIB, 512, 512, 64)}


def slow_channels(call):
    """Drop channels one by one while bytes < channels x threads x threshold."""
    _, _, threads, threshold = TABLE[call.protocol]
    if call.algorithm in ("nvls", "nvls_tree"):
        return call.n_channels
    if call.algorithm == "ring" and call.protocol == "simple" and call.slow:
        threads = 256
    if call.algorithm == "ring" and call.protocol == "ll":
        threshold *= call.n_ranks
    if call.algorithm == "pat":
        return call.n_channels
    n = call.n_channels
    while n > 1 and call.size < n * threads * threshold:
        n -= 1
    return n


def slow_parts(call):
    """Deal cells of 32 KiB of traffic to channels, one after the other, each until it has its share of the traffic."""
    by_rank = call.operation in ("all_gather", "reduce_scatter")
    count = math.ceil(call.size / call.n_ranks) if by_rank else call.size
    traffic = {"all_reduce": 2, "all_gather": call.n_ranks, "reduce_scatter": call.n_ranks}.get(call.operation, 1)
    traffic *= 4 if call.protocol == "ll" else 1
    least = 32 * KIB if call.version >= (2, 29) else 16 * KIB
    cell = math.ceil(math.ceil(least / traffic) / 16) * 16
    share = max(least, count * traffic // slow_channels(call))
    parts, left = [], count
    while left:
        part = 0
        while left and (part * traffic < share or call.n_channels == 1):
            part += min(cell, left)
            left -= min(cell, left)
        parts.append(part)
    return parts


def slow_chunk(call, part):
    """The largest chunk of a part."""
    step, grain, _, _ = TABLE[call.protocol]
    total = part * call.n_ranks if call.operation in ("all_gather", "reduce_scatter") else part
    chunk = step
    if call.algorithm == "ring" and call.protocol == "simple" and call.operation not in ("broadcast", "reduce"):
        chunk = 2 * MIB
    heads = call.n_ranks // call.n_nodes
    if call.algorithm == "tree" and call.protocol == "ll128":
        ppn = call.n_ranks / call.n_nodes
        steps = 1 + int(math.log2(call.n_nodes)) + 0.1 * ppn
        while total // chunk < steps * 64 / ppn and chunk > 128 * KIB:
            chunk //= 2
        while total // chunk < steps * 16 / ppn and chunk > 32 * KIB:
            chunk //= 2
    if call.algorithm == "nvls":
        chunk = 32 * KIB if call.n_nodes > 1 and call.slow_network else 128 * KIB
        for times, smaller in ((64, 64), (8, 32), (2, 16)):
            if total < times * heads * chunk:
                chunk = min(chunk, smaller * KIB)
    if call.algorithm == "nvls_tree":
        chunk = 64 * KIB if call.n_nodes >= 4 else 128 * KIB
        for times, smaller in ((32, 256), (16, 128), (4, 64), (1, 32)):
            if total < times * heads * chunk:
                chunk = min(chunk, smaller * KIB)
    if call.algorithm == "pat":
        while chunk * (32 if call.operation == "all_gather" else 16) > total and chunk > 64 * KIB:
            chunk //= 2
    return chunk // grain * grain


def slow_walk(call, part):
    """Walk through the loops of one channel: chunks, slices and steps, and the bytes of each chunk."""
    chunk = slow_chunk(call, part)
    all_reduce = call.operation == "all_reduce"
    pieces = 1
    if all_reduce:
        heads = call.n_ranks // call.n_nodes
        pieces = {"ring": call.n_ranks, "nvls": heads, "nvls_tree": heads}.get(call.algorithm, 1)
    passes = (call.n_ranks - 1) * (1 + all_reduce) if call.algorithm == "ring" else 1
    pipelined = call.operation in ("broadcast", "reduce")
    sliced = call.algorithm == "ring" and call.protocol == "simple" and not pipelined
    offset = n_loops = n_slices = n_steps = 0
    last = chunk
    while offset < part:
        left = part - offset
        last = chunk if left >= pieces * chunk else min(chunk, math.ceil(math.ceil(left / pieces) / 16) * 16)
        n_slices += math.ceil(last / max(math.ceil(last / 2), 32 * KIB)) if sliced else 1
        n_steps += (4 if sliced else 1) * (1 if pipelined else passes)
        offset += pieces * chunk
        n_loops += 1
    return n_loops, n_slices, n_steps, chunk, last


def random_call(seed):
    draw = random.Random(seed)
    operation = draw.choice(list(ALLOWED))
    algorithm = draw.choice([a for a in ALLOWED[operation] if not a.startswith("collnet")])
    protocol = draw.choice(list(PROTOCOLS)) if algorithm in ("ring", "tree") else "simple"
    n_nodes, per_node = draw.choice([1, 1, 2, 3, 4, 8, 16]), draw.choice([2, 4, 8])
    version = draw.choice([(2, 21), (2, 23), (2, 27), (2, 30)])
    return NcclCall(
        operation, int(2 ** draw.uniform(0, 34)), n_nodes * per_node, n_nodes, algorithm, protocol,
        draw.randint(1, 64 if version >= (2, 27) else 32), version, draw.random() < 0.2, 0, draw.random() < 0.5,
    )  # fmt: skip


@pytest.mark.sample(50)
@pytest.mark.parametrize("seed", range(200))
def test_channels_chunks_slices_and_steps_of_a_random_call_are_those_of_the_rules(seed):
    call = random_call(seed)
    parts = cut_call(call)
    assert used_channels(call)[0] == slow_channels(call)
    assert [part.n_bytes for part in parts] == slow_parts(call)
    for part in parts:
        n_loops, n_slices, n_steps, chunk, last = slow_walk(call, part.n_bytes)
        assert (part.n_loops, part.n_slices, part.n_steps) == (n_loops, n_slices * part.by_loop, n_steps)
        assert (part.chunk, part.last_chunk) == (chunk, last)
        assert part.n_chunks == n_loops * part.by_loop


def test_the_buffers_are_those_of_the_table():
    assert {name: p.buffer for name, p in PROTOCOLS.items()} == {"ll": 524_288, "ll128": 4_915_200, "simple": 4 * MIB}
    for name, (step, grain, threads, threshold) in TABLE.items():
        p = PROTOCOLS[name]
        assert (p.step, p.grain, p.threads, p.threshold) == (step, grain, threads, threshold)
    assert [p.payload / p.wire for p in PROTOCOLS.values()] == [0.5, 0.9375, 1.0]


def test_a_full_chunk_of_a_ring_is_two_slices_of_a_mebibyte_and_a_small_one_is_a_single_message():
    call = NcclCall("all_reduce", 2**30, 8)
    assert (cut_call(call)[0].chunk, slices_of(call, 2 * MIB)) == (2 * MIB, 2)
    assert [slices_of(call, n) for n in (16, 32 * KIB, 32 * KIB + 16)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("algorithm", "n_nodes", "slow_network", "n_chunks", "kib", "smaller"),
    [
        ("nvls", 1, False, 64, 128, 64), ("nvls", 1, False, 8, 64, 32), ("nvls", 1, False, 2, 32, 16),
        ("nvls", 2, False, 64, 128, 64), ("nvls", 2, True, 8, 32, 32), ("nvls", 2, True, 2, 32, 16),
        ("nvls_tree", 2, False, 4, 128, 64), ("nvls_tree", 2, False, 1, 64, 32), ("nvls_tree", 4, False, 1, 64, 32),
        ("collnet_direct", 4, False, 128, 512, 256), ("collnet_direct", 4, False, 16, 128, 64),
        ("collnet_direct", 4, False, 16, 64, 32),
        ("collnet_chain", 4, False, 512, 256, 128), ("collnet_chain", 4, False, 64, 128, 64),
        ("collnet_chain", 4, False, 8, 64, 32),
    ],
)  # fmt: skip
def test_a_chunk_is_smaller_where_there_are_fewer_for_each_head_than_wanted(
    algorithm, n_nodes, slow_network, n_chunks, kib, smaller
):
    call = NcclCall("all_reduce", 2**30, 8 * n_nodes, n_nodes, algorithm, "simple", slow_network=slow_network)
    enough = n_chunks * kib * KIB * (1 if algorithm == "collnet_chain" else 8)
    assert chunk_bytes(call, enough) == kib * KIB
    assert chunk_bytes(call, enough - 1) == smaller * KIB


@pytest.mark.parametrize(("operation", "n_chunks"), [("all_gather", 32), ("reduce_scatter", 16)])
def test_a_chunk_of_pat_is_halved_where_there_are_fewer_than_wanted_down_to_64_kib(operation, n_chunks):
    call = NcclCall(operation, 2**30, 8, 8, "pat", "simple")
    assert chunk_bytes(call, n_chunks * 512 * KIB // 8) == 512 * KIB
    assert chunk_bytes(call, n_chunks * 512 * KIB // 8 - 1) == 256 * KIB
    assert chunk_bytes(call, 1) == 64 * KIB


def test_collnet_keeps_its_channels_from_512_bytes_a_thread_of_each_head_on():
    enough = 24 * 512 * 8 * 512  # channels, threads, heads, bytes
    for size, n_channels in ((enough, 24), (enough - 1, 23)):
        call = NcclCall("all_reduce", size, 32, 4, "collnet_direct", "simple", 24)
        assert (call.n_heads, used_channels(call)[0]) == (8, n_channels)


def test_the_fewer_the_bytes_the_fewer_channels_of_collnet_down_to_one():
    channels = [
        used_channels(NcclCall("all_reduce", 2**i, 32, 4, "collnet_direct", "simple", 16))[0] for i in range(36)
    ]
    assert channels == sorted(channels)
    assert (channels[0], channels[-1]) == (1, 16)


@pytest.mark.parametrize(
    ("algorithm", "protocol", "slow", "threads"),
    [
        ("ring", "simple", False, 512 + 32), ("ring", "simple", True, 256 + 32), ("ring", "ll", False, 512),
        ("ring", "ll128", False, 640), ("tree", "simple", False, 640), ("nvls", "simple", False, 640),
    ],
)  # fmt: skip
def test_a_large_call_has_all_threads_and_a_ring_with_simple_a_warp_more(algorithm, protocol, slow, threads):
    assert used_channels(NcclCall("all_reduce", 2**33, 8, 1, algorithm, protocol, 8, slow=slow)) == (8, threads)


def test_threads_are_halved_below_the_bytes_that_each_wants_down_to_an_odd_number_of_warps():
    """512 threads want 64 bytes each."""
    sizes = (512 * 64, 512 * 64 - 1, 256 * 64, 256 * 64 - 1, 1)
    threads = [used_channels(NcclCall("all_reduce", size, 8, n_channels=1))[1] for size in sizes]
    assert threads == [512 + 32, 256 + 32, 256 + 32, 128 + 32, 96 + 32]


def test_all_channels_together_carry_all_bytes_and_none_more_than_the_others():
    for seed in range(100):
        call = random_call(seed)
        sizes = [part.n_bytes for part in cut_call(call)]
        assert sum(sizes) == call.count
        assert len(set(sizes[:-1])) <= 1
        assert sizes[-1] <= sizes[0]
        assert len(sizes) <= call.n_channels


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"algorithm": "pat"}, "NCCL has no all_reduce with algorithm=pat; it has ring, tree, nvls"),
        ({"algorithm": "nvls", "protocol": "ll"}, "algorithm=nvls has protocol=simple only, got ll; ring and tree"),
        ({"protocol": "ll256"}, "protocol must be one of ll, ll128, simple, got 'll256'"),
        ({"n_channels": 65}, r"NCCL 2.32 has 1..64 channels, got channels=65"),
        ({"n_channels": 33, "version": (2, 21)}, r"NCCL 2.21 has 1..32 channels, got channels=33"),
        ({"operation": "gather"}, "by algorithm and protocol, not gather"),
        ({"size": 0}, "at least 1 byte"),
    ],
)
def test_what_nccl_does_not_have_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        NcclCall(**{"operation": "all_reduce", "size": 2**20, "n_ranks": 8} | changed)


@pytest.mark.parametrize("text", ["3.0", "2.7", "2.33", "new", "2", "2.27.5.1", ""])
def test_a_version_whose_rules_are_not_known_is_refused_with_those_that_are(text):
    with pytest.raises(InputError, match=r"2\.8 to 2\.32"):
        read_version(text)


def test_a_patch_level_changes_no_rule():
    assert read_version("2.27.5") == read_version("2.27") == (2, 27)


@pytest.mark.parametrize("more", [0, 1, 4, 7])
def test_a_few_bytes_too_many_go_to_the_last_channel(more):
    """A cell more than 16 channels have, which bytes over channels rounded up to 16 do not show: no 17th channel."""
    parts = split(NcclCall("all_reduce", 2**20 + more, 8, 1, "nvls", "simple", 16))
    assert parts == (65536,) * 15 + (65536 + more,)
