"""Intervals from operators left out: what they hold, how operators count, and where there is none."""

import numpy as np
import pytest

from benchmarks.nccl_tables import asked
from benchmarks.nccl_tables import intervals as made_here
from benchmarks.nccl_tables.intervals import (
    STATED,
    Score,
    calibrated,
    coverage,
    inside,
    interval,
    kind_of_asked,
    made,
    written,
)
from commsim.nccl.error_model import read_errors
from commsim.nccl.intervals import read_intervals


def rows(operator, logs, kind="roce", size="middle", table=""):
    return [
        Score(operator, table or f"{operator}_{i % 4}", kind, size, log, 2.0 ** (i // 4)) for i, log in enumerate(logs)
    ]


def drawn(n_operators, seed=7):
    """Operators whose errors have a part in common, beside that of each row."""
    rng = np.random.default_rng(seed)
    return [s for k in range(n_operators) for s in rows(f"o{k}", rng.normal(rng.normal(0, 0.1), 0.1, 40))]


def test_operators_have_the_same_weight_whatever_they_measured():
    low, high = interval(rows("a", [0.0] * 99) + rows("b", [1.0]), 1.0)
    assert (low, high) == pytest.approx((1.0, np.e))


def test_a_row_is_judged_by_others_only():
    scores = rows("a", [0.0, 0.1]) + rows("b", [5.0, 5.1])
    assert not inside(scores, 1.0).any()


def test_about_as_many_rows_of_operators_left_out_lie_inside_as_is_stated():
    scores = drawn(12)
    _, share = calibrated(scores)
    assert share == pytest.approx(STATED, abs=0.03)
    ((some, n),) = coverage(scores).values()
    assert 0.7 < some / n < 0.9


def test_an_interval_is_on_the_side_of_the_errors():
    """All predictions are too fast by 20 to 60 %: the interval begins at the prediction, and ends above it."""
    rng = np.random.default_rng(7)
    scores = [s for k in range(6) for s in rows(f"o{k}", rng.uniform(np.log(1.2), np.log(1.6), 20))]
    found, _ = made(scores)
    low, high = found["roce", "middle"]
    assert low == 1
    assert 1.4 < high < 1.75


def test_a_kind_of_one_operator_has_none_and_a_size_without_rows_that_of_all():
    scores = drawn(3) + rows("alone", [0.0, 0.1, 0.2, 0.3], kind="slingshot")
    found, lines = made(scores)
    assert {kind for kind, _ in found} == {"roce"}
    assert found["roce", "small"] == found["roce", "middle"]
    assert ["no interval" in line for line in lines].count(True) == 3
    assert read_intervals(written(found)).keys() == found.keys()


def test_questions_have_the_kind_of_what_they_ask():
    def table(topology, collective, n_ranks):
        return asked.Asked(
            "a", "k", "o", "all_reduce", "m", "yes", topology, collective, 1, 8, n_ranks, "", "", 0.0, ()
        )

    assert kind_of_asked(table("hgx-h100@star:machines=2", "nccl_all_reduce", 16)) == "infiniband"
    assert kind_of_asked(table("gb300-nvl72", "nccl_all_reduce", 64)) == "nvlink_domain"
    assert kind_of_asked(table("mi300x", "rccl_all_reduce", 8)) == "rccl"


def test_the_file_is_written_where_it_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(made_here, "PATH", tmp_path / "intervals.toml")
    monkeypatch.setattr(made_here, "ERRORS", tmp_path / "errors.toml")
    monkeypatch.setattr(made_here, "all_scores", lambda folders: drawn(4 + 0 * len(list(folders))))
    assert made_here.main(["--data", "a", "--check"]) == 0
    assert not (tmp_path / "intervals.toml").exists()
    assert made_here.main(["--data", "a", "--data", "b"]) == 0
    assert ("roce", "large") in read_intervals((tmp_path / "intervals.toml").read_text())
    assert ("roce", "inside", "rows", "small") in read_errors((tmp_path / "errors.toml").read_text())[0]
    assert "operators left out" in capsys.readouterr().out


def test_each_table_of_a_cloud_s_transport_counts_as_an_operator():
    """Nobody but the cloud itself has its transport: what is new there is a table."""
    logs = np.random.default_rng(7).normal(0, 0.1, (5, 8))
    alone = {
        kind: [s for k in range(5) for s in rows("a", logs[k], kind, table=f"a_{k}")] for kind in ("cloud", "roce")
    }
    assert {kind for kind, _ in made([*alone["cloud"], *alone["roce"]])[0]} == {"cloud"}
    assert coverage(alone["cloud"])["cloud"][1] == logs.size
