import base64
import html.parser
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.pages.figure_tables import number_column, table_of_rows, word_column
from commsim.pages.page.write import encode_column, json_in_html, library, page_text
from commsim.pages.study import make_study

ROWS = [
    {"collective": "ring", "operation": "all_reduce", "size_B": s, "time_s": 1e-6 * s, "busbw_Bps": 1e6}
    for s in (1, 2, 4)
]


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_page_refers_to_nothing_outside_of_it():
    text, _ = page_text(make_study("s", table_of_rows(ROWS), {}))
    assert len(text) < 5_000_000
    for _, attributes in Elements(text).found:
        assert not {"src", "href", "action", "data", "style", "onload"} & set(attributes)
    own = text.replace(library(), "")
    assert "http://" not in own.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in own
    assert "@import" not in text
    assert "url(" not in own


def test_the_library_names_only_documents_of_its_own_and_loads_none():
    named = set(re.findall(r"https?://[^/\"'`]*", library()))
    assert named <= {"http://www.w3.org", "https://vega.github.io", "https://github.com"}
    assert "</script" not in library()


def test_the_library_is_put_together_once_for_all_processes_and_anew_where_it_was_damaged(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    made = []
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: made.append(1) or "vega\r\n</script")
    asked = library.__wrapped__
    assert asked() == asked() == "vega\r\n<\\/script"
    assert len(made) == 1
    (kept,) = tmp_path.iterdir()
    for damaged in (kept.read_bytes()[:-1], kept.read_bytes() + b"x", b"\xff"):
        kept.write_bytes(damaged)
        assert asked() == "vega\r\n<\\/script"
    assert len(made) == 4
    monkeypatch.setattr("commsim.core.compiling.kernel_cache.why_unwritable", lambda _: "is read-only")
    kept.unlink()
    assert asked() == "vega\r\n<\\/script"
    assert not list(tmp_path.iterdir())


def test_the_policy_allows_only_this_script_and_this_style():
    text, _ = page_text(make_study("s", table_of_rows(ROWS), {}))
    policy = next(a["content"] for tag, a in Elements(text).found if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert all(rule.startswith("'sha256-") for rule in rules["script-src"].split())
    assert rules["style-src"].startswith("'sha256-")


def test_a_title_is_text_even_where_it_looks_like_a_place_in_the_template():
    for title in ("@data@ <b>", "\\1@script@"):
        text, _ = page_text(make_study(title, table_of_rows(ROWS), {}))
        assert f"<h1>{title.replace('<', '&lt;').replace('>', '&gt;')}</h1>" in text


def test_what_is_left_out_is_said_on_the_page():
    text, left_out = page_text(make_study("s", table_of_rows(ROWS), {}))
    assert left_out["choice"] == "there is only one algorithm per operation"
    assert left_out["choice"] in text


def test_a_column_that_no_row_has_leaves_its_figures_out():
    rows = [{key: value for key, value in row.items() if key != "time_s"} for row in ROWS]
    _, left_out = page_text(make_study("s", table_of_rows(rows), {}))
    assert left_out["time"] == "the rows do not all have numbers in size_B and time_s"
    assert "busbw" not in left_out


def decoded(raw):
    """As page/table.js does it."""
    values = np.frombuffer(base64.b64decode(raw["data"]), "<" + raw["type"])
    if raw["type"] == "f8":
        return values
    known = [*(raw["labels"] if "labels" in raw else raw["values"]), None if "labels" in raw else np.nan]
    return [known[code] for code in values.tolist()]


@given(st.lists(st.one_of(st.floats(allow_infinity=False), st.sampled_from([1.0, 2.0])), max_size=100))
def test_numbers_come_out_as_they_went_in(values):
    np.testing.assert_array_equal(np.array(decoded(encode_column(number_column("a", values)))), np.array(values))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=40))
def test_words_come_out_as_they_went_in(words):
    assert decoded(encode_column(word_column("a", words))) == words


def test_few_different_numbers_take_one_byte_each_and_many_take_two_or_eight():
    few, some, many = (encode_column(number_column("a", np.arange(4000) % n)) for n in (8, 600, 4000))
    assert (few["type"], some["type"], many["type"]) == ("u1", "u2", "f8")


def test_more_words_than_there_are_codes_are_refused():
    with pytest.raises(InputError, match="column a has 65535 different words"):
        encode_column(word_column("a", [f"{i:x}." for i in range(65535)]))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_nothing_in_the_data_can_end_the_element_it_is_in(tree):
    text = json_in_html({"a": tree, "b": "</script><!--<script>"})
    assert "<" not in text
    assert json.loads(text) == {"a": tree, "b": "</script><!--<script>"}
