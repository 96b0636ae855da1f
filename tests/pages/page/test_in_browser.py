"""What people see: the page in a real browser. Defined where there are Chromium and its driver."""

import csv
import dataclasses
import functools
import io
import shutil
from pathlib import Path

import pytest

from commsim.core.network import HOST, SWITCH, Network
from commsim.core.placement import Placement
from commsim.pages.figure import drawn_table
from commsim.pages.figure_tables import csv_text, table_of_rows
from commsim.pages.figures_of_study import make_figures
from commsim.pages.page.write import write_page
from commsim.pages.simulated_run import simulate_run
from commsim.pages.study import make_study
from commsim.prediction.build import prepare

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
SEEN = (Path(__file__).parent / "what_is_seen.js").read_text()


@functools.cache
def study():
    rows = []
    for name in ("ring_all_reduce", "double_tree_all_reduce", "recursive_doubling_all_reduce"):
        for ranks in (2, 4):
            ready = prepare(name, NETWORK, n_ranks=ranks)
            rows += [ready.predict(2**k, engine="alpha-beta").row() for k in range(15, 21)]
    run = simulate_run("ring", prepare("ring_all_reduce", NETWORK), 2**20)
    return dataclasses.replace(make_study("a study", table_of_rows(rows), {}), runs=(run,))


def hostile_study():
    """Names of nodes, of a collective and of the study are programs."""
    network = Network(EVIL, (f"a{EVIL}", f"b{EVIL}", EVIL), [HOST, HOST, SWITCH], [0, 2, 1, 2], [2, 1, 2, 0], 1e9, 1e-6)
    run = simulate_run(EVIL, prepare("ring_all_reduce", network, placement=Placement([0, 1])), 2**20)
    rows = [run.result.row() | {"collective": name, EVIL: i} for i, name in enumerate((EVIL, "ring"))]
    made = make_study(EVIL, table_of_rows(rows), {EVIL: EVIL})
    return dataclasses.replace(made, runs=(run,), left_out={EVIL: EVIL}, failed={EVIL: 1})


def opened(browser, path, what):
    write_page(what, path)
    drawn(browser, path, len(make_figures(what)[0]))


def drawn(browser, path, n_figures):
    browser.get(path.as_uri())
    drawn_now = "return document.body.dataset.drawn"
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(drawn_now))
    assert browser.execute_script(drawn_now) == str(n_figures)


def complaints(browser):
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def shown(browser, name):
    """The numbers that a figure of the page draws: names of columns, rows."""
    found = browser.execute_script("return CHARTS.find((c) => c.figure.name === arguments[0]).shown()", name)
    return found["names"], found["rows"]


def numbers(text):
    try:
        return float(text)
    except ValueError:
        return text or None


def same(a, b):
    return a == b if isinstance(a, str | None) or isinstance(b, str | None) else a == pytest.approx(b, rel=1e-12)


def order(row):
    return [cell if isinstance(cell, str) else f"{cell or 0:030.9f}" for cell in row]


def at(browser, chart, kind, name):
    """Middles of items of a figure, from the middle of its canvas."""
    code = f"""{SEEN}; const c = CHARTS.find((c) => c.figure.name === {chart!r});
    const {{ width, height }} = c.place.querySelector("canvas").getBoundingClientRect();
    return items(c, {kind!r}).filter((i) => i.role === {name!r} || i.name.startsWith({name!r}))
      .map(({{ box }}) => [Math.round((box[0] + box[2] - width) / 2), Math.round((box[1] + box[3] - height) / 2)])"""
    return browser.execute_script(code)


if shutil.which("chromium") and shutil.which("chromedriver"):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    def settled(browser, code="return Promise.all(CHARTS.map((c) => c.view && c.view.runAsync()))"):
        """Run code that returns a promise, and wait for it."""
        made = "const done = arguments[arguments.length - 1]; (() => {" + code + "})().then(() => done(1))"
        browser.execute_async_script(made)

    @pytest.fixture(scope="module")
    def written(tmp_path_factory):
        path = tmp_path_factory.mktemp("page") / "report.html"
        write_page(study(), path)
        return path

    @pytest.fixture
    def page(browser, written):
        """The page, just loaded; the next test loads it again."""
        drawn(browser, written, 12)
        yield browser
        assert complaints(browser) == []
        browser.get("about:blank")

    @pytest.fixture
    def unchanged(browser, written):
        """The page for tests that only read it, or leave it as it was: the one after the other reads the same."""
        if browser.current_url != written.as_uri():
            drawn(browser, written, 12)
        yield browser
        assert complaints(browser) == []

    @pytest.mark.slow
    def test_every_figure_is_there_and_is_not_blank(unchanged):
        figures = make_figures(study())[0]
        cards = unchanged.find_elements("css selector", "figure.card:not(#figure-results)")
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
            assert canvas.size["height"] > 40
            marks = unchanged.execute_script(
                f"{SEEN}; const c = CHARTS.find((c) => c.figure.name === {figure.name!r});"
                "return ['line', 'rect', 'symbol'].flatMap((kind) => items(c, kind))"
                ".filter((i) => i.role === 'mark').length"
            )
            assert marks > 3, figure.name

    def test_the_page_draws_the_same_numbers_as_plots_and_csv_files(unchanged):
        for figure in make_figures(study())[0]:
            if figure.kind in ("spans", "picture"):
                continue
            head, *lines = csv.reader(io.StringIO(csv_text(drawn_table(figure))))
            names, rows = shown(unchanged, figure.name)
            columns = [name.partition(" [")[0] for name in head]
            both = [name for name in columns if name in names]
            assert len(both) >= 3, figure.name
            wanted = [[numbers(line[columns.index(name)]) for name in both] for line in lines]
            if figure.roles.get("facet"):  # one value of it is shown
                facet = both.index(figure.roles["facet"])
                wanted = [row for row in wanted if row[facet] == rows[0][names.index(figure.roles["facet"])]]
            got = [[row[names.index(name)] for name in both] for row in rows]
            assert len(got) == len(wanted), figure.name
            for mine, theirs in zip(sorted(got, key=order), sorted(wanted, key=order), strict=True):
                assert all(map(same, mine, theirs)), (figure.name, mine, theirs)

    def test_numbers_at_an_axis_differ_and_are_within_it(unchanged):
        for low, high in ((338.1e-6, 338.2e-6), (3e-5, 2e-2), (1.0, 5.0), (7.0, 3000.0)):
            for logarithmic in ("true", "false"):
                ticks = unchanged.execute_script(f"return axisTicks([{low!r}, {high!r}], 's', {logarithmic})")
                assert len(ticks) == len(set(ticks)) > 1
                assert low <= min(ticks) <= max(ticks) <= high * (1 + 1e-9)

    def test_ticks_stand_at_the_sizes_of_the_data(unchanged):
        words = (
            f"{SEEN}; return items(CHARTS[0], 'text').filter((i) => i.role === 'axis-label').map((i) => i.item.text)"
        )
        assert {f"{2**k} KiB" for k in range(5, 10)} <= set(unchanged.execute_script(words))

    def test_every_card_is_linked_at_the_side(unchanged):
        links = unchanged.find_elements("css selector", "#contents a")
        cards = unchanged.find_elements("css selector", "figure.card")
        assert [a.get_attribute("href").partition("#")[2] for a in links] == [
            card.get_attribute("id") for card in cards
        ]

    def test_a_filter_changes_what_is_counted_and_drawn_and_keeps_its_colour(unchanged):
        count = unchanged.find_element("id", "count")
        assert count.text == "36 of 36 rows shown"
        colours = f"""{SEEN}; return items(CHARTS[0], "symbol").filter((i) => i.role === "legend-symbol")
          .map(({{ item }}) => item.fill)"""
        before = unchanged.execute_script(colours)
        unchanged.find_element("css selector", "input[data-value=ring_all_reduce]").click()
        assert count.text == "12 of 36 rows shown"
        settled(unchanged)
        assert unchanged.execute_script(colours) == before
        assert {row[0] for row in shown(unchanged, "busbw")[1]} == {"ring_all_reduce"}
        unchanged.find_element("css selector", "input[data-value=double_tree_all_reduce]").click()
        unchanged.find_element("css selector", "input[data-column=n_ranks][data-value='4']").click()
        assert count.text == "12 of 36 rows shown"
        settled(unchanged)
        assert len(shown(unchanged, "busbw")[1]) == 12
        unchanged.find_element("css selector", "#filters button").click()
        assert count.text == "36 of 36 rows shown"

    def test_a_mouse_on_a_mark_shows_its_values_with_units(unchanged):
        canvas = unchanged.find_element("css selector", "#figure-busbw-0 canvas")
        x, y = at(unchanged, "busbw", "symbol", "told0")[-1]
        ActionChains(unchanged).move_to_element_with_offset(canvas, x, y).perform()
        tip = unchanged.find_element("id", "tooltip")
        WebDriverWait(unchanged, 10).until(lambda _: tip.is_displayed())
        assert "GB/s" in tip.text
        assert "MiB" in tip.text
        ActionChains(unchanged).move_to_element(unchanged.find_element("css selector", "h1")).perform()
        WebDriverWait(unchanged, 10).until(lambda _: not tip.is_displayed())

    def test_a_click_in_the_legend_hides_a_series_and_another_shows_it_again(unchanged):
        canvas = unchanged.find_element("css selector", "#figure-busbw-0 canvas")
        name = study().rows["collective"].labels[0]
        x, y = at(unchanged, "busbw", "symbol", "legend-symbol")[0]
        unchanged.execute_script("arguments[0].scrollIntoView({ block: 'center' })", canvas)
        ActionChains(unchanged).move_to_element_with_offset(canvas, x, y).click().perform()
        WebDriverWait(unchanged, 10).until(lambda _: len(shown(unchanged, "busbw")[1]) == 12)
        assert name not in {row[0] for row in shown(unchanged, "busbw")[1]}
        ActionChains(unchanged).move_to_element_with_offset(canvas, x, y).click().perform()
        WebDriverWait(unchanged, 10).until(lambda _: len(shown(unchanged, "busbw")[1]) == 18)

    def test_a_part_of_an_axis_is_chosen_by_buttons_and_by_dragging(unchanged):
        view = "return CHARTS.find((c) => c.figure.name === 'timeline').view.scale('x').domain()"
        low, high = unchanged.execute_script(view)
        press = "[id^=figure-timeline-] button[title='{}']"
        unchanged.find_element("css selector", press.format("zoom in")).click()
        assert unchanged.execute_script(view) == pytest.approx([high / 4, 3 * high / 4])
        canvas = unchanged.find_element("css selector", "[id^=figure-timeline-] canvas")
        unchanged.execute_script("arguments[0].scrollIntoView({ block: 'center' })", canvas)
        ActionChains(unchanged).move_to_element_with_offset(canvas, 0, -60).click_and_hold().move_by_offset(
            60, 0
        ).release().perform()
        WebDriverWait(unchanged, 10).until(lambda _: unchanged.execute_script(view)[0] < high / 4 - 1e-9)
        unchanged.find_element("css selector", press.format("show all")).click()
        assert unchanged.execute_script(view) == [low, high]

    def test_filters_that_nothing_passes_say_so(page):
        page.find_element("css selector", "input[data-value=ring_all_reduce]").send_keys(" ")  # by keyboard
        settled(page, "TABLES[DATA.rows].rows = []; showCount(); return CHARTS[0].fill()")
        assert page.find_element("id", "count").text == "0 of 36 rows shown"
        assert shown(page, "busbw")[1] == []
        assert page.find_element("css selector", "#figure-busbw-0 .remark").text == "no row passes the filters"

    def test_another_column_gets_the_colours(page):
        box = page.find_element("css selector", "#figure-cdf-4 select")
        box.find_element("css selector", "option[value=n_ranks]").click()
        WebDriverWait(page, 10).until(lambda _: "n_ranks" in shown(page, "cdf")[0])
        words = f"{SEEN}; return written().filter(([id]) => id === 'cdf-4').map(([_, text]) => text)"
        WebDriverWait(page, 10).until(lambda _: {"2", "4"} <= set(page.execute_script(words)))

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
        WebDriverWait(page, 10).until(lambda _: remark.text == "")

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
        # The browser tells the page that it was opened after the click.
        WebDriverWait(page, 10).until(lambda _: details.find_elements("css selector", "tbody tr"))
        rows = details.find_elements("css selector", "tbody tr")
        assert len(rows) == 18
        assert [row for row in rows if "ring_all_reduce" in row.text]

    def test_the_numbers_are_saved_as_a_csv_file(page, tmp_path):
        page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        details = page.find_element("css selector", "#figure-busbw-0 details")
        details.find_element("css selector", "summary").click()
        details.find_element("css selector", "button").click()
        saved = tmp_path / "busbw-0.csv"
        WebDriverWait(page, 60).until(lambda _: saved.exists() and saved.read_text().endswith("\n"))
        wanted = csv_text(drawn_table(make_figures(study())[0][0])).splitlines()
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
        names, rows = shown(browser, "choice")
        assert [row[names.index("lead")] for row in sorted(rows, key=lambda row: row[names.index("size_B")])] == [1, 2]
        assert {row[names.index("runner_up")] for row in rows} == {"tree"}
        pale = (
            f"{SEEN}; return items(CHARTS.find((c) => c.figure.name === 'choice'), 'rect').map((i) => i.item.opacity)"
        )
        assert sorted(browser.execute_script(pale)) == [0.45, 1]

    def test_names_that_are_programs_are_only_shown(browser, tmp_path):
        what = hostile_study()
        opened(browser, tmp_path / "report.html", what)
        browser.find_element("css selector", "[id^=figure-timeline-] details summary")
        for summary in browser.find_elements("css selector", "summary"):
            browser.execute_script("arguments[0].click()", summary)
        assert browser.title == EVIL
        assert browser.find_element("css selector", "h1").text == EVIL
        assert browser.execute_script("return document.images.length + document.scripts.length") == 3
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
        assert (tmp_path / "report.html").stat().st_size < 2**21
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
