from topologies.presets import PRESETS


def test_list_names_every_preset_and_what_kind_it_is(commsim):
    rows = commsim.results("presets", "list")["results"]
    assert [row["preset"] for row in rows] == list(PRESETS)
    assert {row["preset"]: row["kind"] for row in rows}["dgx-h100"] == "machine"
    assert {row["preset"]: row["kind"] for row in rows}["meta-24k"] == "network"
    assert "dgx-h100 (machine)" in commsim.out


def test_show_prints_both_rates_which_is_used_and_where_they_are_from(commsim):
    row = commsim.results("presets", "show", "dgx-h100")["results"][0]
    nvlink = next(rate for rate in row["rates"] if rate["parameter"] == "nvlink")
    assert (nvlink["spec"], nvlink["effective"], nvlink["used"]) == ("450GB/s", "370.8GB/s", "370.8GB/s")
    assert "NCCL" in nvlink["source"]
    for text in ("450GB/s", "370.8GB/s", "unknown", "ConnectX-7", "ASTRA-sim"):
        assert text in commsim.out


def test_an_unknown_preset_is_refused(commsim):
    assert "unknown preset 'dgx-x'; known: dgx-a100" in commsim.refuses("presets", "show", "dgx-x")


def test_a_preset_is_named_wherever_a_network_is(commsim):
    rows = commsim.results("run", "--topology", "dgx-a100", "-b", "1G", "-e", "1G")["results"]
    assert 230 < rows[0]["busbw_Bps"] / 1e9 < 240
    assert commsim("run", "--topology", "rail_optimized:n_hosts=2,preset=dgx-h100", "--collective",
                   "hierarchical_all_reduce").code == 0  # fmt: skip
    assert "groups are the 2 machines, of 8 ranks each" in commsim.out
    assert commsim("topo", "show", "dgx-h100@star:n_hosts=16").code == 0
    assert "16 GPUs" in commsim.out
    assert "2 machines" in commsim.out
