import tracemalloc

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.pages.lanes import PICOSECOND, in_lanes
from commsim.pages.simulated_run import simulate_run
from commsim.pages.timeline import choose_transfers, on_links, receives, sends
from commsim.prediction.build import prepare
from commsim.prediction.scenario import Wish

NETWORK = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=3,bandwidth=100Gbps,latency=1us"


def played(collective="pairwise_all_to_all", **options):
    return simulate_run(collective, prepare(collective, NETWORK), 2**18, Wish.of(**options))


@pytest.mark.parametrize("collective", ["pairwise_all_to_all", "ring_all_reduce", "double_tree_all_reduce:n_chunks=4"])
@pytest.mark.parametrize("of", [sends, receives, on_links])
def test_slices_on_a_lane_never_overlap(collective, of):
    run = played(collective)
    slices = of(run, choose_transfers(run))
    key = slices.track * 1000 + slices.lane
    same = key[1:] == key[:-1]
    assert (slices.start[1:][same] >= slices.end[:-1][same]).all()
    assert (np.diff(key) >= 0).all()


def test_durations_are_the_engines():
    run = played()
    for of, begin, end in ((sends, run.trace.start, run.trace.sent), (on_links, run.trace.start, run.trace.sent)):
        slices = of(run, choose_transfers(run))
        took = (slices.end - slices.start) * PICOSECOND
        np.testing.assert_allclose(took, (end - begin)[slices.transfer], atol=1.01 * PICOSECOND)
    slices = receives(run, choose_transfers(run))
    assert np.abs(slices.end * PICOSECOND - run.trace.done[slices.transfer]).max() <= PICOSECOND


@pytest.mark.parametrize("of", [sends, receives, on_links])
def test_times_are_rounded_to_the_nearest_picosecond(of):
    slow = NETWORK.replace("100Gbps", "97Gbps")  # so that hardly a time is a whole picosecond
    run = simulate_run("ring", prepare("ring_all_reduce", slow), 12_345)
    slices = of(run, choose_transfers(run))
    begin = run.trace.start + (
        run.prepared.plan.routes.latency[run.prepared.plan.connection_of] if of is receives else 0.0
    )
    end = run.trace.done if of is receives else run.trace.sent
    for whole, exact in ((slices.start, np.minimum(begin, end)), (slices.end, end)):
        assert np.abs(whole - exact[slices.transfer] / PICOSECOND).max() <= 0.5 + 1e-6
    assert (np.abs(slices.end - end[slices.transfer] / PICOSECOND) > 0.1).any()  # else this could not fail


def test_times_beyond_picoseconds_in_64_bits_are_refused():
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK.replace("100Gbps", "1e-9Gbps")), 2**40)
    with pytest.raises(InputError, match="a timeline is at most 9000000 s long"):
        sends(run, choose_transfers(run))


def test_lanes_of_many_slices_take_less_than_50_bytes_each():
    """With words of 8 bytes for all, a second sort and numpy.unique they took 104; with old and new columns, 84."""
    in_lanes(np.zeros(1, np.int64), np.zeros(1), np.ones(1), np.zeros(1, np.int64))  # compiled
    number = np.arange(100_000)
    tracemalloc.start()
    slices = in_lanes(number % 100, number * 1e-6, number * 1e-6 + 5e-7, number)
    lanes, of_slice = slices.lanes()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lanes.tolist() == [[track, 0] for track in range(100)]
    assert of_slice.tolist() == slices.track.tolist()
    assert peak < 50 * len(number)


def test_every_message_is_on_every_link_of_its_path():
    run = played()
    slices = on_links(run, choose_transfers(run))
    wanted = [
        (t, link) for t, links, _ in run.on_links(np.arange(len(run.n_bytes))) for t, link in zip(t, links, strict=True)
    ]
    assert sorted(zip(slices.transfer.tolist(), slices.track.tolist(), strict=True)) == sorted(wanted)


def test_a_window_holds_what_touches_it():
    run = played()
    low, high = run.result.time * 0.4, run.result.time * 0.6
    inside = set(choose_transfers(run, (low, high)).tolist())
    for i in range(len(run.n_bytes)):
        assert (i in inside) == (run.trace.start[i] <= high and run.trace.done[i] >= low)


@pytest.mark.parametrize("limit", [1, 3, 7, 29, 30, 100])
def test_a_limit_is_kept_and_the_critical_path_comes_first(limit):
    run = played()
    some = choose_transfers(run, limit=limit)
    assert len(some) == min(limit, len(run.n_bytes))
    critical = set(run.critical.transfers)
    assert len(critical & set(some.tolist())) == min(limit, len(critical))
    assert (np.diff(some) > 0).all()


def test_a_window_that_ends_before_it_begins_and_no_messages_are_refused():
    run = played()
    with pytest.raises(InputError, match="--to must be later"):
        choose_transfers(run, (2.0, 1.0))
    with pytest.raises(InputError, match="--limit must be at least 1"):
        choose_transfers(run, limit=0)
