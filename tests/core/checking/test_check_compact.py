import dataclasses

import numpy as np
import pytest

from collectives import COLLECTIVES
from collectives.dense.ring import ring_all_reduce
from commsim.core.checking.check import CheckReport, check
from commsim.core.checking.check_compact import CompactReport, SampleReport, check_builder, check_sample
from commsim.core.errors import ScheduleError


def test_a_small_schedule_is_run():
    assert isinstance(check_builder(ring_all_reduce, 12), CheckReport)


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", [131_072, 100_000, 99_999])
@pytest.mark.parametrize("name", ["ring_all_reduce", "ring_all_gather", "pairwise_all_to_all", "direct_all_to_all"])
def test_a_schedule_of_billions_is_checked_by_its_rounds(name, n_ranks):
    report = check_builder(COLLECTIVES[name].build, n_ranks)
    assert isinstance(report, CompactReport)
    assert report.n_transfers >= n_ranks * (n_ranks - 1)
    assert "proved correct in full" in str(report)


def test_a_builder_that_changes_its_rounds_when_it_is_large_is_refused():
    def cheat(n_ranks):
        schedule = ring_all_reduce(n_ranks)
        if n_ranks < 1000:
            return schedule
        wrong = dataclasses.replace(schedule.blocks[0], step=(0, 0, -2, -2))
        return dataclasses.replace(schedule, blocks=(wrong, *schedule.blocks[1:]))

    with pytest.raises(ScheduleError, match="its rounds at 100000 ranks are not those at 10"):
        check_builder(cheat, 100_000)


def test_a_wrong_collective_is_found_at_a_small_size():
    def wrong(n_ranks):
        schedule = ring_all_reduce(n_ranks)
        return dataclasses.replace(schedule, blocks=schedule.blocks[:1])

    with pytest.raises(ScheduleError, match="ends with chunk"):
        check_builder(wrong, 100_000)


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["halving_doubling_all_reduce", "recursive_doubling_all_gather"])
@pytest.mark.parametrize("n_ranks", [131_072, 100_000])
def test_a_schedule_with_too_many_addresses_is_followed_for_some_chunks(name, n_ranks):
    report = check_builder(COLLECTIVES[name].build, n_ranks)
    assert isinstance(report, SampleReport)
    assert report.n_transfers == COLLECTIVES[name].build(n_ranks).n_transfers
    assert 0 in report.chunks
    assert max(report.chunks) == COLLECTIVES[name].build(n_ranks).n_chunks - 1
    assert report.failure_probability < 1e-11


@pytest.mark.slow
def test_a_wrong_transfer_among_millions_is_found_when_its_chunk_is_followed():
    schedule = COLLECTIVES["halving_doubling_all_reduce"].build(2**16)
    (block,) = schedule.blocks
    body = block.body.copy()
    last = np.flatnonzero((body["hop"] == body["hop"].max()) & (body["src_chunk"] == 0))[0]
    body["op"][last] = 1  # adds the result to itself
    wrong = dataclasses.replace(schedule, blocks=(dataclasses.replace(block, body=body),))
    with pytest.raises(ScheduleError, match="chunk 0: rank"):
        check_sample(wrong)


@pytest.mark.parametrize("name", ["ring_all_reduce", "ring_reduce_scatter", "ring_all_gather", "chain_broadcast"])
def test_following_chunks_agrees_with_the_whole_check(name):
    assert check_sample(COLLECTIVES[name].build(12)).n_transfers == check(COLLECTIVES[name].build(12)).n_transfers
