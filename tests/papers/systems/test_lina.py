import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.papers.systems.lina import lina, plan


@given(weights=st.lists(st.floats(0.01, 10.0), min_size=2, max_size=12))
def test_every_token_has_a_gpu_and_the_busiest_is_no_busier(weights):
    popularity = np.array(weights) / sum(weights)
    shares = plan(popularity)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(weights)))
    assert (popularity @ shares).max() <= popularity.max() * (1 + 1e-9)


@pytest.mark.parametrize(
    ("popularity", "busiest"),
    [
        ((0.5, 0.2, 0.15, 0.15), 0.3),  # two GPUs for the first, one for the last two
        ((0.48, 0.24, 0.16, 0.12), 0.28),  # 1.92 GPUs are two
        ((0.25, 0.25, 0.25, 0.25), 0.25),
        ((0.75, 0.25), 0.5 + 0.125),  # three parts of a quarter on two GPUs: there is no better without finer parts
    ],
)
def test_a_popular_expert_gets_its_share_of_the_gpus_and_unpopular_ones_share_one(popularity, busiest):
    assert (np.array(popularity) @ plan(np.array(popularity))).max() <= busiest + 1e-9


def test_skew_costs_the_tail_of_one_expert_each_and_less_of_the_plan():
    even, skewed = lina(skew=0.0, tokens=10**8), lina(skew=1.0)
    assert even["one_each_busiest"] == even["planned_busiest"] == pytest.approx(1, rel=0.01)
    assert skewed["planned_p95_s"] < 0.6 * skewed["one_each_p95_s"]
    assert skewed["one_each_p95_s"] > skewed["one_each_median_s"]


def test_an_estimate_from_the_layer_before_helps_where_that_layer_says_something():
    blind, told = (lina(topics=1.0, memory=memory, tokens=10**6) for memory in (0.0, 0.9))
    assert blind["estimated_p95_s"] == pytest.approx(blind["planned_p95_s"], rel=0.02)
    assert told["estimated_p95_s"] < 0.5 * told["planned_p95_s"]
    assert told["planned_p95_s"] > 1.5 * blind["planned_p95_s"]  # batches differ from the service's popularity


def test_what_is_remembered_wholly_is_estimated_exactly():
    two = lina(n_gpus=2, memory=1.0, topics=2.0, skew=0.0)
    assert two["estimated_busiest"] <= two["planned_busiest"]
    (half,) = {lina(n_gpus=2, memory=1.0, topics=2.0, skew=0.0, tokens=1)["one_each_busiest"]}
    assert half == 2  # a single token is on one GPU


@pytest.mark.parametrize(
    ("given", "told"),
    [({"n_gpus": 1}, "GPUs must be 2 to 1024"), ({"batches": 1}, "batches 2 to"), ({"tokens": 0}, "tokens at least 1"),
     ({"skew": 9.0}, "skew 0 to 4"), ({"memory": 1.5}, "memory must be 0 to 1"), ({"topics": 0.0}, "topics above 0")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given, told):
    with pytest.raises(InputError, match=told):
        lina(**given)
