from commsim.core.remark import Remark
from commsim.pages.html_of_parts import html_of_parts
from commsim.report.answer import Facts, Lines, Remarks, Table


def test_html_escapes_what_it_shows():
    page = html_of_parts([
        Remarks([Remark("assumed", "assumed")]),
        Table(["size(B)", "time(us)"], [["1024", "<5"]], "a title"),
        Facts({"name": "<star>"}),
        Lines(["as it is"]),
    ])  # fmt: skip
    assert "<td>&lt;5</td>" in page
    assert "&lt;star&gt;</td>" in page
    assert "<caption>a title</caption>" in page
    assert page.count("assumed") == 1
