"""JSON, table, CSV, Python and a sweep give a drawn question one number; so do files of its network and schedule."""

import csv
import json

import pytest
from drawn_questions import ENGINES, drawn_questions

import commsim as cs
from commsim.cli import main
from commsim.formats.context import Context
from commsim.formats.convert import convert
from commsim.prediction.collective_names import load_schedule

N = 3
NETWORK_FILES = ("network.toml", "network.json", "network.npz", "network.graphml")
SCHEDULES = ("ring_all_reduce", "bruck_all_to_all", "binomial_broadcast", "pairwise_all_to_all", "ring_all_gather")


def asked_by_flags(question, network, folder):
    """Return the row that a command line writes as JSON, the line of its CSV, and its table's."""
    words = ["run", "--topology", str(network), "--collective", question.collective, "--engine", question.engine]
    words += ["-b", str(question.size), "-e", str(question.size), "--ranks", str(question.n_ranks)]
    assert main([*words, "--json", str(folder / "a.json"), "--csv", str(folder / "a.csv")]) == 0
    (row,) = json.loads((folder / "a.json").read_text())["results"]
    (line,) = csv.DictReader((folder / "a.csv").read_text().splitlines())
    return row, line


def shown(table):
    """Return the columns of the only row of a table."""
    lines = [line.strip().removeprefix("#") for line in table.splitlines()]
    (heads,) = [line.split() for line in lines if "#wrong" in line]
    (row,) = [line.split() for line in lines if line[0].isdigit()]
    return dict(zip(heads, row, strict=True))


def asked_by_sweep(question, network, folder):
    """Return the row of a sweep of one point."""
    tables = {
        "topology": {"name": str(network)},
        "collective": {"name": question.collective, "size": f"{question.size}B", "ranks": question.n_ranks},
        "engine": {"name": question.engine},
    }
    text = "schema = 1\n" + "".join(
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )
    (folder / "sweep.toml").write_text(text)
    out, rows = folder / f"of_{question.collective}_{question.size}", folder / "rows.json"
    assert main(["sweep", "run", str(folder / "sweep.toml"), "-o", str(out), "--executor", "serial"]) == 0
    assert main(["sweep", "export", str(out), "-o", str(rows)]) == 0
    (row,) = json.loads(rows.read_text())["results"]
    return row


@pytest.mark.parametrize("engine", ENGINES)
def test_every_form_of_an_answer_has_the_same_number(engine, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    for question, answer in drawn_questions(engine, n=N):
        network = tmp_path / "network.toml"
        cs.save(question.network, network)
        row, line = asked_by_flags(question, network, tmp_path)
        cells = shown(capsys.readouterr().out)
        swept = asked_by_sweep(question, network, tmp_path)
        own = answer.row()
        for key in ("time_s", "busbw_Bps", "bytes_on_wire", "max_link_bytes"):
            assert own[key] == row[key] == swept[key], f"{question}: {key}"
            assert line[key] == ("" if own[key] is None else repr(own[key])), f"{question}: {key}"
        assert own["time_s"] == answer.time
        assert float(cells["time(us)"]) == pytest.approx(answer.time * 1e6, rel=1e-3, abs=0.005)  # two digits shown
        if own["busbw_Bps"] is not None:
            assert float(cells["busbw(GB/s)"]) == pytest.approx(own["busbw_Bps"] * 1e-9, abs=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_network_that_was_exported_gives_the_same_number(engine, tmp_path):
    for question, answer in drawn_questions(engine, n=N):
        for name in NETWORK_FILES:
            cs.save(question.network, tmp_path / "own.npz")
            convert(str(tmp_path / "own.npz"), str(tmp_path / name), Context())
            convert(str(tmp_path / name), str(tmp_path / "back.toml"), Context())
            assert question.ask(network=str(tmp_path / "back.toml")).time == answer.time, f"{question}: {name}"


@pytest.mark.sample(6)
@pytest.mark.parametrize("engine", ["alpha-beta", "flow", "packet"])
@pytest.mark.parametrize("collective", SCHEDULES)
def test_a_schedule_that_was_exported_gives_the_same_number(engine, collective, tmp_path):
    file = tmp_path / "schedule.npz"
    question, _ = drawn_questions(engine)[SCHEDULES.index(collective)]
    by_name, by_file = question._replace(collective=collective), question._replace(collective=str(file))
    cs.save(load_schedule(collective, question.n_ranks), file)
    assert by_file.ask().time == by_name.ask().time, question
