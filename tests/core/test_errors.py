import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError, look_up, printable, shorten_quotes


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


NAME = "ring" * 100


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"unknown topology {NAME!r}; known: star", f"unknown topology '{NAME[:57]}...'; known: star"),
        (f"got {NAME + chr(39)!r}", f'got "{NAME[:57]}..."'),  # repr takes the other quotes
        (f"got {NAME + chr(39) + chr(34)!r} here", f"got '{NAME[:57]}...' here"),
        (f"-i has at most 10000 sizes, got {2 * NAME}", f"-i has at most 10000 sizes, got {(2 * NAME)[:297]}..."),
        (f"no file {'/tmp/' + NAME[:200]!r}", f"no file '/tmp/{NAME[:200]}'"),  # the end of a path is its name
        (f"a job's name and {'many words ' * 20}of the other job's", None),  # apostrophes are no quotes
    ],
)
def test_an_error_has_the_beginning_of_a_long_text_that_it_quotes(message, shown):
    assert str(InputError(message)) == (message if shown is None else shown)


@given(st.text(max_size=400), st.text("'\"\\ a\n", max_size=400))
def test_what_is_cut_once_is_not_cut_again(quoted, other):
    message = f"{quoted!r} {other} {quoted}"
    once = shorten_quotes(message)
    assert len(once) <= len(message)
    assert shorten_quotes(once) == once


@pytest.mark.parametrize("text", ["'\\" * 200_000, " '" + "\\'" * 200_000, " \"\\'" * 100_000, "\\" * 200_000])
def test_long_texts_of_quotes_and_escapes_are_cut_in_one_pass(text):
    """Escaped quotes began quotes of their own, each of which was looked through to the end: 300,000 took hours."""
    assert len(shorten_quotes(text)) <= len(text)
