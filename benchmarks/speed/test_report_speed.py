"""How long a page of ten thousand rows takes to make and to open, and a timeline of a million slices to write.

``pytest benchmarks --benchmark-enable`` measures; nothing is asserted about speed, since machines differ. The issue's
limit stands beside the number in ``extra_info``.
"""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from commsim.pages.figure_tables import table_of_rows
from commsim.pages.page.write import page_text, write_page
from commsim.pages.perfetto_trace import write_chrome, write_perfetto
from commsim.pages.simulated_run import SimulatedRun, simulate_run
from commsim.pages.study import Study, make_study
from commsim.pages.timeline import make_timeline
from commsim.prediction.build import prepare


def ten_thousand_rows() -> Study:
    """4 algorithms, 10 numbers of ranks, 25 sizes, 10 rates."""
    rows = [
        {"collective": f"{c}_all_reduce", "operation": "all_reduce", "n_ranks": 2**n, "size_B": 2.0**s,
         "topology.bandwidth": b, "time_s": 1e-6 * (s + n) * (1 + i) + b / 1e18, "busbw_Bps": 1e9 * s / (1 + i + n) + b}
        for i, c in enumerate(("ring", "tree", "double_tree", "halving")) for n in range(1, 11)
        for s in range(10, 35) for b in (1e9 * k for k in range(1, 11))
    ]  # fmt: skip
    return make_study("ten thousand rows", table_of_rows(rows), {})


def million_slices() -> SimulatedRun:
    """All-to-all of 512 ranks: 261,632 messages, each on its sender, its receiver and two links."""
    return simulate_run("all-to-all", prepare("pairwise_all_to_all", "star:n_hosts=512,bandwidth=100Gbps"), 2**26)


def test_a_page_of_ten_thousand_rows_is_made(benchmark: Any) -> None:
    """From a table to the text of the page."""
    study = ten_thousand_rows()
    text, _ = benchmark(page_text, study)
    benchmark.extra_info["bytes"] = len(text)


if shutil.which("chromium") and shutil.which("chromedriver"):

    def test_a_page_of_ten_thousand_rows_opens(benchmark: Any, tmp_path: Path) -> None:
        """From the start of navigation to the last figure, drawn after the load event one by one."""
        from selenium import webdriver
        from selenium.webdriver.support.ui import WebDriverWait

        write_page(ten_thousand_rows(), tmp_path / "page.html")
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for flag in ("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking",
                     "disable-component-update", "disable-sync", f"user-data-dir={tmp_path}/profile"):  # fmt: skip
            options.add_argument(f"--{flag}")
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
        drawn = "return document.body.dataset.drawn"

        def open_page() -> None:
            driver.get((tmp_path / "page.html").as_uri())
            WebDriverWait(driver, 60, 0.05).until(lambda _: driver.execute_script(drawn))

        try:
            benchmark.pedantic(open_page, rounds=5, warmup_rounds=1)
            assert driver.execute_script(drawn) == "7"
            look = "return performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
            benchmark.extra_info |= {"load_event_s": driver.execute_script(look), "limit_s": 3.0}
        finally:
            driver.quit()


@pytest.mark.parametrize(("write", "name"), [(write_chrome, "t.json.gz"), (write_perfetto, "t.pftrace")])
def test_a_timeline_of_a_million_slices_is_written(benchmark: Any, tmp_path: Path, write: Any, name: str) -> None:
    """As a stream: memory does not grow with the number of slices beyond the tables of the run."""
    pytest.importorskip("perfetto")
    timeline = make_timeline(million_slices())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    benchmark.pedantic(write, (timeline, tmp_path / name), rounds=1, warmup_rounds=0)
    benchmark.extra_info["slices"] = sum(len(track.lane) for track in timeline.tracks)
    benchmark.extra_info["more_MiB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    benchmark.extra_info["file_MiB"] = (tmp_path / name).stat().st_size / 2**20
