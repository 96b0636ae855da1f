import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim import predict
from commsim.core.checking.check import check
from commsim.core.errors import InputError
from commsim.prediction.build import prepare

FAT_TREE = "fat_tree:k=4,bandwidth=100Gbps,latency=1us"


@pytest.mark.sample(25)
@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_every_collective_can_wait_after_each_step_and_keeps_its_promise(name):
    schedule, waits = (COLLECTIVES[name].build(6, blocking=blocking) for blocking in (False, True))
    assert check(waits).n_transfers == schedule.n_transfers
    ours, theirs = waits.expand(), schedule.expand()
    assert (ours["stage"] == ours["hop"]).all()
    ours["stage"] = theirs["stage"]
    np.testing.assert_array_equal(ours, theirs)


def test_a_ring_that_waits_goes_at_the_pace_of_its_slowest_link():
    """Without waiting the steps follow each other at the mean latency of the ring's hops, by max-plus algebra."""
    size, n_ranks = 2**20, 16
    free, waiting = (
        predict(f"ring_all_reduce:blocking={blocking}", FAT_TREE, size, overhead="0us").time
        for blocking in ("false", "true")
    )
    slowest = 6e-6  # from one pod to the next
    assert waiting == pytest.approx(2 * (n_ranks - 1) * (slowest + size / n_ranks / 12.5e9), rel=1e-9)
    assert free < waiting
    assert predict("ring_all_reduce", FAT_TREE, size, overhead="0us").time == free


def test_a_pipeline_that_waits_is_none():
    chain = "chain_broadcast:n_chunks=8,blocking={}"
    star = "star:n_hosts=4,bandwidth=100Gbps,latency=0s"
    free, waiting = (
        predict(chain.format(blocking), star, 2**20, overhead="0us").time for blocking in ("false", "true")
    )
    step = 2**20 / 8 / 12.5e9
    assert free == pytest.approx((3 + 7) * step)
    assert waiting == pytest.approx(3 * 8 * step)  # a hop is all 8 messages


def test_the_closed_form_does_not_wait():
    ready = prepare("ring_all_reduce:blocking=true", FAT_TREE)
    with pytest.raises(InputError, match="the closed form is that of steps that do not wait"):
        ready.predict(2**20, engine="closed-form")
    with pytest.raises(InputError, match="blocking must be true or false, got 'maybe'"):
        prepare("ring_all_reduce:blocking=maybe", FAT_TREE)
