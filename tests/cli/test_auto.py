import pytest

STAR = "star:n_hosts=8"


def test_it_runs_the_engine_that_it_chose_and_says_why(commsim):
    rows = commsim.results("run", "--topology", STAR, "--engine", "auto", "--tolerance", "10%", "-b", "1M", "-e", "1M")
    assert [row["engine"] for row in rows["results"]] == ["closed-form"]
    assert "# 1 MiB: engine closed-form" in commsim.out
    assert "comparisons with the testbed" in commsim.out
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
        (["--engine", "auto", "--tolerance", "1", "--operation", "all_reduce"], "--operation: no errors are known"),
        (["--engine", "auto", "--tolerance", "1", "--start-jitter", "1ms"], "--start-jitter: no errors are known"),
        (["--engine", "auto", "--tolerance", "10%", "--ranks", "5", "-b", "4G", "-e", "4G"], "is not known; compared"),
    ],
)
def test_what_is_not_known_is_refused(commsim, flags, message):
    assert message in commsim.refuses("run", "--topology", STAR, *flags)
