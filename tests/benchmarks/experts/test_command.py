"""The benchmark of exchanges of experts on rows made here: other folders work, and no row ends it."""

import csv
import json
from pathlib import Path

import pytest

from benchmarks.experts.command import main

COLUMNS = (
    "system", "nodes", "gpus_per_node", "ranks", "mode", "operation", "precision", "hidden", "top_k", "n_experts",
    "tokens_per_rank", "sms", "time_us",
)  # fmt: skip
ROWS = {
    "known": ("NVIDIA H100", 1, 8, 8, "low latency", "dispatch", "", 7168, 8, 256, 128, "", 40.0),
    "between machines": ("NVIDIA H100", 2, 8, 16, "normal", "combine", "", 7168, 8, 256, 64, "24/24", 97.0),
    "another size": ("NVIDIA H200", 1, 8, 8, "normal", "dispatch", "", 5120, 6, 160, 64, "16/20", 50.0),
    "an unknown GPU": ("NVIDIA X1000", 1, 8, 8, "normal", "dispatch", "", 7168, 8, 256, 64, "20/20", 50.0),
    "all of NVL72": ("GB300 NVL72", 1, 72, 64, "NVLink one-sided", "combine", "nvfp4", 7168, 8, 256, 64, "", 40.0),
    "an unknown mode": ("NVIDIA H100", 1, 8, 8, "telepathy", "dispatch", "", 7168, 8, 256, 64, "", 50.0),
    "more of a token than there are": ("NVIDIA H100", 1, 8, 8, "normal", "dispatch", "", 7168, 300, 256, 64, "", 50.0),
    "no time": ("NVIDIA H100", 1, 8, 8, "normal", "dispatch", "", 7168, 8, 256, 64, "", "nan"),
}
GOOD = ("known", "between machines", "another size", "an unknown GPU", "all of NVL72")


def run(tmp_path, rows):
    with (tmp_path / "all_to_all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    out = tmp_path / "rows.json"
    code = main(["--data", str(tmp_path), "--json", str(out), "--page", str(tmp_path / "page.md")])
    return code, json.loads(out.read_text())


def test_every_row_that_can_be_is_predicted_and_the_others_are_named(tmp_path):
    code, found = run(tmp_path, ROWS.values())
    assert code == 0
    assert [row["system"] for row in found["rows"]] == [ROWS[name][0] for name in GOOD]
    assert all(row["predicted_us"] > 0 for row in found["rows"])
    assert [row["fitted"] for row in found["rows"]] == [True, True, False, False, False]
    assert len(found["not_predicted"]) == 3
    assert "none are known of this GPU" in found["rows"][3]["remark"]
    assert "ep_dispatch" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("column", ["hidden", "top_k"])
def test_more_of_anything_takes_longer(tmp_path, column):
    row = list(ROWS["between machines"])
    more = [value * 2 if name == column else value for name, value in zip(COLUMNS, row, strict=True)]
    _, found = run(tmp_path, [row, more])
    assert found["rows"][0]["predicted_us"] < found["rows"][1]["predicted_us"]


def test_a_folder_without_the_file_is_one_line(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_page_is_written_only_where_it_is_asked_for(tmp_path, monkeypatch):
    """Another folder's numbers must not replace the page of the documentation."""
    written = []
    monkeypatch.setattr(Path, "write_text", lambda self, _text, **_more: written.append(self))
    with (tmp_path / "all_to_all.csv").open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, ROWS["known"]])
    assert main(["--data", str(tmp_path)]) == 0
    assert not written
    assert main(["--data", str(tmp_path), "--page", str(tmp_path / "page.md")]) == 0
    assert written == [tmp_path / "page.md"]
