"""What people see of placements on a terminal: the worst hash, how estimates agree, and where no start time holds."""

import json
import sys

import pytest

CLUSTER = """
[topology]
spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=6,bandwidth=50Gbps"
[hosts]
gpus = 1
"""


def job(name, period=100.0, busy=80.0, gpus=2, **more):
    phases = [{"offset_ms": 0, "dur_ms": busy, "rate_Gbps": 40}]
    return {"job": name, "gpus": gpus, "iter_time_ms": period, "phases": phases, **more}


@pytest.fixture
def files(tmp_path):
    def write(*jobs):
        (tmp_path / "cluster.toml").write_text(CLUSTER)
        (tmp_path / "jobs.json").write_text(json.dumps(jobs))
        return tmp_path / "cluster.toml", tmp_path / "jobs.json"

    return write


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")


def words(text):
    """Text without the breaks of lines that a terminal needs."""
    return " ".join(text.replace("\n#", " ").split())


def test_a_rank_that_is_luck_of_the_hash_shows_the_worst(commsim, files):
    lucky = files(*(job(f"j{i}", placement=[f"h{i}", f"h{6 + i}"]) for i in range(2)))
    for seed in range(5):
        (row,) = commsim.results("place", *lucky, "--seed", seed)["candidates"]
        head = next(line.split() for line in commsim.out.splitlines() if line.startswith("rank"))
        cells = next(line.split() for line in commsim.out.splitlines() if line.strip().startswith("1 "))
        assert ("worst" in head) == (row["slowdown_worst"] > row["slowdown"] + 1e-4)
        if "worst" in head:
            assert cells[-2:] == [f"{row['slowdown']:.4f}x", f"{row['slowdown_worst']:.4f}x"]
    assert any("worst" in out for out in (commsim("place", *lucky, "--seed", seed).out for seed in range(5)))


def test_a_check_says_on_a_terminal_how_well_the_estimates_agree(commsim, files, terminal):
    assert commsim("place", *files(*(job(f"j{i}", 97 + 3 * i, gpus=4) for i in range(3))), "--check").code == 0
    above, below = commsim.out.split("rank ", 1)
    assert "with a rank correlation of" not in words(above)
    assert "with a rank correlation of" in words(below)


def test_moves_show_what_the_others_gain_on_a_terminal(commsim, files, terminal):
    wide = [job(f"j{i}", gpus=6, placement=[f"h{2 * k + i}" for k in range(6)]) for i in range(2)]
    assert commsim("place", "moves", *files(*wide), "--candidates", 2).code == 0
    assert "hidden to fit 80 columns (-v shows them): from" in words(commsim.out)
    assert "others now" in commsim.out
    assert "others after" in commsim.out


@pytest.mark.parametrize(
    ("periods", "said"),
    [
        ((250, 333), "no start time holds, since the jobs drift past each other"),
        ((5000, 7000), "the score is that of the first 10 s"),
        ((250, 500), None),
        ((12000, 12000), None),
    ],
)
def test_a_score_says_where_no_start_time_holds(commsim, files, periods, said):
    _, jobs = files(*(job(f"j{period}.{i}", period) for i, period in enumerate(periods)))
    tree = commsim.results("place", "score", jobs, "--capacity", "50Gbps")
    assert tree["is_common_multiple"] == (said is None)
    assert [remark for remark in tree["remarks"] if "no common multiple" in remark] == (
        [] if said is None else [f"the iteration times have no common multiple up to 10 s (--longest): {said}"]
    )
