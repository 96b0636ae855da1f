import pytest

STAR = "star:n_hosts=8"


def test_it_runs_the_engine_that_it_chose_and_says_why(commsim):
    rows = commsim.results("run", "--topology", STAR, "--engine", "auto", "--tolerance", "10%", "-b", "1M", "-e", "1M")
    assert [row["engine"] for row in rows["results"]] == ["closed-form"]
    assert "# 1 MiB: engine closed-form" in commsim.out
    assert "1 comparison with the packet engine" in commsim.out
    assert "which is a model, not a measurement" in commsim.out
    chosen = rows["results"][0]["time_s"]
    flow = commsim.results("run", "--topology", STAR, "-b", "1M", "-e", "1M")["results"][0]["time_s"]
    assert chosen == pytest.approx(flow, rel=1e-9)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine", "auto"], "needs --tolerance"),
        (["--tolerance", "10%"], "--tolerance goes with --engine auto, got --engine flow"),
        (["--engine", "auto", "--tolerance", "much"], "--tolerance must be a part such as 10% or 0.1, got 'much'"),
        (["--engine", "auto", "--tolerance", "0"], "a tolerance is a relative error above 0"),
        (["--engine", "auto", "--tolerance", "1", "--ecn", "0B"], "--ecn needs --engine packet, got --engine auto"),
        (["--engine", "auto", "--tolerance", "1", "--operation", "all_reduce"], "--operation: no errors are known"),
        (["--engine", "auto", "--tolerance", "1", "--start-jitter", "1ms"], "--start-jitter: no errors are known"),
        (["--engine", "auto", "--tolerance", "10%", "-b", "4T", "-e", "4T"], "4 TiB: compared were 64 KiB to"),
    ],
)
def test_what_is_not_known_is_refused(commsim, flags, message):
    assert message in commsim.refuses("run", "--topology", STAR, *flags)


def test_the_transport_that_it_is_compared_with_is_the_one_that_runs(commsim):
    spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,oversubscription=2,bandwidth=10Gbps,latency=0s"
    flags = ["--collective", "direct_all_to_all", "--engine", "auto", "--tolerance", "1%", "-b", "1M", "-e", "1M"]
    slow = commsim.results("run", "--topology", spec, *flags, "--transport", "dcqcn")["results"][0]
    assert "it is the packet engine, DCQCN" in commsim.out
    same = commsim.results("run", "--topology", spec, *flags[:3], "packet", *flags[6:], "--transport", "dcqcn")
    assert slow["time_s"] == same["results"][0]["time_s"]


def test_a_bound_beside_it_is_not_forgotten(commsim):
    commsim.results("run", "--topology", STAR, "--engine", "auto", "--tolerance", "10%", "-b", "1M", "-e", "1M",
                    "--bound")  # fmt: skip
    assert "# bound: 1 MiB: at least" in commsim.out
