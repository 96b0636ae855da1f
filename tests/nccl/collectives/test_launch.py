"""The schedules of NCCL: proved by the checker, as many messages as the rules say, channels on their rails."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.dense.double_tree import depths
from collectives.nccl.call import ALLOWED, NcclCall, read_version
from collectives.nccl.rules import cut_call
from collectives.nccl.trees import node_trees
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.core.schedule import REDUCE

MIB = 2**20


def machines_of(n_ranks, per_machine):
    return tuple(tuple(range(i, min(n_ranks, i + per_machine))) for i in range(0, n_ranks, per_machine))


def build(operation, n_ranks, **given):
    return COLLECTIVES[f"nccl_{operation}"].build(n_ranks, **given)


def cases():
    for operation, algorithms in ALLOWED.items():
        for algorithm in algorithms:
            for protocol in ("ll", "ll128", "simple") if algorithm in ("ring", "tree") else ("simple",):
                yield operation, algorithm, protocol


def shape_of(algorithm, draw):
    per_machine = {"pat": 1}.get(algorithm, draw.choice([1, 2, 4]))
    n_machines = {"nvls_tree": draw.randint(2, 5)}.get(algorithm, draw.randint(1, 5))
    return max(2, n_machines * per_machine), 2 if algorithm == "nvls" and per_machine == 1 else per_machine


@pytest.mark.sample(2, each="algorithm")
@pytest.mark.slow
@pytest.mark.parametrize(("operation", "algorithm", "protocol"), list(cases()))
def test_the_checker_proves_every_algorithm_with_every_protocol(operation, algorithm, protocol):
    draw = random.Random(f"{operation} {algorithm} {protocol}")
    for _ in range(3):
        n_ranks, per_machine = shape_of(algorithm, draw)
        given = {"channels": draw.randint(1, 6), "n_bytes": int(2 ** draw.uniform(0, 28))}
        if operation in ("broadcast", "reduce"):
            given["root"] = draw.randrange(n_ranks)
        alone = algorithm == "nvls" and operation != "all_reduce"
        machines = machines_of(n_ranks, n_ranks if alone or n_ranks % per_machine else per_machine)
        if algorithm == "nvls_tree" and len(machines) == 1:
            machines = machines_of(n_ranks, 1)
        check(build(operation, n_ranks, algorithm=algorithm, protocol=protocol, machines=machines, **given))


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(40))
def test_a_ring_sends_as_many_messages_over_each_connection_as_the_rules_have_slices(seed):
    draw = random.Random(seed)
    operation = draw.choice(["all_reduce", "all_gather", "reduce_scatter"])
    protocol, n_ranks, channels = draw.choice(["ll", "ll128", "simple"]), draw.randint(2, 9), draw.randint(1, 7)
    size = int(2 ** draw.uniform(0, 29))
    schedule = build(operation, n_ranks, protocol=protocol, channels=channels, n_bytes=size)
    transfers = schedule.expand()
    parts = cut_call(NcclCall(operation, size, n_ranks, 1, "ring", protocol, channels))
    passes = (n_ranks - 1) * (1 + (operation == "all_reduce"))
    wanted = {channel: passes * part.n_slices // part.by_loop for channel, part in enumerate(parts)}
    sent = Counter(zip(transfers["channel"].tolist(), transfers["src"].tolist(), strict=True))
    assert sent == {(channel, rank): n for channel, n in wanted.items() for rank in range(n_ranks)}


@pytest.mark.parametrize("n_bytes", [3 * MIB, 40 * MIB, 100 * MIB + 17])
def test_sizes_of_pieces_are_those_of_the_rules_to_a_sixteenth_of_a_chunk(n_bytes):
    schedule = build("all_reduce", 4, channels=2, n_bytes=n_bytes)
    part = cut_call(NcclCall("all_reduce", n_bytes, 4, n_channels=2))[0]
    first = next(schedule.rounds())
    mine = first[(first["src"] == 0) & (first["channel"] == 0)]
    chunk = part.chunk if part.n_loops > 1 else part.last_chunk
    unit = n_bytes / schedule.n_chunks
    assert mine["count"].sum() * unit == pytest.approx(chunk, rel=1 / 16)


def test_every_channel_leaves_a_machine_by_its_rail_or_the_next_and_enters_the_following_machine_on_the_same():
    machines = machines_of(16, 4)
    transfers = build("all_reduce", 16, channels=4, machines=machines).expand()
    crossing = transfers[transfers["src"] // 4 != transfers["dst"] // 4]
    rail = crossing["src"] % 4
    assert (crossing["dst"] % 4 == rail).all()
    assert np.isin((rail - crossing["channel"]) % 4, (0, 1)).all()
    assert len(set(np.bincount(rail).tolist())) == 1  # every rail is used as often as the others


@pytest.mark.parametrize("n_nodes", range(1, 40))
def test_no_node_is_inside_both_trees_and_both_have_the_height_of_a_binary_tree(n_nodes):
    inside = []
    for parent in node_trees(n_nodes):
        assert (parent == -1).sum() == 1
        children = np.bincount(parent[parent >= 0], minlength=n_nodes)
        assert children.max() <= 2
        assert depths(parent).max() <= max(0, n_nodes - 1).bit_length()
        inside.append(set(np.flatnonzero((children > 0) & (parent >= 0)).tolist()))
    if n_nodes % 2 == 0:
        assert not inside[0] & inside[1]


def test_the_second_half_of_the_channels_takes_the_second_tree():
    schedule = build("all_reduce", 8, algorithm="tree", channels=4, n_bytes=64 * MIB, machines=machines_of(8, 1))
    transfers = schedule.expand()
    edges = [
        set(zip(t["src"].tolist(), t["dst"].tolist(), strict=True))
        for t in (transfers[transfers["channel"] == channel] for channel in range(4))
    ]
    assert edges[0] == edges[1] != edges[2] == edges[3]


def test_the_switch_receives_everything_once_and_a_share_of_it_again():
    """Every GPU sends the array to be added, and the head's share of the result to be multicast."""
    schedule = build("all_reduce", 8, algorithm="nvls", channels=16, n_bytes=64 * MIB)
    transfers = schedule.expand()
    sent = transfers[(transfers["src"] == 3) & (transfers["dst"] == 8)]
    received = transfers[(transfers["src"] == 8) & (transfers["dst"] == 3)]
    assert sent["count"].sum() / schedule.n_chunks == pytest.approx(1 + 1 / 8)
    assert received["count"].sum() / schedule.n_chunks == pytest.approx(1 + 1 / 8)
    assert (sent["op"] == REDUCE).sum() == 8 * (sent["op"] != REDUCE).sum()


def test_pat_takes_a_logarithmic_number_of_steps_and_sends_each_part_to_each_rank_once():
    for n_ranks in (2, 5, 8, 13):
        schedule = build(
            "all_gather", n_ranks, algorithm="pat", channels=1, n_bytes=n_ranks, machines=machines_of(n_ranks, 1)
        )
        assert schedule.n_hops == (n_ranks - 1).bit_length()
        assert schedule.n_transfers == n_ranks * (n_ranks - 1)


def test_a_ring_of_8192_ranks_with_24_channels_is_kept_compact():
    schedule = build("all_reduce", 8192, channels=24, n_bytes=2**30, machines=machines_of(8192, 8))
    assert schedule.n_transfers == 24 * 8192 * 2 * 8191
    assert sum(len(block.body) for block in schedule.blocks) == 2 * 24 * 8192


@pytest.mark.parametrize(
    ("operation", "given", "message"),
    [
        ("all_reduce", {"algorithm": "pat"}, "nccl_all_reduce: NCCL has no all_reduce with algorithm=pat; it has ring"),
        ("all_reduce", {"algorithm": "nvls", "protocol": "ll"}, "algorithm=nvls has protocol=simple only, got ll"),
        ("all_reduce", {"version": "2.40"}, r"the rules of NCCL 2.40 are not known; version is 2\.8 to 2\.32"),
        ("all_reduce", {"version": "2.21", "channels": 48}, "NCCL 2.21 has 1..32 channels, got channels=48"),
        ("all_reduce", {"algorithm": "nvls_tree"}, "algorithm=nvls_tree needs several machines; take nvls on one"),
        ("all_reduce", {"algorithm": "nvls_tree", "machines": machines_of(8, 5)}, "as many ranks in every machine"),
        ("all_gather", {"algorithm": "pat", "machines": machines_of(8, 4)}, "algorithm=pat has one rank in each"),
        ("broadcast", {"algorithm": "tree"}, "NCCL has no broadcast with algorithm=tree; it has ring"),
        ("all_reduce", {"machines": ((0, 1), (2, 3))}, r"machines must hold each rank 0\.\.7 exactly once"),
        ("all_reduce", {"algorithm": "rings"}, "algorithm must be one of auto, ring, tree"),
    ],
)
def test_what_excludes_each_other_is_refused(operation, given, message):
    with pytest.raises(InputError, match=message):
        build(operation, 8, **given)


def test_older_versions_cut_small_calls_into_more_channels():
    """The least traffic of a channel has doubled: of 128 KiB, that is 256 KiB of traffic, 8 channels and then 16."""
    n = [len(cut_call(NcclCall("all_reduce", 2**17, 2, protocol="ll128", n_channels=16, version=read_version(v))))
         for v in ("2.30", "2.23")]  # fmt: skip
    assert n == [8, 16]


def test_all_channels_of_all_operations_have_connections_of_their_own():
    for operation in ALLOWED:
        transfers = build(operation, 6, channels=3, n_bytes=64 * MIB).expand()
        assert set(transfers["channel"].tolist()) == {0, 1, 2}
        for one, other in itertools.combinations(range(3), 2):
            pairs = [np.flatnonzero(transfers["channel"] == c) for c in (one, other)]
            assert not set(pairs[0].tolist()) & set(pairs[1].tolist())
