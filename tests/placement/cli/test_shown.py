"""What people see of placements on a terminal: the worst hash, how estimates agree, and where no start time holds."""

import contextlib
import io
import json

import pytest

from commsim.cli import main

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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch, *command):
    """What a command shows at 80 columns, without the breaks of lines."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stdout(Terminal()) as out:
        assert main([str(word) for word in command]) == 0
    return " ".join(out.getvalue().replace("\n#", " ").split())


def test_a_rank_that_is_luck_of_the_hash_shows_the_worst(commsim, files):
    lucky = files(*(job(f"j{i}", placement=[f"h{i}", f"h{6 + i}"]) for i in range(2)))
    for seed in range(5):
        (row,) = commsim.results("place", *lucky, "--seed", seed)["candidates"]
        head = next(line.split() for line in commsim.out.splitlines() if line.startswith("rank"))
        cells = next(line.split() for line in commsim.out.splitlines() if line.strip().startswith("1 "))
        assert ("worst_hash" in head) == (row["slowdown_worst"] > row["slowdown_best"] + 1e-4)
        if "worst_hash" in head:
            at = head.index("best_hash") - 1
            assert head[at : at + 4] == ["estimated", "best_hash", "worst_hash", "slowdown"]
            keys = ("slowdown_estimated", "slowdown_best", "slowdown_worst", "slowdown")
            ends = [f"{row[key]:.4f}x" for key in keys]
            assert any(cells[i : i + 4] == ends for i in range(len(cells)))
    assert any("worst_hash" in out for out in (commsim("place", *lucky, "--seed", seed).out for seed in range(5)))


def test_v_shows_the_jobs_of_every_candidate(commsim, files):
    call = ("place", *files(job("a", gpus=4), job("b", gpus=4)), "--candidates", "3")
    assert commsim(*call).code == 0
    assert "# candidate 2:" not in commsim.out
    assert commsim(*call, "-v").code == 0
    assert all(f"# candidate {number}:" in commsim.out for number in (2, 3))


def test_the_remark_that_explains_the_best_is_not_hidden(files, monkeypatch):
    """It was one of those that -v shows, while more candidates were advised, which do not help."""
    alone = job("alone", gpus=2, placement=["h0", "h6"])
    alone["phases"][0]["rate_Gbps"] = 60
    shown = on_terminal(monkeypatch, "place", *files(alone))
    assert "candidate 1: job alone alone needs 60 Gb/s" in shown
    assert "slowdown stretch" in shown
    assert "1.0000x 1.1600x" in shown


def test_the_job_that_loses_the_most_stands_beside_a_mean_that_hides_it(commsim, files, monkeypatch):
    """Two of three jobs share a link for most of their iterations: the mean has a third of what is lost."""
    pair = [job(f"j{i}", placement=["h0", "h6"], gpus=2) for i in range(2)]
    cluster, jobs = files(*pair, job("far", placement=["h1", "h2"]))
    cluster.write_text(CLUSTER.replace("gpus = 1", "gpus = 2"))
    (row,) = commsim.results("place", cluster, jobs)["candidates"]
    slow = {name: time / 100 for name, time in row["predicted_iteration_ms"].items()}
    assert slow["far"] == 1.0
    assert (row["worst_job"], row["worst_job_slowdown"]) == ("j0", pytest.approx(max(slow.values())))
    assert row["slowdown"] == pytest.approx(sum(slow.values()) / 3)
    shown = on_terminal(monkeypatch, "place", cluster, jobs)
    assert f"{row['slowdown']:.4f}x j0 {slow['j0']:.4f}x" in shown
    (row,) = commsim.results("place", *files(*pair[:1]))["candidates"]
    assert (row["worst_job"], row["worst_job_slowdown"]) == ("j0", 1.0)
    assert "worst_job" not in on_terminal(monkeypatch, "place", *files(*pair[:1]))


def test_a_check_says_on_a_terminal_how_well_the_estimates_agree(files, monkeypatch):
    five = (job(f"j{i}", 97 + 3 * i, busy=70 + 5 * i, gpus=2) for i in range(5))
    shown = on_terminal(monkeypatch, "place", *files(*five), "--check", "-v")
    assert "with a rank correlation of" in shown


def test_moves_show_what_the_others_gain_on_a_terminal(files, monkeypatch):
    wide = [job(f"j{i}", gpus=6, placement=[f"h{2 * k + i}" for k in range(6)]) for i in range(2)]
    shown = on_terminal(monkeypatch, "place", "moves", *files(*wide), "--candidates", 2)
    assert "others now others after to" in shown
    assert "-v also shows " in shown


@pytest.mark.parametrize(
    ("periods", "said"),
    [
        ((250, 333), "no start time holds"),
        ((5000, 7000), "the score is that of this time"),
        ((250, 500), None),
        ((12000, 12000), None),
    ],
)
def test_a_score_says_where_no_start_time_holds(commsim, files, periods, said):
    _, jobs = files(*(job(f"j{period}.{i}", period) for i, period in enumerate(periods)))
    tree = commsim.results("place", "score", jobs, "--capacity", "50Gbps", "-v")
    assert tree["is_common_multiple"] == (said is None)
    assert [remark["text"] for remark in tree["remarks"] if remark["code"] == "drifting"] == (
        [] if said is None else [f"iteration times have no common multiple up to 10 s (--longest): {said}"]
    )


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--angles", "0", "a circle is cut into 1..1048576 angles, got 0"),
        ("--step", "0ms", "the step of a circle is a positive time"),
        ("--quantum", "0ms", "the quantum of a circle is a positive time"),
        ("--longest", "0s", "the longest of a circle is a positive time"),
        ("--hashes", "0", "--hashes must be 1..10000, got 0"),
        ("--hashes", "100000000", "--hashes must be 1..10000, got 100000000"),
        ("--drain", "", "'' is not a list of hosts: a name is missing"),
        ("--crux", "0", "--crux must be at least 1, got 0"),
    ],
)
def test_a_wrong_flag_is_refused_where_it_has_no_effect_on_these_jobs(commsim, files, flag, value, message):
    """One job meets no other on a link, and the flags of circles were not looked at; so many hashes never ended."""
    assert message in commsim.refuses("place", *files(job("a")), flag, value)


def test_a_window_that_begins_at_0_is_shown_so(commsim, files):
    """The noise of a sum was shown: 1.041e-14..40."""
    jobs = [job("a", 300.0, 90.0, placement=["h0", "h6"]), job("b", 300.0, 70.0, placement=["h1", "h7"])]
    jobs.append(job("c", 150.0, 20.0, placement=["h2", "h8"]))
    for one, (offset, rate) in zip(jobs, ((60, 40), (20, 30), (0, 20)), strict=True):
        one["phases"][0] |= {"offset_ms": offset, "rate_Gbps": rate}
    cluster, path = files(*jobs)
    cluster.write_text(CLUSTER.replace("n_spines=2", "n_spines=1,uplink_bandwidth=50Gbps"))
    assert commsim("place", cluster, path).code == 0
    assert " 0..40 " in commsim.out
    assert "e-" not in commsim.out
