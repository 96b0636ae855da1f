import json
import re
import sqlite3
import sys
import tomllib
import zlib
from pathlib import Path

import pytest

from commsim.sweep.executors import processors

SWEEP = """
[topology]
name = "star"
n_hosts = [4, 8]
bandwidth = "100Gbps"

[collective]
name = "ring_all_reduce"
size = ["1KiB", "1MiB"]

[engine]
name = "alpha-beta"
"""
COST = """
[cost]
currency = "EUR"
nic = 10
port = 5
cable = 1
switch = 100

[goal]
keep = "time"
within = "1ms"
"""
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def sweep(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    return path


def test_a_sweep_writes_a_file_without_pyarrow(commsim, sweep, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    file = tmp_path / "x.csv"
    assert commsim("sweep", sweep, "-o", file, "--executor", "serial").code == 0
    assert commsim.out.splitlines()[:2] == [f"{tmp_path / 'x'}: 4 points", f"{file}: 4 rows of 28 columns"]
    assert len(file.read_text().splitlines()) == 5
    assert commsim("sweep", "status", tmp_path / "x").code == 0
    assert commsim("sweep", sweep, "-o", tmp_path / "y.parquet", "--executor", "serial").code == 2
    assert "pip install 'commsim[data]'" in commsim.err
    assert not (tmp_path / "y").exists()


def test_a_sweep_is_run_looked_at_asked_and_exported(commsim, sweep, tmp_path):
    results = tmp_path / "results"
    assert commsim("sweep", sweep, "-o", results, "--executor", "serial", "--limit", 1, "-v").code == 0
    assert commsim.out == f"{results}: 1 point\n# software costs: 1 us of overhead per message\n"
    assert commsim("sweep", "run", sweep, "-o", results, "--executor", "serial", "-v").code == 0
    assert (
        commsim.out == f"{results}: 4 points, 1 of them from before\n# software costs: 1 us of overhead per message\n"
    )
    assert commsim.err.splitlines()[-1] == "commsim sweep: 4 of 4 points, 1 of them from before"
    row = commsim.results("sweep", "status", results, "-v")["results"][0]
    assert row == {"n_points": 4, "n_done": 4, "n_failed": 0, "errors": []}
    assert "4 of 4 done" in commsim.out
    assert commsim("sweep", "sql", results, "select count(*) as n, max(n_ranks) as r from sweep", "-v").code == 0
    assert commsim.out.split() == ["n", "r", "4", "8"]
    assert commsim("sweep", "export", results, "-o", tmp_path / "x.json", "-v").code == 0
    assert len(json.loads((tmp_path / "x.json").read_text())["results"]) == 4
    assert commsim("sweep", "sql", results, "select 1 as one", "-o", tmp_path / "one.csv", "-v").code == 0
    assert (tmp_path / "one.csv").read_text().split() == ["one", "1"]


def test_all_that_a_query_names_is_shown_with_integers_and_units(commsim, sweep, tmp_path, monkeypatch):
    """Three of six columns were hidden to fit 80 columns, and sizes were 1.04858e+06."""
    results = tmp_path / "results"
    assert commsim("sweep", sweep, "-o", results, "--executor", "serial").code == 0
    named = [
        "collective.size",
        "topology.n_hosts",
        "topology.bandwidth",
        "slowest_of_all",
        "fastest_of_all",
        "gain_of_all",
    ]
    query = (
        f'select "{named[0]}", "{named[1]}", "{named[2]}", max(time_s) as {named[3]}, min(time_s) as {named[4]}, '
        f"1.5 as {named[5]} from sweep where size_B > 2000 group by all order by all"
    )
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert commsim("sweep", "sql", results, query).code == 0
    assert set(named) <= set(re.findall(r"[\w.]+", commsim.out))
    assert "hidden" not in commsim.out
    assert {"1048576", "12500000000", "1.5"} <= set(commsim.out.split())
    assert "# units of the table `sweep`: topology.bandwidth B/s, collective.size B" in commsim.out
    assert commsim("sweep", "sql", results, "select * from sweep").code == 0
    assert "-v also shows " in commsim.out


def test_the_directory_is_named_as_the_file_unless_said(commsim, sweep, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commsim("sweep", "sweep.toml", "--executor", "serial").code == 0
    assert (tmp_path / "sweep" / "sweep.sqlite").exists()


def test_a_plan_says_points_time_and_memory(commsim, sweep):
    row = commsim.results("sweep", "plan", sweep, "--jobs", 2)["results"][0]
    assert (row["n_points"], row["n_prepared"], row["jobs"]) == (4, 2, 2)
    slower = max(1.0, (2 + row["other_load"]) / processors(None))
    assert row["time_s"] == pytest.approx(slower * (row["start_s"] + row["work_s"] / 2))
    assert row["uncertain_s"] == row["work_uncertain_s"] / 2
    assert row["memory_B"] > 2**20
    assert "with 2 workers, +/-" in commsim.out


def test_errors_of_points_are_in_the_status(commsim, sweep, tmp_path):
    sweep.write_text(SWEEP.replace("size =", "ranks = [4, 7]\nsize ="))
    assert commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial").code == 0
    assert f"2 failed: `commsim sweep status {tmp_path / 'r'}` says why, --retry-failed" in commsim.out
    row = commsim.results("sweep", "status", tmp_path / "r")["results"][0]
    assert (row["n_failed"], len(row["errors"])) == (2, 1)
    assert "got 7" in commsim.out
    assert commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial", "--retry-failed").code == 0
    assert "8 points, 6 of them from before, 2 failed" in commsim.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[topology", "sweep.toml: "),
        (SWEEP.replace("n_hosts", "n_hots"), "star has no parameter 'n_hots'; did you mean n_hosts"),
        (SWEEP + "[sweep]\nfilters = ['n_hosts > 9']", "the filters leave none of 4 points"),
        (SWEEP + "[sweep]\nfilters = ['open(1)']", "Call is not allowed"),
        (SWEEP.replace('["1KiB", "1MiB"]', '{from="1B", to="1GiB", steps=1000000}').replace("[4, 8]", "{from=1, "
         "to=1000000, steps=1000000}"), "1000000000000 points before filters are more than 10000000"),
        (SWEEP + "[sweep]\nsample = 'sobol'\nn = 10000000", "sweep.n must be a whole number 1..1000000"),
        (SWEEP.replace('"1KiB"', "1979-05-27"), "numbers, text"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_and_leaves_nothing(commsim, sweep, tmp_path, text, message):
    sweep.write_text(text)
    assert message in commsim.refuses("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial")
    assert not (tmp_path / "r").exists()
    assert message in commsim.refuses("sweep", "plan", sweep)


def test_a_sweep_of_which_every_point_fails_is_no_success(commsim, sweep, tmp_path):
    sweep.write_text(SWEEP.replace("size =", "ranks = 9\nsize ="))
    assert commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial").code == 1
    assert "4 points, all failed" in commsim.out


def test_results_are_not_written_over_what_they_are_made_of(commsim, sweep, tmp_path):
    results = tmp_path / "r"
    commsim("sweep", sweep, "-o", results, "--executor", "serial")
    for name in ("sweep.sqlite", "sweep.lock"):
        before = (results / name).read_bytes()
        assert "give another one" in commsim.refuses("sweep", "export", results, "-o", results / name)
        assert "give another one" in commsim.refuses("sweep", "sql", results, "select 1", "-o", results / name)
        assert (results / name).read_bytes() == before


def test_what_is_not_text_in_a_description_is_not_sent_to_the_terminal(commsim, sweep, tmp_path):
    commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial")
    db = sqlite3.connect(tmp_path / "r/sweep.sqlite")
    about = json.loads(*db.execute("SELECT text FROM description").fetchone())
    about |= {"n_points": "\x1b[31m", "config_hash": "\x1b[2J"}
    about["provenance"]["commit"] = ["\x1b[0m"]
    with db:
        text = json.dumps(about)  # whoever writes it knows how its sum is made
        db.execute("UPDATE description SET text = ?, sum = ?", [text, zlib.crc32(text.encode())])
    db.close()
    assert commsim("sweep", "status", tmp_path / "r").code == 0
    assert "\x1b" not in commsim.out
    assert commsim("sweep", "sql", tmp_path / "r", 'select chr(27) as "\x1b"').code == 0
    assert "\x1b" not in commsim.out


def test_wrong_flags_are_refused(commsim, sweep, tmp_path):
    assert "not the folder of a sweep" in commsim.refuses("sweep", "status", tmp_path)
    assert "unknown executor" in commsim.refuses("sweep", sweep, "-o", tmp_path / "r", "--executor", "magic")
    assert not (tmp_path / "r").exists()
    assert "limit must be at least 1" in commsim.refuses("sweep", sweep, "--limit", 0)
    assert "written as .csv" in commsim.refuses("sweep", "export", tmp_path, "-o", "x.txt")
    assert "a sweep is a .toml or .json file" in commsim.refuses("sweep", "nothing")
    assert "required" in commsim.refuses("sweep", "sql", tmp_path)


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(commsim, sweep, tmp_path, monkeypatch):
    def interrupted(self, seed, parameters):
        raise KeyboardInterrupt

    monkeypatch.setattr("commsim.sweep.compute.Bench.row", interrupted)
    assert commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial").code == 130
    assert commsim.err == f"commsim sweep: interrupted; run the same command to resume {tmp_path / 'r'}\n"
    monkeypatch.undo()
    assert commsim("sweep", sweep, "-o", tmp_path / "r", "--executor", "serial").code == 0


@pytest.mark.slow
def test_the_cheapest_topology_is_named_with_its_bill(commsim, sweep):
    sweep.write_text(SWEEP + COST)
    tree = commsim.results("sweep", "cheapest", sweep, "--jobs", 1)
    assert tree["goal"] == {"keep": "time", "bound": 1e-3}
    assert [(row["cost"], row["keeps"]) for row in tree["results"]] == [(4 * 16 + 100, True), (8 * 16 + 100, True)]
    assert "# cheapest: star:n_hosts=4,bandwidth=100Gbps at 164 EUR" in commsim.out
    sweep.write_text(SWEEP + COST.replace("1ms", "1ns"))
    assert commsim("sweep", "cheapest", sweep, "--jobs", 1).code == 0
    assert "none of the 2 topologies keeps time within 1 ns" in commsim.out


def test_a_sweep_without_a_goal_or_a_price_has_no_cheapest_topology(commsim, sweep):
    assert "[goal] is missing" in commsim.refuses("sweep", "cheapest", sweep)
    sweep.write_text(SWEEP + COST.replace("cable = 1", ""))
    assert "cost.cable is missing" in commsim.refuses("sweep", "cheapest", sweep, "--jobs", 1)
    assert "unrecognized arguments: --size" in commsim.refuses("sweep", "cheapest", sweep, "--size", "1MiB")
    assert "required: --topology" in commsim.refuses("advise", "--size", "1MiB")


def test_the_example_has_ten_thousand_points():
    from commsim.sweep.check_names import check_specs
    from commsim.sweep.config import read_config
    from commsim.sweep.points import points

    config = read_config(EXAMPLES / "sweep_10k.toml")
    check_specs(config)
    found = list(points(config))
    assert len({p.digest for p in found}) == len(found) == 10_000
    assert {p.parameters["collective.ranks"] for p in found} == set(range(64, 513, 64))
    for name, n in (("collective.name", 3), ("topology.name", 2)):
        assert len({p.parameters[name] for p in found}) == n
    assert {p.parameters["engine.name"] for p in found} == {"flow"}


def test_the_example_of_prices_has_them_all():
    from commsim.prediction.inputs import load_network
    from commsim.sweep.config import read_config
    from commsim.sweep.point_parameters import network_spec
    from commsim.sweep.points import points
    from commsim.sweep.price import read_prices

    tree = tomllib.loads((EXAMPLES / "sweep_cost.toml").read_text())
    config = read_config(tree)
    for spec in {network_spec(p.parameters, config.kinds) for p in points(config)}:
        assert read_prices(tree, "f").bill(load_network(spec))
