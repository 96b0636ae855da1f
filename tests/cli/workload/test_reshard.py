import pytest

RESHARD = ["workload", "reshard", "--size", "1GiB", "--receivers", 4]


def test_the_closed_forms_are_what_the_simulation_gives(commsim):
    flags = ["--bandwidth", "10Gbps", "--network", "star:n_hosts=5,bandwidth=10Gbps,latency=0s"]
    rows = {row["strategy"]: row for row in commsim.results(*RESHARD, *flags)["results"]}
    once = 2**30 / 1.25e9
    assert rows["send_recv"]["flow_s"] == pytest.approx(4 * once)
    assert rows["broadcast"]["flow_s"] == pytest.approx(once * (1 + 3 / 64))
    for row in rows.values():
        assert row["flow_s"] == pytest.approx(row["closed_form_s"], rel=1e-9)


def test_a_local_network_gathers_faster(commsim):
    rows = commsim.results(*RESHARD, "--bandwidth", "10Gbps", "--local-bandwidth", "400Gbps")["results"]
    assert rows[1]["closed_form_s"] == pytest.approx(2**30 / 1.25e9 * (1 + 0.75 / 40))
    assert rows[1]["flow_s"] is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "give --bandwidth RATE for the closed forms, --network SPEC to simulate, or both"),
        (("--bandwidth", "1Gbps", "--receivers", 0), "at least 1 receiver"),
        (("--bandwidth", "1Gbps", "--placement", "spread"), "--placement goes with --network"),
        (("--network", "star:n_hosts=5", "--local-bandwidth", "1Gbps"), "--local-bandwidth goes with --bandwidth"),
    ],
)
def test_what_cannot_be_answered_is_refused_on_one_line(commsim, flags, message):
    assert message in commsim.refuses(*RESHARD, *flags)
