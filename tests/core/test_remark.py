import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.remark import MAX_TEXT, MOST_SHOWN, Remark, as_remarks, largest, read_remarks

EFFECTS = st.none() | st.floats(-5, 5)
REMARKS = st.builds(Remark, st.sampled_from("ab"), st.text("xyz ;", max_size=250), EFFECTS, st.booleans(), st.text("d"))


@given(REMARKS)
def test_a_text_has_at_most_100_characters_and_nothing_of_it_is_lost(remark):
    assert len(remark.text) <= MAX_TEXT
    whole = "w" * 250
    assert whole in str(Remark("code", whole, details="more")).split("; ")


@given(st.lists(REMARKS, max_size=20))
def test_shown_are_the_largest_of_one_per_cent_or_more_and_the_needed_ones(said):
    shown = largest(said)
    assert len(shown) == min(MOST_SHOWN, len({one for one in said if one.needed or abs(one.effect or 0) >= 0.01}))
    assert all(one.needed or abs(one.effect) >= 0.01 for one in shown)
    sizes = [float("inf") if one.effect is None else abs(one.effect) for one in shown]
    assert sizes == sorted(sizes, reverse=True)
    rest = [one for one in said if one.is_shown and one not in shown]
    assert all(one.size <= shown[-1].size for one in rest)


@given(st.lists(REMARKS, max_size=5))
def test_remarks_are_read_as_they_were_written(said):
    assert read_remarks([one.tree() for one in said], "a.json") == tuple(said)


def test_sentences_of_older_files_are_read():
    (old,) = read_remarks(["drawn at random"], "a.json")
    assert (old.text, old.effect, old.is_shown) == ("drawn at random", None, False)


@pytest.mark.parametrize("said", ["text", 5, [5], [None], [{"code": "a"}], [{"code": "a", "text": "b", "effect": "c"}]])
def test_what_are_no_remarks_is_refused_with_the_file(said):
    with pytest.raises(InputError, match=r"^a\.json: "):
        read_remarks(said, "a.json")


def test_sentences_get_the_code_of_their_place_and_remarks_keep_theirs():
    assert [one.code for one in as_remarks(["a", Remark("own", "b")], "place")] == ["place", "own"]


def test_a_remark_of_one_of_several_names_it_and_keeps_what_it_is():
    for length in (5, 95, 150):
        named = Remark("hash", "x" * length, 0.5, True, "more").of("ring_all_reduce")
        assert (named.code, named.effect, named.needed) == ("hash", 0.5, True)
        assert str(named) == f"ring_all_reduce: {'x' * length}; more"


def test_a_remark_that_is_needed_is_shown_below_a_table_that_takes_all_lines(capsys):
    """A slow cable of the file was named in a pipe, and on a terminal only behind ``-v``."""
    from commsim.report.render import FAULT, _print_largest

    _print_largest([Remark("pace", "other", 0.5), Remark(FAULT, "1 cable is slow", needed=True)], False, 3)
    assert capsys.readouterr().out == "# 1 cable is slow\n"
