import pytest

from commsim.core.errors import InputError
from commsim.papers.systems.dlrm import dlrm, embedding_bytes


def test_an_all_to_all_carries_a_ranks_tables_for_the_whole_batch():
    """With equal shares that is every table for a rank's share of the batch."""
    n_tables, dimension, batch, n_ranks = 64, 128, 4096, 16
    assert embedding_bytes(n_tables, dimension, batch, n_ranks) == n_tables * (batch // n_ranks) * dimension * 4
    assert embedding_bytes(26, 64, 1000, 8, 2) == 4 * 1000 * 64 * 2, "the rank with four of 26 tables is the slowest"


def test_one_rank_computes_alone():
    answer = dlrm(n_ranks=1, n_tables=2, lookup=1e-3, bottom=2e-3, top=3e-3)
    assert answer["iteration_s"] == pytest.approx(3 * (2 * 1e-3 + 2e-3 + 3e-3))
    assert answer["all_to_all_s"] == answer["all_to_all_B"] == answer["exposed_comm_s"] == 0


def test_the_bottom_network_hides_the_all_to_alls_up_to_its_own_time():
    """Without an all-reduce: each all-to-all is exposed by what it takes longer than the bottom network beside it."""
    batch, n_ranks, rate, bottom = 8192, 8, 10e9, 1e-3
    for n_tables in (8, 16, 64, 128):
        answer = dlrm(
            n_ranks=n_ranks, n_tables=n_tables, dimension=64, batch=batch, lookup=0.0, bottom=bottom, top=1e-3,
            bottom_gradients=0.0, top_gradients=0.0, alpha=0.0, bandwidth=rate,
        )  # fmt: skip
        one = (n_ranks - 1) / n_ranks * embedding_bytes(n_tables, 64, batch, n_ranks) / rate
        assert answer["all_to_all_s"] == pytest.approx(2 * one)
        exposed = max(0.0, one - bottom) + max(0.0, one - 2 * bottom)
        assert answer["exposed_comm_s"] == pytest.approx(exposed, abs=1e-12)
        assert answer["iteration_s"] == pytest.approx(answer["compute_s"] + exposed)


def test_embedding_gradients_go_before_those_of_the_networks():
    """An all-reduce of the top network, long enough to end last, starts only after the all-to-all."""
    answer = dlrm(top_gradients=500e6)
    tables = answer["tables_of_a_rank"] * 0.1e-3
    one = answer["all_to_all_s"] / 2
    forward = tables + max(one, 0.5e-3) + 3 * 1e-3
    assert answer["iteration_s"] == pytest.approx(forward + one + answer["all_reduce_s"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_ranks": 27}, "n_ranks must be at most the 26 tables, got 27"),
        ({"batch": 0}, "must be at least 1"),
        ({"n_ranks": 0}, "must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        dlrm(**given)
