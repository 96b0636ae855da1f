"""`commsim testbed`: what it refuses anywhere, and what it does where it may."""

import os

import pytest

from commsim.prediction.inputs import load_network
from commsim.real.testbed import places

STAR = "star:n_hosts=2,bandwidth=200Mbps,latency=0.0s"
NAME = f"cli{os.getpid()}"[:16]


@pytest.fixture
def nobody(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 65534)


@pytest.mark.parametrize("what", [
    ["up", STAR], ["run", "--network", STAR], ["run", "--name", "other"], ["down"], ["down", "--all"],
    ["share", "--jobs", "h0,h1", "--network", STAR],
])  # fmt: skip
def test_without_root_there_is_one_line(commsim, nobody, what):
    assert "a testbed needs Linux and root" in commsim.refuses("testbed", *what)


def test_status_needs_no_root(commsim, nobody):
    assert commsim("testbed", "status").code == 0


def test_a_missing_package_is_named(commsim, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pyroute2 is missing: pip install 'commsim[testbed]'" in commsim.refuses("testbed", "up", STAR)


def test_missing_programs_are_named_with_their_packages(commsim, monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "ethtool (package ethtool)" in commsim.refuses("testbed", "up", STAR)


@pytest.mark.parametrize(("what", "why"), [
    (["up", "star:n_hosts=80"], "at most 64 nodes"),
    (["up", STAR, "--name", "No"], "1 to 16 small letters and digits, got 'No'"),
    (["up", STAR, "--routing", "psychic"], "unknown routing 'psychic'"),
    (["run", "--network", STAR, "--name", "both"], "give one of them"),
    (["run", "--routing", "dmodk"], "--routing is decided when a testbed is built"),
    (["run", "--network", STAR, "--flap", "link:h0:h7@1ms+1ms"], "h7"),
    (["run", "--network", STAR, "--rto", "1ms"], "rto goes with flap"),
    (["share", "--jobs", "h0,h1", "--iterations", "0"], "--iterations must be at least 1"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(commsim, what, why):
    assert why in commsim.refuses("testbed", *what)


def test_down_all_takes_away_what_is_up_and_what_dead_ones_have_left(commsim, monkeypatch, tmp_path):
    (tmp_path / "netns").mkdir()
    monkeypatch.setattr(places, "NAMESPACES", tmp_path / "netns")
    monkeypatch.setattr(places, "KEPT", tmp_path / "kept")
    monkeypatch.setattr("pyroute2.netns.NETNS_RUN_DIR", str(tmp_path / "netns"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    places.NamesOfTestbed("one").claim(load_network(STAR))
    for name in ("commsim-one-0", "commsim-two-1", "another"):
        (tmp_path / "netns" / name).touch()
    rows = {row["name"]: row for row in commsim.results("testbed", "status")["results"]}
    assert not rows["one"]["complete"]
    assert "not complete" in rows["two"]["network"]
    assert commsim("testbed", "down", "--all").out.splitlines() == ["one: gone", "two: gone"]
    assert commsim("testbed", "down", "--all").out == ""
    assert [path.name for path in (tmp_path / "netns").iterdir()] == ["another"]
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.needs_kernel("testbed")
@pytest.mark.parametrize(("what", "why"), [
    (["up", "star:n_hosts=2,bandwidth=400Gbps"], "scale the network down"),
    (["up", "dragonfly:p=1,a=2,h=1,bandwidth=1Gbps", "--routing", "valiant"], "routing valiant cannot be built"),
    (["up", STAR, "--routing", "dimension_order"], "dimension_order"),
])  # fmt: skip
def test_what_this_kernel_cannot_build_leaves_nothing(commsim, what, why):
    assert why in commsim.refuses("testbed", *what, "--name", NAME)
    assert f"no testbed {NAME}" in commsim.refuses("testbed", "down", NAME)


@pytest.mark.needs_kernel("testbed")
def test_a_testbed_that_is_not_up_is_named(commsim):
    assert f"testbed {NAME} is not there" in commsim.refuses("testbed", "run", "--name", NAME)
    assert f"no testbed {NAME}" in commsim.refuses("testbed", "down", NAME)


@pytest.mark.needs_kernel("testbed")
def test_up_says_what_is_where_status_lists_it_and_down_takes_it_away(commsim):
    try:
        assert commsim("testbed", "up", STAR, "--name", NAME).code == 0
        assert "2 seats, 2 cables, switches are bridges" in commsim.out
        assert "10.77.0.2" in commsim.out
        assert f"commsim-{NAME}-0" in commsim.out
        assert f"there is a testbed {NAME} already" in commsim.refuses("testbed", "up", STAR, "--name", NAME)
        (row,) = [row for row in commsim.results("testbed", "status")["results"] if row["name"] == NAME]
        assert row == {"name": NAME, "complete": True, "namespaces": 3, "processes": 0, "network": STAR}
        jobs = ("share", "--name", NAME, "--jobs")
        assert "has no host 'h7'; it has h0, h1" in commsim.refuses("testbed", *jobs, "h0,h7")
        assert "two hosts at least" in commsim.refuses("testbed", *jobs, "h0;h1")
    finally:
        assert commsim("testbed", "down", NAME).code == 0, commsim.err
    rows = commsim.results("testbed", "status")["results"]
    assert NAME not in [row["name"] for row in rows]


@pytest.mark.slow
@pytest.mark.needs_kernel("testbed")
def test_run_builds_measures_and_takes_away(commsim):
    run = ("testbed", "run", "--network", STAR, "--no-calibration", "-b", "1M", "-e", "1M", "-n", "2", "-w", "0",
           "--collective", "ring_all_reduce")  # fmt: skip
    (row,) = commsim.results(*run)["results"]
    assert row["bytes_error"] <= 0.01
    assert row["counters"]["wrong"] == 0
    assert row["p5_s"] <= row["time_s"] <= row["p95_s"]
    names = [row["name"] for row in commsim.results("testbed", "status")["results"]]
    assert f"own{os.getpid()}" not in names
