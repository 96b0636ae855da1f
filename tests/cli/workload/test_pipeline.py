import json

import pytest

STAGES = ["workload", "pipeline", "--stages", 8, "--micro-batches", 32, "--forward", "10ms"]


def test_without_messages_every_schedule_has_the_bubble_of_its_formula(commsim):
    schedules = [flag for name in ("gpipe", "1f1b", "interleaved", "chimera") for flag in ("--schedule", name)]
    rows = commsim.results(*STAGES, "--backward", "10ms", *schedules)["results"]
    assert [row["schedule"] for row in rows] == ["gpipe", "1f1b", "interleaved", "chimera"]
    for row in rows:
        assert row["bubble"] == pytest.approx(row["bubble_formula"], rel=1e-9)
        assert row["exposed_comm_s"] == 0
    assert rows[3]["bubble_formula"] == 6 / 70
    assert rows[3]["weight_copies"] == 2


def test_where_a_formula_does_not_hold_the_table_says_so(commsim):
    flags = ["--schedule", "1f1b", "--schedule", "chimera"]
    assert commsim(*STAGES, "--backward", "10ms", *flags).code == 0, commsim.err
    assert "formula of" not in commsim.out
    assert commsim(*STAGES, "--backward", "20ms", *flags).code == 0, commsim.err
    assert "# the formula of chimera holds when both passes take the same time" in commsim.out
    assert "# the formula of 1f1b" not in commsim.out


def test_messages_and_gradients_cost_what_the_bandwidth_makes_them_cost(commsim):
    flags = ["--backward", "20ms", "--activation", "64MiB", "--bandwidth", "100Gbps", "--schedule", "gpipe"]
    row = commsim.results(*STAGES, *flags)["results"][0]
    message = 64 * 2**20 / 12.5e9
    assert row["iteration_s"] == pytest.approx(39 * 30e-3 + 2 * 7 * message)
    more = commsim.results(*STAGES, *flags, "--weights", "1GB", "--data-parallel", 4)["results"][0]
    assert more["iteration_s"] == pytest.approx(row["iteration_s"] + 1.5e9 / 12.5e9)


def test_a_network_and_a_timeline(commsim):
    path = commsim.folder / "timeline.json"
    flags = ["--backward", "20ms", "--activation", "1MiB", "--network", "star:n_hosts=8,bandwidth=100Gbps,latency=0s"]
    row = commsim.results(*STAGES, *flags, "--timeline", path)["results"][0]
    assert row["iteration_s"] > 39 * 30e-3
    assert len(json.loads(path.read_text())["traceEvents"]) >= 2 * 8 * 32


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--backward", "10"), "--backward needs a unit"),
        (("--backward", "1ms", "--schedule", "dapple"), "unknown --schedule 'dapple'; known: gpipe, 1f1b"),
        (("--backward", "1ms", "--activation", "1MB"), "give what communication costs, --bandwidth RATE or --network"),
        (("--backward", "1ms", "--chunks", 3), "--chunks goes with --schedule interleaved"),
        (("--backward", "1ms", "--placement", "spread"), "--placement goes with --network"),
        (("--backward", "1ms", "--bandwidth", "1Gbps", "--network", "star"), "both set the cost of communication"),
        (("--backward", "1ms", "--latency", "1us", "--network", "star:n_hosts=8"), "--latency goes with --bandwidth"),
        (("--backward", "1ms", "--data-parallel", 0), "data parallel must be at least 1"),
        (("--backward", "1ms", "--stages", 7, "--schedule", "chimera"), "even number of workers"),
        (("--backward", "0s", "--forward", "0s"), "must not both be 0"),
    ],
)
def test_what_cannot_be_played_is_refused_on_one_line(commsim, flags, message):
    assert message in commsim.refuses(*STAGES, *flags)
