import numpy as np
import pytest

STAR = ("run", "--topology", "star:n_hosts=4,bandwidth=100Gbps,latency=1us", "-b", "4M", "-e", "4M")
PACKETS = (*STAR, "--engine", "packet")


def test_packets_carry_headers_and_acknowledgements_that_the_flow_engine_does_not_count(commsim):
    (flow,) = commsim.results(*STAR)["results"]
    (packet,) = commsim.results(*PACKETS, "-v")["results"]
    assert "4096 bytes of payload and 82" in commsim.out
    assert packet["engine"] == "packet"
    np.testing.assert_allclose(packet["bytes_on_wire"], flow["bytes_on_wire"] * 4178 / 4096, rtol=1e-12)
    # all rounds but their latency take as much longer as data and acknowledgements are larger than payload
    longer = (packet["time_s"] - 6 * 2e-6) / (flow["time_s"] - 6 * 2e-6)
    assert (4178 + 86) / 4096 < longer < 1.01 * (4178 + 86) / 4096
    assert packet["counters"]["packets"] == 24 * 256


def test_payload_and_header_and_acknowledgements_are_what_is_asked_for(commsim):
    (one,) = commsim.results(*PACKETS, "--payload", "1000B", "--header", "0B", "--ack-every", "8")["results"]
    assert "4096 bytes" not in commsim.out
    assert one["counters"]["packets"] == 24 * -(-(2**20) // 1000)
    answers = one["counters"]["packet_hops"] / 2 - one["counters"]["packets"]  # over two links
    assert 1 / 9 < answers / one["counters"]["packets"] < 1 / 7


def test_a_window_below_the_bandwidth_delay_product_is_a_packet_per_round_trip(commsim):
    (slow,) = commsim.results(*PACKETS, "--window", "4096B")["results"]
    round_trip = 4e-6 + 2 * (4178 + 86) / 12.5e9
    np.testing.assert_allclose(slow["time_s"], 6 * 256 * round_trip, rtol=0.03)


@pytest.mark.parametrize("transport", ["dctcp", "dcqcn"])
def test_losses_are_repeated_and_counted_and_follow_the_seed(commsim, transport):
    lossy = (*PACKETS, "--transport", transport, "--loss", "0.01", "--seed")
    one, same, other = (commsim.results(*lossy, seed)["results"][0] for seed in (1, 1, 2))
    assert one == same
    assert one["time_s"] != other["time_s"]
    assert one["counters"]["retransmissions"] > 0.4 * one["counters"]["drops_loss"] > 0
    bursts = commsim.results(*lossy, 1, "--loss-burst", "8")["results"][0]
    assert bursts["counters"]["drops_loss"] != one["counters"]["drops_loss"]


def test_queues_marks_and_pauses_are_what_is_asked_for(commsim):
    incast = (*PACKETS, "--collective", "direct_gather", "--transport", "dctcp")
    free, marked, small = (
        commsim.results(*incast, *more)["results"][0]["counters"]
        for more in (("--ecn", "0B"), ("--ecn", "20kB:40kB:0.5"), ("--ecn", "0B", "--buffer", "40kB"))
    )
    assert free["marks"] == 0 < marked["marks"]
    assert marked["peak_queue_bytes"] < free["peak_queue_bytes"]
    assert small["peak_queue_bytes"] <= 40e3
    assert small["drops_full"] > 0
    shared = ("--transport", "window", "--shared-buffer", "1MB", "--buffer-alpha", "100", "--pause", "50kB:20kB")
    (paused,) = commsim.results(*incast[:-2], *shared)["results"]
    assert paused["counters"]["drops_full"] == 0
    assert paused["counters"]["peak_queue_bytes"] < 3 * (50e3 + 25e3 + 2 * 4178)


def test_flags_without_effect_are_said_so(commsim):
    assert "--ecn: no effect" in commsim(*PACKETS, "--ecn", "20kB").out
    assert "--buffer-alpha: no effect" in commsim(*PACKETS, "--buffer-alpha", "2").out
    assert "--loss-burst: no effect" in commsim(*PACKETS, "--loss-burst", "2").out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--transport", "dctcp"), "transport needs engine packet, got engine flow"),
        (("--engine", "packet", "--transport", "dctcp", "--loss", "1"), "a loss is in [0, 1), got 1.0"),
        (("--engine", "packet", "--transport", "dctcp", "--ack-every", "2"), "dctcp acknowledges every packet"),
        (("--engine", "packet", "--ecn", "20kB:10kB"), "0 <= ecn_min <= ecn_max"),
        (("--engine", "packet", "--ecn", "1kB:2kB:x"), "--ecn is MIN, MIN:MAX or MIN:MAX:P"),
        (("--engine", "packet", "--pause", "1kB:2kB:3kB"), "--pause has at most 2 sizes"),
        (("--engine", "packet", "--buffer", "1kB"), "a queue holds at least one packet of 4178 bytes"),
        (("--engine", "packet", "--window", "4096"), "--window needs a unit"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(commsim, flags, message):
    assert message in commsim.refuses(*STAR, *flags)


def test_more_packets_than_an_hour_takes_are_refused_before_the_first(commsim, monkeypatch):
    monkeypatch.setenv("COMMSIM_MAX_SECONDS", "0.001")
    said = commsim.refuses(*STAR, "--engine", "packet")
    assert "simulating 25000 packets, counted on each link would take about" in said
    assert "a smaller size, or engine flow" in said


def test_more_messages_than_memory_holds_are_refused_before_they_are_made(commsim):
    """A direct all-to-all of 16,000 hosts took 9 GB and more before anything was said."""
    topology = "leaf_spine:n_leaves=40,n_spines=2,hosts_per_leaf=4000"
    said = commsim.refuses(
        "run", "direct_all_to_all", "--topology", topology, "--engine", "packet", "-b", "64K", "-e", "64K"
    )
    assert "25600000000 messages of packets would take 5.72e+03 GiB of memory" in said


def test_all_columns_of_an_engine_without_links(commsim):
    words = ("run", "halving_doubling_all_reduce", "--topology", "star:n_hosts=8", "--engine", "closed-form", "-v")
    assert commsim(*words, "-b", "1M", "-e", "1M").code == 0
    assert "the links that need longest" not in commsim.out
