"""Seventy command lines on a terminal of 80 columns: what answers is shown, no number is cut, no table in pieces."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from commsim.cli import main
from commsim.report import terminal

HERE = Path(__file__).parent
INPUTS = HERE.parent / "answers"
WIDTH = 80
LINES = [line for line in (HERE / "narrow_lines.txt").read_text().splitlines() if not line.startswith("#")]
# A word that is too long for a line by itself is not cut; in titles and remarks the name of a network is, after commas.
WORDS, PIECES = re.compile(r"\S+"), re.compile(r"[^\s,]+,?")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(command, monkeypatch, tmp_path):
    """Return the lines that a command prints on a terminal, tables and titles among them, and tables in pieces."""
    tables, titles, pieces = [], [], []

    print_columns, print_comment = terminal._print_columns, terminal.print_comment

    def told(text, most=None):  # what does not fit in the lines of a title is left out
        if most is None:
            titles.append(text)
        print_comment(text, most)

    def kept(columns, rows, kept, width):
        tables.append(([columns[i] for i in kept], [[row[i] for i in kept] for row in rows]))
        print_columns(columns, rows, kept, width)

    monkeypatch.setattr(terminal, "_print_columns", kept)
    monkeypatch.setattr(terminal, "print_comment", told)
    monkeypatch.setattr(terminal, "_print_lists", lambda columns, rows: pieces.append(columns))  # noqa: ARG005
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    for name in ("inputs", "files_0_1"):
        if not (tmp_path / name).exists():
            (tmp_path / name).symlink_to(INPUTS / name)
    monkeypatch.chdir(tmp_path)
    out = Terminal()
    with contextlib.redirect_stdout(out):
        assert main(shlex.split(command)) == 0
    return out.getvalue().splitlines(), tables, titles, pieces


def test_many_facts_about_a_link_do_not_hide_its_score(monkeypatch, tmp_path):
    lines, *_ = shown("place score --capacity 50Gbps inputs/jobs.json --check", monkeypatch, tmp_path)
    assert any(line.split()[:1] == ["score"] for line in lines)


def test_the_bytes_of_a_worker_and_the_rate_of_a_switch_are_shown(monkeypatch, tmp_path):
    """Advice hid the bytes that it was said to print; a simulated switch had no rate in Gb/s."""
    _, tables, *_ = shown("advise --topology star:n_hosts=4 --size 64KiB --density 0.1", monkeypatch, tmp_path)
    columns, rows = tables[0]
    ring = next(row for row in rows if row[columns.index("collective")] == "ring_all_reduce")
    assert float(ring[columns.index("MB/worker")]) == pytest.approx(2 * 3 / 4 * 65536 / 1e6, rel=1e-3)
    simulate = "switch simulate --system switchml-rdma --workers 4 --size 256KiB --pool-size 64 -v"
    lines, tables, *_ = shown(simulate, monkeypatch, tmp_path)
    columns, (row,) = tables[0]
    milliseconds = float(row[columns.index("time")].split()[0])
    assert float(row[columns.index("Gb/s")]) == pytest.approx(8 * 2**18 / milliseconds / 1e6, rel=1e-2)
    assert "takes the memory of 128" in " ".join(line.removeprefix("#").strip() for line in lines)


def test_a_terminal_shows_in_what_two_results_differ(monkeypatch, tmp_path):
    """The lines that name the engines and transports were hidden as remarks, above "the same configuration"."""
    line = "run ring_all_reduce --topology star:n_hosts=4 --size 64KiB --json"
    shown(f"{line} a.json", monkeypatch, tmp_path)
    shown(f"{line} b.json --engine packet --transport dcqcn", monkeypatch, tmp_path)
    lines, *_ = shown("diff a.json b.json", monkeypatch, tmp_path)
    assert lines[:2] == ["# A: a.json, B: b.json", "# engine: A flow, B packet"]
    assert lines[2:4] == ["# transport: A not given, B dcqcn", "# 1 row of both, alike but for what is named above"]


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize("line", LINES)
def test_a_command_line_at_80_columns(line, monkeypatch, tmp_path):
    command, _, wanted = line.partition(" |")
    lines, tables, titles, pieces = shown(command, monkeypatch, tmp_path)
    heads = {name for columns, _ in tables for name in columns}
    assert set(wanted.split()) <= heads, "a column that answers the question is hidden"
    wide = [text for text in lines if len(text) > WIDTH and max(map(len, WORDS.findall(text))) < WIDTH // 2]
    wide += [text for text in lines if text.startswith("# ") and len(text) > WIDTH]
    assert not wide, "a line is cut by the terminal"
    for title in titles:
        cut = [piece for piece in PIECES.findall(title) if not any(piece in text for text in lines)]
        assert not cut, "a number of a title is cut"
    words = set(WORDS.findall("\n".join(lines)))
    numbers = {cell for _, rows in tables for row in rows for cell in row if re.fullmatch(r"[-+.\d]+x?", cell)}
    assert numbers <= words, "a number is cut"
    assert not pieces, "a table falls into pieces"
