"""Estimates for those who ask often."""

import pytest

import commsim as cs

STAR = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"


def test_an_estimate_is_the_prediction_at_powers_of_two_and_close_between():
    for size in (1, 1 << 10, 64 << 20):
        assert cs.estimate("all_reduce", size, 4, STAR).time == cs.predict("ring_all_reduce", STAR, size).time
    between = cs.estimate("all_reduce", 48 << 20, 4, STAR)
    assert between.time == pytest.approx(cs.predict("ring_all_reduce", STAR, 48 << 20).time, rel=0.07)
    assert between.low <= between.time <= between.high


def test_nccls_estimates_have_the_interval_of_its_predictions():
    found, expected = cs.estimate("all_reduce", 1 << 26, 8, "dgx-h100"), cs.predict("nccl", "dgx-h100", 1 << 26)
    assert found == (expected.time, *(expected.interval or (expected.time, expected.time)))


@pytest.mark.parametrize(
    ("given", "said"),
    [(("all_reduce", -1, 4, STAR), "n_bytes must be"), (("sum", 8, 4, STAR), "sum"), (("all_reduce", 8, 9, STAR), "9")],
)
def test_wrong_questions_are_one_line(given, said):
    with pytest.raises(cs.InputError, match=said):
        cs.estimate(*given)
