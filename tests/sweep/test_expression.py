import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sweep.expression import MAX_CHARACTERS, Expression, lookup

POINT = {"collective.ranks": 64, "collective.size": 2.0**20, "collective.name": "ring_all_reduce", "topology.k": 8}


def holds(text):
    return Expression(text)(lookup(POINT))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ranks <= topology.k ** 3 / 4", True),
        ("ranks < 64", False),
        ("32 < ranks <= 64 and not size > '1MiB'", True),
        ("size == '1024KiB'", True),
        ("collective.name in ['ring_all_reduce', 'bruck_all_gather']", True),
        ("ranks not in (16, 32)", True),
        ("ranks % 48 == 16 or ranks // 0 == 1", True),
        ("-ranks + 65 == 1", True),
        ("True", True),
    ],
)
def test_a_filter_says_what_arithmetic_says(text, wanted):
    assert holds(text) is wanted


@given(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from(["<", "<=", "==", "!=", ">", ">="]))
def test_comparisons_are_those_of_python(a, b, op):
    assert Expression(f"a {op} b")(lookup({"x.a": a, "x.b": b})) is eval(f"{a} {op} {b}")


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "ranks.__class__ == 3",
        "(lambda: 1)() == 1",
        "[x for x in (1, 2)] == 1",
        "ranks[0] == 1",
        "ranks if ranks else size",
        "f'{ranks}' == '64'",
        "ranks := 3",
        "ranks & 1 == 1",
        "~ranks == 1",
        "ranks is 64",
        "",
        "1 +",
        "(" * 400 + "1" + ")" * 400,
        "1" + "+1" * 499,
        "9" * 500 + " > 1",
        "ranks > 1 " + "or ranks > 1 " * 500,
    ],
)
def test_anything_but_comparisons_and_arithmetic_is_refused(text):
    with pytest.raises(InputError, match=r"filter|no "):
        holds(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ranks / (ranks - 64) > 1", "division by zero"),
        ("9.9 ** 9.9 ** 9.9 > 1", "range"),
        ("ranks", "true or false"),
        ("ranks and size > 1", "and, or and not join comparisons"),
        ("rankz > 1", "no rankz; did you mean ranks"),
        ("ranks in size", "after `in` comes a list"),
        ("ranks < 'many'", "expected a quantity"),
    ],
)
def test_what_cannot_be_computed_says_why(text, message):
    with pytest.raises(InputError, match=message):
        holds(text)


def test_a_short_name_that_two_parameters_have_must_be_told_apart():
    with pytest.raises(InputError, match=r"name may be topology.name or collective.name"):
        Expression("name == 'star'")(lookup({"topology.name": "star", "collective.name": "x"}))


def test_a_filter_is_nested_at_most_fifty_deep():
    assert holds("not " * 48 + "ranks > 1")
    assert not holds("not " * 49 + "ranks > 1")
    with pytest.raises(InputError, match="nested more than 50 deep"):
        holds("not " * 50 + "ranks > 1")


def test_a_filter_has_at_most_a_thousand_characters():
    assert holds("ranks > 1".ljust(MAX_CHARACTERS))
    with pytest.raises(InputError, match=f"at most {MAX_CHARACTERS} characters, got {MAX_CHARACTERS + 1}"):
        holds("ranks > 1".ljust(MAX_CHARACTERS + 1))
