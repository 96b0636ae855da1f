"""NCCL where nobody names an algorithm: its closed form, and the files that decide what is launched."""

import dataclasses

import pytest
from remark_codes import codes

from commsim.core.errors import InputError
from commsim.core.network import NIC
from commsim.nccl import prediction
from commsim.nccl.gpu_costs import costs
from commsim.nccl.prediction import CallTime, predict
from commsim.nccl.site import site_of
from commsim.nccl.tuner_and_graph_files import write_tuner
from commsim.nccl.tuner_rules import Rule, first_rule
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import with_gpus
from commsim.prediction.inputs import load_network
from commsim.prediction.read import scenario_of
from commsim.prediction.solve import solve


@pytest.mark.parametrize("topology", ["dgx-h100", "dgx-h100@star:machines=2", "alps@star:machines=4"])
@pytest.mark.parametrize("size", [2**13, 2**20, 2**29])
def test_the_closed_form_is_the_model_of_the_primitives_with_what_is_launched(topology, size):
    ready = prepare("nccl_all_reduce", topology)
    chosen = ready.launch.parameters(size)
    site = site_of(ready.network, ready.placement, ready.launch.setting)
    expected = predict(site, "all_reduce", size, chosen["algorithm"], chosen["protocol"])
    result = ready.predict(size, engine="closed-form")
    assert (result.engine, result.size, result.n_ranks) == ("closed-form", size, ready.schedule.n_ranks)
    assert result.time == pytest.approx(expected.seconds, rel=1e-15)  # the launch is taken off and added again
    low, high = result.interval or (result.time, result.time)
    assert low <= result.time <= high


def test_eight_h100_are_within_ten_per_cent_of_the_published_time():
    # 2111 us for 512 MiB: NVIDIA's nccl-tests on a DGX H100; the textbook's ring takes 2547
    assert prepare("nccl_all_reduce", "dgx-h100").predict(2**29, engine="closed-form").time == pytest.approx(
        2111e-6, rel=0.1
    )


def test_the_release_decides_what_is_launched():
    new, old = (
        prepare(f"nccl_all_reduce:version={v}", "dgx-h100@star:machines=4").launch.parameters(2**29)
        for v in ("2.30", "2.17")
    )
    assert (new["algorithm"], old["algorithm"]) == ("nvls_tree", "ring")


def test_without_costs_only_links_cost_time_and_it_is_said_why():
    unnamed = prepare("nccl_all_reduce", "nvswitch_host:gpu=hopper@star:machines=2")
    (why,) = [str(one) for one in unnamed.remarks_of_sizes([2**20]) if one.code == "links-only"]
    assert not unnamed.has_own_costs
    assert "does not say which network joins its machines" in why
    assert unnamed.at(2**20).before == 0
    with pytest.raises(InputError, match="does not say which network joins its machines"):
        unnamed.predict(2**20, engine="closed-form")
    known = prepare("nccl_all_reduce", "dgx-h100")
    assert known.has_own_costs
    assert "links-only" not in codes(known.remarks_of_sizes([2**20]))


def test_a_choice_that_is_slower_than_another_by_more_than_the_error_is_said_once(monkeypatch):
    """The ring takes twice as long as a tree: told where the tree's upper bound is below, at the worst size, once."""
    asked = prepare("nccl_all_reduce:version=2.26", "dgx-h100@star:machines=2")
    sizes = [2**20, 2**24, 2**28]
    said = asked.remarks_of_sizes(sizes)
    site = asked.launch.site

    def slower(site, operation, size, algorithm="", protocol="", known=None):
        factor = 3.0 if size == 2**24 else 2.0
        taken = CallTime(factor * 1e-3, "ring/simple", factor * 0.9e-3, factor * 1.5e-3)
        return CallTime(1e-3, f"{algorithm}/{protocol}", 0.9e-3, 1.5e-3) if algorithm == "tree" else taken

    monkeypatch.setattr(prediction, "predict", slower)
    (told,) = prediction.faster_than_chosen(site, "all_reduce", sizes)
    assert told.text.startswith("all_reduce, 16 MiB: tree/")
    assert "takes at most 1500.0 us, NCCL's ring/simple 3000.0 us; also at 2 other" in str(told)
    assert told.effect == pytest.approx(2.0)
    within = [size for size in sizes if size != 2**24]
    monkeypatch.setattr(prediction, "predict", lambda *_, **__: CallTime(1e-3, "ring/simple", 0.9e-3, 1.5e-3))
    assert prediction.faster_than_chosen(site, "all_reduce", within) == []
    assert prediction.faster_than_chosen(site, "all_to_all", within) == []
    assert len([one for one in said if one.code == "other-faster"]) <= 1
    forced = prepare("nccl_all_reduce:algorithm=ring", "dgx-h100@star:machines=2")
    assert not [one for one in forced.remarks_of_sizes(sizes) if one.code == "other-faster"]


@pytest.mark.parametrize(
    ("unnamed", "rate"),
    [
        ("star:n_hosts=4,bandwidth=200Gbps", 25e9),
        ("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", 12.5e9),
        ("pcie_host:n_gpus=2,n_nics=1,n_pcie_switches=1,n_cpus=1@star:machines=2", 12.5e9),
    ],
)
def test_the_hint_names_a_network_whose_costs_are_known(unnamed, rate):
    whole = load_network(unnamed)
    named = load_network(next(word for word in with_gpus(whole).split() if "@" in word))
    assert len(named.endpoints) == len(whole.endpoints)
    assert named.bandwidth[named.kind[named.src] == NIC].max() == rate
    notes = (*map(str, prepare("nccl_all_reduce", named).notes),)
    assert not any("only links cost time" in note for note in notes)


def test_the_choice_is_named_at_the_sizes_asked_for():
    solution = solve(scenario_of("nccl_all_reduce", "star:n_hosts=32,bandwidth=200Gbps"), [2**20, 2**30])
    small, large = (solution.plan.launch.parameters(size) for size in (2**20, 2**30))
    told = f"{small['algorithm']}/{small['protocol']} at 1 MiB, {large['algorithm']}/{large['protocol']} at 1 GiB"
    assert f"nccl_all_reduce: NCCL chooses {told}" in [*map(str, solution.remarks)]


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


@pytest.mark.sample(6)
@pytest.mark.parametrize(("algorithm", "protocol"), STEPS)
@pytest.mark.parametrize("topology", ["dgx-h100", "dgx-h100@star:machines=4"])
def test_the_closed_form_is_what_the_event_engine_says(topology, algorithm, protocol):
    algorithm = "nvls_tree" if algorithm == "nvls" and "star" in topology else algorithm
    ready = prepare(f"nccl_all_reduce:algorithm={algorithm},protocol={protocol}", topology)
    for size in (2**12, 2**18, 2**26):
        assert same_by_both_ways(ready, size)
        # What is in no message and no launch is little, so that nearly all of a time slows down with the network.
        rest = ready.at(size).paths.known.seconds - ready.at(size).paths.on_reference(size)
        assert abs(rest) < 0.17 * ready.predict(size).time


def same_by_both_ways(ready, size):
    """Both ways agree in time, bytes on every link and bytes sent; the event engine is not told the closed form."""
    usual, events = ready.predict(size), ready.predict(size, method="events")
    assert (usual.engine, usual.method, events.method) == ("flow", "closed-form", "events")
    assert usual.link_bytes == pytest.approx(events.link_bytes, rel=1e-9)
    assert usual.bytes_on_wire == pytest.approx(events.bytes_on_wire, rel=1e-9)
    return usual.time == pytest.approx(events.time, rel=1e-9)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "operation", ["broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
)
@pytest.mark.parametrize("topology", ["dgx-h100", "dgx-h100@star:machines=2"])
def test_so_it_is_for_other_operations(operation, topology):
    ready = prepare(f"nccl_{operation}", topology)
    for size in (2**12, 2**20, 2**26):
        assert same_by_both_ways(ready, size)


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
def test_so_it_is_for_pat_and_for_halves_of_nvlink_sharp(operation):
    one_gpu = "nvswitch_host:n_gpus=1,n_cpus=1,gpu=hopper,net=infiniband@star:machines=6"
    assert same_by_both_ways(prepare(f"nccl_{operation}:algorithm=pat,protocol=simple", one_gpu), 2**20)
    assert same_by_both_ways(prepare(f"nccl_{operation}:algorithm=nvls", "dgx-h100"), 2**24)


def narrowed(network, name, share):
    """Return a network with one link at a share of its rate."""
    bandwidth = network.bandwidth.copy()
    bandwidth[[network.link_name(i) for i in range(network.n_links)].index(name)] *= share
    return dataclasses.replace(network, bandwidth=bandwidth)


@pytest.mark.parametrize("link", ["m1.gpu3:m1.nvswitch0", "m1.nic2:switch0", "switch0:m0.nic5"])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "nvls_tree"])
def test_a_narrow_link_is_seen(link, algorithm):
    """With a link at a fifth the closed form declines, and the time grows."""
    network, spec = load_network("dgx-h100@star:machines=2"), f"nccl_all_reduce:algorithm={algorithm},protocol=simple"
    whole = prepare(spec, network).predict(2**26)
    slow = prepare(spec, narrowed(network, link, 0.2)).predict(2**26)
    assert whole.method == "closed-form"
    assert slow.method != "closed-form"
    assert slow.time > 1.5 * whole.time


def test_a_link_that_leaves_room_is_not_in_the_way():
    network = load_network("dgx-h100@star:machines=2")
    ready = prepare("nccl_all_reduce:algorithm=ring,protocol=ll", narrowed(network, "m1.gpu3:m1.nvswitch0", 0.5))
    assert ready.predict(2**12).method == "closed-form"
    assert (
        ready.predict(2**12).time == prepare("nccl_all_reduce:algorithm=ring,protocol=ll", network).predict(2**12).time
    )


def test_an_oversubscribed_fabric_slows_all_reduces_down():
    times = []
    for factor in (1, 2, 8):
        topology = f"dgx-h100@leaf_spine:machines=8,n_leaves=4,n_spines=4,oversubscription={factor}"
        times.append(prepare("nccl_all_reduce", topology).predict(2**26).time)
    assert times[0] <= times[1] < times[2]
    with pytest.raises(InputError, match="the closed form does not model the fabric"):
        prepare("nccl_all_reduce", topology).predict(2**26, engine="closed-form")


@pytest.mark.slow
def test_loops_that_repeat_are_not_all_simulated(monkeypatch):
    """64 loops from 16 are within 2 % of all of them on an oversubscribed fabric, and exact on a healthy one."""
    spec, topology = "nccl_all_reduce:algorithm=nvls_tree", "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=2"
    narrow, size = f"{topology},oversubscription=8", 2**29
    every = prepare(spec, narrow, routing="ecmp").predict(size)
    monkeypatch.setattr("commsim.nccl.plans.nccl_launch.MAX_MESSAGES", 2**16)
    ready = prepare(spec, narrow, routing="ecmp")
    some = ready.predict(size)
    assert (every.method, some.method) == ("events", "loops")
    assert some.time == pytest.approx(every.time, rel=0.02)
    assert some.link_bytes == pytest.approx(every.link_bytes, rel=1e-9)
    healthy = prepare(spec, "dgx-h100@star:machines=4")
    assert healthy.predict(size, method="loops").time == pytest.approx(healthy.predict(size).time, rel=1e-9)
    assert healthy.predict(size).method == "closed-form"
    with pytest.raises(InputError, match="needs a call of NCCL with many loops"):
        prepare("ring_all_reduce", "star:n_hosts=4").predict(2**20, method="loops")


def test_packets_have_hops_and_the_launch():
    """Fourteen hops, and the launch: the links' own time of 64 KiB is small, and what a chunk takes is in the hops."""
    ready = prepare("nccl_all_reduce:algorithm=ring,protocol=ll128", "dgx-h100")
    p = costs().of_gpu("hopper")
    assert ready.predict(2**16).time > p.launch + 14 * p.hop_ll128
    assert ready.predict(2**16, engine="packet").time == pytest.approx(ready.predict(2**16).time, rel=0.05)
    lines = prepare("nccl_all_reduce:algorithm=ring,protocol=ll", "dgx-h100")
    closed = lines.predict(2**20, engine="closed-form").time
    # Flags are on the wire, and no line is a packet of its own, which took 2.6 times as long; channels have no rate.
    assert 0.7 * closed < lines.predict(2**20, engine="packet").time < closed


def test_costs_that_are_not_known_are_left_out():
    bare = prepare("nccl_all_reduce:algorithm=ring,protocol=ll", "nvswitch_host")
    assert bare.at(2**20).before == 0
    assert bare.at(2**20).paths.network is bare.network


def test_a_call_of_8192_ranks_with_24_channels_takes_what_its_nics_and_hops_say():
    ready = prepare(
        "nccl_all_reduce:algorithm=ring,protocol=simple,channels=24", "rail_optimized:n_hosts=1024,preset=dgx-h100"
    )
    result = ready.predict(2**30, engine="closed-form")
    assert result.n_ranks == 8192
    by_nics, p = 2 * 8191 / 8192 * 2**30 / (8 * 50e9), costs().of_gpu("hopper")
    hops = 2 * 1023 * costs().of_network("infiniband").hop_simple + 2 * (8191 - 1023) * p.hop_simple
    assert result.time == pytest.approx(by_nics + hops + 2 * 8191 * p.slice, rel=0.05)


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all"])
@pytest.mark.parametrize("size", [2**16, 2**26])
def test_a_faster_port_never_makes_a_call_slower(operation, size):
    """The NICs of this machine have 388 Gbit/s: a port of more adds nothing, and one of less takes time."""
    times = [
        prepare(f"nccl_{operation}", f"dgx-h100@star:machines=4,bandwidth={rate}Gbps").predict(size).time
        for rate in (200, 388, 400, 800)
    ]
    assert times[1:] == pytest.approx([times[1]] * 3, rel=1e-9)
    assert times[0] > times[1] if size > 2**20 else times[0] >= times[1] * (1 - 1e-9)


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("algorithm", ["auto", "nvls", "collnet_direct"])
def test_halves_with_sharp_take_what_the_model_says_and_no_less_than_their_bytes(operation, algorithm):
    """Parts of 3 of 4 machines cross 8 NICs of 48.5 GB/s."""
    topology, size = "dgx-h100:sharp=on@star:machines=4", 2**28
    ready = prepare(f"nccl_{operation}:algorithm={algorithm}", topology)
    forced = "" if algorithm == "auto" else algorithm
    known = predict(ready.launch.site, operation, size, forced)
    assert ready.predict(size).time == pytest.approx(known.seconds, rel=0.02)
    assert known.seconds > 3 / 4 * size / (8 * 48.5e9)
    assert algorithm == "auto" or known.how.startswith(algorithm)


def test_machines_without_nics_have_costs_too():
    assert prepare("nccl_all_reduce", "nvswitch_host:gpu=hopper").predict(2**20).time > 20e-6
