import pytest

from topologies.presets import PRESETS


def test_show_prints_counts_rates_bisection_diameter_and_oversubscription(commsim):
    network = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,oversubscription=2"
    row = commsim.results("topo", "show", network)["results"][0]
    assert row["nodes"] == {"host": 32, "switch": 6}
    assert row["n_links"] == 2 * (32 + 4 * 4)
    assert row["cables"] == [{"between": "leaf:spine", "per_pair": [2, 2], "up": [4, 4], "bandwidths_Bps": [12.5e9]}]
    assert row["diameter"] == 4
    assert row["oversubscription"]["1"] == pytest.approx(2.0)
    assert row["bisection_Bps"] == pytest.approx(32 / 2 * 12.5e9 / 2)
    assert "100 Gb/s (12.5 GB/s)" in commsim.out
    assert "2:1 at tier 1" in commsim.out


def test_show_prints_the_cables_of_each_tier_and_the_switches_that_would_get_none(commsim):
    network = "leaf_spine:n_leaves=4,n_spines=4,hosts_per_leaf=8,oversubscription=4:1"
    row = commsim.results("topo", "show", network)["results"][0]
    assert row["switches_left_out"] == "2 of 4 spines"
    assert "leaf to spine: 1 a pair, 2 up from each leaf, of 100 Gb/s (12.5 GB/s); left out, " in commsim.out
    assert "since they would get no cable: 2 of 4 spines\n" in commsim.out
    commsim("topo", "show", "dgx-h100@multi_plane:machines=4,n_planes=2,n_leaves=2,n_spines=32,oversubscription=1:1")
    assert "16 of 32 spines in each plane" in commsim.out


def test_switches_and_links_of_the_fabric_are_told_from_those_inside_machines(commsim):
    network = "dgx-h100@leaf_spine:machines=4,n_leaves=2,n_spines=1"
    found = commsim.results("topo", "show", network, "--links")
    assert found["results"][0]["nodes"]["switch"] == 2 + 1 + 4 * 9
    assert "3 switches of the fabric and 36 inside machines, " in commsim.out
    ends = [[node.partition(".") for node in one["link"].split(":")] for one in found["links"]]
    inside = [a[0] == b[0] and bool(a[1]) for a, b in ends]
    assert inside == sorted(inside)
    assert set(inside) == {False, True}
    commsim("topo", "show", "star:n_hosts=4")
    assert "1 switch\n" in commsim.out


def test_list_names_every_topology(commsim):
    from topologies import TOPOLOGIES

    names = [r["topology"] for r in commsim.results("topo", "list")["results"]]
    assert names == list(TOPOLOGIES)


@pytest.mark.parametrize("suffix", ["toml", "json", "npz"])
def test_a_saved_network_is_the_same_network(commsim, tmp_path, suffix):
    from commsim.prediction.inputs import load_network

    path = tmp_path / f"net.{suffix}"
    assert commsim("topo", "save", "fat_tree:k=4", "-o", path).code == 0
    assert load_network(str(path)) == load_network("fat_tree:k=4")


def test_an_unknown_suffix_is_refused(commsim, tmp_path):
    assert ".toml" in commsim.refuses("topo", "save", "fat_tree:k=4", "-o", tmp_path / "net.yaml")


pytest.importorskip("scipy")


def bounds(commsim, text):
    return commsim.results("topo", "check", text)["results"][0]["bounds_Bps"]


def test_a_whole_network_gets_its_bounds(commsim):
    found = bounds(commsim, "star:n_hosts=4,bandwidth=1GB/s")
    assert found["bisection"] == pytest.approx(2e9)
    assert found["all_reduce, any schedule"] == pytest.approx(4 / 6 * 1e9)
    assert found["all_reduce, trees"] == pytest.approx(4 / 6 * 1e9)
    assert found["all_to_all"] == pytest.approx(4 / 3 * 1e9)
    assert "connected" in commsim.out


def test_a_large_network_is_bounded_by_counting_only(commsim):
    found = bounds(commsim, "rail_optimized:n_hosts=32,preset=dgx-h100")
    assert found["all_to_all"] is None
    assert found["all_reduce, any schedule"] == pytest.approx(32 * 8 * 48.5e9 / 62)
    assert "the linear program is for small networks" in commsim.out


def test_one_rank_has_no_bound(commsim):
    assert bounds(commsim, "star:n_hosts=1")["all_to_all"] is None
    assert "unlimited" in commsim.out


def test_machines_in_files_of_others_are_checked_too(commsim, tmp_path):
    (tmp_path / "box.txt").write_text("GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-7\nGPU1 NV4 X 0-7\n")
    assert bounds(commsim, f"{tmp_path / 'box.txt'}:sm=70")["all_reduce, trees"] == pytest.approx((80 + 12) * 1e9)
    (tmp_path / "box.xml").write_text('<system>\n<cpu>\n<pci busid="1" class="0x0302" link_width="-1"/></cpu></system>')
    assert "box.xml, line 3: <pci> link_width must be" in commsim.refuses("topo", "check", tmp_path / "box.xml")


def test_what_is_cut_off_is_refused(commsim, tmp_path):
    (tmp_path / "x.json").write_text(
        '{"schema": 1, "nodes": [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}], "links": []}'
    )
    assert "no path from b to a" in commsim.refuses("topo", "check", tmp_path / "x.json")


def test_links_without_a_way_back_and_nodes_without_links_are_said(commsim, tmp_path):
    nodes = ", ".join(f'{{"name": "{name}", "kind": "{kind}"}}' for name, kind in
                      (("a", "host"), ("b", "host"), ("c", "host"), ("s", "switch")))  # fmt: skip
    links = ", ".join(f'{{"from": "{a}", "to": "{b}", "bandwidth": "1GB/s", "latency": "1us"}}' for a, b in
                      (("a", "b"), ("b", "c"), ("c", "a")))  # fmt: skip
    text = f'{{"schema": 1, "nodes": [{nodes}], "links": [{links}]}}'.replace('"host"}', '"host", "forwards": true}')
    (tmp_path / "x.json").write_text(text)
    assert commsim("topo", "check", tmp_path / "x.json").code == 0
    assert "3 links without a way back, such as a:b" in commsim.out
    assert "1 node without links, such as s" in commsim.out


def test_a_wrong_line_of_a_long_file_is_named_by_its_number(commsim, tmp_path):
    lines = ["schema = 1", "[[nodes]]", 'name = "s"', 'kind = "switch"']
    for i in range(500):
        lines += ["[[nodes]]", f'name = "h{i}"', 'kind = "host"', "[[links]]", f'from = "h{i}"', 'to = "s"',
                  'bandwidth = "100Gbps"', 'latency = "1us"', "both_ways = true", ""]  # fmt: skip
    assert len(lines) > 5000
    wrong = 4 + 10 * 437 + 6
    lines[wrong] = 'bandwidth = "100Gb"'
    (tmp_path / "long.toml").write_text("\n".join(lines))
    error = commsim.refuses("topo", "check", tmp_path / "long.toml")
    assert f"long.toml, line {wrong + 1}: links[437].bandwidth must be a rate" in error


def test_list_names_every_preset_and_what_kind_it_is(commsim):
    rows = commsim.results("topo", "presets")["results"]
    assert [row["preset"] for row in rows] == list(PRESETS)
    assert {row["preset"]: row["kind"] for row in rows}["dgx-h100"] == "machine"
    assert {row["preset"]: row["kind"] for row in rows}["meta-24k"] == "network"
    assert "dgx-h100 (machine)" in commsim.out


def test_show_prints_both_rates_which_is_used_and_where_they_are_from(commsim):
    row = commsim.results("topo", "presets", "dgx-h100", "-v")["results"][0]
    nvlink = next(rate for rate in row["rates"] if rate["parameter"] == "nvlink")
    assert (nvlink["spec"], nvlink["effective"], nvlink["used"]) == ("450GB/s", "370.8GB/s", "370.8GB/s")
    assert "NCCL" in nvlink["source"]
    for text in ("450GB/s", "370.8GB/s", "unknown", "ConnectX-7", "ASTRA-sim"):
        assert text in commsim.out


def test_show_counts_the_switches_of_the_fabric_with_their_ports(commsim):
    row = commsim.results("topo", "show", "rail_optimized:machines=40,switch_ports=64")["results"][0]
    assert row["switches"] == [
        {"switch": "leaf", "n_switches": 16, "n_ports": [40, 40]},
        {"switch": "spine", "n_switches": 5, "n_ports": [64, 64]},
    ]
    assert "16 leaf of 40 ports, 5 spine of 64 ports" in commsim.out
    assert commsim.results("topo", "show", "ring:n_hosts=4")["results"][0]["switches"] == []


def test_an_unknown_preset_is_refused(commsim):
    assert "are known: a3-high, " in commsim.refuses("topo", "presets", "quux")
    assert "did you mean dgx-h100? " in commsim.refuses("topo", "presets", "dgx-h101")


def test_a_preset_is_named_wherever_a_network_is(commsim):
    ring = ("run", "--topology", "dgx-a100", "-b", "1G", "-e", "1G", "--collective", "ring_all_reduce")
    assert commsim.results(*ring, "-v")["results"][0]["busbw_Bps"] == pytest.approx(
        240e9, rel=0.01
    )  # 12 NVLinks of 20 GB/s
    assert commsim("run", "--overhead", "0us", "--topology", "rail_optimized:n_hosts=2,preset=dgx-h100", "--collective",
                   "hierarchical_all_reduce", "-v").code == 0  # fmt: skip
    assert "groups are the 2 machines, of 8 ranks each" in commsim.out
    assert commsim("topo", "show", "dgx-h100@star:machines=2", "-v").code == 0
    assert "16 GPUs" in commsim.out
    assert "2 machines" in commsim.out


def test_list_takes_one_name(commsim):
    rows = commsim.results("topo", "list", "rail_optimized")["results"]
    assert [row["topology"] for row in rows] == ["rail_optimized"]
    assert "unknown topology 'rail'; did you mean rail_optimized?" in commsim.refuses("topo", "list", "rail")
    assert "a preset (commsim topo presets): dgx-a100, dgx-b200" in commsim.refuses("topo", "list", "dgx")


def test_the_parameters_of_a_machine_are_listed_and_its_links_named(commsim):
    """The default rate between CPU sockets decided results, and stood nowhere but in the name."""
    (row,) = commsim.results("topo", "list", "pcie_host", "-v")["results"]
    assert "inter_cpu" in row["parameters"].split(",")
    assert "host types: cpu_host, mesh_host, nvswitch_host and pcie_host" in commsim("topo", "list", "-v").out
    shown = commsim("topo", "show", "pcie_host:inter_cpu=90Gbps@star:machines=2", "-v").out.splitlines()
    assert any("90 Gb/s" in line and line.endswith("cpu:cpu (inter_cpu)") for line in shown)
    assert not any("between" in line for line in commsim("topo", "show", "star:n_hosts=4", "-v").out.splitlines())


def test_show_tells_that_rates_of_presets_are_below_those_as_sold(commsim):
    told = "presets have the rates that messages reach (rates=spec: as sold)"
    assert commsim("topo", "show", "dgx-h100@star:machines=2").code == 0
    assert told in commsim.out
    assert commsim("topo", "show", "rail_optimized:machines=2,preset=dgx-h100").code == 0
    assert told in commsim.out
    assert commsim("topo", "show", "dgx-h100:rates=spec@star:machines=2").code == 0
    assert told not in commsim.out


def test_show_lists_links_where_asked_and_names_the_tiers_of_its_ratios(commsim, tmp_path):
    table = tmp_path / "links.csv"
    assert commsim("topo", "show", "star:n_hosts=2", "--links", "--csv", table).code == 0
    assert table.read_text().splitlines()[:2] == ["link,bandwidth_Bps,latency_s", "h0:switch0,12500000000.0,5e-07"]
    assert "every link, one way" in commsim.out
    assert commsim("topo", "show", "star:n_hosts=2").code == 0
    assert "every link" not in commsim.out
    assert commsim("topo", "show", "dgx-h100@leaf_spine:machines=16,n_leaves=4,n_spines=4").code == 0
    assert "at tier 1 (pcie of machines)" in commsim.out
    assert "8:1 at tier 3 (leaf)" in commsim.out
