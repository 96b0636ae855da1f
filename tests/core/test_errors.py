import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError, look_up, printable


@given(st.text(st.characters(codec=None)))
def test_whatever_the_text_is_what_comes_out_is_one_printable_line(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_what_would_steer_a_terminal_is_written_as_its_escape():
    assert printable("a\x1b[31mb\nc\u202ed\udcff") == r"a\x1b[31mb\nc\u202ed\udcff"


def test_a_name_is_looked_up_or_refused_with_those_that_are_known():
    assert look_up("GPU", "b", {"a": 1, "b": 2}) == 2
    with pytest.raises(InputError, match=r"unknown GPU 'c'; known: a, b"):
        look_up("GPU", "c", {"a": 1, "b": 2})
    with pytest.raises(InputError, match=r"'llama-70b'; did you mean llama3-70b or llama2-70b\? known: gpt"):
        look_up("model", "llama-70b", dict.fromkeys(("gpt3-175b", "llama2-70b", "llama3-70b", "llama3-405b")))
