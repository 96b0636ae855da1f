"""Presets of fabrics: what they choose is what the same options say, in `run` and in `traffic`."""

import pytest

import commsim as cs
from commsim.scenario.packet_presets import PRESETS, preset_options

NETWORK = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_options_with_a_source_each(name):
    assert all(len(choice.source) > 10 for choice in PRESETS[name].values())
    by_name, by_options = (
        cs.predict("ring_all_reduce", NETWORK, "1MB", engine="packet", packets=packets).time
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
    assert "preset must be one of uec, uec-credit, roce, roce-adaptive, swift, ideal, got 'roc'" in said
