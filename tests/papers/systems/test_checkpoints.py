import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.papers.systems.checkpoints import changed_share, check_n_run, datastates, row_shares


@pytest.mark.parametrize("skew", [0.0, 1.0])
def test_rows_change_as_often_as_drawn_look_ups_touch_them(skew):
    shares = row_shares(2000, skew)
    draw = np.random.default_rng(1)
    for lookups in (100, 2000, 20_000):
        touched = [len(np.unique(draw.choice(2000, lookups, p=shares))) / 2000 for _ in range(20)]
        assert changed_share(shares, lookups) == pytest.approx(np.mean(touched), rel=0.03)


def test_uniform_rows_have_a_closed_form_and_one_row_always_changes():
    assert changed_share(row_shares(100, 0.0), 50) == pytest.approx(1 - 0.99**50)
    assert changed_share(row_shares(1, 0.0), 1) == 1
    assert changed_share(row_shares(10, 0.0), 0) == 0


def test_what_changed_since_the_last_checkpoint_is_the_smallest_and_keeps_the_most():
    rows = {row["policy"]: row for row in check_n_run(n_rows=10_000, bits=32)["checkpoints"]}
    assert rows["consecutive"]["mean_B"] < rows["one_shot"]["mean_B"] < rows["full"]["mean_B"]
    assert rows["one_shot"]["largest_B"] > rows["one_shot"]["mean_B"]
    assert rows["consecutive"]["kept_B"] == pytest.approx(rows["full"]["mean_B"] + 12 * rows["consecutive"]["mean_B"])
    assert rows["full"]["reduction"] == 1


def test_quantising_multiplies_with_leaving_out():
    """A row of 64 float32 is 256 bytes; with 4 bits 32, and 8 for its range."""
    for exact, coarse in zip(
        check_n_run(n_rows=10_000, bits=32)["checkpoints"],
        check_n_run(n_rows=10_000, bits=4)["checkpoints"],
        strict=True,
    ):
        assert coarse["reduction"] / exact["reduction"] == pytest.approx(256 / 40)


def test_a_copy_behind_the_passes_costs_nothing_until_it_is_longer():
    rare = {"interval_iterations": 100, "host_bandwidth": 10e9, "storage_bandwidth": 1e9}
    for seconds in (0.5, 1.0, 2.0, 3.0):
        answer = datastates(size=seconds * 10e9, forward_backward=1.0, **rare)
        assert answer["lazy_stall_s"] == pytest.approx(max(0.0, seconds - 1.0))
        assert answer["snapshot_stall_s"] == pytest.approx(seconds)
        assert answer["synchronous_stall_s"] == pytest.approx(10 * seconds)


def test_checkpoints_come_no_faster_than_storage_takes_them():
    """In the long run a checkpoint per iteration takes at least as long as its flush."""
    answer = datastates(size=10e9, forward_backward=1.0, update=0.0, storage_bandwidth=1e9, n_checkpoints=1000)
    assert answer["time_s"] / 1000 == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_n_run(bits=0), "bits must be 1 to 32"),
        (lambda: check_n_run(n_rows=0), "rows must be 1 to 10000000"),
        (lambda: check_n_run(n_rows=10**7), "rows times checkpoints must be at most 100000000"),
        (lambda: check_n_run(lookups=0), "lookups and interval must be at least 1"),
        (lambda: datastates(size=0.0), "size, bandwidths and passes must be positive"),
        (lambda: datastates(n_checkpoints=0), "checkpoints 1 to 1000"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
