"""OmniReduce takes the same time through every door, with the overhead of a message and without."""

import pytest

import commsim as cs

STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
SIZE, RANKS = "100MiB", 8


@pytest.mark.parametrize("overhead", [None, "2us"])
@pytest.mark.parametrize("where", ["n_aggregators=8", "colocated=true"])
def test_omnireduce_has_one_time(commsim, overhead, where):
    spec = f"omnireduce:{where},density=0.01,block=256,pattern=random,seed=0"
    given = {} if overhead is None else {"overhead": overhead}
    flags = ["--topology", STAR, "--ranks", RANKS, *(word for name in given for word in (f"--{name}", given[name]))]
    ranked = commsim.results("run", *flags, "--size", SIZE, "--operation", "all_reduce", spec)["results"]
    advised = commsim.results("advise", *flags, "--size", SIZE, "--density", "0.01")["results"]
    times = {
        "predict": cs.predict(spec, STAR, SIZE, n_ranks=RANKS, **given).time,
        "run": commsim.results("run", *flags, "--size", SIZE, spec)["results"][0]["time_s"],
        "run --operation": next(row["time_s"] for row in ranked if row["asked"] == spec),
        "advise": next(row["time_s"] for row in advised if row["spec"] == spec),
    }
    assert times == dict.fromkeys(times, times["predict"])


def test_zeros_that_are_sent_before_it_is_known_what_is_zero_are_said(commsim):
    """The first block of each slot goes unasked: a tenth of the bytes at 1 %."""
    out = commsim("run", "--topology", STAR, "--ranks", RANKS, "--size", SIZE, "omnireduce:density=0.01", "-v").out
    assert "10% of the bytes of 100 MiB are zeros, sent before it is known what is zero" in out
