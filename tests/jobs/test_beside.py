"""A collective beside traffic between hosts that are named, such as checkpoints that go to a store."""

import pytest

import commsim as cs
from commsim.core.errors import InputError

STAR = ("--topology", "star:n_hosts=5,bandwidth=400Gbps")


def test_ranks_that_write_to_a_store_send_at_what_the_store_leaves_them(commsim):
    """By hand: four hosts share the store's 400 Gb/s, and send with the other three quarters of theirs: 4/3."""
    words = ("run", "ring_all_reduce", *STAR, "--size", "1G", "--beside", "h[0-3]:h4=1G")
    for where in (("--ranks", "4"), ("--placement", "h0-3")):
        answer = commsim.results(*words, *where)
        (row,) = answer["results"]
        assert row["n_ranks"] == 4
        assert row["time_s"] / row["alone_s"] == pytest.approx(4 / 3, rel=1e-3)
    assert answer["background"]["messages"] == 4
    assert answer["background"]["mean_s"] == pytest.approx(4 * 2**30 / 50e9, rel=1e-3)


def test_what_a_store_sends_is_shared_out_over_those_that_read(commsim):
    answer = commsim.results("run", *STAR, "--ranks", "4", "--size", "1G", "--beside", "h4:h0-3=4G")
    (row,) = answer["results"]
    assert row["time_s"] / row["alone_s"] == pytest.approx(4 / 3, rel=1e-3)
    assert answer["background"]["mean_s"] == pytest.approx(2**32 / 50e9, rel=1e-3)


@pytest.mark.parametrize(("beside", "slowdown"), [("h0:h4=1G", 2), ("h4:h0=1G", 1), ("h4:h1=1G", 2), ("h1:h4=1G", 1)])
def test_only_traffic_in_the_same_direction_is_in_the_way(commsim, beside, slowdown):
    words = ("run", "binomial_broadcast", *STAR, "--ranks", "2", "--size", "1G", "--beside", beside)
    (row,) = commsim.results(*words)["results"]
    assert row["time_s"] / row["alone_s"] == pytest.approx(slowdown, rel=1e-3)


def test_traffic_that_ends_before_slows_down_for_so_long(commsim):
    """By hand: 256 MiB take 4 x 2^28 / 50e9 s, in which the ring gets three quarters of what it would."""
    words = ("run", "ring_all_reduce", *STAR, "--ranks", "4", "--size", "1G", "--beside", "h0-3:h4=256M")
    (row,) = commsim.results(*words)["results"]
    assert row["time_s"] - row["alone_s"] == pytest.approx(4 * 2**28 / 50e9 / 4, rel=1e-2)


def test_a_file_repeats_it_as_often_as_it_says(tmp_path):
    jobs = tmp_path / "jobs.toml"
    text = """[[job]]
collective = "ring_all_reduce"
ranks = "0-3"
size = "64MiB"
[[background]]
kind = "send"
from = "h0-3"
to = "h4"
size = "1MiB"
every = "100us"
until = "1ms"
"""
    jobs.write_text(text)
    found = cs.solve(cs.scenario_of(None, STAR[1], jobs=str(jobs)), ["1B"])
    assert len(found.details.took) == 4 * 10
    jobs.write_text(text.replace('every = "100us"\n', ""))
    with pytest.raises(InputError, match="goes with until and every, both"):
        cs.scenario_of(None, STAR[1], jobs=str(jobs))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--beside", "h0:h0=1G"), "h0 sends to itself"),
        (("--beside", "h0=1G"), "--beside takes FROM:TO=SIZE, such as h[0-3]:h4=1GiB, got 'h0=1G'"),
        (("--beside", "h0:h9=1G"), "from and to must name hosts, h0 to h4, or machines, got 'h9'"),
        (("--beside", "h0:h4=1G", "--size", "1M,2M"), "takes one collective and one size"),
        (("--beside", "h0:h4=1G", "--draw", "x.svg"), "--draw cannot be used with --beside"),
    ],
)
def test_what_cannot_be_sent_is_refused(commsim, words, message):
    assert message in commsim.refuses("run", "ring_all_reduce", *STAR, *words)
