"""Charts of in-network aggregation: which chart is drawn follows from what was varied."""

import pytest

from commsim.pages.pictures.paint import write_picture
from commsim.switches.aggregation_picture import draw_aggregation

ROW = {
    "collective": "switchml", "n_ranks": 4, "loss": 0.0, "pool_size": 64, "time_s": 1e-3, "elements_per_s": 1e9,
    "line_rate_elements_per_s": 2e9,
}  # fmt: skip
SERIES = [{"time_s": 1e-6 * i, "busy_slots": i, "queued_bytes": 1000 * i} for i in range(3)]


@pytest.mark.parametrize(("change", "series", "title"), [
    ({"loss": 0.01, "time_s": 2e-3}, None, "Completion against loss"),
    ({"pool_size": 128}, None, "Throughput against pool size"),
    ({"n_ranks": 8}, None, "Throughput against workers"),
    ({}, SERIES, "Slots and queues over time"),
])  # fmt: skip
def test_the_chart_is_of_what_was_varied(tmp_path, change, series, title):
    write_picture(draw_aggregation([ROW, ROW | change], series), str(tmp_path / "chart.svg"))
    assert title in (tmp_path / "chart.svg").read_text()
