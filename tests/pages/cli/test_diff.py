import json

import pytest

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
RUN = ("run", "--topology", NETWORK, "-b", "64K", "-e", "1M", "-f", "4")


def test_two_results_are_printed_beside_each_other(commsim, tmp_path):
    line = ("run", "ring_all_reduce", "--topology")
    for name, spec, end in (("a", "star:n_hosts=4", "4M"), ("b", "star:n_hosts=4,bandwidth=200Gbps", "2M")):
        assert commsim(*line, spec, "-b", "1M", "-e", end, "--json", tmp_path / f"{name}.json").code == 0
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail")
    assert [one["size_B"] for one in answer["results"]] == [2**20, 2**21]
    assert [one["size_B"] for one in answer["only_a"]] == [2**22]
    assert answer["differs"]["topology"] == {"a": "star:n_hosts=4", "b": "star:n_hosts=4,bandwidth=200Gbps"}
    bandwidth = next(one for one in answer["critical_path"] if one["cause"] == "bandwidth")
    assert bandwidth["a_s"] == pytest.approx(2 * bandwidth["b_s"])  # at the largest size that both have
    printed = commsim("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail").out
    assert "only in A: collective=ring_all_reduce" in printed
    assert "links that differ most" in printed
    same = commsim("diff", tmp_path / "a.json", tmp_path / "a.json", "--detail").out
    assert "critical path" in same
    assert "links that differ most" not in same


def test_results_that_are_no_runs_are_not_simulated_again(commsim, tmp_path):
    line = ("switch", "simulate", "--workers", "2", "--size", "64KiB", "--json", tmp_path / "a.json")
    assert commsim(*line).code == 0
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "a.json", "--detail")
    assert "# 1 row of the same configuration" in commsim.out
    assert not any("no details" in one["text"] for one in answer["remarks"])


def test_what_packets_wait_in_switches_is_not_called_overhead(commsim, tmp_path):
    """Without any overhead `diff` named store and forward so."""
    for name, more in (("a", ()), ("b", ("--engine", "packet"))):
        line = (
            "run",
            "ring_all_reduce",
            "--topology",
            "star:n_hosts=4",
            "-b",
            "1M",
            "-e",
            "1M",
            "--overhead",
            "0us",
            *more,
        )
        assert commsim(*line, "--json", tmp_path / f"{name}.json").code == 0
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail")
    path = {one["cause"]: (one["a_s"], one["b_s"]) for one in answer["critical_path"]}
    assert path["overhead"] == pytest.approx((0.0, 0.0), abs=1e-15)
    assert path["store and forward, queues"][0] is None
    assert path["store and forward, queues"][1] > 1e-6
    times = [answer["results"][0][side]["time_s"] for side in ("a", "b")]
    assert [sum(row[side] or 0.0 for row in path.values()) for side in (0, 1)] == pytest.approx(times)


def test_what_marks_take_is_not_called_bandwidth(commsim, tmp_path):
    """A run over DCQCN had 2.7 times the bandwidth's time of the flow engine, over links as fast and as full."""
    fabric = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,bandwidth=100Gbps"
    for name, more in (("a", ()), ("b", ("--engine", "packet", "--transport", "dcqcn"))):
        line = ("run", "direct_all_to_all", "--topology", fabric, "-b", "8M", "-e", "8M", *more)
        assert commsim(*line, "--json", tmp_path / f"{name}.json").code == 0
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail")
    path = {one["cause"]: (one["a_s"] or 0.0, one["b_s"] or 0.0) for one in answer["critical_path"]}
    times = [answer["results"][0][side]["time_s"] for side in ("a", "b")]
    assert [sum(row[side] for row in path.values()) for side in (0, 1)] == pytest.approx(times)
    assert path["rates cut by marks"][0] == 0.0
    assert path["rates cut by marks"][1] > 0.5 * (times[1] - times[0]) > 0.05 * times[0]
    assert path["bandwidth"][1] < 1.05 * path["bandwidth"][0]


def test_two_runs_stand_beside_each_other_in_one_timeline(commsim, tmp_path):
    a, b, path = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "both.json"
    commsim(*RUN, "--json", a)
    commsim(*(word.replace("100Gbps", "50Gbps") for word in RUN), "--json", b)
    assert commsim("diff", a, b, "--timeline", path).code == 0, commsim.err
    assert "24 of 24 messages of A, 24 of 24 of B" in commsim.out
    events = json.loads(path.read_text())["traceEvents"]
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    for side, source in (("A: ", a), ("B: ", b)):
        assert {f"{side}rank {i} on h{i}" for i in range(4)} <= set(process.values())
        slices = [e for e in events if e["ph"] == "X" and process[e["pid"]].startswith(side)]
        sends = {e["args"]["transfer"]: e for e in slices if e["cat"].startswith("send")}
        assert len(sends) == 24
        time = max(row["time_s"] for row in json.loads(source.read_text())["results"])
        assert max(e["ts"] + e["dur"] for e in slices) == pytest.approx(time * 1e6)
    begins, ends = ([e["id"] for e in events if e["ph"] == kind] for kind in "sf")
    assert sorted(begins) == sorted(ends) == list(range(48))  # no arrow leads from one run to the other


@pytest.mark.parametrize(
    ("line", "name", "said"),
    [
        (RUN, "t.pftrace", "--timeline writes .json or .json.gz"),
        (("switch", "simulate", "--workers", "2", "--size", "64KiB"), "t.json", "--timeline needs a run in detail"),
    ],
)
def test_timelines_of_a_difference_need_two_runs(commsim, tmp_path, line, name, said):
    commsim(*line, "--json", tmp_path / "A.json")
    assert said in commsim.refuses("diff", tmp_path / "A.json", tmp_path / "A.json", "--timeline", tmp_path / name)


def test_two_finished_results_are_compared_without_simulating_anything(commsim, tmp_path, monkeypatch):
    """Two results of a million ranks took minutes to compare."""
    commsim(*RUN, "--json", tmp_path / "a.json")

    def simulated(*_, **__):
        raise AssertionError("it simulates")

    monkeypatch.setattr("commsim.pages.cli.replay.replay_one", simulated)
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "a.json")
    assert [one["time_ratio"] for one in answer["results"]] == [1.0] * 3
    assert answer["critical_path"] == answer["links"] == []
    with pytest.raises(AssertionError, match="it simulates"):
        commsim("diff", tmp_path / "a.json", tmp_path / "a.json", "--detail")


@pytest.mark.parametrize("more", [(), ("ring_all_reduce",)])
def test_what_changed_is_summed_up_and_shown_in_detail(commsim, tmp_path, more):
    fabric = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription={}"
    names = ("direct_all_to_all", *more)
    for name, ratio in (("a", 2), ("b", 1)):
        line = (
            "run",
            *names,
            "--topology",
            fabric.format(ratio),
            "-b",
            "1M",
            "-e",
            "4M",
            "-f",
            "4",
            "--overhead",
            "0us",
        )
        assert commsim(*line, "--json", tmp_path / f"{name}.json").code == 0
    printed = commsim("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail").out
    assert "# faster in B: direct_all_to_all (B/A 0.7" in printed
    assert ("# equal: ring_all_reduce\n" in printed) == bool(more)
    assert "critical path, us: direct_all_to_all and direct_all_to_all, 4194304 B" in printed
    assert "# slower in B: direct_all_to_all" in commsim("diff", tmp_path / "b.json", tmp_path / "a.json").out


def test_why_there_is_no_critical_path_is_said_once_for_both(commsim, tmp_path, monkeypatch):
    for name, more in (("a", ""), ("b", ",bandwidth=200Gbps")):
        line = ("run", "ring_all_reduce", "--topology", f"star:n_hosts=4{more}", "--size", "1M")
        line += ("--recv-overhead", "1us")  # which only the event engine traces
        assert commsim(*line, "--json", tmp_path / f"{name}.json", "-v").code == 0
    monkeypatch.setattr("commsim.engine.ways.costs.MAX_TRANSFERS", 10)
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail")
    (line,) = [one["text"] for one in answer["remarks"] if one["code"] == "no-path"]
    assert line == "no critical path: ring_all_reduce: too many messages (24; at most 10 are traced)"
    assert answer["critical_path"] == []


def test_a_row_that_only_one_has_is_named_with_the_parameters_that_were_asked_for(commsim, tmp_path):
    run = ("--topology", "star:n_hosts=8", "--ranks", 4, "--size", "1MB")
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    assert commsim("run", "--overhead", "0us", "byteps:n_servers=0", "byteps:n_servers=2", *run, "--json", a).code == 0
    assert commsim("run", "--overhead", "0us", "byteps:n_servers=2", *run, "--json", b).code == 0
    assert "only in A: collective=byteps asked=byteps:n_servers=0" in commsim("diff", a, b).out


def test_detail_simulates_one_collective_of_each_file_again(commsim, tmp_path, monkeypatch):
    """The one that changed most; of four collectives all four were simulated."""
    from commsim.pages import simulated_run

    names = ("ring_all_reduce", "double_tree_all_reduce", "halving_doubling_all_reduce")
    for name, rate in (("a", 100), ("b", 200)):
        star, file = f"star:n_hosts=4,bandwidth={rate}Gbps", tmp_path / f"{name}.json"
        assert commsim("run", "--topology", star, "-b", "1M", "-e", "1M", *names, "--json", file).code == 0
    played, play = [], simulated_run.simulate_run
    monkeypatch.setattr(simulated_run, "simulate_run", lambda name, *of: played.append(name) or play(name, *of))
    answer = commsim.results("diff", tmp_path / "a.json", tmp_path / "b.json", "--detail")
    most = max(answer["results"], key=lambda one: abs(one["time_ratio"] - 1))["collective"]
    assert played == [most, most]


def test_detail_of_two_collectives_simulates_that_of_each_file(commsim, tmp_path):
    """Rows that are alike but for their collective have none in common: it was a KeyError."""
    names = ("ring_all_reduce", "halving_doubling_all_reduce")
    files = [tmp_path / f"{name}.json" for name in names]
    for name, file in zip(names, files, strict=True):
        star = "star:n_hosts=4,bandwidth=100Gbps"
        assert commsim("run", name, "--topology", star, "--size", "1M", "--json", file).code == 0
    out = commsim("diff", *files, "--detail").out
    assert f"critical path, us: {names[0]} and {names[1]}, 1048576 B" in out
