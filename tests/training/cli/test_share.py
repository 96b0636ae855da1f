import json
from pathlib import Path

import pytest

from commsim.cli import main
from commsim.prediction.plans.draws import hash_seeds

NETWORK = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=50Gbps"
CLUSTER = """
[topology]
name = "leaf_spine"
n_leaves = 2
n_spines = 1
hosts_per_leaf = 4
bandwidth = "50Gbps"

[hosts]
gpus = 1
"""


def row(name, *nodes, **changes):
    phase = {"offset_ms": 125, "dur_ms": 125, "rate_Gbps": 50}
    return {"job": name, "gpus": 2, "iter_time_ms": 250, "phases": [phase], "placement": list(nodes)} | changes


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([row("a", "h0", "h4"), row("b", "h1", "h5")]))
    return str(path)


def share(*words):
    return main(["workload", "share", *words])


def slowdowns(tmp_path, *words, key="slowdown"):
    assert share(*words, "--json", str(tmp_path / "out.json")) == 0
    return [one[key] for one in json.loads((tmp_path / "out.json").read_text())["results"]]


def iterations(tmp_path, *words):
    return slowdowns(tmp_path, *words, "--iterations", "20", key="iteration_s")


def test_two_equal_jobs_share_and_a_shift_restores_both(jobs, tmp_path, capsys):
    assert slowdowns(tmp_path, NETWORK, jobs, "--iterations", "8") == [1.5, 1.5]
    shown = capsys.readouterr().out
    assert "1.5000x" in shown
    assert "leaf0:spine0" in shown
    tree = json.loads((tmp_path / "out.json").read_text())
    assert tree["links"][0]["jobs"] == ["a", "b"]
    assert tree["links"][0]["contended_share"] == pytest.approx(2 / 3)
    assert tree["config"]["iterations"] == 8
    assert slowdowns(tmp_path, NETWORK, jobs, "--shifts", "b=125ms") == [1.0, 1.0]


@pytest.mark.parametrize("flags", [["--fail", "link:leaf0:spine0"], ["--seed", "2"], ["--scale", "link:leaf0:*=0.5"]])
def test_a_file_of_place_brings_its_faults_and_its_seed(flags, tmp_path, capsys):
    """They were dropped: the start times of one network were simulated on another."""
    cluster, jobs, placed = (tmp_path / name for name in ("cluster.toml", "jobs.json", "placed"))
    cluster.write_text(
        '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=3,hosts_per_leaf=4,bandwidth=50Gbps"\n[hosts]\ngpus = 1\n'
    )
    rows = [row(f"j{i}", f"h{i}", f"h{i + 4}") | {"start_ms": 0} for i in range(4)]
    jobs.write_text(json.dumps(rows))
    words = (str(cluster), str(jobs))
    assert main(["place", *words, *flags, "--hashes", "1", "--check", "--json", str(placed), "-v"]) == 0
    (found,) = json.loads(placed.read_text())["candidates"]
    expected = [time / 1e3 for time in found["predicted_iteration_ms"].values()]
    one = ("--hashes", "1")
    assert iterations(tmp_path, *words, *flags, *one) == pytest.approx(expected, rel=0.02)
    assert iterations(tmp_path, *words, *one) != pytest.approx(expected, rel=0.02)
    capsys.readouterr()
    assert iterations(tmp_path, *words, "--shifts", str(placed), "-v") == pytest.approx(expected, rel=0.02)
    assert f"placed: {' '.join(flags)} --hashes 1" in capsys.readouterr().out
    other = ["--fail", "link:leaf0:spine1", "--seed", "5", "--scale", "link:h0:*=0.5"]
    assert iterations(tmp_path, *words, "--shifts", str(placed), *other) == iterations(tmp_path, *words, *other, *one)


def test_a_job_is_the_median_of_hashes_with_the_ends_beside_it(tmp_path, capsys):
    jobs, network = tmp_path / "jobs.json", "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,bandwidth=50Gbps"
    jobs.write_text(json.dumps([row("a", "h0", "h4", "h1", "h5", gpus=4), row("b", "h2", "h6", "h3", "h7", gpus=4)]))
    each = [
        iterations(tmp_path, network, str(jobs), "--hashes", "1", "--seed", str(seed))
        for seed in (3, *hash_seeds(3, 8))
    ]
    capsys.readouterr()
    assert iterations(tmp_path, network, str(jobs), "--seed", "3") in each
    assert "median of 8 hashes of ECMP" in capsys.readouterr().out
    rows = json.loads((tmp_path / "out.json").read_text())["results"]
    for k, found in enumerate(rows):
        times = sorted(one[k] for one in each)
        assert (found["fastest_s"], found["slowest_s"], found["n_hashes"]) == (times[0], times[-1], 8)
    assert rows[0]["iteration_s"] == sorted(one[0] for one in each)[3] != rows[0]["fastest_s"]


def test_hashes_that_change_nothing_are_not_printed(tmp_path, capsys):
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([row("a", "h0", "h4"), row("b", "h1", "h5")]))
    iterations(tmp_path, "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=50Gbps", str(jobs))
    assert "hashes" not in capsys.readouterr().out


def test_a_file_of_place_brings_the_median_hash(tmp_path):
    cluster, jobs, placed = (tmp_path / name for name in ("cluster.toml", "jobs.json", "placed.json"))
    cluster.write_text(
        '[topology]\nspec = "leaf_spine:n_leaves=2,n_spines=3,hosts_per_leaf=4,bandwidth=50Gbps"\n[hosts]\ngpus = 1\n'
    )
    jobs.write_text(json.dumps([row(f"j{i}", f"h{i}", f"h{i + 4}") | {"start_ms": 0} for i in range(4)]))
    words = (str(cluster), str(jobs))
    n_other = 0
    for seed in ("0", "1", "2"):
        assert main(["place", *words, "--seed", seed, "--check", "--json", str(placed)]) == 0
        (found,) = json.loads(placed.read_text())["candidates"]
        expected = pytest.approx([time / 1e3 for time in found["predicted_iteration_ms"].values()], rel=0.02)
        assert iterations(tmp_path, *words, "--shifts", str(placed)) == expected
        n_other += found["hash_seed"] != int(seed)
    assert n_other


def test_jobs_begin_at_their_own_start_unless_a_shift_is_given(jobs, tmp_path):
    rows = json.loads(Path(jobs).read_text())
    (tmp_path / "started.json").write_text(json.dumps([rows[0], rows[1] | {"start_ms": 125}]))
    (tmp_path / "score.json").write_text(json.dumps({"shifts_ms": {"a": 0}}))
    started = str(tmp_path / "started.json")
    assert slowdowns(tmp_path, NETWORK, started, "--iterations", "8") == [1.0, 1.0]
    assert slowdowns(tmp_path, NETWORK, started, "--shifts", str(tmp_path / "score.json")) == [1.0, 1.0]
    assert slowdowns(tmp_path, NETWORK, started, "--iterations", "8", "--shifts", "b=0ms") == [1.5, 1.5]


def test_a_cluster_and_the_answer_of_place_are_read(jobs, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    cluster = str(tmp_path / "cluster.toml")
    homeless = tmp_path / "homeless.json"
    homeless.write_text(json.dumps([row("a", "h0", "h4"), row("b", placement=None)]))
    answer = {"candidates": [{"shifts_ms": {"b": 125.0}, "placement": {"b": ["h1", "h5"]}}, {"shifts_ms": {}}]}
    (tmp_path / "place.json").write_text(json.dumps(answer))
    (tmp_path / "score.json").write_text(json.dumps({"shifts_ms": {"a": 0, "b": 125.0}}))
    assert slowdowns(tmp_path, cluster, str(homeless), "--shifts", str(tmp_path / "place.json")) == [1.0, 1.0]
    assert slowdowns(tmp_path, cluster, jobs, "--shifts", str(tmp_path / "score.json")) == [1.0, 1.0]


def test_what_commsim_place_writes_is_read(tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    homeless = tmp_path / "homeless.json"
    homeless.write_text(json.dumps([row("a", "h0", "h4"), row("b", placement=None)]))
    words = [str(tmp_path / "cluster.toml"), str(homeless)]
    assert main(["place", *words, "--json", str(tmp_path / "place.json")]) == 0
    assert slowdowns(tmp_path, *words, "--shifts", str(tmp_path / "place.json")) == [1.0, 1.0]


def test_each_way_of_sharing_has_its_flags(jobs, tmp_path, capsys):
    one = ("--iterations", "1")
    first = slowdowns(tmp_path, NETWORK, jobs, "--sharing", "priority", "--priorities", "a=1", *one)
    assert first == [1.5, 1.0]
    heavy = slowdowns(tmp_path, NETWORK, jobs, "--sharing", "weighted", "--weights", "a=3", *one)
    assert heavy == pytest.approx([(0.125 + 0.125 * 4 / 3) / 0.25, 1.5])
    sliding = ("--sharing", "mltcp", "--shifts", "b=10ms", "--iterations", "200")
    assert max(slowdowns(tmp_path, NETWORK, jobs, *sliding)) < 1.01
    assert max(slowdowns(tmp_path, NETWORK, jobs, *sliding, "--mltcp", "slope=0,intercept=1")) > 1.4
    capsys.readouterr()
    crux = slowdowns(tmp_path, NETWORK, jobs, "--sharing", "priority", "--priorities", "crux", *one, "-v")
    assert crux == [1.0, 1.5]
    assert "priorities by Crux, on its paths: a=0, b=1" in capsys.readouterr().out


def test_jobs_that_do_not_meet_are_said_to(tmp_path, capsys):
    (tmp_path / "jobs.json").write_text(json.dumps([row("a", "h0", "h1"), row("b", "h2", "h3")]))
    assert share(NETWORK, str(tmp_path / "jobs.json"), "--jitter", "0.1", "--adjust", "0.05", "--seed", "1") == 0
    assert "no two jobs share a link" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shifts", "c=1ms"], "--shifts must be JOB=VALUE,... with the jobs a, b, got 'c=1ms'"),
        (["--shifts", "a=1"], "--shifts needs a unit"),
        (["--shifts", "a=1ms,a=2ms"], "--shifts names a twice"),
        (["--shifts", "none.json"], "none.json: No such file"),
        (["--sharing", "weighted"], "weighted sharing needs --weights"),
        (["--sharing", "priority"], "priority sharing needs --priorities"),
        (["--sharing", "weighted", "--weights", "a=x"], "--weights of a must be a number, got 'x'"),
        (["--weights", "a=2"], "weights go with weighted sharing, got fair"),
        (["--sharing", "mltcp", "--mltcp", "step=1"], "--mltcp has no parameter 'step'"),
        (["--iterations", "0"], "iterations must be 1..1000000"),
        (["--seed", "-1"], "--seed must be 0 or more"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(jobs, words, message, capsys):
    assert share(NETWORK, jobs, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"candidates": []}, "candidates must not be empty"),
        ({"shift_ms": {}}, "has no shifts_ms"),
        ({"shifts_ms": {"c": 1}}, "shifts_ms.c is not one of the jobs: a, b"),
        ({"shifts_ms": {"a": "1"}}, "shifts_ms.a must be a finite number, got '1'"),
    ],
)
def test_a_file_of_shifts_is_checked(jobs, tree, message, tmp_path, capsys):
    (tmp_path / "shifts.json").write_text(json.dumps(tree))
    assert share(NETWORK, jobs, "--shifts", str(tmp_path / "shifts.json")) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("placement", "message"),
    [(None, "b needs a placement, or --shifts a file"), (["h1", "spine0"], "b is placed on 'spine0', not a host of")],
)
def test_jobs_must_sit_somewhere(placement, message, tmp_path, capsys):
    (tmp_path / "jobs.json").write_text(json.dumps([row("a", "h0", "h4"), row("b", placement=placement)]))
    assert share(NETWORK, str(tmp_path / "jobs.json")) == 2
    assert message in capsys.readouterr().err
