"""Specifications of figures: what a browser is asked to draw, and that no name of a user's is part of a program."""

import json

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.pages.figure import Figure
from commsim.pages.figure_tables import Column, FigureTable, distinct, number_column, table_of_rows, word_column
from commsim.pages.figures_of_study import make_figures
from commsim.pages.page.specs import KINDS, spec_of, zoomed_field
from commsim.pages.page.specs.fields import columns_of
from commsim.pages.page.specs.lanes import with_positions
from commsim.pages.page.write import library, require_library
from commsim.pages.study import make_study

EVIL = "');alert(1);//"


def rows(names=("ring", "tree")):
    return [
        {"collective": name, "operation": "all_reduce", "n_ranks": n, "size_B": 2.0**k, "time_s": (i + 1) * 1e-6 * k,
         "busbw_Bps": 1e9 * k / n}
        for i, name in enumerate(names) for n in (2, 4) for k in range(16, 19)
    ]  # fmt: skip


def figures(names=("ring", "tree")):
    return {figure.name: figure for figure in make_figures(make_study("s", table_of_rows(rows(names)), {}))[0]}


def expressions(spec):
    """All that a browser reads as a program."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key in ("expr", "filter", "calculate", "test", "labelExpr") and isinstance(value, str):
                yield value
            yield from expressions(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from expressions(value)


def timeline():
    table = FigureTable.of((
        word_column("lane", ["a", "a", "b", EVIL]), number_column("level", [0, 1, 0, 0], ""),
        number_column("start_s", [0, 0, 1, 2]), number_column("end_s", [1, 2, 2, 3]),
        word_column("effect", ["copied", "added on arrival", "copied", "copied"]),
        number_column("critical", [0, 1, 0, 1], ""),
    ))  # fmt: skip
    roles = {"y": "lane", "level": "level", "x": "start_s", "end": "end_s", "by": "effect", "mark": "critical"}
    return with_positions(Figure("timeline", "spans", "t", "c", table, roles))


def test_no_name_of_the_data_is_part_of_an_expression():
    made = [figure for figure in figures((EVIL, f"ring{EVIL}")).values() if figure.kind in KINDS] + [timeline()]
    table = FigureTable.of((Column("x", np.arange(3.0), EVIL), number_column("y", [1, 2, 3])))
    unit = Figure("busbw", "curves", "t", "c", table, {"x": "x", "y": "y"})
    for figure in [*made, unit]:
        found = list(expressions(spec_of(figure)))
        assert found
        assert not [one for one in found if "alert" in one]
    assert EVIL in json.dumps([spec_of(figure) for figure in made])  # it is shown all the same


def test_ticks_stand_at_the_sizes_of_the_data():
    axis = spec_of(figures()["busbw"])["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [2.0**16, 2.0**17, 2.0**18]


@pytest.mark.parametrize("name", ["busbw", "time", "cdf", "strong", "weak"])
def test_lines_can_be_zoomed_and_hidden_and_all_are_shown_at_first(name):
    figure = figures()[name]
    spec = spec_of(figure)
    layers = [*spec["layer"], *spec["layer"][0].get("layer", ())]
    zoom, shown = next(layer["params"] for layer in layers if "params" in layer)
    assert zoom["bind"] == "scales"
    assert zoomed_field(figure) == f"f{columns_of(figure).index(figure.roles['x'])}"
    assert shown["bind"] == "legend"
    assert [next(iter(value.values())) for value in shown["value"]] == ["ring", "tree"]


def test_bars_of_a_timeline_are_within_their_lanes_and_those_of_one_lane_apart():
    table = timeline().table
    top, bottom = table["bar_top"].values, table["bar_bottom"].values
    lane = np.searchsorted(distinct(table["lane"]), table["lane"].values)
    assert (lane < top).all()
    assert (top < bottom).all()
    assert (bottom < lane + 1).all()
    assert bottom[0] <= top[1]


def test_copies_have_one_colour_whichever_comes_first():
    scale = spec_of(timeline())["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == ["copied", "added on arrival"]


def test_pages_without_their_library_are_refused_in_one_line(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    library.cache_clear()
    for what in (require_library, library):
        with pytest.raises(InputError, match=r"^pages need vl-convert: pip install 'commsim\[report\]'$"):
            what()
