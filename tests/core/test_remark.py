import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.remark import MAX_TEXT, Remark, as_remarks, distinct, read_remarks

EFFECTS = st.none() | st.floats(-5, 5)
REMARKS = st.builds(Remark, st.sampled_from("ab"), st.text("xyz ;", max_size=250), EFFECTS, st.booleans(), st.text("d"))


@given(REMARKS)
def test_a_text_has_at_most_100_characters_and_nothing_of_it_is_lost(remark):
    assert len(remark.text) <= MAX_TEXT
    whole = "w" * 250
    assert whole in str(Remark("code", whole, details="more")).split("; ")


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


def test_a_sentence_that_several_answers_say_is_one_with_its_largest_effect():
    """Three operations said the same of the link between sockets, with 0.71, 0.74 and 0.8."""
    given = (("sockets", "one", 0.7), ("pxn", "two", 0.9), ("sockets", "one", 0.8), ("pxn", "one", 0.1))
    said = [Remark(*one) for one in given]
    assert distinct(said) == (said[2], said[1], said[3])
