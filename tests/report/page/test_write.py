import html.parser

import pytest

from commsim.report.page.write import page_text
from commsim.report.study import make_study, table_of_rows

pytestmark = pytest.mark.nojit
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
    for _, attributes in Elements(text).found:
        assert not {"src", "href", "action", "data", "style", "onload"} & set(attributes)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_the_policy_allows_only_this_script_and_this_style():
    text, _ = page_text(make_study("s", table_of_rows(ROWS), {}))
    policy = next(a["content"] for tag, a in Elements(text).found if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert rules["style-src"].startswith("'sha256-")


def test_a_title_is_text_even_where_it_looks_like_a_place_in_the_template():
    for title in ("@data@ <b>", "\\1@script@"):
        text, _ = page_text(make_study(title, table_of_rows(ROWS), {}))
        assert f"<h1>{title.replace('<', '&lt;').replace('>', '&gt;')}</h1>" in text


def test_what_is_left_out_is_said_on_the_page():
    text, left_out = page_text(make_study("s", table_of_rows(ROWS), {}))
    assert left_out["choice"] == "there is only one algorithm per operation"
    assert left_out["choice"] in text
