"""What people see: the page in a real browser. Defined where there are Chromium and its driver."""

import csv
import dataclasses
import functools
import io
import shutil

import pytest

from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement
from commsim.report.all_figures import make_figures
from commsim.report.columns import csv_text, table_of_rows
from commsim.report.figure import drawn
from commsim.report.page.write import write_page
from commsim.report.simulated_run import simulate_run
from commsim.report.study import make_study
from commsim.run import prepare

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
INK = """
const pixels = arguments[0].getContext("2d").getImageData(0, 0, arguments[0].width, arguments[0].height).data;
const colours = new Set();
for (let i = 0; i < pixels.length; i += 4) colours.add((pixels[i] << 16) + (pixels[i + 1] << 8) + pixels[i + 2]);
return colours.size;
"""


@functools.cache
def study():
    rows = []
    for name in ("ring_all_reduce", "double_tree_all_reduce", "recursive_doubling_all_reduce"):
        for ranks in (2, 4):
            ready = prepare(name, NETWORK, n_ranks=ranks)
            rows += [ready.predict(2**k, engine="alpha-beta").row() for k in range(15, 21)]
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK), 2**20, {})
    return dataclasses.replace(make_study("a study", table_of_rows(rows), {}), runs=(run,))


def hostile_study():
    """Names of nodes, of a collective and of the study are programs."""
    network = Network(EVIL, (f"a{EVIL}", f"b{EVIL}", EVIL), [HOST, HOST, SWITCH], [0, 2, 1, 2], [2, 1, 2, 0], 1e9, 1e-6)
    run = simulate_run(EVIL, prepare("ring_all_reduce", network, placement=Placement([0, 1])), 2**20, {})
    rows = [run.result.row() | {"collective": name, EVIL: i} for i, name in enumerate((EVIL, "ring"))]
    made = make_study(EVIL, table_of_rows(rows), {EVIL: EVIL})
    return dataclasses.replace(made, runs=(run,), left_out={EVIL: EVIL}, failed={EVIL: 1})


def opened(browser, path, what):
    write_page(what, path)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.body.dataset.drawn") == str(len(make_figures(what)[0]))
    return path


def complaints(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def shown_csv(browser, figure):
    """The numbers that the page says it draws, as the rows of a CSV file."""
    shown = browser.execute_script("return CHARTS.find((c) => c.figure.name === arguments[0]).shown", figure.name)
    return [
        [c if isinstance(c, str) else float("nan") if c is None else float(c) for c in row] for row in shown["rows"]
    ]


def numbers(text):
    try:
        return float(text)
    except ValueError:
        return text or float("nan")


def same(a, b):
    return a == b if isinstance(a, str) or isinstance(b, str) else a == pytest.approx(b, rel=1e-12, nan_ok=True)


if shutil.which("chromium") and shutil.which("chromedriver"):
    from selenium.webdriver.support.ui import WebDriverWait

    @pytest.fixture
    def page(browser, tmp_path):
        opened(browser, tmp_path / "report.html", study())
        yield browser
        assert complaints(browser) == []

    @pytest.mark.slow
    def test_every_figure_is_there_and_is_not_blank(page):
        figures = make_figures(study())[0]
        cards = page.find_elements("css selector", "figure.card:not(#figure-results)")
        assert len(cards) == len(figures) == 12
        for card, figure in zip(cards, figures, strict=True):
            assert card.find_element("css selector", "h2").text.startswith(figure.title)
            if figure.kind == "picture":
                svg = card.find_element("css selector", "svg")
                assert svg.size["width"] > 200
                assert len(svg.find_elements("css selector", "rect")) > 6
                continue
            canvas = card.find_element("css selector", "canvas")
            assert canvas.size["width"] > 200
            assert canvas.size["height"] > 100
            assert page.execute_script(INK, canvas) > 4, figure.name
            assert figure.title in canvas.get_attribute("aria-label")

    def test_the_page_draws_the_same_numbers_as_plots_and_csv_files(page):
        for figure in make_figures(study())[0]:
            if figure.kind in ("spans", "picture"):
                continue
            wanted = [[numbers(cell) for cell in row] for row in csv.reader(io.StringIO(csv_text(drawn(figure))))][1:]
            got = shown_csv(page, figure)
            assert len(got) == len(wanted), figure.name
            for mine, theirs in zip(got, wanted, strict=True):
                assert all(map(same, mine, theirs)), (figure.name, mine, theirs)

    def test_a_filter_changes_what_is_counted_and_drawn_and_keeps_its_colour(page):
        count = page.find_element("id", "count")
        assert count.text == "36 of 36 rows shown"
        key = "#figure-busbw-0 .key li"
        before = [(e.text, e.find_element("css selector", "span").value_of_css_property("color"))
                  for e in page.find_elements("css selector", key)]  # fmt: skip
        page.find_element("css selector", "input[data-value=ring_all_reduce]").click()
        assert count.text == "12 of 36 rows shown"
        after = [(e.text, e.find_element("css selector", "span").value_of_css_property("color"))
                 for e in page.find_elements("css selector", key)]  # fmt: skip
        assert after == [pair for pair in before if "ring_all_reduce" in pair[0]]
        page.find_element("css selector", "input[data-value=double_tree_all_reduce]").click()
        page.find_element("css selector", "input[data-column=n_ranks][data-value='4']").click()
        assert count.text == "12 of 36 rows shown"
        assert page.execute_script("return CHARTS[0].shown.rows.length") == 12
        page.find_element("css selector", "#filters button").click()
        assert count.text == "36 of 36 rows shown"

    def test_filters_that_nothing_passes_say_so(page):
        page.find_element("css selector", "input[data-value=ring_all_reduce]").send_keys(" ")  # by keyboard
        page.execute_script("TABLES[DATA.rows].rows = []; CHARTS[0].draw(); showCount()")
        assert page.find_element("id", "count").text == "0 of 36 rows shown"
        assert page.execute_script("return CHARTS[0].shown.rows.length") == 0

    def test_a_mouse_on_a_mark_shows_its_values_with_units(page):
        from selenium.webdriver import ActionChains

        canvas = page.find_element("css selector", "#figure-busbw-0 canvas")
        x, y = page.execute_script("const h = CHARTS[0].hits.at(-1); return [h.x, h.y]")
        width, height = canvas.size["width"], canvas.size["height"]
        ActionChains(page).move_to_element_with_offset(canvas, int(x - width / 2), int(y - height / 2)).perform()
        tip = page.find_element("id", "tooltip")
        assert tip.is_displayed()
        assert "GB/s" in tip.text
        assert "MiB" in tip.text
        ActionChains(page).move_to_element(page.find_element("css selector", "h1")).perform()
        assert not tip.is_displayed()

    def test_arrow_keys_go_through_the_marks(page):
        canvas = page.find_element("css selector", "[id^=figure-timeline-] canvas")
        canvas.send_keys("\ue014\ue014")  # arrow right
        tip = page.find_element("id", "tooltip")
        assert tip.text.startswith("rank 0 on h0: chunk")
        assert "µs to" in tip.text

    @pytest.mark.slow
    def test_a_stretch_of_a_timeline_is_chosen_by_dragging_and_by_buttons(page):
        from selenium.webdriver import ActionChains

        view = "return CHARTS.find((c) => c.figure.name === 'timeline').view"
        low, high = page.execute_script(view)
        canvas = page.find_element("css selector", "[id^=figure-timeline-] canvas")
        page.execute_script("arguments[0].scrollIntoView({ block: 'center' })", canvas)
        ActionChains(page).move_to_element(canvas).click_and_hold().move_by_offset(120, 0).release().perform()
        a, b = page.execute_script(view)
        assert low < a < b < high
        page.find_element("css selector", "[id^=figure-timeline-] button[title='the whole time']").click()
        assert page.execute_script(view) == [low, high]
        page.find_element("css selector", "[id^=figure-timeline-] button[title='zoom in']").click()
        assert page.execute_script(view) == pytest.approx([high / 4, 3 * high / 4])

    def test_another_column_gets_the_colours(page):
        box = page.find_element("css selector", "#figure-cdf-4 select")
        box.find_element("css selector", "option[value=n_ranks]").click()
        assert [e.text.split()[-1] for e in page.find_elements("css selector", "#figure-cdf-4 .key li")] == ["2", "4"]

    def test_results_are_sorted_by_a_click_on_a_heading_and_filtered(page):
        def first(column):
            return page.find_elements("css selector", "#figure-results tbody tr:first-child td")[column].text

        heads = page.find_elements("css selector", "#figure-results th")
        assert [head.text for head in heads] == ["collective", "ranks", "size", "time", "algbw", "busbw"]
        times = sorted(study().rows["time_s"].values)
        heads[3].find_element("css selector", "button").click()
        assert (first(3), heads[3].get_attribute("aria-sort")) == (f"{times[0] * 1e6:.4g} µs", "ascending")
        heads[3].find_element("css selector", "button").click()
        assert (first(3), heads[3].get_attribute("aria-sort")) == (f"{times[-1] * 1e6:.4g} µs", "descending")
        page.find_element("css selector", "input[data-value=ring_all_reduce]").click()
        rows = page.find_elements("css selector", "#figure-results tbody tr")
        assert (len(rows), first(0)) == (12, "ring_all_reduce")

    def test_what_a_point_mixes_is_said_until_a_filter_tells_it_apart(page):
        remark = page.find_element("css selector", "#figure-busbw-0 .remark")
        assert (
            remark.text == "Each point is a median over all values of ranks that are shown: filter to tell them apart."
        )
        page.find_element("css selector", "input[data-column=n_ranks][data-value='4']").click()
        assert remark.text == ""

    def test_marks_at_the_same_place_are_all_named(page):
        words = page.execute_script(
            "const c = CHARTS[0]; c.hits = [{ x: 9, y: 9, says: () => 'one' }, { x: 10, y: 9, says: () => 'two' },"
            "{ x: 10, y: 40, says: () => 'far' }]; return c.wordsAt(c.hits[0])"
        )
        assert words.split() == ["one", "two"]

    def test_numbers_at_an_axis_differ_and_stay_in_sight(page):
        for low, high in ((338.1e-6, 338.2e-6), (1e-6, 1e-6 * (1 + 1e-12)), (3e-5, 2e-2), (1.0, 5.0)):
            for logarithmic in ("true", "false"):
                code = (
                    f"const a = new Axis([{low!r}, {high!r}], 's', {logarithmic}); return [a.labels(), a.low, a.high]"
                )
                labels, a, b = page.execute_script(code)
                assert len(labels) > 1
                assert len(set(labels)) == len(labels)
                assert a <= low <= high <= b
        for chart in range(2):  # all that is written of an x axis is inside of the canvas
            cut = """const c = CHARTS[arguments[0]], kept = c.pen.fillText, found = [];
            Object.getPrototypeOf(c.pen).fillText = function (t, x, y) {
              const w = this.measureText(t).width;
              const at = x - w * { center: 0.5, right: 1, left: 0 }[this.textAlign];
              if (y > c.area.bottom && (at < -0.5 || at + w > c.canvas.clientWidth + 0.5)) found.push(t);
            };
            c.draw(); Object.getPrototypeOf(c.pen).fillText = kept; c.draw(); return found"""
            assert page.execute_script(cut, chart) == []

    def test_every_card_is_linked_at_the_side(page):
        links = page.find_elements("css selector", "#contents a")
        cards = page.find_elements("css selector", "figure.card")
        assert [a.get_attribute("href").partition("#")[2] for a in links] == [
            card.get_attribute("id") for card in cards
        ]

    def test_a_picture_is_as_wide_as_there_is_room_until_one_asks_for_its_own_size(page):
        shown = (
            "const c = CHARTS.find((c) => c.svg);"
            "c.own = 3000; c.fitted = arguments[0]; fitPicture(c); return c.svg.clientWidth"
        )
        room = page.execute_script("return CHARTS.find((c) => c.svg).svg.parentNode.clientWidth")
        assert page.execute_script(shown, True) == pytest.approx(room, abs=1)
        assert page.execute_script(shown, False) == 3000

    def test_the_numbers_stand_beside_each_figure_as_a_table(page):
        details = page.find_element("css selector", "#figure-busbw-0 details")
        details.find_element("css selector", "summary").click()
        rows = details.find_elements("css selector", "tbody tr")
        assert len(rows) == 18
        assert "ring_all_reduce" in rows[-1].text

    def test_the_numbers_are_saved_as_a_csv_file(page, tmp_path):
        page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        details = page.find_element("css selector", "#figure-busbw-0 details")
        details.find_element("css selector", "summary").click()
        details.find_element("css selector", "button").click()
        saved = tmp_path / "busbw-0.csv"
        WebDriverWait(page, 60).until(lambda _: saved.exists() and saved.read_text().endswith("\n"))
        wanted = csv_text(drawn(make_figures(study())[0][0])).splitlines()
        assert saved.read_text().splitlines()[0] == wanted[0]
        assert len(saved.read_text().splitlines()) == len(wanted)

    def test_a_single_row_and_a_sweep_that_failed_are_shown_too(browser, tmp_path):
        rows = [{"collective": "ring", "n_ranks": 4, "time_s": 1e-5, "busbw_Bps": 1e9, "error": ""}]
        failed = [{"collective": "ring", "n_ranks": n, "error": f"ranks must be 1..8, got {n}"} for n in (9, 10, 10)]
        opened(browser, tmp_path / "report.html", make_study("one", table_of_rows(rows + failed), {}))
        assert [cell.text for cell in browser.find_elements("css selector", "#figure-results td")] == [
            "10 µs",
            "1 GB/s",
        ]
        assert browser.find_element("css selector", "#failed summary").text == "3 points failed and are not shown"
        said = [item.text for item in browser.find_elements("css selector", "#failed li")]
        assert said == ["2 times: ranks must be 1..8, got 10", "ranks must be 1..8, got 9"]
        opened(browser, tmp_path / "report.html", make_study("none", table_of_rows(failed), {}))
        assert browser.find_element("id", "count").text == "0 of 0 rows shown"
        assert complaints(browser) == []

    def test_a_tie_is_pale_and_says_who_else(browser, tmp_path):
        rows = [
            {"collective": name, "operation": "all_reduce", "size_B": s, "n_ranks": 4, "time_s": time, "busbw_Bps": 1e9}
            for s, other in ((1024, 1e-5), (2048, 2e-5)) for name, time in (("ring", 1e-5), ("tree", other))
        ]  # fmt: skip
        opened(browser, tmp_path / "report.html", make_study("ties", table_of_rows(rows), {}))
        chart = "const c = CHARTS.find((c) => c.figure.name === 'choice'); return c.hits.map((hit) => hit.says())"
        tie, clear = browser.execute_script(chart)
        assert "tree takes 1.000 times as long" in tie
        assert "tree takes 2.000 times as long" in clear
        key = browser.find_element("css selector", "[id^=figure-choice] .key").text
        assert "pale: another is within 1 %" in key
        browser.find_element("css selector", "input[data-value='2 KiB']").click()
        assert "pale" not in browser.find_element("css selector", "[id^=figure-choice] .key").text

    def test_names_that_are_programs_are_only_shown(browser, tmp_path):
        what = hostile_study()
        opened(browser, tmp_path / "report.html", what)
        browser.find_element("css selector", "[id^=figure-timeline-] details summary")
        for summary in browser.find_elements("css selector", "summary"):
            browser.execute_script("arguments[0].click()", summary)
        assert browser.title == EVIL
        assert browser.find_element("css selector", "h1").text == EVIL
        assert browser.execute_script("return document.images.length + document.scripts.length") == 2
        assert complaints(browser) == []

    def test_the_page_may_load_nothing_and_run_nothing_else(browser, tmp_path):
        opened(browser, tmp_path / "report.html", study())
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        browser.execute_script(
            "const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s);"
            "const i = document.createElement('img'); i.src = 'x.png'; document.body.append(i);"
        )
        assert browser.title == "a study"
        assert [entry for entry in complaints(browser) if "Content Security Policy" in entry["message"]]

    def test_ten_thousand_rows_are_drawn(browser, tmp_path):
        rows = [
            {"collective": f"{c}_all_reduce", "operation": "all_reduce", "n_ranks": 2**n, "size_B": 2.0**s,
             "topology.bandwidth": b, "time_s": 1e-6 * (s + n) * (1 + i), "busbw_Bps": 1e9 * s / (1 + i + n)}
            for i, c in enumerate(("ring", "tree", "double_tree", "halving")) for n in range(1, 11)
            for s in range(10, 35) for b in (1e9 * k for k in range(1, 11))
        ]  # fmt: skip
        what = make_study("large", table_of_rows(rows), {})
        opened(browser, tmp_path / "report.html", what)
        assert browser.find_element("id", "count").text == "10000 of 10000 rows shown"
        assert (tmp_path / "report.html").stat().st_size < 2**20
        browser.find_element("css selector", "input[data-value=ring_all_reduce]").click()
        assert browser.find_element("id", "count").text == "2500 of 10000 rows shown"
        assert complaints(browser) == []

    def test_a_narrow_window_shows_everything_too(browser, tmp_path):
        size = browser.get_window_size()
        browser.set_window_size(520, 800)
        opened(browser, tmp_path / "report.html", study())
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        browser.set_window_size(size["width"], size["height"])
        assert wide <= 0
        assert complaints(browser) == []
