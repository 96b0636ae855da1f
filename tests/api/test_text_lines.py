"""Thirty-odd answers on a terminal of 80 columns: a title, what was asked for, and at most three lines beside it."""

import contextlib
import io
import itertools
import json
import shlex
from pathlib import Path

import pytest

from commsim.cli import main
from commsim.core.remark import MATTERS, MAX_TEXT
from commsim.report.terminal import CUT

HERE = Path(__file__).parent
INPUTS = HERE.parent / "answers"
LINES = [line for line in (HERE / "text_lines.txt").read_text().splitlines() if not line.startswith("#")]
# With the title.
MOST = 5


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(command):
    """Return what the last of some commands prints, and the text among it: lines of comments."""
    for words in map(shlex.split, command.split(" && ")):
        out = Terminal()
        with contextlib.redirect_stdout(out):
            assert main(words) in (0, 1)
    lines = out.getvalue().splitlines()
    # the mean is the last row of nccl-tests' table
    return lines, [line for line in lines if line.startswith("#") and not line.startswith("# Avg bus bandwidth")]


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    for name in ("inputs", "files_0_1"):
        (tmp_path / name).symlink_to(INPUTS / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_an_answer_has_at_most_five_lines_of_text(line, inputs):
    lines, text = printed(line)
    assert len(text) <= MOST
    assert len(lines) > len(text) or Path("a.svg").exists()  # the answer is there, or is a picture
    assert all(len(one) <= 80 for one in text)
    assert_title_is_whole(lines)


def assert_title_is_whole(lines):
    title = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
    assert not [line for line in title if line.endswith(CUT)]


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("expect dgx-h100 --machines 2", "star:machines=2, 16 ranks, limited by NVLink (all_reduce), the NICs; "
         "floor: 1% of healthy machines are below it"),
        ("bound --topology leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4 --operation all_reduce --size 1M",
         ", 8 ranks: lower bound"),
    ],
)  # fmt: skip
def test_a_title_leaves_out_its_least_piece_and_is_not_cut(line, end, inputs):
    """Titles ended in `1% of healthy machines ...` and `on the time of ...`."""
    lines, _ = printed(line)
    assert_title_is_whole(lines)
    title = list(itertools.takewhile(lambda one: one.startswith("#"), lines))
    assert " ".join(one.removeprefix("#").strip() for one in title).endswith(end)


@pytest.mark.parametrize("line", [LINES[0], LINES[3], LINES[4]])
def test_a_remark_is_a_sentence_of_100_characters_and_matters_or_is_needed(line, inputs):
    lines, _ = printed(f"{line} --json answer.json")
    said = json.loads(Path("answer.json").read_text())["remarks"]
    assert all(len(one["text"]) <= MAX_TEXT for one in said)
    shown = [one for one in said if one.get("needed") or abs(one["effect"] or 0) >= MATTERS]
    rest = [one for one in said if one not in shown]
    together = " ".join(line.lstrip("# ") for line in lines)
    assert not [one for one in rest if one["text"] in together]
    together = " ".join(" ".join(line.lstrip("# ") for line in printed(f"{line} -v")[0]).split())
    assert not [one for one in said if one["text"].removesuffix("...") not in together]
