import json
from pathlib import Path

import pytest

from commsim.core.files.store import read_network
from commsim.placement.cluster import read_cluster
from commsim.placement.schedulers.slurm import read_slurm_conf

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


def test_a_score_is_shown_with_the_digits_that_its_angles_have(commsim, tmp_path):
    path = tmp_path / "jobs.json"
    phases = [{"offset_ms": 20, "dur_ms": 11, "rate_Gbps": 41}]
    path.write_text(json.dumps([FORTY | {"iter_time_ms": 37, "phases": phases}, SIXTY]))
    tree = commsim.results("place", "score", "--capacity", "7Gbps", path)
    assert len(f"{tree['score']}") > 8
    assert f" {round(tree['score'], 4)}\n" in commsim.out


def test_a_score_is_checked_by_simulation(commsim, jobs):
    tree = commsim.results("place", "score", "--capacity", "50Gbps", jobs, "--check")
    assert tree["predicted_iteration_ms"] == pytest.approx({"j1": 40.0, "j2": 60.0})
    assert tree["agrees"]
    half = commsim.results("place", "score", "--capacity", "5Gbps", jobs, "--check")
    assert half["score"] < 1
    assert half["predicted_iteration_ms"]["j1"] > 40


def test_a_job_of_the_check_by_flows_has_no_transport(commsim, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([FORTY | {"transport": "nscc"}, SIXTY]))
    message = commsim.refuses("place", "score", "--capacity", "50Gbps", "--check", path)
    assert "[0].transport is not a field here; known: gpus, gpus_per_host, iter_time_ms, job, phases, placed" in message


def test_candidates_of_the_shipped_example_come_best_first(commsim):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    tree = commsim.results("place", *files, "--candidates", "6", "--check")
    names = {job["job"] for job in json.loads(files[1].read_text())}
    period = {job["job"]: job["iter_time_ms"] for job in json.loads(files[1].read_text())}
    times = [one["predicted_iteration_ms"] for one in tree["candidates"]]
    slow = [round(sum(found[name] / period[name] for name in names), 6) for found in times]
    assert len(slow) == 6
    assert slow == sorted(slow)
    for candidate in tree["candidates"]:
        assert set(candidate["placement"]) == names
        assert candidate["placement"]["pinned"] == ["h3", "h7"]
        assert set(candidate["shifts_ms"]) == set(candidate["predicted_iteration_ms"]) == names
        assert candidate["score_min"] <= candidate["score_mean"] + 1e-9
        for row in candidate["links"]:
            assert set(row) == {"link", "jobs", "score"}
            assert len(row["jobs"]) > 1
    assert "vgg19" in commsim.out


def test_placements_of_ones_own_are_ranked_by_their_files(commsim, tmp_path):
    placements = {"apart.json": (["h4x2"], ["h8x2"]), "crossing.json": (["h4", "h8"], ["h4", "h8"])}
    for name, (first, second) in placements.items():
        jobs = [{**FORTY, "gpus": 2, "placement": first}, {**SIXTY, "gpus": 2, "placement": second}]
        (tmp_path / name).write_text(json.dumps(jobs))
    files = [tmp_path / name for name in placements]
    tree = commsim.results("place", EXAMPLES / "cluster.toml", *files[::-1])
    assert [Path(one["generator"]).name for one in tree["candidates"]] == ["apart.json", "crossing.json"]
    assert tree["candidates"][0]["placement"] == {"j1": ["h4", "h4"], "j2": ["h8", "h8"]}
    assert tree["candidates"][1]["links"]
    unplaced = tmp_path / "unplaced.json"
    unplaced.write_text(json.dumps([{**FORTY, "gpus": 2}, {**SIXTY, "gpus": 2}]))
    cluster = EXAMPLES / "cluster.toml"
    assert "job j1 needs a placement" in commsim.refuses("place", cluster, files[0], unplaced)
    assert "--candidates has no effect" in commsim.refuses("place", cluster, *files, "--candidates", "3")
    unplaced.write_text(json.dumps([{**FORTY, "gpus": 2, "placement": ["h4x2"]}]))
    other = tmp_path / "other.json"
    other.write_text(json.dumps([job | {"start_ms": 5} for job in json.loads(files[1].read_text())]))
    message = commsim.refuses("place", cluster, files[1], other)
    assert "other.json: job j1 has another start_ms than in" in message
    assert "its jobs must be those of" in commsim.refuses("place", cluster, files[0], unplaced)


def test_all_hosts_of_a_job_are_shown_as_ranges(commsim, tmp_path):
    """64 GPUs on 8 hosts were printed as `h0x8 ... h5x8 ...`, and nothing said where the others are."""
    cluster = tmp_path / "cluster.toml"
    cluster.write_text('[topology]\nspec = "leaf_spine:n_leaves=16,n_spines=2,hosts_per_leaf=8"\n[hosts]\ngpus = 8\n')
    jobs = [{"job": "big", "gpus": 64, "iter_time_ms": 100, "phases": []}]
    for job, names in (("gap", ["h8x8"]), ("apart", [f"h{i}" for i in range(20, 128, 2)])):
        placed = {"gpus": 8 if job == "gap" else len(names), "placement": names}
        jobs.append({"job": job, "iter_time_ms": 100, "phases": []} | placed)
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    call = ("place", cluster, tmp_path / "jobs.json", "--generator", "packed", "--candidates", 1)
    assert commsim(*call, "-v").code == 0
    rows = {line.split()[0]: line for line in commsim.out.splitlines() if line}
    assert rows["big"].endswith(" h0-7x8")
    assert rows["apart"].endswith(" h80 h82 ...")
    assert "# placements of 1 job are shortened: --json has all hosts" in commsim.out


def test_moves_of_running_jobs_are_ranked_by_what_they_gain(commsim, tmp_path):
    jobs = [FORTY | {"job": name, "gpus": 2, "phases": [{"offset_ms": 0, "dur_ms": 30, "rate_Gbps": 50}],
                     "placement": ["h0", "h4"]} for name in ("a", "b")]  # fmt: skip
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    call = ("place", "moves", EXAMPLES / "cluster.toml", tmp_path / "jobs.json")
    tree = commsim.results(*call, "--check")
    first, second = tree["moves"]
    assert first["job"] == "a"
    assert first["gain"] == second["gain"] == pytest.approx(first["slowdown_now"] - first["slowdown_after"])
    assert first["gain"] > 0.1
    assert (first["slowdown_after"], first["placement_now"]) == (1.0, ["h0", "h4"])
    assert commsim(*call).code == 0
    assert "# iteration times with a moved:" in commsim.out
    assert "unknown placement strategy" in commsim.refuses(*call, "--generator", "nowhere")


def test_strategies_are_named_by_the_flag_of_the_other_verbs_and_hosts_by_the_file(commsim):
    """`--placement packed` was an unrecognized argument."""
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    for verb, key in ((("place",), "candidates"), (("place", "moves"), "moves")):
        found = [
            commsim.results(*verb, *files, flag, "spread", "--candidates", 2)[key]
            for flag in ("--placement", "--generator")
        ]
        assert found[0] == found[1]
        told = commsim.refuses(*verb, *files, "--placement", "h0,h1")
        assert told.count("unknown placement strategy 'h0'") == 1
        assert f'hosts of your own are a job\'s "placement" in {files[1]}' in told


def test_a_host_that_fails_makes_its_job_move_at_once(commsim, tmp_path):
    jobs = [FORTY | {"job": "a", "gpus": 8, "placement": ["h1x4", "h2x4"]}]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    files = (EXAMPLES / "cluster.toml", tmp_path / "jobs.json")
    tree = commsim.results("place", "moves", *files, "--fail", "host:h2")
    (forced,) = tree["forced"]
    assert forced["placement_now"] == ["h1"] * 4 + ["h2"] * 4
    assert forced["placement_after"][:4] == ["h1"] * 4
    assert "h2" not in forced["placement_after"]
    assert tree["moves"][0]["placement_now"] == forced["placement_after"]
    assert commsim("place", "moves", *files, "--fail", "host:h2").code == 0
    assert commsim.out.startswith("# job a has to be moved: ")
    assert "no further move" in commsim.out
    assert "stopped_gpu_s" not in tree
    assert "stopped_gpu_s" not in forced
    tree = commsim.results("place", "moves", *files, "--drain", "h2", "--restart", "120s")
    assert (tree["stopped_gpu_s"], tree["forced"][0]["stopped_gpu_s"]) == (960.0, 960.0)
    placed = commsim.results("place", *files, "--fail", "host:h2")["candidates"]
    assert all("h2" not in one["placement"]["a"] for one in placed)
    for drained in (commsim.results("place", *files, "--drain", "h2,h[4-5]")["candidates"],):
        assert all(not {"h2", "h4", "h5"} & {*one["placement"]["a"]} for one in drained)
    said = commsim.refuses("place", *files, tmp_path / "jobs.json", "--drain", "h2")
    assert "job a is placed on h2, which failed, is drained or cut off" in said
    said = commsim.refuses("place", *files, tmp_path / "jobs.json", "--fail", "host:h2")
    assert "job a is placed on h2, which failed" in said


def test_all_jobs_that_are_moved_are_named(commsim, tmp_path):
    """On a leaf that fails both, and with a host that fails one of them."""
    jobs = [
        FORTY | {"job": job, "gpus": 8, "placement": at}
        for job, at in (("a", ["h1x4", "h4x4"]), ("b", ["h5x4", "h6x4"]))
    ]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    files = (EXAMPLES / "cluster.toml", tmp_path / "jobs.json")
    for verb in ((), ("moves",)):
        assert commsim("place", *verb, *files, "--fail", "switch:leaf1").code == 0
        moved = "# jobs are moved off hosts that are cut off: a (h4x4; its other ranks stay), b (h5-6x4)"
        assert moved in commsim.out.splitlines()
    commsim("place", *files, "--fail", "host:h6")
    assert "# job b is moved off hosts that failed, h6x4; its other ranks stay" in commsim.out.splitlines()


def test_what_a_new_job_costs_running_ones_stands_beside_their_times(commsim, tmp_path):
    """Two jobs of 60 Gb/s on one uplink of 50 Gb/s, then a third one; alone, none is slowed down by others."""
    cluster = 'topology.spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=3,bandwidth=50Gbps"\nhosts.gpus = 1\n'
    cluster = cluster.replace("50Gbps", "100Gbps,uplink_bandwidth=50Gbps")
    phases = [{"offset_ms": 0, "dur_ms": 100, "rate_Gbps": 50}]
    jobs = [
        {"job": "a", "gpus": 2, "iter_time_ms": 200, "phases": phases, "placement": ["h0", "h3"]},
        {"job": "b", "gpus": 2, "iter_time_ms": 200, "phases": phases, "placement": ["h1", "h4"]},
    ]
    new = {"job": "new", "gpus": 2, "iter_time_ms": 200, "phases": phases}
    files = tmp_path / "cluster.toml", tmp_path / "jobs.json"
    files[0].write_text(cluster)
    files[1].write_text(json.dumps(jobs))
    before = commsim.results("place", *files)["candidates"][0]
    assert "cost" not in before
    files[1].write_text(json.dumps([*jobs, new]))
    best = commsim.results("place", *files)["candidates"][0]
    cost, after = best["cost"], best["predicted_iteration_ms"]
    assert cost["own"] == {"new": pytest.approx(after["new"] / 200, abs=1e-8)}
    assert cost["added"].keys() == {"a", "b"}
    for name, more in cost["added"].items():
        assert more > 0.1
        assert more == pytest.approx((after[name] - before["predicted_iteration_ms"][name]) / 200, abs=1e-8)
    commsim("place", *files)
    lines = [line.split() for line in commsim.out.splitlines()]
    columns = next(line for line in lines if line[:1] == ["job"])
    rows = {line[0]: dict(zip(columns, line, strict=False)) for line in lines if line[:1] in (["a"], ["b"], ["new"])}
    assert [rows[name]["before(ms)"] for name in ("a", "b", "new")] == ["200.000", "200.000", "-"]
    files[1].write_text(json.dumps([jobs[0], new | {"phases": []}]))
    commsim("place", *files)
    assert "before(ms)" not in commsim.out


def test_a_new_job_with_a_placement_costs_the_running_ones_too(commsim, tmp_path):
    """`cost` was missing where the new job had a place of the user's own: those that run are known by their start."""
    cluster = 'topology.spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=3,bandwidth=50Gbps"\nhosts.gpus = 1\n'
    phases = [{"offset_ms": 0, "dur_ms": 150, "rate_Gbps": 50}]
    runs = {"job": "runs", "gpus": 2, "iter_time_ms": 200, "phases": phases, "placement": ["h0", "h3"], "start_ms": 0}
    new = {"job": "new", "gpus": 2, "iter_time_ms": 200, "phases": phases}
    files = [tmp_path / name for name in ("cluster.toml", "beside.json", "apart.json")]
    files[0].write_text(cluster)
    for file, hosts in zip(files[1:], (["h1", "h4"], ["h1", "h2"]), strict=True):
        file.write_text(json.dumps([runs, new | {"placement": hosts}]))
    beside = commsim.results("place", *files[:2])["candidates"][0]
    after = beside["predicted_iteration_ms"]
    assert beside["cost"]["own"] == {"new": pytest.approx(after["new"] / 200, abs=1e-8)}
    assert beside["cost"]["added"] == {"runs": pytest.approx(after["runs"] / 200 - 1, abs=1e-8)}
    assert beside["cost"]["added"]["runs"] > 0.1
    far = runs | {"job": "far", "phases": [], "placement": ["h2", "h5"]}  # it runs, and loses nothing: it had a dash
    files[1].write_text(json.dumps([runs, far, new | {"placement": ["h1", "h4"]}]))
    assert commsim("place", *files[:2]).code == 0
    lines = [line.split() for line in commsim.out.splitlines()]
    columns = next(line for line in lines if line[:1] == ["job"])
    rows = {line[0]: dict(zip(columns, line, strict=False)) for line in lines if line[:1] in (["far"], ["new"])}
    assert [rows[name].get("before(ms)") for name in ("far", "new")] == ["200.000", "-"]
    files[1].write_text(json.dumps([runs, new | {"placement": ["h1", "h4"]}]))
    of_files = commsim.results("place", *files)["candidates"]
    assert [one["cost"]["total"] > 0.1 for one in of_files] == [False, True]
    files[1].write_text(json.dumps([runs | {"placement": ["h0", "h5"]}, new | {"placement": ["h1", "h4"]}]))
    assert not any("cost" in one for one in commsim.results("place", *files)["candidates"])  # no job stays


def test_two_answers_are_put_beside_each_other_job_by_job(commsim, tmp_path):
    """`diff` refused them: they have candidates in place of results."""
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    best = {}
    for name in ("packed", "random"):
        words = ("--generator", name, "--candidates", "2", "--json", tmp_path / f"{name}.json")
        assert commsim("place", *files, *words).code == 0
        best[name] = json.loads((tmp_path / f"{name}.json").read_text())["candidates"][0]
    tree = commsim.results("diff", tmp_path / "packed.json", tmp_path / "random.json")
    for row in tree["results"]:
        for side, one in (("a", best["packed"]), ("b", best["random"])):
            assert row[side]["placement"] == one["placement"][row["job"]]
            assert row[side]["iteration_ms"] == one["predicted_iteration_ms"][row["job"]]
        assert row["time_ratio"] == pytest.approx(row["b"]["iteration_ms"] / row["a"]["iteration_ms"])
    assert tree["differs"]["score_mean"]["b"] == best["random"]["score_mean"]
    message = commsim.refuses("diff", tmp_path / "packed.json", tmp_path / "random.json", "--detail")
    assert "--detail has no effect" in message
    damaged = json.loads((tmp_path / "packed.json").read_text())
    damaged["candidates"][0]["predicted_iteration_ms"]["vgg19"] = 0
    (tmp_path / "zero.json").write_text(json.dumps(damaged))
    message = commsim.refuses("diff", tmp_path / "zero.json", tmp_path / "random.json")
    assert "candidates[0].predicted_iteration_ms.vgg19 must be a time above 0, got 0" in message


def test_faults_of_the_network_take_effect_as_in_run(commsim, tmp_path):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    faults = ("--fail", "switch:spine0", "--scale", "link:h3:*=0.5")
    failed = commsim.results("place", *files, "--candidates", "4", *faults)
    network = read_cluster(files[0]).network.name
    assert commsim("topo", "save", network, *faults, "-o", tmp_path / "network.toml").code == 0
    cluster = tmp_path / "cluster.toml"
    cluster.write_text(f'[topology]\nfile = "network.toml"\n[hosts]{files[0].read_text().partition("[hosts]")[2]}')
    expected = commsim.results("place", cluster, files[1], "--candidates", "4")
    assert failed["candidates"] == expected["candidates"]
    assert not any("spine0" in row["link"] for one in failed["candidates"] for row in one["links"])


def test_no_job_is_placed_on_hosts_that_a_fault_cuts_off(commsim):
    files = (EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json")
    tree = commsim.results("place", *files, "--fail", "switch:leaf2")
    assert "4 hosts cut off, no job is placed there: h8, h9, h10, h11" in tree["notes"]
    used = {name for one in tree["candidates"] for nodes in one["placement"].values() for name in nodes}
    assert used
    assert not used & {"h8", "h9", "h10", "h11"}
    tree = commsim.results("place", *files, "--fail", "switch:leaf0")
    assert "job pinned is moved off hosts that are cut off, h3; its other ranks stay" in tree["notes"]
    assert {one["placement"]["pinned"][1] for one in tree["candidates"]} == {"h7"}


def test_json_without_a_name_goes_to_standard_output(commsim, jobs):
    assert commsim("place", "score", "--capacity", "50Gbps", jobs, "-J").code == 0
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


CLUSTER = """
[topology]
name = "leaf_spine"
n_leaves = 3
n_spines = 2
hosts_per_leaf = 4
[hosts]
gpus = 8
"""
CONF = "SwitchName=s0 Nodes=n[0-3] LinkSpeed=1\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=top Switches=s[0-1]\n"
RATES = ("--tier-bandwidth", "1=100Gbps,2=2:1")
BOX = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tSYS\nNIC0\tPIX\tSYS\t X \n"


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    return tmp_path / "cluster.toml"


@pytest.mark.parametrize("kind", ["slurm-conf", "slurm-yaml", "topograph-model", "topograph-graph"])
@pytest.mark.parametrize("plugin", ["tree", "block"])
def test_what_is_exported_is_imported_again(commsim, tmp_path, cluster, kind, plugin):
    if plugin == "block" and not kind.startswith("slurm"):
        assert "--plugin has no effect" in commsim.refuses("place", "export", cluster, "--to", kind, "--plugin", plugin)
        return
    out = tmp_path / "written"
    assert commsim("place", "export", cluster, "--to", kind, "--plugin", plugin, "-o", out).code == 0, commsim.err
    again = tmp_path / "again.toml"
    call = ("place", "import", out, "--from", kind, *RATES, "--gpus-per-host", 8, "-o", again)
    assert commsim(*call).code == 0, commsim.err
    found = read_cluster(again)
    assert set(found.network.nodes) >= {f"h{i}" for i in range(12)} | {f"leaf{i}" for i in range(3)}
    assert found.gpus.sum() == 12 * 8
    assert set(found.network.bandwidth.tolist()) == {12.5e9}
    assert "tier 2: 2 cables of 100Gbps up from each switch" in commsim.out


def test_slurms_file_goes_to_standard_output_with_what_stands_for_what(commsim, cluster):
    assert commsim("place", "export", cluster, "--to", "slurm-conf").code == 0
    assert "# spine0 represents 2 switches that are interchangeable: spine0, spine1\n" in commsim.out
    assert len(read_slurm_conf(commsim.out).switches) == 4


@pytest.mark.parametrize(("kind", "words"), [("volcano", "kind: HyperNode"), ("kueue", "kind: Topology")])
def test_kubernetes_gets_its_objects(commsim, cluster, kind, words):
    assert commsim("place", "export", cluster, "--to", kind).code == 0
    assert words in commsim.out


def test_a_placement_becomes_a_node_list(commsim, tmp_path, cluster):
    jobs = [{"job": "a", "gpus": 16, "iter_time_ms": 100, "phases": []}]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    placed = tmp_path / "placed.json"
    assert commsim("place", cluster, tmp_path / "jobs.json", "--generator", "packed", "--json", placed).code == 0, (
        commsim.err
    )
    assert commsim("place", "export", cluster, "--to", "nodelist", "--placements", placed).code == 0, commsim.err
    options = "--nodes=2 --ntasks=16 --ntasks-per-node=8 --gpus-per-node=8 --nodelist=h[0-1] --switches=1\n"
    assert commsim.out == options
    call = ("place", "export", cluster, "--to", "nodelist", "--placements", placed)
    assert "has no job 'b'; it has a" in commsim.refuses(*call, "--job", "b")
    for wrong in (0, 99):  # as the table numbers them, from 1
        assert (
            f"has candidates 1..{len(json.loads(placed.read_text())['candidates'])}, got --candidate {wrong}"
            in commsim.refuses(*call, "--candidate", wrong)
        )
    first = commsim("place", "export", *call[2:], "--candidate", 1).out
    assert first == options


def test_ranks_that_slurm_would_place_otherwise_are_in_a_host_file(commsim, tmp_path):
    """h0x2 h1x4 h2x4 was --nodes=3 --nodelist=h[0-2]: the numbers of GPUs and the order were lost without a word."""
    placed, own = tmp_path / "placed.json", tmp_path / "hosts"
    assert (
        commsim("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--candidates", 1, "--json", placed).code
        == 0
    )
    hosts = json.loads(placed.read_text())["candidates"][0]["placement"]["resnet50"]
    assert hosts == ["h0"] * 2 + ["h1"] * 4 + ["h2"] * 4
    call = (
        "place",
        "export",
        EXAMPLES / "cluster.toml",
        "--to",
        "nodelist",
        "--placements",
        placed,
        "--job",
        "resnet50",
    )
    assert commsim(*call).code == 0
    assert (
        commsim.out
        == "--nodes=3 --ntasks=10 --distribution=arbitrary --gpus-per-task=1 --nodelist=h[0-2] --switches=1\n"
    )
    assert "without SLURM_HOSTFILE they are lost; --hostfile FILE" in commsim.err
    assert commsim(*call, "--hostfile", own).code == 0
    assert (own.read_text().split(), commsim.err) == (hosts, "")
    assert "hostfile has no effect on slurm-conf" in commsim.refuses(*call[:4], "slurm-conf", "--hostfile", own)


def test_a_placement_on_another_cluster_is_refused(commsim, tmp_path):
    placed = tmp_path / "placed.json"
    assert (
        commsim("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--candidates", 1, "--json", placed).code
        == 0
    )
    for name, hosts, gpus, said in (
        ("small", 16, 2, "job vgg19 asks 4 GPUs of h12, which has 2"),
        ("few", 8, 4, "job vgg19 is placed on h12, which has no GPUs"),
    ):
        other = tmp_path / f"{name}.toml"
        other.write_text(f'[topology]\nspec = "star:n_hosts={hosts}"\n[hosts]\ngpus = {gpus}\n')
        told = commsim.refuses("place", "export", other, "--to", "nodelist", "--placements", placed, "--job", "pinned")
        assert "placed.json: " in told
        assert said in told


def test_link_speeds_are_said_to_be_ignored(commsim, tmp_path):
    (tmp_path / "topology.conf").write_text(CONF)
    out = tmp_path / "net.toml"
    assert commsim("place", "import", tmp_path / "topology.conf", "--from", "slurm-conf", *RATES, "-o", out).code == 0
    assert "# LinkSpeed has no unit" in commsim.out
    assert "2 cables of 100Gbps up from each switch" in commsim.out
    assert len(commsim.out.splitlines()) == 3
    network = read_network(out)
    assert (len(network.hosts), network.n_links) == (8, 24)
    assert sorted(set(network.bandwidth.tolist())) == [12.5e9]


@pytest.mark.parametrize(
    "kind", ["slurm-conf", "slurm-yaml", "topograph-graph", "topograph-model", "kube-nodes", "nvidia-smi", "nccl-xml"]
)
def test_the_kind_of_a_file_is_found_by_what_is_in_it(commsim, cluster, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # a remark is cut where a path is long
    file, rates = Path("file"), RATES
    if kind in ("nvidia-smi", "nccl-xml"):
        gpus = "".join(f'<pci busid="0000:0{i}:00.0" class="0x030200"><gpu dev="{i}"/></pci>' for i in range(2))
        file.write_text(BOX if kind == "nvidia-smi" else f'<system version="1"><cpu numaid="0">{gpus}</cpu></system>')
        rates = ()
    elif kind == "kube-nodes":
        labels = {f"fabric.topograph.run/tier-{i}": f"s{i}" for i in range(2)}
        node = {"kind": "Node", "metadata": {"name": "a", "labels": labels}}
        node["status"] = {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
        file.write_text(json.dumps({"apiVersion": "v1", "items": [node], "kind": "List"}))
    else:
        assert commsim("place", "export", cluster, "--to", kind, "-o", file).code == 0
    out, named = tmp_path / "found.json", tmp_path / "named.json"
    assert commsim("place", "import", file, *rates, "-o", out).code == 0, commsim.err
    assert f"the format of {file} is {kind}" in commsim.out
    assert commsim("place", "import", file, "--from", kind, *rates, "-o", named).code == 0
    assert out.read_text().replace("found", "named") == named.read_text()


def test_a_file_of_no_known_kind_is_told_what_it_is(commsim, tmp_path):
    for text, said in (
        ("no network\n", "unknown format"),
        ("NodeName=n1\n", "the network is in topology.conf"),
        ("", "an empty file"),
        ("a,b\nh0,s0\n", "the format is cables, which --topology takes as it is"),
    ):
        (tmp_path / "file").write_text(text)
        assert said in commsim.refuses("place", "import", tmp_path / "file", *RATES, "-o", tmp_path / "out.toml")


def test_machines_are_imported_as_networks(commsim, tmp_path):
    (tmp_path / "box.txt").write_text(BOX)
    out = tmp_path / "box.json"
    assert commsim("place", "import", tmp_path / "box.txt", "--from", "nvidia-smi", "-o", out).code == 0, commsim.err
    assert {"gpu0", "gpu1", "nic0"} <= set(read_network(out).nodes)
    call = ("place", "import", tmp_path / "box.txt", "--from", "nvidia-smi", "-o", out)
    assert "--tier-bandwidth has no effect on nvidia-smi" in commsim.refuses(*call, *RATES)
    assert "box.txt" in commsim.refuses("place", "import", tmp_path / "box.txt", "--from", "nccl-xml", "-o", out)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "--tier-bandwidth is needed: slurm-conf files contain no rates"),
        (("--tier-bandwidth", "1=100Gbps"), "does not give the rate of tier 2 (switch s0 to top)"),
        (("--tier-bandwidth", "1=1Gbps,2=1Gbps,3=1Gbps"), "the highest is 2: 1 (node n0 to s0), 2 (switch s0 to top)"),
        ((*RATES, "--topology", "x"), "--topology has no effect on slurm-conf"),
        ((*RATES, "--latency", "1"), "--latency needs a unit"),
        ((*RATES, "--gpus-per-host", "0"), "--gpus-per-host is from 1 to 1024"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said(commsim, tmp_path, flags, message):
    (tmp_path / "topology.conf").write_text(CONF)
    out = tmp_path / "out.toml"
    assert message in commsim.refuses(
        "place", "import", tmp_path / "topology.conf", "--from", "slurm-conf", *flags, "-o", out
    )
    assert not out.exists()


def test_files_that_are_not_there_or_not_text_are_named(commsim, tmp_path):
    call = ("--from", "slurm-conf", *RATES, "-o", tmp_path / "out.toml")
    assert "missing: No such file" in commsim.refuses("place", "import", tmp_path / "missing", *call)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in commsim.refuses("place", "import", tmp_path / "binary", *call)
    (tmp_path / "t").write_text(CONF)
    assert "must end with one of" in commsim.refuses(
        "place", "import", tmp_path / "t", *call[:-1], tmp_path / "out.csv"
    )


def test_bursts_that_fit_exactly_are_put_one_after_the_other(commsim, tmp_path):
    """They overlapped within an angle of 2.8 ms: score 1.0, and slower."""
    rows = [
        {
            "job": name,
            "gpus": 4,
            "iter_time_ms": 200,
            "phases": [{"offset_ms": 200 - busy, "dur_ms": busy, "rate_Gbps": 40}],
        }
        for name, busy in (("a", 80), ("b", 120))
    ]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([rows[0] | {"start_ms": 20}, rows[1]]))
    said = printed(commsim, "place", "score", "--capacity", "50Gbps", path, "--check")
    assert "slower, as the score says" in said
    assert "140.000" in said


def test_a_score_of_one_that_a_simulation_contradicts_says_what_was_rounded(commsim, tmp_path):
    rows = [
        {
            "job": name,
            "gpus": 4,
            "iter_time_ms": period,
            "phases": [{"offset_ms": 0, "dur_ms": 49, "rate_Gbps": 40}],
        }
        for name, period in (("a", 100), ("b", 100.4))
    ]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(rows))
    said = printed(commsim, "place", "score", "--capacity", "50Gbps", path, "--check")
    assert "2 of 2 jobs slower, while a score of 1.0 says otherwise" in said
    assert "rounded by up to 0.4 ms, over 0.1 s" in said
    said = printed(commsim, "place", "score", "--capacity", "50Gbps", path, "--check", "--quantum", "0.1ms")
    assert "slower, as the score says" in said
    assert "rounded by up to" not in said


def test_a_check_says_how_well_estimates_agree(commsim, tmp_path):
    """Help and docs promised it, and only `place score` said anything of the kind."""
    from scipy.stats import spearmanr

    call = ("place", EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json", "--generator", "random", "--candidates", 6)
    tree = commsim.results(*call, "--check", "-v")
    rows = tree["candidates"]
    both = [[round(row[key], 4) for row in rows] for key in ("slowdown_estimated", "slowdown")]
    assert tree["rank_correlation"] == pytest.approx(spearmanr(*both).statistic)
    apart = [i for i, row in enumerate(rows, 1) if abs(row["slowdown"] / row["slowdown_estimated"] - 1) > 0.01]
    assert tree["differing_candidates"] == apart
    (said,) = [note for note in tree["notes"] if "rank correlation" in note]
    assert f"rank correlation of {tree['rank_correlation']:.2f}" in said
    (differ,) = [one for one in tree["remarks"] if one["code"] == "estimates-differ"]
    assert ("differ by more than 1 % in candidate" in differ["text"]) == bool(apart)
    plain = commsim.results(*call, "-v")
    assert not [note for note in plain["notes"] if "rank correlation" in note]


def test_simulated_slowdowns_stand_beside_the_estimates(commsim):
    files = [EXAMPLES / "cluster.toml", EXAMPLES / "jobs.json"]
    assert "estimated  slowdown" in printed(commsim, "place", *files, "--candidates", "2", "--check")
    one = printed(commsim, "place", *files, "--candidates", "1").partition("\nrank")[2]
    assert "estimated" not in one  # nothing is contended there, so that nothing is simulated


def printed(commsim, *arguments):
    found = commsim(*map(str, arguments))
    assert found.code == 0
    return found.out
