"""Pages as people see them, light and dark, wide and narrow: nothing sticks out, texts are apart and can be read."""

import functools
import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from commsim.pages.figure_tables import table_of_rows
from commsim.pages.page.write import write_page
from commsim.pages.simulated_run import simulate_run
from commsim.pages.study import Study
from commsim.prediction.build import prepare
from commsim.prediction.scenario import Wish

WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="needs chromium and chromedriver"
)

NETWORKS = {
    8: "leaf_spine:n_leaves=2,n_spines=4,hosts_per_leaf=4,bandwidth=100Gbps,latency=1us",
    128: "leaf_spine:n_leaves=8,n_spines=4,hosts_per_leaf=16,bandwidth=100Gbps,latency=1us",
    1024: "leaf_spine:n_leaves=32,n_spines=16,hosts_per_leaf=32,bandwidth=400Gbps,latency=1us",
    8192: "leaf_spine:n_leaves=128,n_spines=64,hosts_per_leaf=64,bandwidth=400Gbps,latency=1us",
}
SEEN = (Path(__file__).parent / "what_is_seen.js").read_text()
READABLE = 4.5  # contrast of small letters: Web Content Accessibility Guidelines 2.2, 1.4.3


@functools.cache
def study(n_hosts):
    ready = prepare("double_tree_all_reduce:n_chunks=8", NETWORKS[n_hosts])
    options = {"engine": "packet"} if n_hosts == 8 else {}
    results = [ready.predict(2.0**k, **options) for k in (18, 20)]
    run = simulate_run("double_tree", ready, 2**20, Wish.of(**options), results[-1].time)
    rows = table_of_rows([result.row() for result in results])
    return Study(f"double tree on {NETWORKS[n_hosts]}", rows, ("size_B",), runs=(run,), remarks=("a remark",))


def look(browser, path, n_hosts, width, scheme):
    """Open the page of a network in a window of that width."""
    write_page(study(n_hosts), path)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script("return document.body.dataset.drawn"))


def seen(browser, what):
    return browser.execute_script(f"{SEEN}\nreturn {what}();")


@pytest.fixture
def window(browser):
    yield browser
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    said = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert said == []


def overlapping(boxes):
    """Pairs of texts of which one covers more than a pixel of another each way."""
    at = np.array([box for _, box in boxes]).reshape(-1, 4)
    both = np.minimum(at[:, None, 2:], at[None, :, 2:]) - np.maximum(at[:, None, :2], at[None, :, :2])
    first, second = np.nonzero(np.triu((both > 1).all(axis=2), 1))
    return [(boxes[i][0], boxes[j][0]) for i, j in zip(first, second, strict=True)]


@pytest.mark.parametrize(
    ("n_hosts", "width", "scheme"),
    [
        (8, 400, "dark"),
        pytest.param(128, 400, "light", marks=pytest.mark.slow),
        pytest.param(1024, 1400, "dark", marks=pytest.mark.slow),
        pytest.param(8192, 1400, "light", marks=[pytest.mark.slow, pytest.mark.deep]),
    ],
)
def test_nothing_sticks_out_texts_are_apart_and_can_be_read(window, tmp_path, n_hosts, width, scheme):
    look(window, tmp_path / "page.html", n_hosts, width, scheme)
    assert seen(window, "stickingOut") == []
    assert seen(window, "cut") == []
    written = seen(window, "written")
    names = {figure for figure, *_ in written}
    assert len(names) > 4
    for name in names:
        assert overlapping([(text, box) for figure, text, box, _ in written if figure == name]) == []
    assert [(figure, text, contrast) for figure, text, _, contrast in written if contrast < READABLE] == []
    assert [(text, contrast) for text, contrast in seen(window, "shown") if contrast < READABLE] == []
    for texts in seen(window, "inPictures"):
        assert overlapping([(text, box) for text, *box in texts]) == []


@pytest.mark.parametrize(("scheme", "low", "high"), [("light", 200, 255), ("dark", 0, 60)])
def test_a_screenshot_is_as_light_or_as_dark_as_people_ask(window, tmp_path, scheme, low, high):
    from PIL import Image

    look(window, tmp_path / "page.html", 8, 900, scheme)
    pixels = np.asarray(Image.open(io.BytesIO(window.get_screenshot_as_png())).convert("L"))
    assert low <= np.median(pixels) <= high
    assert np.ptp(pixels) > 150  # there is something on it


def test_a_page_that_is_printed_is_white(window, tmp_path):
    look(window, tmp_path / "page.html", 8, 900, "dark")
    grounds = "return CHARTS.filter((c) => c.view).map((c) => c.view.background())"
    dark = set(window.execute_script(grounds))
    window.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    WebDriverWait(window, 60).until(lambda _: set(window.execute_script(grounds)) == {"#ffffff"})
    window.execute_script("window.dispatchEvent(new Event('afterprint'))")
    WebDriverWait(window, 60).until(lambda _: set(window.execute_script(grounds)) == dark != {"#ffffff"})


def test_depths_of_queues_are_round_numbers_of_kibibytes(window, tmp_path):
    if not window.execute_script("return typeof axisTicks === 'function'"):  # of the page of another test
        look(window, tmp_path / "page.html", 8, 900, "light")
    for most in (900, 5000, 130_000, 3 * 2**20, 2**40 * 7):
        labels = window.execute_script(f"return axisTicks([0, {most}], 'B', false).map((v) => format(v, 'B'))")
        assert len(labels) > 2
        for number in (label.split()[0] for label in labels):
            # few digits that count, or half of the next unit
            assert len(number.replace(".", "").strip("0")) <= 2 or number == "512"
