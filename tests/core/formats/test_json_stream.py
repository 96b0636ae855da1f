import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.formats import json_stream
from commsim.core.formats.json_stream import parse_long_list

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.nojit
@settings(deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=5), st.lists(VALUES), st.sampled_from([None, 1]), st.booleans())
def test_what_is_kept_is_what_a_whole_decoder_finds(tree, members, indent, is_alone):
    whole = {"long": members} if is_alone else tree | {"long": members}
    text = json.dumps(members if is_alone else whole, indent=indent)
    found = parse_long_list(f" {text}\n", "long", lambda value: isinstance(value, dict))
    assert found == whole | {"long": [value for value in members if isinstance(value, dict)]}


@pytest.mark.nojit
@settings(deadline=None)
@given(st.lists(st.text(max_size=6) | st.integers(-(10**6), 10**6) | st.lists(st.integers(0, 9), max_size=3)))
def test_members_that_lie_across_the_end_of_a_window_are_whole(members):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "MAX_MEMBER", 90)
        patch.setattr(json_stream, "_WINDOW", 100)
        assert parse_long_list(json.dumps({"a": 1, "long": members, "b": [2]}), "long", lambda _: True) == {
            "a": 1, "long": members, "b": [2],
        }  # fmt: skip


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected { at character 0, got 'the end'"), ("[1", "expected , or ] at character 2"),
        ("[1,]", "Expecting value at character 3"), ("[1] 2", "more follows the end, at character 4"),
        ('{"a": 1, "a": 2}', "key 'a' appears twice"), ("{1: 2}", 'expected " at character 1'),
        ('{"long": [{"a": 1, "a": 2}]}', "key 'a' appears twice"), ('{"long": [NaN]}', "NaN is not a JSON number"),
        ('{"long" 3}', "expected : at character 8"), ('{"long": [}', "Expecting value at character 10"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_where_it_is(text, why):
    with pytest.raises(ValueError, match=why.replace("[", r"\[").replace("{", r"\{")):
        parse_long_list(text, "long", lambda _: True)


@pytest.mark.nojit
def test_a_list_that_is_too_long_and_a_member_that_is_are_refused(monkeypatch):
    monkeypatch.setattr(json_stream, "MAX_MEMBERS", 3)
    assert len(parse_long_list("[1,2,3]", "x", lambda _: True)["x"]) == 3
    with pytest.raises(ValueError, match="a list of more than 3 members"):
        parse_long_list("[1,2,3,4]", "x", lambda _: True)
    monkeypatch.setattr(json_stream, "MAX_MEMBER", 40)
    monkeypatch.setattr(json_stream, "_WINDOW", 50)
    with pytest.raises(ValueError, match="damaged, or longer than 40, at character 1"):
        parse_long_list(f"[{[0] * 50}]", "x", lambda _: True)
