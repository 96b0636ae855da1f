"""What a fault takes away, and what the paths know of it, is said with the answer."""

import dataclasses

import numpy as np
import pytest
from remark_codes import codes

import commsim as cs
from commsim.prediction.faults import UNWEIGHTED, with_faults
from commsim.prediction.inputs import load_network

LEAF = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4,bandwidth=400Gbps"


def assumed(network, **given):
    return codes(cs.scenario_of("ring_all_reduce", network, overhead="0us", **given).remarks)


def test_paths_by_hash_do_not_know_slower_links_or_fewer_cables():
    assert UNWEIGHTED.code in assumed(LEAF, scale=["link:leaf0:spine0=0.25"])
    assert UNWEIGHTED.code in assumed(f"{LEAF},uplinks_per_spine=2", fail=["link:leaf0:spine0"])
    assert UNWEIGHTED.code not in assumed("star:n_hosts=4", scale=["link:h0:switch0=0.25"])


def test_what_meets_no_slower_link_is_named():
    """The hash of seed 0 leads the ring around the slow cable, and that of seed 3 over it."""
    spine = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=8"
    slower = {"scale": ["link:leaf0:spine0=0.25"]}
    said = {seed: [*map(str, cs.solve(cs.scenario_of("ring_all_reduce", spine, seed=seed, hashes=1,
                                                     overhead="0us", **slower), ["1MB"]).said)]
            for seed in (0, 3)}  # fmt: skip
    assert "with the hash of this --seed, no message crosses a slower link: ring_all_reduce" in said[0]
    assert not any("crosses a slower link" in line for line in said[3])
    ranked = cs.rank("all_reduce", spine, ["1MB"], algorithms=["ring_all_reduce", "binomial_tree_all_reduce"],
                     seed=0, hashes=1, **slower)  # fmt: skip
    (unused,) = [one for one in ranked.remarks if one.code == "fault-unused"]
    assert unused.text.endswith("no message crosses a slower link: ring_all_reduce")


CABLE = "link:leaf2:spine0"
UNUSED = {"crosses a slower link": {"scale": [f"{CABLE}=0.25"]}, "would cross a link that failed": {"fail": [CABLE]},
          "crosses a cable that flaps": {"flap": [f"{CABLE}@1us+1ms"]}}  # fmt: skip


ASKED = (
    [("ring_all_reduce", LEAF, {"engine": "flow"}), ("ring_all_reduce", LEAF, {"engine": "packet"}),
     ("ring_all_reduce", LEAF, {"engine": "packet", "packets": {"preset": "uec"}}),
     ("ring_all_reduce", LEAF, {"engine": "alpha-beta"}), ("ring_all_reduce", LEAF, {"engine": "closed-form"}),
     ("switchml", LEAF, {"engine": "flow"}), ("switchml", LEAF, {"engine": "packet"}),
     ("ring_all_reduce", LEAF, {"groups": [[0, 1], [2, 3]]}),
     ("ring_all_gather", LEAF, {"compressor": "top_k:density=0.01"}),
     (None, "dgx-h100@leaf_spine:n_leaves=4,n_spines=8,hosts_per_leaf=8,bandwidth=400Gbps", {"n_ranks": 8}),
     (None, "dgx-h100@leaf_spine:n_leaves=4,n_spines=8,hosts_per_leaf=8,bandwidth=400Gbps",
      {"n_ranks": 16, "engine": "closed-form"})]
)  # fmt: skip


def refuses_flaps(collective, given):
    software = given.get("engine") in ("alpha-beta", "closed-form") or "compressor" in given
    return software or (collective, given.get("engine")) == ("switchml", "packet")


@pytest.mark.parametrize(
    ("collective", "network", "given", "what"),
    [
        (*one, what)
        for one in ASKED
        for what in UNUSED
        if not (what.endswith("flaps") and refuses_flaps(one[0], one[2]))
    ],
)
def test_every_engine_says_that_no_message_crosses_what_a_fault_touches(collective, network, given, what):
    ranks = {} if "groups" in given else {"n_ranks": 4}
    said = (
        *map(
            str,
            cs.solve(
                cs.scenario_of(collective, network, **({"overhead": "0us"} | {**ranks, **given, **UNUSED[what]})),
                ["1MB"],
            ).remarks,
        ),
    )
    assert [line for line in said if f"no message {what}" in line]
    assert len([line for line in said if "no message" in line]) == 1
    if network == LEAF:
        crossing = {"placement": "spread", "n_ranks": 16} if "groups" not in given else {"groups": [[0, 15], [1, 14]]}
        used = UNUSED[what]
        used = {key: [text.replace("leaf2:spine0", "leaf*:spine*") for text in used[key]] for key in used}
        if what.startswith("crosses a slower"):
            said = (
                *map(
                    str,
                    cs.solve(
                        cs.scenario_of(collective, network, **({"overhead": "0us"} | {**given, **crossing, **used})),
                        ["1MB"],
                    ).remarks,
                ),
            )
            assert not [line for line in said if "no message" in line]


def test_a_failure_that_messages_would_meet_is_not_called_unused():
    """All cables of a leaf but one: whatever the hash, messages would have crossed one of them."""
    failed = {"fail": [f"link:leaf0:spine{i}" for i in (0, 1, 2)], "placement": "spread"}
    for collective, more in (("direct_all_to_all", {}), ("switchml", {}), ("direct_all_to_all", {"engine": "packet"})):
        solution = cs.solve(cs.scenario_of(collective, LEAF, **failed, overhead="0us", **more), ["64KiB"])
        assert "fault-unused" not in codes(solution.remarks)
    ranked = cs.rank("all_to_all", LEAF, ["64KiB"], **failed)
    assert "fault-unused" not in codes(ranked.remarks)
    near = cs.rank("all_to_all", LEAF, ["64KiB"], n_ranks=4, fail=[CABLE])
    (line,) = [str(one) for one in near.remarks if one.code == "fault-unused"]
    assert line.startswith("with the hash of this --seed, no message would cross a link that failed: ")
    assert set(near.plans) <= set(line.partition(": ")[2].partition(";")[0].split(", "))


def test_the_detection_of_a_flap_is_told_and_whether_a_message_met_it():
    spread = {"placement": "spread", "flap": ["link:leaf0:spine0@100us+1ms"], "hashes": 1}
    where = LEAF.replace("400", "100")
    missed = [
        *map(str, cs.solve(cs.scenario_of("ring_all_reduce", where, **({"overhead": "0us"} | spread)), ["4MB"]).remarks)
    ]
    late = "switches route around a cable 1 ms after it goes down (--detection)"
    (line,) = [line for line in missed if line.startswith("no message met a cable that was down (the busiest: leaf")]
    assert line.endswith(")")
    assert late in missed
    met = (*map(str, cs.solve(
        cs.scenario_of("ring_all_reduce", LEAF.replace("400", "100"), engine="packet", packets={"preset": "uec"},
                       **({"overhead": "0us"} | spread)), ["1MB"],
    ).remarks),)  # fmt: skip
    assert late in met
    assert any(line.endswith("rerouted") and " timeouts" in line for line in met)


def test_rails_without_pxn_are_said_to_cross_the_spines():
    rails = "rail_optimized:machines=4,preset=dgx-h100"
    plain, with_pxn = (
        cs.solve(cs.scenario_of("direct_all_to_all", f"{rails}:pxn={pxn}", overhead="0us"), ["16MiB"])
        for pxn in ("false", "true")
    )
    assert "pxn-off" in codes(plain.remarks)
    assert not {"pxn-off", "fault-unused"} & codes(with_pxn.remarks)
    assert with_pxn.results[0].time < plain.results[0].time


def test_rails_are_seen_in_the_network_and_not_in_its_name():
    def said(network):
        solution = cs.solve(cs.scenario_of("direct_all_to_all", network, overhead="0us"), ["1MiB"])
        return "pxn-off" in codes(solution.remarks)

    leaves = load_network("dgx-h100:pxn=false@leaf_spine:machines=4,n_leaves=2,n_spines=2")
    assert said(renamed("rail_optimized:machines=4,preset=dgx-h100:pxn=false"))
    assert not said(dataclasses.replace(leaves, name="rail_optimized:machines=4"))
    assert not said("dgx-h100:pxn=false,n_nics=2@leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=2")


def renamed(text):
    """The network as a file would have it: with a name that says nothing."""
    return dataclasses.replace(load_network(text), name="mine")


@pytest.mark.parametrize("engine", ["flow", "packet"])
def test_the_link_between_cpu_sockets_is_named_where_it_is_the_busiest(engine):
    """The default of its rate limits `pcie_host`, and nothing said so."""
    slow, fast = (
        cs.predict("ring_all_reduce", f"pcie_host{given}", "64MiB", engine=engine, overhead="0us")
        for given in ("", ":inter_cpu=800Gbps")
    )
    (told,) = (one for one in slow.remarks if one.code == "sockets-busiest")
    assert told.text.startswith("cpu0:cpu1, the busiest link, joins CPU sockets: 80 Gb/s (10 GB/s)")
    assert 0.5 < told.effect <= 1
    assert slow.time > fast.time
    assert "sockets-busiest" not in [one.code for one in fast.remarks]


def test_what_is_said_of_faults_follows_from_the_network_whatever_its_name():
    beside = renamed(f"{LEAF},uplinks_per_spine=2")
    cable = ["link:leaf0:spine0"]
    assert with_faults(beside, cable, [])[1] == [UNWEIGHTED]
    assert with_faults(beside, cable * 2, [])[1] == []  # both are gone, and nothing is uneven
    named = dataclasses.replace(load_network(LEAF), name="mine:oversubscription=2 (1 of 2 cables)")
    assert with_faults(named, cable, [])[1] == []


def test_a_closed_form_says_that_it_does_not_see_a_fabric_that_is_oversubscribed():
    def said(network, **given):
        solution = cs.solve(cs.scenario_of("ring_all_reduce", network, **({"overhead": "0us"} | given)), ["1MB"])
        return "fabric-unseen" in [one.code for one in solution.remarks]

    two = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2"
    assert said(f"{two},oversubscription=2", engine="closed-form")
    assert said(two, engine="closed-form", fail=["link:leaf0:spine0"])
    assert not said(two, engine="closed-form")
    assert not said(f"{two},oversubscription=2")
    assert not said("star:n_hosts=4", engine="closed-form")


def test_a_pattern_takes_all_its_cables_down_and_the_missing_timer_is_said():
    slow = LEAF.replace("400", "100")
    one = cs.scenario_of(
        "ring_all_reduce", slow, flap=["link:leaf0:spine*@10us+5ms"], placement="spread", overhead="0us"
    )
    assert one.wish.model.flaps is not None
    (flap,) = one.wish.model.flaps.flaps
    named = {one.network.link_name(link) for link in flap.links}
    assert named == {f"{a}:{b}" for i in range(4) for a, b in ((f"spine{i}", "leaf0"), ("leaf0", f"spine{i}"))}
    solution = cs.solve(one, ["4MB"])
    assert solution.results[0].counters["stalled"] > 0
    assert "no-timers" in codes(solution.remarks)
    timed = cs.scenario_of(
        "ring_all_reduce", slow, flap=["link:leaf0:spine*@10us+5ms"], placement="spread", rto="4ms", overhead="0us"
    )
    assert "no-timers" not in codes(cs.solve(timed, ["4MB"]).remarks)
    with pytest.raises(cs.InputError, match=r"has no link like 'leaf9:\*'"):
        cs.scenario_of("ring_all_reduce", slow, flap=["link:leaf9:*@10us+5ms"], overhead="0us")


def test_the_busiest_cable_is_named_where_nothing_crosses_what_flaps():
    said = (
        *map(
            str,
            cs.solve(
                cs.scenario_of("ring_all_reduce", LEAF, n_ranks=8, flap=[f"{CABLE}@1us+1ms"], overhead="0us"), ["1MB"]
            ).remarks,
        ),
    )
    (line,) = [line for line in said if "crosses a cable that flaps" in line]
    assert "(the busiest: leaf" in line or "(the busiest: spine" in line


@pytest.mark.parametrize("what", ["nic:m0.nic0", "link:m*.nic0:*", "links:1"])
def test_a_factor_may_be_in_per_cent(what):
    network = load_network("dgx-h100@leaf_spine:machines=2,n_leaves=2,n_spines=2")
    scaled, same = (with_faults(network, fail=[], scale=[f"{what}={text}"])[0] for text in ("0.25", "25%"))
    assert np.array_equal(scaled.bandwidth, same.bandwidth)
    assert not np.array_equal(scaled.bandwidth, network.bandwidth)
