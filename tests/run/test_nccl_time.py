"""NCCL where nobody names an algorithm: its closed form, and the files that decide what is launched."""

import time

import pytest

from commsim.core.errors import InputError
from commsim.formats.nccl_plans import write_tuner
from commsim.nccl.prediction import predict
from commsim.nccl.primitive_costs import costs
from commsim.nccl.site import site_of
from commsim.nccl.tuner_rules import Rule, first_rule
from commsim.run import prepare
from commsim.run.nccl_time import against_closed_form
from commsim.run.usual import known_engine


@pytest.mark.parametrize("topology", ["dgx-h100", "dgx-h100@star:machines=2", "alps@star:machines=4"])
@pytest.mark.parametrize("size", [2**13, 2**20, 2**29])
def test_the_closed_form_is_the_model_of_the_primitives_with_what_is_launched(topology, size):
    ready = prepare("nccl_all_reduce", topology)
    chosen = ready.launch.parameters(size)
    site = site_of(ready.network, ready.placement, ready.launch.setting)
    expected = predict(site, "all_reduce", size, chosen["algorithm"], chosen["protocol"])
    result = ready.predict(size, engine="closed-form")
    assert (result.engine, result.size, result.n_ranks) == ("closed-form", size, ready.schedule.n_ranks)
    assert result.time == expected.seconds
    low, high = result.interval or (result.time, result.time)
    assert low <= result.time <= high


def test_eight_h100_are_within_ten_per_cent_of_the_published_time():
    # 2111 us for 512 MiB: NVIDIA's nccl-tests on a DGX H100; the textbook's ring takes 2547
    assert prepare("nccl_all_reduce", "dgx-h100").predict(2**29, engine="closed-form").time == pytest.approx(
        2111e-6, rel=0.1
    )


def test_the_release_decides_what_is_launched():
    new, old = (prepare(f"nccl_all_reduce:version={v}", "dgx-h100").launch.parameters(2**29) for v in ("2.30", "2.14"))
    assert (new["algorithm"], old["algorithm"]) == ("nvls", "ring")


def test_without_costs_the_flow_engine_is_taken_and_it_is_said_why():
    unnamed = prepare("nccl_all_reduce", "nvswitch_host:gpu=hopper@star:machines=2")
    engine, why = known_engine(unnamed, 2**20, "closed-form")
    assert engine == "flow"
    assert "does not say which network joins its machines" in why
    assert "only links cost time" in why
    assert known_engine(prepare("nccl_all_reduce", "dgx-h100"), 2**20, "closed-form") == ("closed-form", "")
    assert known_engine(unnamed, 2**20, "flow") == ("flow", "")


def test_the_closed_form_has_no_late_starters():
    with pytest.raises(InputError, match="neither late starters nor packet headers"):
        prepare("nccl_all_reduce", "dgx-h100").predict(2**20, engine="closed-form", start_jitter=1e-6)


def test_rules_of_the_tuner_plugin_count_before_nccl_s_own_estimate(tmp_path):
    path = tmp_path / "tuner.csv"
    write_tuner(path, [
        Rule("all_reduce", 0, 2**20, "tree", "ll128", 4, 1, 8),
        Rule("all_reduce", 0, 2**30, "ring", "simple", -1, 2, -1),
        Rule("all_gather", 0, 2**30, "ring", "ll"),
    ])  # fmt: skip
    ready = prepare(f"nccl_all_reduce:tuner={path}", "dgx-h100")
    small, large = ready.launch.parameters(2**20), ready.launch.parameters(2**20 + 1)
    assert (small["algorithm"], small["protocol"], small["channels"]) == ("tree", "ll128", 4)
    assert (large["algorithm"], large["protocol"]) == ("ring", "ll")  # rules for two nodes do not count here
    forced = prepare(f"nccl_all_reduce:tuner={path},algorithm=ring", "dgx-h100").launch.parameters(2**20)
    assert (forced["algorithm"], forced["protocol"]) == ("ring", "ll128")


def test_the_first_rule_that_fits_counts_and_minus_one_is_any_number():
    rules = [Rule("reduce", 8, 16, "ring", "ll", -1, 2, 8), Rule("reduce", 8, 64, "ring", "simple")]
    assert first_rule(rules, "reduce", 16, 2, 8) is rules[0]
    assert first_rule(rules, "reduce", 16, 2, 4) is first_rule(rules, "reduce", 17, 2, 8) is rules[1]
    assert first_rule(rules, "reduce", 65, 2, 8) is first_rule(rules, "broadcast", 8, 2, 8) is None


def test_channels_that_nccl_dumped_replace_the_search(tmp_path):
    path = tmp_path / "graph.xml"
    path.write_text(
        '<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="3" speedintra="20" speedinter="20" '
        'typeintra="NVL" typeinter="PIX" samechannels="1"></graph></graphs>'
    )
    ready = prepare(f"nccl_all_reduce:graph={path},algorithm=ring", "dgx-a100")
    assert ready.launch.parameters(2**28)["channels"] == 6  # as many again


@pytest.mark.parametrize(("key", "message"), [("tuner", "/nowhere: No such file"), ("graph", "/nowhere: No such file")])
def test_a_file_that_is_not_there_is_refused(key, message):
    with pytest.raises(InputError, match=message):
        prepare(f"nccl_all_reduce:{key}=/nowhere", "dgx-a100")


STEPS = [
    ("ring", "ll"),
    ("ring", "ll128"),
    ("ring", "simple"),
    ("tree", "ll128"),
    ("tree", "simple"),
    ("nvls", "simple"),
]


@pytest.mark.parametrize(("algorithm", "protocol"), STEPS)
def test_messages_with_the_costs_of_primitives_take_what_the_closed_form_says(algorithm, protocol):
    """Small calls to 15 %; large ones less, since channels on a full link do not wait for each other."""
    least = 0.55 if algorithm == "tree" else 0.66
    ready = prepare(f"nccl_all_reduce:algorithm={algorithm},protocol={protocol}", "dgx-h100")
    for size, low in ((2**12, 0.85), (2**18, 0.85), (2**26, least)):
        ratio = ready.predict(size).time / ready.predict(size, engine="closed-form").time
        assert low < ratio < 1.15, size


@pytest.mark.parametrize("operation", ["broadcast", "reduce"])
def test_chains_of_messages_take_what_the_closed_form_says(operation):
    ready = prepare(f"nccl_{operation}:protocol=simple", "dgx-h100")
    for size in (2**12, 2**20, 2**28):
        ratio = ready.predict(size).time / ready.predict(size, engine="closed-form").time
        assert 0.66 < ratio < 1.15, size


def test_messages_of_an_exchange_do_too():
    ready = prepare("nccl_all_to_all", "dgx-h100")
    for size in (2**12, 2**20, 2**26):
        assert ready.predict(size).time == pytest.approx(ready.predict(size, engine="closed-form").time, rel=0.05)


def test_packets_have_hops_and_the_launch():
    """Fourteen hops, and the launch: of 64 KiB the links' own time is small."""
    ready = prepare("nccl_all_reduce:algorithm=ring,protocol=ll128", "dgx-h100")
    p = costs().of_gpu("hopper")
    least = p.launch + 14 * p.hop_ll128
    assert least < ready.predict(2**16, engine="packet").time < 1.1 * least
    lines = prepare("nccl_all_reduce:algorithm=ring,protocol=ll", "dgx-h100")
    closed = lines.predict(2**20, engine="closed-form").time
    # Flags are on the wire, and no line is a packet of its own, which took 2.6 times as long; channels have no rate.
    assert 0.7 * closed < lines.predict(2**20, engine="packet").time < closed


def test_a_difference_from_the_closed_form_is_said_with_its_cause():
    ready = prepare("nccl_all_reduce:algorithm=tree,protocol=ll128", "dgx-h100")
    small, large = (against_closed_form(ready, [ready.predict(size)]) for size in (2**16, 2**26))
    assert small == []
    assert "times the closed form's" in large[0]
    assert "channels that fill a link together do not wait" in large[0]


def test_costs_that_are_not_known_are_left_out():
    bare = prepare("nccl_all_reduce:algorithm=ring,protocol=ll", "nvswitch_host")
    assert bare.at(2**20).before == 0
    assert bare.at(2**20).paths.network is bare.network


def test_a_call_of_8192_ranks_with_24_channels_takes_seconds():
    """1 GiB over 1,024 machines on rails: asked for are 5 s of computing."""
    begun = time.process_time()
    ready = prepare(
        "nccl_all_reduce:algorithm=ring,protocol=simple,channels=24", "rail_optimized:n_hosts=1024,preset=dgx-h100"
    )
    result = ready.predict(2**30, engine="closed-form")
    assert time.process_time() - begun < 5
    assert result.n_ranks == 8192
    by_nics, p = 2 * 8191 / 8192 * 2**30 / (8 * 50e9), costs().of_gpu("hopper")
    hops = 2 * 1023 * costs().of_network("infiniband").hop_simple + 2 * (8191 - 1023) * p.hop_simple
    assert result.time == pytest.approx(by_nics + hops + 2 * 8191 * p.slice, rel=0.05)
