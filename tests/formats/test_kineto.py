import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.formats import kineto
from commsim.formats.kineto import parse_long_list

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
    found = parse_long_list(f" {text}\n", "long", lambda value: value if isinstance(value, dict) else None)
    assert found == whole | {"long": [value for value in members if isinstance(value, dict)]}


@pytest.mark.nojit
@settings(deadline=None)
@given(st.lists(st.text(max_size=6) | st.integers(-(10**6), 10**6) | st.lists(st.integers(0, 9), max_size=3)))
def test_members_that_lie_across_the_end_of_a_window_are_whole(members):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kineto, "MAX_MEMBER", 90)
        patch.setattr(kineto, "_WINDOW", 100)
        assert parse_long_list(json.dumps({"a": 1, "long": members, "b": [2]}), "long", lambda value: (value,)) == {
            "a": 1, "long": [(value,) for value in members], "b": [2],
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
        parse_long_list(text, "long", lambda value: (value,))


@pytest.mark.nojit
def test_a_list_that_is_too_long_and_a_member_that_is_are_refused(monkeypatch):
    monkeypatch.setattr(kineto, "MAX_MEMBERS", 3)
    assert len(parse_long_list("[1,2,3]", "x", lambda value: (value,))["x"]) == 3
    with pytest.raises(ValueError, match="a list of more than 3 members"):
        parse_long_list("[1,2,3,4]", "x", lambda value: (value,))
    monkeypatch.setattr(kineto, "MAX_MEMBER", 40)
    monkeypatch.setattr(kineto, "_WINDOW", 50)
    with pytest.raises(ValueError, match="damaged, or longer than 40, at character 1"):
        parse_long_list(f"[{[0] * 50}]", "x", lambda value: (value,))


@pytest.mark.nojit
def test_members_that_come_together_are_the_same_as_one_by_one(monkeypatch):
    events = [{"ph": "X", "args": {"list": [{"a": 1}, {"b": [{}, {}]}]}, "name": "},{" * (i % 3)} for i in range(300)]
    text = json.dumps({"long": events, "after": 1})
    for batch in (1, 7, 64, 1000, 10**6):
        monkeypatch.setattr(kineto, "_BATCH", batch)
        assert parse_long_list(text, "long", lambda value: value)["long"] == events
    with pytest.raises(ValueError, match="key 'a' appears twice"):
        parse_long_list('[{"b": 1}, {"a": 1, "a": 2}, {"c": 3}]', "long", lambda value: value)


@pytest.mark.nojit
def test_more_fields_more_kept_members_and_more_odd_ones_than_any_file_has_are_refused(monkeypatch):
    monkeypatch.setattr(kineto, "MAX_FIELDS", 3)
    monkeypatch.setattr(kineto, "MAX_KEPT", 2)
    monkeypatch.setattr(kineto, "_ODD", 3)
    with pytest.raises(ValueError, match="a table of more than 3 fields"):
        parse_long_list('{"a": 1, "b": 2, "c": 3, "d": 4}', "x", lambda value: value)
    with pytest.raises(ValueError, match="more than 2 members are to be kept"):
        parse_long_list("[{}, {}, {}]", "x", lambda value: value)
    with pytest.raises(ValueError, match="or 3 that follow no pattern"):
        parse_long_list("[1, 2, 3, 4]", "x", lambda _: None)
    monkeypatch.setattr(kineto, "MAX_TABLES", 4)
    with pytest.raises(ValueError, match="more than 4 tables and lists"):
        parse_long_list("[{}, {}, [{}]]", "x", lambda _: None)
