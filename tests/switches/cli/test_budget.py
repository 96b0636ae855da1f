import pytest


def test_the_table_says_what_is_used_and_what_it_costs(commsim):
    flags = "--system switchml_rdma --hardware tofino-1 --pool-size 512 --elements-per-packet 256 --jobs 1 --workers 8"
    rows = commsim.results("switch", "budget", *flags.split(), "-v")["results"]
    assert rows[0]["value_B"] == 2**20
    assert (rows[0]["recirculations_adding"], rows[0]["recirculations_reading"]) == (3, 7)
    assert (rows[0]["ports_looped_back"], rows[0]["ports_for_hosts"], rows[0]["max_workers"]) == (48, 16, 16)
    for text in ("entries of an array", "22528", "48 looped back, 16 left of 64", "assumption", "100.0% of line rate"):
        assert text in commsim.out


def test_the_json_has_what_is_used_and_the_sources(commsim):
    tree = commsim.results("switch", "budget", "--system", "atp")
    entries = next(row for row in tree["used"] if row["resource"] == "entries of an array")
    assert (entries["used"], entries["available"]) == (40_000, 45_056)
    assert tree["config"]["system"] == "atp"
    assert tree["sources"]


@pytest.mark.parametrize("hardware", ["tofino-2", "tofino_2", "tofino_1:pipes=2"])
@pytest.mark.parametrize("system", ["switchml-udp", "switchml_udp"])
def test_hyphens_and_underscores_mean_the_same(commsim, hardware, system):
    found = commsim.results("switch", "budget", "--system", system, "--hardware", hardware, "--elements-per-packet", 64)
    assert found["results"][0]["system"] == "switchml_udp"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--pool-size", 9000, "--jobs", 2), "what would fit, all else as asked: a pool of 2048 slots"),
        (("--system", "switchml_udp", "--elements-per-packet", 300), "at most 256 elements fit"),
        (("--elements-per-packet", 48), "switchml_rdma sends packets of 64 or 256 elements, got 48"),
        (("--workers", 20), "what would fit, all else as asked: 16 workers"),
        (("--system", "switchml_rdm"), "unknown switch system 'switchml_rdm'; did you mean switchml_rdma?"),
        (("--system", "switchml_udp:elements_per_packet=64", "--elements-per-packet", 64), "is given twice"),
        (("--system", "switchml_udp", "--packets-per-message", 4), "switchml_udp has no packets_per_message"),
        (("--system", "omnireduce"), "omnireduce aggregates on hosts"),
        (("--hardware", "tofino_3"), "unknown switch hardware 'tofino_3'; did you mean tofino_"),
        (("--hardware", "tofino_1:stages=20"), "stages"),
        (("--bandwidth", "100"), "--bandwidth needs a unit"),
        (("--bandwidth", "400Gbps"), "tofino_1 has ports of 100 Gb/s, got hosts of 400 Gb/s"),
    ],
)
def test_what_does_not_fit_is_refused_on_one_line(commsim, flags, message):
    assert message in commsim.refuses("switch", "budget", *flags)


def test_a_round_trip_gives_bounds_and_a_loss_what_it_costs(commsim):
    flags = "--system switchml_udp --pool-size 32 --workers 8 --round-trip 5us --loss 0.001 --size 64MiB"
    bounds = commsim.results("switch", "budget", *flags.split())["bounds"]
    assert bounds["slots_for_line_rate"] == 64
    assert bounds["bound_elements_per_s"] == pytest.approx(32 * 256 / 5e-6)
    assert bounds["ring_elements_per_s"] == pytest.approx(1785.7e6, rel=1e-4)
    assert bounds["timeouts_of_a_slot"] < bounds["timeouts_of_the_worst_slot"]
    assert f"throughput of a job      {bounds['bound_elements_per_s'] / 1e6:.1f} M elements/s" in commsim.out
    assert "bounds" not in commsim.results("switch", "budget")
    assert "--loss needs --round-trip" in commsim.refuses("switch", "budget", "--loss", 0.1)


def test_the_throughput_is_what_the_pool_allows_and_says_so(commsim):
    flags = "--system switchml_udp --workers 8 --round-trip 5us --elements-per-packet 45 --pool-size"
    commsim("switch", "budget", *flags.split(), 64)
    told = "576.0 M elements/s, 26.2% of line rate, limited by the pool of 64 packets"
    assert f"throughput of a job      {told}\n" in commsim.out
    assert "elements per s" not in commsim.out  # one unit
    commsim("switch", "budget", *flags.split(), 256)
    assert "100.0% of line rate\n" in commsim.out


def test_a_system_that_has_no_estimate_of_losses_is_refused_with_one_that_has(commsim):
    lossy = ("switch", "budget", "--loss", 0.001, "--round-trip", "10us")
    (named,) = [word for word in commsim.refuses(*lossy).split() if word.startswith("switchml_udp")]
    assert commsim(*lossy, "--system", named).code == 0
