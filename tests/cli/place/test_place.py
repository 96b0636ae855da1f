import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
FORTY = {"job": "j1", "gpus": 1, "iter_time_ms": 40, "phases": [{"offset_ms": 30, "dur_ms": 10, "rate_Gbps": 50}]}
SIXTY = {"job": "j2", "gpus": 1, "iter_time_ms": 60, "phases": [{"offset_ms": 50, "dur_ms": 10, "rate_Gbps": 50}]}


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([FORTY, SIXTY]))
    return path


def test_the_example_of_40_and_60_ms_scores_1_and_starts_10_ms_apart(commsim, jobs):
    tree = commsim.results("place", "score", "--capacity", "50Gbps", jobs)
    assert tree["schema"] == 1
    assert tree["score"] == 1.0
    assert tree["shifts_ms"] == {"j1": 0.0, "j2": 10.0}
    assert tree["perimeter_ms"] == 120.0
    assert tree["angles"] == 72


def test_a_score_is_checked_by_simulation(commsim, jobs):
    tree = commsim.results("place", "score", "--capacity", "50Gbps", jobs, "--check")
    assert tree["predicted_iteration_ms"] == pytest.approx({"j1": 40.0, "j2": 60.0})
    assert tree["agrees"]
    half = commsim.results("place", "score", "--capacity", "5Gbps", jobs, "--check")
    assert half["score"] < 1
    assert half["predicted_iteration_ms"]["j1"] > 40


def test_candidates_of_the_shipped_example_come_best_first(commsim):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    tree = commsim.results("place", *files, "--candidates", "6", "--check")
    names = {job["job"] for job in json.loads(files[1].read_text())}
    scores = [candidate["score_mean"] for candidate in tree["candidates"]]
    assert len(scores) == 6
    assert scores == sorted(scores, reverse=True)
    for candidate in tree["candidates"]:
        assert set(candidate["placement"]) == names
        assert candidate["placement"]["pinned"] == ["h3", "h7"]
        assert set(candidate["shifts_ms"]) == set(candidate["predicted_iteration_ms"]) == names
        assert candidate["score_min"] <= candidate["score_mean"] + 1e-9
        for row in candidate["links"]:
            assert set(row) == {"link", "jobs", "score"}
            assert len(row["jobs"]) > 1
    assert "vgg19" in commsim.out


def test_json_without_a_name_goes_to_standard_output(commsim, jobs):
    assert commsim("place", "score", "--capacity", "50Gbps", jobs, "--json").code == 0
    assert json.loads(commsim.out)["score"] == 1.0
    assert commsim("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--candidates", "2", "--json").code == 0
    assert len(json.loads(commsim.out)["candidates"]) == 2


def test_the_literal_rule_lists_what_it_discards(commsim):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    tree = commsim.results("place", *files, "--generator", "random", "--loops", "literal", "--candidates", "3")
    assert tree["candidates"] == []
    assert len(tree["discarded"]) == 3
    assert all(candidate["has_loop"] for candidate in tree["discarded"])
    assert "3 of 3 candidates have a loop" in commsim.out


def test_help_names_the_other_verbs(commsim):
    assert commsim("place", "--help").code == 0
    assert all(verb in commsim.out for verb in ("CLUSTER", "rank", "score", "serve"))
    assert commsim("place", "rank", "--help").code == 0
    assert all(word in commsim.out for word in ("CLUSTER.toml", "--generator"))
    assert commsim("place", "score", "--help").code == 0
    assert "--capacity" in commsim.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("place",), "the following arguments are required"),
        (("place", "score", "jobs.json"), "required: --capacity"),
        (("place", "score", "--capacity", "50", "absent.json"), "--capacity needs a unit"),
        (("place", "score", "--capacity", "50Gbps", "absent.json"), "absent.json: No such file"),
        (("place", "absent.toml", "absent.json"), "absent.toml: No such file"),
        (
            ("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--generator", "best"),
            "unknown placement strategy 'best'",
        ),
        (("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--seed", "-1"), "--seed must be 0 or more"),
        (("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--angles", "0"), "angles, got 0"),
        (("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--loops", "no"), "invalid choice"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(commsim, words, message):
    assert message in commsim.refuses(*words)


def test_a_job_that_does_not_fit_is_named(commsim, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([FORTY | {"gpus": 1000}]))
    assert "need 1000 GPUs, and 60 are free" in commsim.refuses("place", EXAMPLES / "cluster.toml", path)


def test_crux_gives_the_jobs_of_a_candidate_levels_that_follow_its_priorities(commsim):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    tree = commsim.results("place", *files, "--candidates", "1", "--generator", "spread", "--crux", "3")
    jobs = tree["candidates"][0]["crux"]
    assert set(jobs) == {job["job"] for job in json.loads(files[1].read_text())}
    assert all(job["level"] in range(3) for job in jobs.values())
    first, last = (max(jobs.values(), key=lambda job: sign * job["priority"]) for sign in (1, -1))
    assert first["level"] <= last["level"]
    assert len({job["level"] for job in jobs.values()}) > 1
