"""Which figures the data allows, and that each says why it is left out."""

import numpy as np
import pytest

from commsim.report.all_figures import OF_ROWS, OF_RUNS, make_figures
from commsim.report.columns import Table, number_column, table_of_rows, word_column
from commsim.report.figure import Figure, NothingToDraw
from commsim.report.figures_of_rows import pairs
from commsim.report.simulated_run import simulate_run
from commsim.report.study import Study, make_study
from commsim.run import prepare

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
        ({"sizes": (1024,)}, "busbw", "only one size"),
        ({"collectives": ("ring_all_reduce",)}, "choice", "only one algorithm"),
        ({"collectives": ("double_tree_all_reduce", "chain_broadcast")}, "speedup", "only one algorithm"),
        ({"ranks": (4,)}, "strong", "only one number of ranks"),
        ({"ranks": (4,)}, "weak", "only one number of ranks"),
        ({"sizes": (1024, 3000)}, "weak", "no two rows differ in ranks"),
    ],
)
def test_a_figure_that_the_data_does_not_allow_says_why(wanting, name, why):
    assert why in make_figures(study_of(**wanting))[1][name]


def test_measurements_are_paired_with_predictions_of_the_same():
    study = study_of()
    measured = Table.of([
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
    measured = Table.of([
        word_column("operation", ["all_reduce"] * 2),
        number_column("size_B", [1024, 2048]),
        number_column("time_s", time * [1.05, 1.5]),
    ])  # fmt: skip
    figure = OF_ROWS["accuracy"](Study("s", study.rows, study.parameters, measured))
    assert figure.caption.startswith("50% of 2 predictions")
    np.testing.assert_allclose(figure.table["predicted_over_measured"].values, [1 / 1.05, 1 / 1.5])


@pytest.mark.parametrize("name", OF_RUNS)
def test_a_run_of_one_rank_has_a_network_and_nothing_else(name):
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK, n_ranks=1), 1024, {})
    if name == "network":
        assert OF_RUNS[name](run).picture.shapes
        return
    with pytest.raises(NothingToDraw):
        OF_RUNS[name](run)


def test_figures_of_a_run_hold_all_of_it():
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK), 2**20, {})
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
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", "star:n_hosts=8,bandwidth=100Gbps"), 2**20, {})
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
    run = simulate_run("switchml", prepare("switchml", NETWORK), 2**16, {})
    assert run.participants()[:2] == ["rank 0 on h0", "rank 1 on h1"]
    assert all(name.partition(" on ")[2].startswith(("leaf", "spine")) for name in run.participants()[4:])
    assert set(OF_RUNS["timeline"](run).table["lane"].labels) <= set(run.participants())


def test_of_many_lanes_some_are_shown_whole_with_the_critical_path(monkeypatch):
    monkeypatch.setattr("commsim.report.figures_of_runs.MAX_SLICES", 9)
    run = simulate_run("ring_all_reduce", prepare("ring_all_reduce", NETWORK), 2**20, {})
    figure = OF_RUNS["timeline"](run)
    assert figure.table.n_rows == 6  # of one of four ranks, all that it sends
    assert len(np.unique(figure.table["from_rank"].values)) == 1
    assert "Of 4 ranks that sent, 1 with most of the critical path are shown." in figure.caption
    assert figure.table["critical"].values.any()
