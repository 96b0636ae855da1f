import base64
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.report.columns import number_column, word_column
from commsim.report.page.encode import encode_column, json_in_html

pytestmark = pytest.mark.nojit


def decoded(raw):
    """As page/table.js does it."""
    values = np.frombuffer(base64.b64decode(raw["data"]), "<" + raw["type"])
    if raw["type"] == "f8":
        return values
    known = [*(raw["labels"] if "labels" in raw else raw["values"]), None if "labels" in raw else np.nan]
    return [known[code] for code in values.tolist()]


@given(st.lists(st.one_of(st.floats(allow_infinity=False), st.sampled_from([1.0, 2.0])), max_size=100))
@settings(deadline=None)
def test_numbers_come_out_as_they_went_in(values):
    np.testing.assert_array_equal(np.array(decoded(encode_column(number_column("a", values)))), np.array(values))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=40))
@settings(deadline=None)
def test_words_come_out_as_they_went_in(words):
    assert decoded(encode_column(word_column("a", words))) == words


def test_few_different_numbers_take_one_byte_each_and_many_take_two_or_eight():
    few, some, many = (encode_column(number_column("a", np.arange(4000) % n)) for n in (8, 600, 4000))
    assert (few["type"], some["type"], many["type"]) == ("u1", "u2", "f8")


def test_more_words_than_there_are_codes_are_refused():
    with pytest.raises(InputError, match="column a has 65535 different words"):
        encode_column(word_column("a", [f"{i:x}." for i in range(65535)]))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
@settings(deadline=None)
def test_nothing_in_the_data_can_end_the_element_it_is_in(tree):
    text = json_in_html({"a": tree, "b": "</script><!--<script>"})
    assert "<" not in text
    assert json.loads(text) == {"a": tree, "b": "</script><!--<script>"}
