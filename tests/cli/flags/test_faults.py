import pytest

LEAF_SPINE = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=4"
RUN = ("run", "--topology", LEAF_SPINE, "-b", "1M", "-e", "1M", "--placement", "spread")


def test_a_failed_link_and_switch_are_gone_and_named(commsim):
    row = commsim.results("topo", "show", LEAF_SPINE, "--fail", "link:leaf0:spine1", "--fail", "switch:spine2")[
        "results"
    ][0]
    assert row["n_links"] == 2 * (16 + 16) - 2 - 8
    assert row["topology"].endswith("without leaf0:spine1 without spine2")
    assert row["no_path"] is None


def test_random_failures_are_seeded_and_listed(commsim):
    one, same, other = (
        commsim.results("topo", "show", LEAF_SPINE, "--fail", "links:20%", "--seed", seed, "-v")["results"]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other
    assert "# fail links:20%: 3 failed: leaf" in commsim.out
    assert one[0]["n_links"] == 64 - 6


def test_fewer_than_half_a_link_is_none_and_that_is_said(commsim):
    assert "fail links:1%: 0 failed" in commsim("topo", "show", LEAF_SPINE, "--fail", "links:1%", "-v").out


def test_a_disconnected_network_is_shown_and_refused_by_a_run(commsim):
    row = commsim.results("topo", "show", LEAF_SPINE, "--fail", "switch:leaf0")["results"][0]
    assert "h0" in row["no_path"] or "h1" in row["no_path"]
    assert "disconnected" in commsim.out
    assert "without leaf0: no path from h" in commsim.refuses(*RUN, "--fail", "switch:leaf0")


def test_slower_links_make_a_run_slower_and_failed_ones_too(commsim):
    whole, slow, cut = (
        commsim.results(*RUN, *flags)["results"][0]["time_s"]
        for flags in (
            (),
            ("--scale", "link:leaf0:*=0.25"),
            ("--fail", "link:leaf0:spine0", "--fail", "link:leaf0:spine1", "--fail", "link:leaf0:spine2"),
        )
    )
    assert whole < slow
    assert whole < cut


def test_a_saved_network_has_the_damage(commsim, tmp_path):
    from commsim.core.faults.failures import fail_links
    from commsim.core.files.store import read_network
    from commsim.prediction.inputs import load_network

    assert commsim("topo", "save", LEAF_SPINE, "--fail", "link:leaf0:spine1", "-o", tmp_path / "x.toml").code == 0
    assert read_network(tmp_path / "x.toml") == fail_links(load_network(LEAF_SPINE), ["leaf0:spine1"])


def test_the_seed_has_an_effect_when_failures_or_paths_are_drawn(commsim):
    spray = (*RUN, "--routing", "spray", "--seed", "3")
    assert "seed: no effect" in commsim(*spray, "-v").out
    assert "no effect" not in commsim(*spray, "-v", "--fail", "links:1").out
    assert "no effect" not in commsim(*spray, "-v", "--scale", "links:1=0.5").out
    assert "no effect" not in commsim(*RUN, "-v", "--routing", "ecmp_polarised", "--seed", "3").out
    assert "seed: no effect" in commsim(*RUN, "-v", "--routing", "dmodk", "--seed", "3").out


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (["--fail", "link:leaf0:spine9"], "did you mean spine"),
        (["--fail", "link:leaf0"], "is called node:node, as in h0:leaf0, got 'leaf0'"),
        (["--fail", "switch:h0"], "h0 is not a switch"),
        (
            ["--fail", "switch:"],
            "fail takes link:A:B, switch:NAME, nic:NAME, host:NAME, gpu:NAME, rail:N, plane:N, links:5%",
        ),
        (["--fail", "leaf0"], "or switches:1, got 'leaf0'; did you mean switch:leaf0?"),
        (["--fail", "cable:leaf0:spine1"], "did you mean link:leaf0:spine1?"),
        (["--fail", "node:h1"], "did you mean host:h1?"),
        (["--fail", "switch:leaf9"], "has no switch 'leaf9'; did you mean leaf3"),
        (["--fail", "nic:h0"], "has no nodes that are NICs; a host's cable is named as in link:h0:leaf0"),
        (["--fail", "link:leaf0:x*"], "has no link like 'leaf0:x*'"),
        (["--fail", "links:many"], "fail links takes a number or a percentage, such as 3 or 5%, got 'many'"),
        (["--fail", "links:-1"], "takes a number or a percentage"),
        (["--fail", "links:17"], "there are 16 links between nodes"),
        (["--fail", "switches:200%"], "there are 8 switches of leaf_spine"),
        (["--seed", "-1"], "--seed must be 0 or more, got -1"),
        (["--scale", "leaf0:*=0.5"], "scale takes link:PATTERN=FACTOR, nic:NAME=FACTOR or links:10%=FACTOR"),
        (["--scale", "link:leaf0:*"], "scale takes link:PATTERN=FACTOR"),
        (["--scale", "link:leaf0:*=0"], "by a positive factor, got 0"),
        (["--scale", "link:nothing=0.5"], "has no link like 'nothing'"),
        (["--scale", "links:x=0.5"], "scale links takes a number or a percentage"),
    ],
)
def test_bad_damage_is_one_clear_line(commsim, flags, what):
    assert what in commsim.refuses(*RUN, *flags)


MACHINES = "dgx-h100@rail_optimized:machines=2"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("--fail", "nic:m1.nic0"), ("--fail", "link:m1.nic0:leaf0")),
        (("--fail", "link:m1.nic0:leaf*"), ("--fail", "link:m1.nic0:leaf0")),
        (("--scale", "nic:m1.nic*=0.5"), ("--scale", "link:m1.nic?:leaf*=0.5")),
        # of a cable that is sold with 400 Gb/s, and carries 388 of messages
        (("--scale", "nic:m1.nic0=200Gbps"), ("--scale", "nic:m1.nic0=0.5")),
        (("--scale", "link:leaf*:spine*=100GB/s"), ("--scale", "link:leaf*:spine*=2")),
    ],
)
def test_a_nic_stands_for_its_cables_to_the_fabric(one, other):
    from commsim.core.names.nodes_and_links import link_names
    from commsim.prediction.faults import with_faults
    from commsim.prediction.inputs import load_network

    def damaged(flag, text):
        network = with_faults(load_network(MACHINES), *(([text], []) if flag == "--fail" else ([], [text])))[0]
        return dict(zip(link_names(network), network.bandwidth.tolist(), strict=True))

    assert damaged(*one) == damaged(*other) != damaged("--fail", "link:m0.nic0:leaf0")


def test_a_nic_can_flap(commsim):
    flags = ("run", "--topology", MACHINES, "-b", "1M", "-e", "1M", "--flap")
    assert commsim(*flags, "nic:m1.nic0@1us+5us").code == 0


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--fail", "m0.nic0"), "did you mean nic:m0.nic0?"),
        (("--fail", "port:m0.nic0"), "did you mean nic:m0.nic0?"),
        (("--fail", "machine:m1"), "did you mean host:m1?"),
        (("--fail", "nic:m0.nic9"), "has no NIC 'm0.nic9'; NICs are m0.nic0 to m1.nic7"),
        (("--fail", "switch:spin0"), "has no switch 'spin0'; did you mean spine0"),
        (("--scale", "m0.nic0=0.5"), "did you mean nic:m0.nic0=0.5?"),
        (("--scale", "nic:m0.nic0=200Gbit"), "scale must be a rate such as 400Gbps"),
        (("--scale", "link:m0.*=200Gbps"), "200Gbps is a different factor for each of these links ("),
        (("--scale", "links:1=200Gbps"), "scale links:N takes a factor, such as 0.5"),
    ],
)
def test_a_part_of_a_machine_without_its_kind_gets_the_word_that_fits(commsim, flags, what):
    assert what in commsim.refuses("run", "--topology", MACHINES, "-b", "1M", "-e", "1M", *flags)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "routing"),
    [
        ("torus:dims=2x4", "dimension_order"),
        ("hypercube:dimension=3", "dimension_order"),
        ("dragonfly:p=1,a=2,h=1", "minimal"),
        ("dragonfly:p=1,a=2,h=1", "valiant"),
        ("fat_tree:k=4", "dmodk"),
        ("fat_tree:k=4", "ecmp_polarised"),
        ("bcube:n=2,k=2", "dimension_order"),
        ("fully_connected:n_hosts=5", "valiant"),
    ],
)
def test_a_collective_runs_on_every_fabric_with_its_routing(commsim, topology, routing):
    row = commsim.results("run", "--overhead", "0us", "--topology", topology, "--routing", routing)["results"][0]
    assert row["time_s"] > 0


@pytest.mark.parametrize(
    ("topology", "routing", "what"),
    [
        ("star:n_hosts=4", "dimension_order", "dimension_order routing needs a grid"),
        ("star:n_hosts=4", "minimal", "minimal routing needs groups"),
        ("ring:n_hosts=4", "dmodk", "dmodk routing needs a tree"),
    ],
)
def test_a_routing_that_does_not_fit_is_refused(commsim, topology, routing, what):
    assert what in commsim.refuses("run", "--topology", topology, "--routing", routing)


def test_run_says_what_a_flap_costs(commsim):
    args = (
        "run",
        "--topology",
        "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=10Gbps",
        "-b",
        "8M",
        "-e",
        "8M",
    )
    whole = commsim.results(*args, "ring_all_reduce")["results"][0]
    flapped = commsim.results(*args, "ring_all_reduce", "--flap", "switch:spine0@1ms+2ms", "--flap",
                              "switch:spine1@1ms+2ms", "--detection", "5ms")["results"][0]  # fmt: skip
    assert "the flap costs 2000.00 us" in commsim.out
    assert flapped["time_s"] == pytest.approx(whole["time_s"] + 2e-3, rel=1e-9)
    assert flapped["counters"]["flap_lost_s"] == pytest.approx(2e-3, rel=1e-9)


@pytest.mark.parametrize(
    "flags",
    [
        ("--rto", "1ms"),
        ("--detection", "1ms"),
        ("--flap", "link:h0:leaf0@1ms"),
        ("--flap", "link:h0:leaf7@1ms+1ms"),
        ("--flap", "link:h0:leaf0@1ms+1ms", "--flap", "link:leaf0:h0@1ms+1ms"),
        ("--flap", "link:h0:leaf0@1ms+1ms", "--engine", "alpha-beta"),
    ],
)
def test_flaps_that_cannot_be_are_refused_on_one_line(commsim, flags):
    commsim.refuses(
        "run", "--topology", "leaf_spine:n_leaves=2,hosts_per_leaf=2", "ring_all_reduce", "-b", "8M", *flags
    )
