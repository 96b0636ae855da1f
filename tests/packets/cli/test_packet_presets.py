"""Presets of fabrics: what they choose is what the same options say, in `run` and in `traffic`."""

import re
from pathlib import Path

import pytest

import commsim as cs
from commsim.packets.packet_presets import PRESETS, preset_options
from commsim.packets.transports.transports import TRANSPORTS

NETWORK = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_options_with_a_source_each(name):
    assert all(len(choice.source) > 10 for choice in PRESETS[name].values())
    by_name, by_options = (
        cs.predict("ring_all_reduce", NETWORK, "1MB", engine="packet", packets=packets, overhead="0us").time
        for packets in ({"preset": name}, preset_options(name))
    )
    assert by_name == by_options


def test_an_option_beside_a_preset_is_the_options_own(commsim):
    words = ("traffic", "--topology", NETWORK, "--size", "100kB")
    flags = ("--transport", "swift", "--balancing", "ecmp")
    by_preset = commsim.results(*words, "--preset", "swift")["results"]
    assert by_preset == commsim.results(*words, *flags, "--no-trimming")["results"]
    assert by_preset != commsim.results(*words)["results"]
    both = commsim.results(*words, "--preset", "uec-credit", *flags)["results"]
    assert both == commsim.results(*words, *flags)["results"]


@pytest.mark.parametrize("verb", ["run", "traffic"])
def test_an_unknown_preset_is_one_line(commsim, verb):
    words = ("--collective", "ring_all_reduce", "--engine", "packet") if verb == "run" else ()
    said = commsim.refuses(verb, "--topology", NETWORK, "--preset", "roc", *words)
    assert (
        "unknown preset 'roc'; did you mean roce or roce-adaptive? known: uec, uec-credit, roce, roce-adaptive, swift"
        in said
    )


def test_the_heading_says_how_packets_are_sent(commsim):
    run = ("run", "ring_all_reduce", "--topology", "star:n_hosts=4", "-b", "64K", "-e", "64K")
    assert commsim(*run, "--engine", "packet", "--transport", "dctcp").code == 0
    assert "4 ranks, engine packet, transport dctcp, 1 us of overhead per message\n" in commsim.out
    assert commsim(*run, "--engine", "packet", "--preset", "uec").code == 0
    assert "4 ranks, engine packet, transport nscc, balancing mixed, 1 us of overhead per message\n" in commsim.out
    assert "--preset needs engine packet, got engine flow: add --engine packet" in commsim.refuses(
        *run, "--preset", "uec"
    )


def test_spraying_goes_by_the_name_that_routing_has_for_it(commsim):
    fabric = ("--topology", "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2")
    traffic = ("traffic", *fabric, "--size", "64KiB", "--balancing")
    assert commsim.results(*traffic, "spray")["results"] == commsim.results(*traffic, "oblivious")["results"]
    assert "transport nscc, balancing oblivious\n" in commsim.out
    run = ("run", "direct_all_to_all", *fabric, "--engine", "packet", "-b", "64K", "-e", "64K", "--balancing")
    assert commsim.results(*run, "spray")["results"] == commsim.results(*run, "oblivious")["results"]


def test_queues_of_a_fabric_that_pauses_have_no_limit(commsim):
    fabric = ("--topology", "star:n_hosts=4", "--size", "64KiB")
    assert commsim("traffic", "--overhead", "0us", *fabric, "--preset", "roce", "-v").code == 0
    assert "no window, queues without limit, round trip" in commsim.out
    assert commsim("traffic", "--overhead", "0us", *fabric, "--queue", "1MiB", "-v").code == 0
    assert "queue 1 MiB, marks from" in commsim.out


def test_groups_and_sweeps_have_the_transport_of_the_run(commsim, tmp_path):
    run = ("run", "--topology", NETWORK, "ring_all_reduce", "-b", "64K", "-e", "64K", "--engine", "packet", "--group")
    sent = commsim.results(*run, "0,2,4", "--group", "1,3,5", "--preset", "uec")["results"]
    assert len({row["group"] for row in sent}) == 2
    assert "2 groups at once, engine packet, transport nscc, balancing mixed" in commsim.out
    points = tmp_path / "points.toml"
    points.write_text(
        '[topology]\nname = "star"\nn_hosts = 4\n[collective]\nname = "ring_all_reduce"\nsize = "64KiB"\n'
        '[engine]\nname = "packet"\npreset = ["uec", "roce"]\n'
    )
    assert commsim("sweep", "run", points, "-o", tmp_path / "out", "--executor", "serial").code == 0, commsim.err
    points.write_text(points.read_text() + '[[job]]\ntransport = "nscc"\n')
    assert "job" in commsim.refuses("sweep", "run", points, "-o", tmp_path / "other")


def test_each_transport_and_preset_is_in_the_help_and_on_the_page_of_fabrics(commsim):
    """A newcomer adds a row to a table: what lists its names for people is told here, not found by a user."""
    assert commsim("traffic", "--help").code == 0
    words = set(re.findall(r"[\w-]+", re.sub(r"-\n\s+", "-", commsim.out)))
    assert {*TRANSPORTS, *PRESETS} - words == set()
    page = (Path(__file__).parents[3] / "docs" / "fabrics.md").read_text(encoding="utf-8")
    table = page.partition("\n## Transports\n")[2].partition("\n\nA packet")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(TRANSPORTS)


def test_rare_acknowledgements_of_roce_repeat_no_more_where_packets_are_lost(commsim):
    """A gap in the order of one path is answered at once, as a RoCE NIC does by a NAK."""
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=400Gbps"
    run = ("run", "ring_all_reduce", "--topology", network, "--size", "8M", "--engine", "packet", "--preset", "roce")
    lossy = (*run, "--overhead", "0us", "--hashes", "1", "--loss", "0.1%", "--ack-every")
    each, rare = (commsim.results(*lossy, n)["results"][0] for n in ("1", "256"))
    assert rare["time_s"] < 1.02 * each["time_s"]
    assert rare["counters"]["retransmissions"] < 2 * each["counters"]["retransmissions"]
