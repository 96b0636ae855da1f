import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.files.yaml_text import read_yaml, write_yaml

pytestmark = pytest.mark.nojit

TREES = st.recursive(
    st.text(st.characters(exclude_categories=("C",)), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc01-", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1), TREES, min_size=1))
def test_text_comes_back_as_it_was(tree):
    assert read_yaml(write_yaml([tree], ("a comment",)), "f") == tree


def test_scalars_stay_the_text_that_stands_there():
    assert read_yaml("[007, yes, 2026-01-01, 1e3, ~]", "f") == ["007", "yes", "2026-01-01", "1e3", "~"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x [1]\nb: *x", "line 1: anchors and aliases are refused"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", "anchors and aliases are refused"),
        ("[" * 2000, "f"),
        ("[" * 40 + "]" * 40, "nested more than 32 deep"),
        ("a: 1\na: 2", "line 2: key 'a' is there twice"),
        ("? [1]\n: 2", "line 1: a key must be text"),
        ("a: [1", "line 1|line 2"),
        ("a: b\n---\nc: d", "line 2"),
        ("\x00", "f"),
        ("a: !!python/object/apply:os.system [x]\nb: *y", "line 2"),
    ],
)
def test_what_could_harm_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        read_yaml(text, "f")
