import pytest

MOE = ["workload", "moe", "--layers", 12, "--ranks", 16, "--attention", "2ms", "--expert", "3ms", "--tokens", "64MB"]
MOE += ["--gradients", "200MB"]


def test_lina_is_the_fastest_and_all_policies_send_for_as_long(commsim):
    rows = commsim.results(*MOE, "--bandwidth", "100Gbps")["results"]
    assert [row["policy"] for row in rows] == ["fifo", "priority", "lina"]
    assert rows[2]["iteration_s"] < rows[1]["iteration_s"] < rows[0]["iteration_s"]
    for row in rows:
        assert row["all_to_all_s"] == pytest.approx(12 * 4 * 64e6 * 15 / 16 / 12.5e9)
        assert row["compute_s"] == pytest.approx(12 * 3 * 5e-3)
        assert row["shared_slow_down"] == 2
    assert "up to 2.00 times as long" in commsim.out


def test_one_gpu_sends_nothing(commsim):
    row = commsim.results(*MOE, "--ranks", 1, "--policy", "lina")["results"][0]
    assert (row["exposed_comm_s"], row["iteration_s"]) == (0, pytest.approx(0.18))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "give what communication costs, --bandwidth RATE or --network SPEC"),
        (("--policy", "tutel"), "unknown --policy 'tutel'; known: fifo, priority, lina"),
        (("--bandwidth", "1Gbps", "--micro-op", "1B"), "at most 50000 pieces"),
        (("--bandwidth", "1Gbps", "--policy", "fifo", "--micro-op", "1MB"), "--micro-op goes with --policy lina"),
        (("--bandwidth", "1Gbps", "--layers", 0), "layers and ranks must be at least 1"),
    ],
)
def test_what_cannot_be_played_is_refused_on_one_line(commsim, flags, message):
    assert message in commsim.refuses(*MOE, *flags)
