"""Rows that are chosen, and the names under which they are shown."""

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.pages.figure_tables import table_of_rows
from commsim.pages.figures_of_study import make_figures, with_names
from commsim.pages.rows.row_selection import matching_rows, renamed, separated, short_names, with_shown_words
from commsim.pages.study import RowSelection, make_study

ROWS = table_of_rows([
    {"collective": name, "operation": "all_reduce", "size_B": size,
     "topology.spec": f"leaf_spine:n_leaves={n},n_spines=2", "n_ranks": 4 * n, "time_s": size * 1e-9, "busbw_Bps": 1e9}
    for name in ("ring_all_reduce", "switchml") for n in (2, 4) for size in (2**10, 2**20, 2**24)
])  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        ("size=1MiB", 4), ("size_B>=1MiB", 8), ("size<1MiB", 4), ("size!=1MiB", 8), ("ranks=8,16", 12),
        ("collective=ring*", 6), ("collective!=ring*", 6), ("spec=leaf_spine:n_leaves=2,n_spines=2", 6),
        ("time>1ms", 8),
    ],
)  # fmt: skip
def test_a_condition_keeps_the_rows_that_meet_it(condition, n):
    assert matching_rows(ROWS, [condition]).n_rows == n


def test_conditions_are_met_together():
    one = matching_rows(ROWS, ["size=1MiB", "ranks=8", "collective=switchml"])
    assert one.n_rows == 1
    assert one["time_s"].values.tolist() == [2**20 * 1e-9]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("size=3MiB", "no row matches; size_B has 1 KiB, 1 MiB, 16 MiB"),
        ("colour=red", "no such column; columns: collective"),
        ("size", "COLUMN=VALUE"),
        ("size=large", "'large' is no number of B"),
        ("collective<ring", "words"),
        ("size<1MiB,2MiB", "one value"),
    ],
)
def test_a_condition_that_makes_no_sense_says_what_would(condition, says):
    with pytest.raises(InputError, match=says):
        matching_rows(ROWS, [condition])


def test_specifications_are_named_by_what_differs():
    names, told = short_names(ROWS, ["collective", "topology.spec"])
    assert set(names["topology.spec"].values()) == {"n_leaves=2", "n_leaves=4"}
    assert "collective" not in names  # they have no parameters
    assert told == ["topology.spec: all have leaf_spine:n_spines=2"]


@pytest.mark.parametrize(
    ("specs", "short"),
    [
        (["a:x=1,y=2", "b:x=1,y=3"], ["a:y=2", "b:y=3"]),
        (["a:dims=1,2,b=3", "a:dims=1,b=3"], ["dims=1,2", "dims=1"]),
        (["a:x=1", "a:x=1,y=2"], ["a", "y=2"]),
        (["star", "ring:n=2"], ["star", "ring:n=2"]),
    ],
)
def test_names_stay_different(specs, short):
    table = table_of_rows([{"s": spec} for spec in specs])
    names, _ = short_names(table, ["s"])
    assert [names.get("s", {}).get(spec, spec) for spec in specs] == short
    assert len(set(with_shown_words(table, names)["s"].labels)) == len(specs)


def test_figures_show_the_users_names_and_keep_their_numbers():
    plain = make_study("s", ROWS, {})
    own = make_study("s", ROWS, {}, RowSelection(rename=("switchml=SwitchML", "n_leaves=2=two leaves")))
    rows, figures = with_names(own, make_figures(own)[0])
    assert rows["collective"].labels == ("ring_all_reduce", "SwitchML")
    assert rows["topology.spec"].labels == ("two leaves", "n_leaves=4")
    for figure, before in zip(figures, make_figures(plain)[0], strict=True):
        assert figure.table is rows
        np.testing.assert_array_equal(figure.table["time_s"].values, before.table["time_s"].values)


def test_a_collective_may_be_renamed_as_it_was_asked_for():
    """A table said my_rs.py where --rename knew only my_rs."""
    table = table_of_rows([{"collective": "my_rs", "asked": "my_rs.py"}, {"collective": "ring_reduce_scatter"}])
    for old in ("my_rs", "my_rs.py"):
        assert renamed(table, ["collective"], {}, [f"{old}=mine"]) == {"collective": {"my_rs": "mine"}}


@pytest.mark.parametrize(
    ("rename", "says"), [("fly=x", "no 'fly'; known: ring_all_reduce"), ("ring", "OLD=NEW"),
                         ("switchml=ring_all_reduce", "two values of collective")],
)  # fmt: skip
def test_a_name_that_cannot_be_is_refused(rename, says):
    with pytest.raises(InputError, match=says):
        renamed(ROWS, ["collective"], {}, [rename])


def test_one_text_may_have_several_conditions():
    assert separated(["n_ranks=8,size=1MiB", "time<1ms"]) == ["n_ranks=8", "size=1MiB", "time<1ms"]
    assert separated(["size=1MiB,2MiB"]) == ["size=1MiB,2MiB"]
    assert separated(["topology=star:n_hosts=4,latency=1us"]) == ["topology=star:n_hosts=4,latency=1us"]
