"""Names out of files of others, and of files: on a terminal they must be nothing but text, and a line one line."""

import json

import pytest

EVIL = "\x1b[31mred\x1b]0;title\x07\u202eevil\nnew"
SHOWN = r"\x1b[31mred\x1b]0;title\x07\u202eevil\nnew"


def results(path, name=EVIL):
    rows = [{"operation": "all_reduce", "collective": name, "size_B": size, "time_s": 1e-6 + size * 1e-9, "n_ranks": 8,
             "busbw_Bps": 1.0} for size in (1024, 2048, 4096)]  # fmt: skip
    path.write_text(json.dumps({"schema": 1, "config": {"topology": "star:n_hosts=2", "collective": [name]},
                                "results": rows}))  # fmt: skip
    return path


def kineto(path):
    event = {"ph": "X", "cat": "kernel", "name": "k", "dur": 5.0, "args": {
        "Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10, "dtype": "Float", "Group size": 8,
        "Process Group Name": EVIL}}  # fmt: skip
    path.write_text(json.dumps({"traceEvents": [{**event, "ts": 10.0 * i} for i in range(4)]}))
    return path


@pytest.mark.parametrize("argv", [("fit",), ("report", "-o", "PAGE"), ("nccl", "--tuner-csv", "CSV", "--from")])
def test_names_in_results_do_not_steer_the_terminal(commsim, tmp_path, argv):
    argv = [{"PAGE": tmp_path / "p.html", "CSV": tmp_path / "t.csv"}.get(word, word) for word in argv]
    commsim(*argv, results(tmp_path / "r.json"))
    assert (commsim.out + commsim.err).replace("\n", "").isprintable()
    assert SHOWN in commsim.out + commsim.err or SHOWN.replace("\\", "\\\\") in commsim.out + commsim.err


def test_names_of_process_groups_and_collectives_are_shown_as_text(commsim, tmp_path):
    assert commsim("workload", "calls", kineto(tmp_path / "k.json")).code == 0
    assert SHOWN in commsim.out
    assert commsim.out.replace("\n", "").isprintable()


@pytest.mark.parametrize("verb", [("fit",), ("workload", "calls"), ("report",), ("compare", "x"), ("nccl", "--graph")])
def test_an_error_is_one_line_whatever_the_file_is_called(commsim, tmp_path, verb):
    path = tmp_path / "new\nline \x1b[31m.txt"
    path.write_text("junk")
    argv = [*verb[:1], path, path] if verb[0] == "compare" else [*verb, path]
    if verb[0] == "nccl":
        argv += ["--topology", "dgx-h100"]
    error = commsim.refuses(*argv)
    assert error.rstrip("\n").isprintable()
    assert r"new\nline \x1b[31m.txt" in error


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--period", "0ms"), "--period must be more than 0, got '0ms'"),
        (("--graph", "x.npz"), "x.npz: a graph of tasks is a file that ends with .toml or .json"),
        (("--job", "job.json", "--name", "\x1b[31m"), "a job's name is printable text"),
    ],
)
def test_wrong_flags_of_calls_are_refused(commsim, tmp_path, argv, why):
    assert why in commsim.refuses("workload", "calls", kineto(tmp_path / "k.json"), *argv)


def test_a_graph_that_would_name_millions_of_ranks_is_refused(commsim, tmp_path):
    text = kineto(tmp_path / "k.json").read_text().replace('"Group size": 8', '"Group size": 1048576')
    one = json.loads(text)["traceEvents"][0]
    sizes = range(10, 19)  # all different, so that the period of 1 s is the iteration
    events = [{**one, "ts": 10.0 * n, "args": one["args"] | {"In msg nelems": n}} for n in sizes]
    (tmp_path / "k.json").write_text(json.dumps(events))
    for flag, name in (("--job", "j.json"), ("--graph", "g.toml")):
        error = commsim.refuses("workload", "calls", tmp_path / "k.json", flag, tmp_path / name, "--period", "1s")
        assert "ranks in all; at most 8388608 are written down" in error
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [("-5", "-5"), ("1e999", "inf"), ("1" + "0" * 400, "1000000"), ('"1K"', "'1K'"), ("true", "True"), ("[1]", "[1]")],
)
def test_a_size_that_is_none_makes_no_report(commsim, tmp_path, value, shown):
    path = results(tmp_path / "r.json", "ring_all_reduce")
    path.write_text(path.read_text().replace('"size_B": 1024', f'"size_B": {value}'))
    error = commsim.refuses("report", path, "-o", tmp_path / "p.html")
    assert f"results[0].size_B must be a finite number of at least 0, got {shown}" in error
    assert not (tmp_path / "p.html").exists()
    assert "results[0].size_B must be a finite number" in commsim.refuses("diff", path, path)


@pytest.mark.parametrize(
    "argv",
    [
        ("fit", "r.json", "--json", "r.json"), ("compare", "r.json", "r.json", "--json", "./r.json"),
        ("compare", "r.json", "r.json", "--plot", "link.svg"), ("workload", "calls", "r.json", "--job", "r.json"),
        ("nccl", "--from", "r.json", "--tuner-csv", "r.json"),
        ("nccl", "--topology", "dgx-h100", "--graph", "r.json", "--tuner-csv", "r.json"),
        ("report", "r.json", "-o", "r.json"), ("plot", "busbw", "r.json", "-o", "link.svg"),
        ("topo", "save", "r.json", "-o", "r.json"), ("place", "r.json", "r.json", "--json", "./r.json"),
        ("run", "--topology", "r.json", "ring_all_reduce", "--csv", "r.json"),
    ],
)  # fmt: skip
def test_what_is_read_is_not_written_over_by_any_verb(commsim, tmp_path, monkeypatch, argv):
    monkeypatch.chdir(tmp_path)
    before = results(tmp_path / "r.json", "ring_all_reduce").read_bytes()
    (tmp_path / "link.svg").symlink_to("r.json")
    assert f"{argv[-1]}: is read, and would be written over" in commsim.refuses(*argv)
    assert (tmp_path / "r.json").read_bytes() == before


@pytest.mark.parametrize("path", ["x.csv", "x.json", "x.parquet"])
def test_a_file_that_is_named_for_an_answer_is_replaced_whatever_verb_writes_it(commsim, tmp_path, path):
    """One rule for all verbs; `sweep export` was said to be the only one."""
    sweep = tmp_path / "s.json"
    sweep.write_text(json.dumps({"topology": {"name": "star", "n_hosts": 4},
                                 "collective": {"name": "ring_all_reduce", "size": "1KiB"}}))  # fmt: skip
    assert commsim("sweep", sweep, "-o", tmp_path / "out", "--executor", "serial").code == 0
    old = b"of somebody else"
    commands = [("sweep", "export", tmp_path / "out", "-o"), ("sweep", "sql", tmp_path / "out", "select 1", "-o")]
    if path != "x.parquet":
        flag = "--csv" if path == "x.csv" else "--json"
        commands.append(("run", "--topology", "star:n_hosts=4", "-b", "1K", "-e", "1K", flag))
    for words in commands:
        (tmp_path / path).write_bytes(old)
        assert commsim(*words, tmp_path / path).code == 0
        assert (tmp_path / path).read_bytes() != old


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("fit", "r.json", "--seed", "-1"), "--seed must be 0 or more, got -1"),
        (("nccl", "--from", "r.json", "--tuner-csv", "t.csv", "--nodes", "-7"), "--nodes must be a number of nodes"),
        (("nccl", "--topology", "dgx-h100", "--size", "9" * 400 + "G"), "which is too large"),
        (("nccl", "--topology", "dgx-h100", "-e", "99999999999G"), "-e must be below 8 EiB, got '99999999999G'"),
        (("nccl", "--topology", "dgx-h100", "--ranks", "4", "--placement", "random", "--seed", "-1"),
         "--seed must be 0 or more, got -1"),
    ],
)  # fmt: skip
def test_absurd_numbers_are_refused(commsim, tmp_path, argv, why):
    path = results(tmp_path / "r.json", "ring_all_reduce")
    assert why in commsim.refuses(*(path if word == "r.json" else word for word in argv))


def test_names_that_are_no_utf_8_are_names_of_files(commsim, tmp_path):
    """Linux knows such files, and Python writes the bytes as halves of surrogate pairs, which no page or plot takes."""
    first, second = (results(tmp_path / f"{name}\udcff.json", name="ring") for name in "ab")
    page, plot = tmp_path / "page\udcff.html", tmp_path / "plot\udcff.svg"
    assert commsim("report", first, "-o", page).code == 0
    assert r"a\udcff.json" in page.read_text(encoding="utf-8")
    assert commsim("plot", "busbw", first, second, "-o", plot).code == 0
    assert "svg" in plot.read_text(encoding="utf-8")


def test_names_that_are_no_utf_8_are_unknown_names(commsim):
    assert r"unknown switch hardware 'tofino_\udcff'" in commsim.refuses(
        "switch", "budget", "--system", "switchml_udp", "--hardware", "tofino_\udcff"
    )
