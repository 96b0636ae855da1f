"""The page of a cost model, in a real browser."""

import json
import shutil

import pytest

from commsim.costmodel.evaluators.cost_model import CostModel
from commsim.costmodel.page.cost_model_page import page_text

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


def test_the_page_loads_nothing_and_holds_the_file(model_file):
    text = page_text(str(model_file))
    assert "default-src 'none'" in text
    assert "http://www.w3.org/2000/svg" in text
    assert text.count("http") == 2  # the name of SVG's elements, and http-equiv
    assert '"made up"' in text


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """A headless Chromium without network."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = [
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "window-size=1000,1100",
        "host-resolver-rules=MAP * ~NOTFOUND",
    ]
    for flag in [*flags, f"user-data-dir={tmp_path_factory.mktemp('profile')}", "disable-dev-shm-usage"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def choose(browser, name, value):
    from selenium.webdriver.support.ui import Select

    Select(browser.find_element("id", name)).select_by_value(value)


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium with its driver here")
class TestInBrowser:
    def test_a_file_is_loaded_and_answers_as_the_evaluator(self, chromium, model_file, tree, tmp_path):
        (tmp_path / "page.html").write_text(page_text())
        chromium.get((tmp_path / "page.html").as_uri())
        assert not chromium.find_element("id", "main").is_displayed()
        chromium.find_element("id", "file").send_keys(str(model_file))
        chromium.implicitly_wait(10)
        assert "made up; NCCL 2.32" in chromium.find_element("id", "network").text
        choose(chromium, "operation", "all_reduce")
        choose(chromium, "machines", "1")
        size = chromium.find_element("id", "size")
        size.clear()
        size.send_keys("100MB")
        time = CostModel(tree).answer("all_reduce", 1, 8, 100e6)[0]
        answer = chromium.find_element("id", "answer").text
        assert f"{float(f'{time * 1e3:.4g}'):g} ms" in answer
        assert "nvls/simple" in answer
        assert f"{float(f'{100e6 / time * 1.5 / 1e9:.4g}'):g} GB/s" in answer
        points = chromium.execute_script("return document.querySelectorAll('#time .line')[0].points.length")
        assert points > 400
        assert chromium.execute_script("return document.querySelectorAll('#busbw .band').length") == 1
        size.clear()
        assert "a size is 64MiB" in chromium.find_element("id", "answer").text
        assert [e for e in chromium.get_log("browser") if e["level"] in ("SEVERE", "WARNING")] == []

    def test_faults_are_drawn_beside_the_whole_network(self, chromium, model_file, tmp_path):
        (tmp_path / "page.html").write_text(page_text(str(model_file)))
        chromium.get((tmp_path / "page.html").as_uri())
        choose(chromium, "faults", "links:5%")
        assert "times the time without faults" in chromium.find_element("id", "answer").text
        assert chromium.execute_script("return document.querySelectorAll('#time .whole').length") == 1
        chromium.set_window_size(420, 900)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert chromium.execute_script(wide) <= 0

    def test_text_of_a_file_is_no_program(self, chromium, tree, tmp_path):
        path = tmp_path / "evil.json"
        path.write_text(json.dumps(tree | {"network": EVIL, "sources": [EVIL], "release": EVIL}))
        (tmp_path / "page.html").write_text(page_text(str(path)))
        chromium.get((tmp_path / "page.html").as_uri())
        assert chromium.title == "Cost model"
        assert EVIL in chromium.find_element("id", "network").text
        (tmp_path / "other.json").write_text("{}")
        chromium.find_element("id", "file").send_keys(str(tmp_path / "other.json"))
        assert "no cost model" in chromium.find_element("id", "error").text
