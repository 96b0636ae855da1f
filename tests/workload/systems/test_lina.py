import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.workload.systems.lina import lina, plan


@given(weights=st.lists(st.floats(0.01, 10.0), min_size=2, max_size=12))
@settings(max_examples=50)
def test_every_token_has_a_gpu_and_the_busiest_is_no_busier(weights):
    popularity = np.array(weights) / sum(weights)
    shares = plan(popularity)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(weights)))
    assert (popularity @ shares).max() <= popularity.max() * (1 + 1e-9)


def test_an_expert_with_half_of_the_tokens_gets_half_of_the_gpus():
    shares = plan(np.array([0.5, 0.2, 0.15, 0.15]))
    assert sorted(shares[0]) == [0, 0, 0.5, 0.5]
    assert (np.array([0.5, 0.2, 0.15, 0.15]) @ shares).max() == pytest.approx(0.3)


def test_skew_costs_the_tail_of_one_expert_each_and_less_of_the_plan():
    even, skewed = lina(skew=0.0), lina(skew=1.0)
    assert even["one_each_busiest"] == even["planned_busiest"] == pytest.approx(1)
    assert skewed["planned_p95_s"] < 0.6 * skewed["one_each_p95_s"]
    assert skewed["one_each_p95_s"] > skewed["one_each_median_s"]


@pytest.mark.parametrize("given", [{"n_gpus": 1}, {"batches": 0}, {"tokens": 0}, {"skew": 9.0}])
def test_what_makes_no_sense_is_refused(given):
    with pytest.raises(InputError, match="GPUs must be 2 to 1024"):
        lina(**given)
