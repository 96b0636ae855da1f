"""RCCL's rings use all links of a full mesh equally, and all rails; and what that makes of the time."""

from collections import Counter
from itertools import pairwise

import pytest

from collectives import COLLECTIVES
from collectives.nccl.call import NcclCall
from collectives.nccl.mesh_rings import mesh_cycles, mesh_order
from collectives.nccl.rules import cut_call
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.prediction.build import prepare


@pytest.mark.parametrize("n", range(3, 18))
def test_rings_of_a_mesh_go_over_each_link_in_each_direction_twice(n):
    links = Counter(edge for ring in mesh_cycles(n) for edge in pairwise((*ring, ring[0])))
    assert len(links) == n * (n - 1)
    assert set(links.values()) == {2}
    assert all(sorted(ring) == list(range(n)) for ring in mesh_cycles(n))


@pytest.mark.parametrize("channel", [0, 3, 9, 20])
def test_a_channel_goes_through_a_machine_as_its_ring_does_up_to_one_link(channel):
    ring = mesh_cycles(8)[channel % 14]
    order = mesh_order([range(8)], channel).tolist()
    assert set(pairwise(order)) < set(pairwise((*ring, ring[0])))


@pytest.mark.parametrize(("per_machine", "n_machines"), [(8, 2), (8, 4), (4, 6), (5, 2)])
def test_rings_over_machines_use_all_rails_equally_and_keep_to_them(per_machine, n_machines):
    machines = [tuple(range(i * per_machine, (i + 1) * per_machine)) for i in range(n_machines)]
    crossings: Counter[tuple[int, int]] = Counter()
    for channel in range(per_machine * (per_machine - 1)):
        order = mesh_order(machines, channel).tolist()
        assert sorted(order) == list(range(per_machine * n_machines))
        for a, b in pairwise([*order, order[0]]):
            if a // per_machine != b // per_machine:
                assert a % per_machine == b % per_machine
                crossings[a // per_machine, a % per_machine] += 1
    assert set(crossings.values()) == {per_machine - 1}
    assert len(crossings) == per_machine * n_machines


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"])
def test_the_checker_proves_them_over_meshes_and_rails(operation):
    machines = ((0, 2, 4, 6), (1, 3, 5, 7))
    for rings in ("mesh", "rails"):
        for given in ({}, {"machines": machines}):
            check(COLLECTIVES[f"rccl_{operation}"].build(8, channels=14, rings=rings, n_bytes=2**22, **given))


def test_eight_mi300x_send_over_all_seven_links_at_once():
    """2 (p - 1) S / p over 0.94 of seven links of 48 GB/s; one ring uses a single one. 1 GiB: 5990.7 us measured."""
    ready = prepare("rccl_all_reduce", "mi300x")
    assert ready.predict(2**30).time == pytest.approx(2 * 7 / 8 * 2**30 / (0.94 * 336e9), rel=0.01)
    assert ready.predict(2**30).time == pytest.approx(5990.7e-6, rel=0.01)
    assert prepare("ring_all_reduce", "mi300x").predict(2**30).time > 6.5 * ready.predict(2**30).time


def test_without_a_mesh_rings_go_through_each_machine_in_order():
    here = prepare("rccl_all_reduce", "nvswitch_host:gpu=cdna3")
    assert here.launch.rings == {"rings": "rails"}
    assert any("in order" in note for note in map(str, here.notes))


def test_rings_that_are_unknown_are_refused():
    with pytest.raises(InputError, match="rings must be one of mesh, rails"):
        COLLECTIVES["rccl_all_reduce"].build(8, rings="star")


def test_a_tree_goes_through_a_machine_as_the_ring_of_its_channel():
    """With one order for all channels a chain's links carry all bytes; over a mesh each has its part."""
    machines = (tuple(range(8)), tuple(range(8, 16)))
    links: Counter[tuple[int, int]] = Counter()
    built = COLLECTIVES["rccl_all_reduce"].build(
        16, algorithm="tree", rings="mesh", channels=56, n_bytes=2**26, machines=machines
    )
    check(built)
    every = built.expand()
    for a, b, count in zip(*(every[name].tolist() for name in ("src", "dst", "count")), strict=True):
        links[a, b] += count if a // 8 == b // 8 else 0
    links = +links
    assert len(links) == 2 * 8 * 7
    assert max(links.values()) < 1.5 * min(links.values())


@pytest.mark.parametrize(
    ("library", "protocol", "in_turn"), [("rccl", "simple", True), ("rccl", "ll128", False), ("nccl", "simple", False)]
)
def test_rccl_sends_all_pieces_up_a_tree_with_simple_before_any_comes_down(library, protocol, in_turn):
    """Its kernel is runTreeUpDown, all threads on one way; with LL and LL128, and in NCCL, both ways go at once.

    A connection keeps its order: if the piece that is added up last comes down first, all others wait for it.
    """
    machines = (tuple(range(8)), tuple(range(8, 16)))
    built = COLLECTIVES[f"{library}_all_reduce"].build(
        16, algorithm="tree", protocol=protocol, channels=8, n_bytes=2**26, machines=machines
    )
    check(built)
    every = built.expand()
    for channel in range(8):
        piece, adds = (column[every["channel"] == channel] for column in (every["src_chunk"], every["op"] > 0))
        assert (piece[~adds][0] == piece[adds][-1]) == in_turn
        assert piece[adds][0] < piece[adds][-1]


def test_rccl_all_reduce_of_64_mib_on_four_machines_is_laid_out():
    """With a fence between both ways its 65,596 messages waited for each other in more than 2**27 ways."""
    assert prepare("rccl_all_reduce", "mi300x@star:machines=4").predict(2**26).time > 0


@pytest.mark.parametrize(("library", "chunk"), [("rccl", 32), ("nccl", 512)])
def test_rccl_cuts_trees_with_simple_into_small_chunks_where_they_would_be_few(library, chunk):
    """Half a MiB on each of 4 channels is one whole step of 512 KiB, fewer than the tree is deep."""
    built = NcclCall("all_reduce", 2**21, 32, 4, "tree", "simple", 4, rccl=library == "rccl")
    assert {part.chunk for part in cut_call(built)} == {chunk * 1024}


def test_rccl_keeps_whole_steps_in_trees_of_more_messages_than_can_be_simulated_soon():
    """1 GiB on 128 x 8 MI300X were 15 million messages of 128 KiB; whole steps of 512 KiB are a quarter of them."""
    calls = {n: NcclCall("all_reduce", 2**30, 8 * n, n, "tree", "simple", 56, rccl=True) for n in (8, 128)}
    chunks = {n: {part.chunk // 1024 for part in cut_call(call)} for n, call in calls.items()}
    assert chunks == {8: {128}, 128: {512}}


@pytest.mark.parametrize(
    ("collective", "machine", "message"),
    [
        ("nccl_all_reduce", "mi300x@star:machines=2", r"NCCL does not run on .* \(cdna3\): take rccl_all_reduce"),
        ("rccl_all_reduce", "dgx-h100", r"RCCL does not run on dgx-h100's GPUs \(hopper\): take nccl_all_reduce"),
    ],
)
def test_a_library_is_refused_on_gpus_of_another_maker(collective, machine, message):
    """Two rings over one link each were answered: 48 GB/s, an eighth of what RCCL reaches on 2 x 8 MI300X."""
    with pytest.raises(InputError, match=message):
        prepare(collective, machine)
