"""A cost of messages means the same in every engine, or is refused by its name."""

import pytest
from remark_codes import codes

import commsim as cs

STAR = "star:n_hosts=17,bandwidth=400Gbps"
ON_MESSAGES = ("flow", "alpha-beta", "closed-form")


def took(collective, engine, size="1MB", network=STAR, **costs):
    return cs.predict(collective, network, size, n_ranks=16, engine=engine, **costs).time


@pytest.mark.parametrize("cost", ["overhead", "recv_overhead"])
@pytest.mark.parametrize("engine", [*ON_MESSAGES, "packet"])
@pytest.mark.parametrize("collective", ["netreduce", "switchml", "sharp", "atp"])
def test_packets_of_switch_systems_have_no_overheads_of_messages(collective, engine, cost):
    asked = cs.scenario_of(collective, STAR, n_ranks=16, engine=engine, **{cost: "10us"})
    solution = cs.solve(asked, ["1MB"])
    assert solution.results[0].time == took(collective, engine)
    assert "overhead-unused" in codes(solution.remarks)


def test_packets_of_switch_systems_have_none_beside_messages_that_have(tmp_path):
    """A ring of hosts that share no link with the switch system's, on the same network with overheads."""
    jobs = tmp_path / "jobs.toml"
    jobs.write_text(
        '[[job]]\ncollective = "sharp"\nsize = "1MB"\nranks = "0-3"\n'
        '[[job]]\ncollective = "ring_all_reduce"\nsize = "1MB"\nranks = "4-7"\n'
    )
    for engine in ("flow", "packet"):
        without, given = (
            [r.time for r in cs.solve(cs.scenario_of(None, STAR, jobs=jobs, engine=engine, **costs)).results]
            for costs in ({}, {"overhead": "10us"})
        )
        assert given[0] == without[0]
        assert given[1] > without[1] + 6 * 9e-6


def test_an_overhead_that_is_given_ranks_as_the_same_that_is_assumed():
    assumed, given = (
        cs.rank("all_reduce", STAR, "1MiB", n_ranks=16, named=["sharp", "switchml"], **costs)
        for costs in ({}, {"overhead": "1us"})
    )
    first, second = ([(name, r.time) for name, r in one.by_size[2**20]] for one in (assumed, given))
    assert first == second
    assert {"sharp", "switchml"} <= {name for name, _ in first}
    (unused,) = [one for one in given.remarks if one.code == "overhead-unused"]
    assert unused.text.startswith("sharp, switchml: ")


@pytest.mark.parametrize("cost", ["overhead", "recv_overhead"])
@pytest.mark.parametrize("n_channels", [1, 2, 4])
def test_overheads_of_channels_that_share_a_port_add_up_in_both_engines(n_channels, cost):
    collective, size = f"multi_ring_all_reduce:n_channels={n_channels}", "64KiB"
    without = "star:n_hosts=16,bandwidth=400Gbps,latency=0ns"
    flow, packet = (took(collective, e, size, without, **{cost: "10us"}) for e in ("flow", "packet"))
    assert flow == pytest.approx(packet, rel=0.01)
    assert flow >= 30 * n_channels * 10e-6
    # With a latency the channels of the flow engine go in step, and wait for it at every step; packets hide it.
    flow, packet = (took(collective, e, size, **{cost: "10us"}) for e in ("flow", "packet"))
    assert packet <= flow * 1.01
    assert flow - packet <= 30 * 1.01e-6
