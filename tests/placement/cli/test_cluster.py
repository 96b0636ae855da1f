import csv

import pytest

from commsim.placement.clusters.policy import POLICIES

CLUSTER = """
[topology]
spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,oversubscription=2"
[hosts]
gpus = 8
"""
TRACE = "poisson:jobs=12,load=1.2,seed=1,mean_gpus=6,max_gpus=16,deadlines=0.5"


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    return path


def test_all_policies_are_compared_without_and_with_cassini(commsim, cluster, tmp_path):
    table, picture = tmp_path / "jobs.csv", tmp_path / "jobs.svg"
    tree = commsim.results("cluster", "run", cluster, "--trace", TRACE, "--compare", "--csv", table, "--plot", picture)
    rows = tree["results"]
    assert [(row["policy"], row["cassini"]) for row in rows] == [(p, c) for p in POLICIES for c in (False, True)]
    for row in rows:
        assert row["jct_p50_s"] <= row["jct_p99_s"]
        assert 0 <= row["queued_mean_s"] < row["jct_mean_s"] <= row["makespan_s"]
        assert 0 < row["utilisation"] <= 1
        assert 0 <= row["deadlines_met"] <= 1
        assert 0 <= row["link_excess"] < 1 <= row["slowdown_mean"]
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert len(lines) == 12 * len(rows)
    fifo = [float(line["jct_s"]) for line in lines if line["policy"] == "fifo+cassini"]
    assert sum(fifo) / 12 == pytest.approx(
        next(r for r in rows if r["policy"] == "fifo" and r["cassini"])["jct_mean_s"]
    )
    assert picture.read_text().startswith("<?xml")
    assert "assumed" in commsim.out


@pytest.mark.parametrize(
    ("placing", "ways"),
    [("random", ["packed", "random"]), ("packed", ["packed", "cassini"]), ("drawn,ideal", ["drawn", "ideal"])],
)
def test_compare_compares_one_placing_with_packed(commsim, cluster, placing, ways):
    """One row came: --compare was dropped in silence."""
    asked = ("cluster", "run", cluster, "--trace", TRACE, "--policy", "fifo", "--compare", "--placing", placing)
    assert [row["placing"] for row in commsim.results(*asked)["results"]] == ways
    assert all(f"fifo+{way}" in commsim.out for way in ways) or placing == "packed"


def test_jobs_in_machines_of_their_own_slow_each_other_down_by_nothing(commsim, tmp_path):
    """A link inside the machine is slower than their phases: that was a slowdown, and GPUs were counted as hosts."""
    cluster, trace = tmp_path / "cluster.toml", tmp_path / "trace.csv"
    cluster.write_text('[topology]\nspec = "pcie_host@star:machines=4"\n[hosts]\n')
    rows = [f"j{i},{i},8,200,200,100:100:90" for i in range(4)]
    trace.write_text("\n".join(["job,submit_s,gpus,iterations,iter_time_ms,phases", *rows, ""]))
    asked = ("cluster", "run", cluster, "--trace", trace, "--policy", "fifo", "--placing", "packed,shuffled")
    packed, _ = commsim.results(*asked)["results"]
    assert packed["slowdown_mean"] == 1.0
    assert packed["iteration_mean_s"] > 0.2
    assert "4 jobs on 32 GPUs of 4 hosts" in commsim.out
    assert "fifo+packed" in commsim.out
    assert commsim(*asked[:-1], "packed").code == 0
    assert "fifo+packed" not in commsim.out


@pytest.mark.parametrize(("largest", "said"), [(16, False), (32, True)])
def test_jobs_that_ask_for_all_gpus_are_named(commsim, cluster, largest, said):
    """They wait until the cluster is empty, and others behind them: that was the whole of a low use, unsaid."""
    trace = f"poisson:jobs=8,load=0.5,seed=2,mean_gpus={largest},max_gpus={largest}"
    assert commsim("cluster", "run", cluster, "--trace", trace, "--policy", "fifo").code == 0, commsim.err
    assert ("with all GPUs of the cluster: each waits until no other one runs" in commsim.out) is said


def test_a_named_policy_gives_the_same_numbers_again(commsim, cluster):
    asked = ("cluster", "run", cluster, "--trace", TRACE, "--policy", "tiresias,fifo", "--cassini", "--seed", "3")
    first = commsim.results(*asked)
    assert [row["policy"] for row in first["results"]] == ["tiresias", "fifo"]
    assert commsim.results(*asked)["results"] == first["results"]


def test_a_trace_that_is_written_gives_the_same_run(commsim, cluster, tmp_path):
    path = tmp_path / "trace.csv"
    assert commsim("cluster", "trace", TRACE, "--gpus", "32", "-o", path).code == 0, commsim.err
    assert "12 jobs" in commsim.out
    runs = [
        commsim.results("cluster", "run", cluster, "--trace", trace, "--policy", "fifo")["results"]
        for trace in (TRACE, path)
    ]
    assert runs[0] == runs[1]


def test_nothing_is_said_of_models_where_jobs_bring_their_own_traffic(commsim, cluster, tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("job,submit_s,gpus,iterations,iter_time_ms,phases\na,0,8,100,255,141:114:37\n")
    tree = commsim.results("cluster", "run", cluster, "--trace", path, "--policy", "fifo")
    assert tree["results"][0]["jct_mean_s"] == pytest.approx(25.5)
    assert "assumed" not in commsim.out


def test_a_public_log_becomes_a_trace(commsim, cluster, tmp_path):
    log, path = tmp_path / "cluster_log.csv", tmp_path / "trace.csv"
    log.write_text(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
        "7,u,v,64,64,8,DONE,2020-04-01 00:01:00,,,60,5\n8,u,v,8,64,1,DONE,2020-04-01 00:01:09,,,60,5\n"
    )
    assert commsim("cluster", "trace", "--from", "helios", log, "-o", path).code == 0, commsim.err
    assert "models are drawn at random" in commsim.out
    assert "64 GPUs, but the cluster has 32" in commsim.refuses(
        "cluster", "run", cluster, "--trace", path, "--policy", "fifo"
    )
    tree = commsim.results("cluster", "run", cluster, "--trace", path, "--policy", "fifo", "--largest", "32")
    assert tree["results"][0]["jobs"] == 1
    assert "left out: 1 job of" in commsim.out
    direct = commsim.results(
        "cluster", "run", cluster, "--trace", f"helios:{log}", "--policy", "fifo", "--largest", "32"
    )
    assert direct["results"] == tree["results"]


def test_policies_and_models_are_listed(commsim, tmp_path):
    assert all(name in commsim("cluster", "policies").out for name in POLICIES)
    assert "NSDI 2019" in commsim.out
    assume = tmp_path / "a.toml"
    assume.write_text('[models.mine]\nsize = "10MB"\ncompute = "1ms"\n')
    assert "mine" in commsim("cluster", "models", "--assume", assume).out
    assert "assumed" in commsim.out
    assert "mine" not in commsim("cluster", "models").out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--trace", TRACE), "needs --policy or --compare"),
        (("--trace", TRACE, "--policy", "fi"), "unknown policy 'fi'; did you mean fifo"),
        (("--trace", TRACE, "--compare", "--cassini"), "--cassini has no effect with it"),
        (("--trace", "none.csv", "--policy", "fifo"), "none.csv: No such file"),
        (("--trace", "philly:none", "--policy", "fifo"), "none: No such file"),
        (("--trace", TRACE, "--policy", "fifo", "--plot", "a.gif"), "ends with .svg, .png or .pdf"),
        (("--trace", TRACE, "--policy", "fifo", "--seed", "-1"), "--seed must be 0 or more"),
        (("--trace", TRACE, "--policy", "fifo", "--largest", "0"), "leaves no job of 12"),
        (("--trace", TRACE, "--policy", "fifo", "--assume", "none.toml"), "none.toml: No such file"),
        (("--trace", TRACE, "--policy", "fifo", "--json", "no/where.json"), "no/where.json: cannot write"),
    ],
)
def test_what_is_wrong_is_said_on_one_line(commsim, cluster, argv, message):
    assert message in commsim.refuses("cluster", "run", cluster, *argv)


def test_a_trace_needs_gpus_or_a_kind_of_log(commsim, tmp_path):
    out = tmp_path / "t.csv"
    assert "--gpus" in commsim.refuses("cluster", "trace", TRACE, "-o", out)
    log = ("cluster", "trace", "x", "--from", "acme")
    assert "--gpus has no effect" in commsim.refuses(*log, "--gpus", "3", "-o", out)
    assert "unknown kind of log" in commsim.refuses("cluster", "trace", "x", "--from", "slurm", "-o", out)
    log = tmp_path / "log.csv"
    log.write_text("job_id\n")
    assert "give the kind of log with --from philly|helios" in commsim.refuses("cluster", "trace", log, "-o", out)
    assert not out.exists()


def test_a_replay_of_a_log_says_what_it_leaves_out(commsim, cluster, tmp_path):
    log = tmp_path / "sacct.txt"
    jobs = ["1|10|20|80|cpu=4,gres/gpu=4", "2|11|None|12|", "3|12|13|90|cpu=4"]
    log.write_text("\n".join(["JobID|Submit|Start|End|AllocTRES", *jobs, ""]))
    assert commsim("cluster", "run", cluster, "--trace", f"sacct:{log}", "--policy", "fifo").code == 0, commsim.err
    assert "2 rows left out: 1 that never started, 1 without GPUs" in commsim.out
