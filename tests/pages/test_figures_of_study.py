"""Which figures the data allows, and that each says why it is left out."""

import dataclasses

import numpy as np
import pytest

from commsim.pages.cli.plot import KINDS
from commsim.pages.fabric.figures_of_tiers import OF_LARGE
from commsim.pages.figure import Figure, NothingToDraw
from commsim.pages.figure_tables import FigureTable, number_column, table_of_rows, word_column
from commsim.pages.figures_of_rows import OF_ROWS, pairs
from commsim.pages.figures_of_runs import OF_RUNS
from commsim.pages.figures_of_study import RUN_FIGURES, make_figures
from commsim.pages.simulated_run import simulate_run
from commsim.pages.study import Study, make_study
from commsim.prediction.build import prepare

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"


def study_of(collectives=("ring_all_reduce", "double_tree_all_reduce"), ranks=(2, 4), sizes=(1024, 2048, 4096)):
    rows = []
    for name in collectives:
        for n in ranks:
            ready = prepare(name, NETWORK, n_ranks=n)
            rows += [ready.predict(size, engine="alpha-beta").row() for size in sizes]
    return make_study("study", table_of_rows(rows), {})


def test_a_size_that_was_rounded_to_whole_elements_is_the_same_size():
    study = study_of(("ring_all_reduce",), (4,), (100_000, 200_000))
    measured = table_of_rows([
        {"operation": "all_reduce", "n_ranks": 4, "size_B": 99_968, "time_s": 1e-5},  # rounded down
        {"operation": "all_reduce", "n_ranks": 4, "size_B": 199_000, "time_s": 1e-5},
    ])  # fmt: skip
    predicted, of = pairs(study.rows, measured)
    assert (study.rows["size_B"].values[predicted].tolist(), of.tolist()) == ([100_000], [0])


def test_every_figure_of_rows_but_accuracy_is_there():
    figures, left_out = make_figures(study_of())
    assert {figure.name for figure in figures} == set(OF_ROWS) - {"accuracy"}
    assert left_out["accuracy"] == "nothing measured was given (--measured FILE)"
    assert ", ".join(OF_RUNS) in left_out


@pytest.mark.parametrize(
    ("wanting", "name", "why"),
    [
        ({"sizes": (1024,), "ranks": (4,)}, "busbw", "only one size"),
        ({"collectives": ("ring_all_reduce",)}, "choice", "only one algorithm"),
        ({"collectives": ("double_tree_all_reduce", "chain_broadcast")}, "speedup", "only one algorithm"),
        ({"ranks": (4,)}, "strong", "only one number of ranks"),
        ({"ranks": (4,)}, "weak", "only one number of ranks"),
        ({"sizes": (1024, 3000)}, "weak", "no two rows differ in ranks"),
    ],
)
def test_a_figure_that_the_data_does_not_allow_says_why(wanting, name, why):
    assert why in make_figures(study_of(**wanting))[1][name]


def test_rates_and_times_of_one_size_are_drawn_against_the_ranks():
    """A sweep over hosts had "there is only one size", and no figure of its bus bandwidth."""
    study = study_of(sizes=(1024,))
    figures = {figure.name: figure for figure in make_figures(study)[0]}
    for name, y in (("busbw", "busbw_Bps"), ("time", "time_s")):
        assert figures[name].roles == {"x": "n_ranks", "y": y, "by": "collective"}
        assert figures[name].words["x"] == "ranks"
    assert make_figures(study_of())[0][0].roles["x"] == "size_B"


def test_measurements_are_paired_with_predictions_of_the_same():
    study = study_of()
    measured = FigureTable.of([
        word_column("operation", ["all_reduce", "all_reduce", "broadcast"]),
        word_column("collective", ["ring_all_reduce", None, None]),
        number_column("n_ranks", [4, np.nan, 4]),
        number_column("size_B", [4096, 1024, 4096]),
        number_column("time_s", [1e-3, 1e-3, 1e-3]),
    ])  # fmt: skip
    predicted, of = pairs(study.rows, measured)
    got = {
        (study.rows["collective"].text()[p], study.rows["n_ranks"].values[p], m)
        for p, m in zip(predicted, of, strict=True)
    }
    both = ("ring_all_reduce", "double_tree_all_reduce")
    assert got == {("ring_all_reduce", 4, 0)} | {(c, n, 1) for c in both for n in (2, 4)}


def test_the_share_within_the_band_is_counted():
    study = study_of(("ring_all_reduce",), (4,), (1024, 2048))
    time = study.rows["time_s"].values
    measured = FigureTable.of([
        word_column("operation", ["all_reduce"] * 2),
        number_column("size_B", [1024, 2048]),
        number_column("time_s", time * [1.05, 1.5]),
    ])  # fmt: skip
    figure = OF_ROWS["accuracy"](Study("s", study.rows, study.parameters, measured))
    assert figure.caption.startswith("50% of 2 predictions")
    np.testing.assert_allclose(figure.table["predicted_over_measured"].values, [1 / 1.05, 1 / 1.5])


@pytest.mark.parametrize("name", [*OF_RUNS, *OF_LARGE])
def test_a_run_of_one_rank_has_a_network_and_nothing_else(name):
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK, n_ranks=1), 1024)
    if name == "network":
        assert OF_RUNS[name](run).picture.shapes
        return
    with pytest.raises(NothingToDraw):
        {**OF_RUNS, **OF_LARGE}[name](run)


def test_figures_of_a_run_hold_all_of_it():
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK), 2**20)
    figures = {name: draw(run) for name, draw in OF_RUNS.items()}
    assert all(isinstance(figure, Figure) for figure in figures.values())
    assert figures["timeline"].table.n_rows == 24
    assert figures["timeline"].table["critical"].values.sum() == len(run.critical.transfers)
    assert figures["timeline"].table["end_s"].values.max() <= run.result.time
    np.testing.assert_allclose(figures["network"].table["carried_B"].values, run.result.link_bytes)
    assert figures["messages"].table.n_rows == 24
    crossed = sum(len(links) for _, links, _ in run.on_links(np.arange(24)))
    assert figures["link-timeline"].table.n_rows == crossed


def test_the_last_bits_of_a_time_make_no_steps():
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", "star:n_hosts=8,bandwidth=100Gbps"), 2**20)
    took = OF_RUNS["messages"](run).table["message_time_s"].values
    assert len(np.unique(took)) == 1
    assert took[0] == pytest.approx((run.trace.done - run.trace.start)[0], abs=1e-12)


def test_speed_ups_of_sizes_alone_are_one_map_of_all_algorithms():
    one, both = (OF_ROWS["speedup"](study_of(ranks=ranks)).roles for ranks in ((4,), (2, 4)))
    assert (one["y"], "facet" in one) == ("collective", False)
    assert (both["y"], both["facet"]) == ("n_ranks", "collective")


def test_measurements_without_an_algorithm_say_that_all_are_compared():
    study = study_of(ranks=(4,))
    rows = [{"operation": "all_reduce", "size_B": 1024, "time_s": 1e-3}]
    caption = OF_ROWS["accuracy"](Study("s", study.rows, study.parameters, table_of_rows(rows))).caption
    assert "do not name the algorithm" in caption
    named = table_of_rows([rows[0] | {"collective": "ring_all_reduce"}])
    assert "do not name" not in OF_ROWS["accuracy"](Study("s", study.rows, study.parameters, named)).caption


def test_lanes_name_participants_and_where_they_are():
    run = simulate_run("switchml", prepare("switchml", NETWORK), 2**16)
    assert run.participants()[:2] == ["rank 0 on h0", "rank 1 on h1"]
    assert all(name.partition(" on ")[2].startswith(("leaf", "spine")) for name in run.participants()[4:])
    assert set(OF_RUNS["timeline"](run).table["lane"].labels) <= set(run.participants())


def test_of_many_lanes_some_are_shown_whole_with_the_critical_path(monkeypatch):
    monkeypatch.setattr("commsim.pages.figures_of_runs.MAX_SLICES", 4 * 14 + 3)
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us"
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", network), 2**20)
    figure = OF_RUNS["timeline"](run)
    assert figure.table.n_rows == 4 * 14  # of four of eight ranks, all that they send
    assert len(np.unique(figure.table["from_rank"].values)) == 4
    assert "Of 8 ranks that sent, 4 are shown: those that are done first, in the middle and last." in figure.caption
    assert figure.table["critical"].values.any()
    links = OF_RUNS["link-timeline"](run)
    assert "4 are shown: those with most of the critical path." in links.caption


def test_of_many_lanes_the_fastest_the_median_and_the_slowest_rank_are_named(monkeypatch):
    monkeypatch.setattr("commsim.pages.figures_of_runs.MAX_LANES", 3)
    run = simulate_run("chain_broadcast", prepare("chain_broadcast:n_chunks=1", "star:n_hosts=9"), 2**20)
    named = {
        name.partition(" on ")[0]: name.partition("(")[2] for name in OF_RUNS["timeline"](run).table["lane"].text()
    }
    # a chain's first sender is done first; its last rank sends nothing and has no lane
    assert {name: words.partition(",")[0] for name, words in named.items() if words} == {
        "rank 0": "done first",
        "rank 4": "median",
    }
    asked = OF_RUNS["timeline"](dataclasses.replace(run, shown_ranks=(6, 7)))
    assert {name.partition(" on ")[0] for name in asked.table["lane"].text()} == {"rank 0", "rank 6", "rank 7"}
    assert "those asked for" in asked.caption


def large_run(collective="double_tree_all_reduce"):
    network = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps,latency=1us"
    return simulate_run(collective, prepare(collective, network), 2**20)


def test_racks_add_up_to_what_their_links_carried():
    run = large_run()
    network, table = run.prepared.network, RUN_FIGURES["racks"](run).table
    kind, rack = (np.array(table[name].text()) for name in ("links", "rack"))
    assert sorted(set(rack)) == ["leaf0: h0 to h7", "leaf1: h8 to h15", "leaf2: h16 to h23", "leaf3: h24 to h31"]
    assert set(kind) == {"out of the rack", "into the rack", "inside the rack"}
    width = run.result.time / 120
    for word, n_links, of in (
        ("out of the rack", 2, lambda a, b: a.startswith("leaf") and b.startswith("spine")),
        ("into the rack", 2, lambda a, _: a.startswith("spine")),
        ("inside the rack", 16, lambda a, b: "spine" not in a + b),
    ):
        ends = [(network.nodes[a], network.nodes[b]) for a, b in zip(network.src, network.dst, strict=True)]
        wanted = run.result.link_bytes[[of(a, b) for a, b in ends]].sum()
        carried = table["load"].values[kind == word].sum() * width * 100e9 / 8 * n_links
        assert carried == pytest.approx(wanted, rel=1e-9)


def test_tiers_have_the_counts_of_their_links_and_all_bytes():
    run = large_run()
    table = RUN_FIGURES["tiers"](run).table
    names = ("hosts to tier 1 (32 links)", "tier 1 to hosts (32 links)",
             "tier 1 to tier 2 (8 links)", "tier 2 to tier 1 (8 links)")  # fmt: skip
    assert table["tier"].labels == names
    count = np.array([32, 32, 8, 8])[table["tier"].values]
    carried = (table["load"].values * count).sum() * run.result.time / 120 * 100e9 / 8
    assert carried == pytest.approx(run.result.link_bytes.sum(), rel=1e-9)
    loads = RUN_FIGURES["loads"](run).table
    most = (run.result.link_bytes / (12.5e9 * run.result.time)).max()
    assert loads["load"].values.max() == pytest.approx(most)
    assert loads.n_rows == 80


def test_of_many_links_some_of_every_tier_are_shown_from_the_busiest_to_the_idlest():
    run = large_run()
    shown = set(OF_RUNS["links"](run).table["link"].text())
    network, carried = run.prepared.network, run.result.link_bytes
    assert len(shown) <= 48
    for a, b in (("h", "leaf"), ("leaf", "h"), ("leaf", "spine"), ("spine", "leaf")):
        links = [
            i
            for i in range(network.n_links)
            if carried[i] > 0
            and network.link_name(i).startswith(a)
            and network.link_name(i).partition(":")[2].startswith(b)
        ]
        here = [carried[i] for i in links if network.link_name(i) in shown]
        assert (max(here), min(here)) == (carried[links].max(), carried[links].min())


def test_large_networks_have_figures_of_racks_and_small_ones_do_not():
    def names(run):
        study = Study("s", table_of_rows([run.result.row()]), runs=(run,))
        return {figure.name for figure in make_figures(study)[0]}

    assert {"tiers", "loads", "racks"} <= names(large_run())
    small = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK), 2**20)
    assert not {"tiers", "loads", "racks"} & names(small)


def test_the_help_of_plot_names_every_figure():
    assert sorted(KINDS) == sorted({**OF_ROWS, **RUN_FIGURES})
