import csv
import json

import pytest

NETWORK = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
RUN = ("run", "--topology", NETWORK, "-b", "64K", "-e", "1M", "-f", "4")
TABLE = """# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)
       65536         16384     float     sum      -1    30.30    2.16    3.24      0    30.10    2.17    3.26      0
     1048576        262144     float     sum      -1   150.30    6.97   10.46      0   150.10    6.98   10.47      0
"""


def data_of(path):
    text = path.read_text()
    return json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def names(path):
    return [figure["name"] for figure in data_of(path)["figures"]]


def test_a_result_is_played_again_for_its_loads_and_timelines(commsim, tmp_path):
    result, page = tmp_path / "r.json", tmp_path / "page.html"
    both = ("--collective", "ring_all_reduce", "--collective", "double_tree_all_reduce:n_chunks=2")
    assert commsim(*RUN, *both, "--json", result).code == 0
    assert commsim("report", result, "-o", page).code == 0, commsim.err
    assert names(page)[:4] == ["busbw", "time", "speedup", "choice"]
    assert names(page).count("timeline") == names(page).count("links") == names(page).count("network") == 2
    assert "# figure left out: accuracy: nothing measured was given (--measured FILE)" in commsim.out
    assert commsim("report", result, "-o", page, "--no-detail").code == 0, commsim.err
    assert "timeline" not in names(page)


def test_a_page_lists_the_links_that_failed(commsim, tmp_path):
    """The line of a dead cable was just not there."""
    result, a, b, c = (tmp_path / name for name in ("r.json", "a.html", "b.html", "c.html"))
    fault = ("--fail", "link:leaf0:spine1")
    assert commsim(*RUN, *fault, "--json", result, "--report", a).code == 0
    assert commsim("report", result, "-o", b).code == 0
    assert (
        commsim("traffic", "--overhead", "0us", "--topology", NETWORK, *fault, "--size", "64KiB", "--report", c).code
        == 0
    )
    for page in (a, b, c):
        assert "failed links: leaf0:spine1" in page.read_text()


def test_a_run_writes_the_same_page_itself(commsim, tmp_path):
    result, a, b = tmp_path / "r.json", tmp_path / "a.html", tmp_path / "b.html"
    assert commsim(*RUN, "--json", result, "--report", a).code == 0
    assert commsim("report", result, "-o", b).code == 0
    mine, theirs = data_of(a), data_of(b)
    assert mine["figures"] == theirs["figures"]
    assert mine["tables"] == theirs["tables"]


def test_measurements_are_drawn_over_predictions(commsim, tmp_path):
    result, page = tmp_path / "r.json", tmp_path / "page.html"
    (tmp_path / "all_reduce.txt").write_text("# Collective test starting: all_reduce_perf\n" + TABLE)
    assert commsim(*RUN, "--json", result).code == 0
    assert commsim("report", result, "--measured", tmp_path / "all_reduce.txt", "-o", page).code == 0, commsim.err
    assert "accuracy" in names(page)


def test_what_measurements_do_not_say_is_said_by_flags(commsim, tmp_path):
    result, osu = tmp_path / "r.json", tmp_path / "osu.txt"
    osu.write_text("# OSU MPI Allgather Latency Test v7.4\n# Size   Avg Latency(us)\n16384   30.0\n1   nan\n")
    assert commsim(*RUN, "--collective", "ring_all_gather", "--json", result).code == 0
    show = ("report", result, "-o", tmp_path / "p.html")
    assert "as in --ranks 8" in commsim.refuses(*show, "--measured", osu)
    assert "it goes with --measured" in commsim.refuses(*show, "--ranks", "4")
    assert commsim(*show, "--measured", osu, "--ranks", "4").code == 0, commsim.err
    assert "accuracy" in names(tmp_path / "p.html")
    assert "left out: 1 row, failed or broken, the first in line 4" in commsim.out


def test_an_operation_is_shown_in_detail_as_its_fastest_algorithm(commsim, tmp_path):
    page = tmp_path / "page.html"
    assert commsim(*RUN, "--operation", "all_reduce", "--algorithm", "best", "--report", page).code == 0, commsim.err
    assert names(page).count("timeline") == 1
    assert "choice" in names(page)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--engine", "closed-form", "--ranks", "2"), "a closed form has no single transfers"),
        (("--group", "0,1", "--group", "2,3"), "groups and jobs that share a network have no timeline"),
    ],
)
def test_a_run_without_a_timeline_says_why(commsim, tmp_path, flags, why):
    page = tmp_path / "page.html"
    assert commsim(*RUN, *flags, "--report", page).code == 0, commsim.err
    assert why in commsim.out
    assert "timeline" not in names(page)


def test_a_file_that_another_version_made_is_told_from_ours(commsim, tmp_path):
    result, page = tmp_path / "r.json", tmp_path / "page.html"
    assert commsim(*RUN, "--json", result).code == 0
    tree = json.loads(result.read_text())
    tree["results"][-1]["time_s"] *= 1.01
    result.write_text(json.dumps(tree))
    assert commsim("report", result, "-o", page).code == 0
    assert "repeated, it takes" in commsim.out
    assert "timeline" not in names(page)


def test_code_that_a_file_names_is_not_executed(commsim, tmp_path):
    own, result = tmp_path / "own.py", tmp_path / "r.json"
    own.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "own@2.py").write_text(own.read_text())
    for key, value in (
        ("topology", str(own)), ("topology", f"{own}:f:n=2"), ("topology", f"dgx-h100@{own}"),
        ("topology", f"dgx-h100@{tmp_path / 'own@2.py'}"), ("topology", f"dgx-h100@dgx-a100@{own}"),
        ("collective", [f"{own}:f"]),
    ):  # fmt: skip
        config = {"version": "1", "topology": "star:n_hosts=2", "collective": ["ring_all_reduce"], key: value}
        row = {"collective": "f", "operation": "all_reduce", "size_B": 1, "time_s": 1, "busbw_Bps": 1}
        result.write_text(json.dumps({"schema": 1, "config": config, "results": [row]}))
        assert commsim("report", result, "-o", tmp_path / "p.html").code == 0
        assert "a data file cannot execute code" in commsim.out
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "expected a table"),
        ('{"schema": 2, "config": {}, "results": [{}]}', "expected schema 1"),
        ('{"schema": 1, "config": {}, "results": []}', "at least one table"),
        ('{"schema": 1, "config": {"ranks": "x"}, "results": [{"a": 1}]}', "config.ranks is no value"),
        ('{"schema": 1, "config": {"collective": [1]}, "results": [{"a": 1}]}', "config.collective is no value"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(commsim, tmp_path, text, why):
    (tmp_path / "r.json").write_text(text)
    assert why in commsim.refuses("report", tmp_path / "r.json", "-o", tmp_path / "p.html")
    assert not (tmp_path / "p.html").exists()


def test_odd_rows_make_an_odd_page_but_no_traceback(commsim, tmp_path):
    rows = [{"a": 1}, {"time_s": None}, {"collective": 3}]
    tree = {"schema": 1, "config": {"topology": "star:n_hosts=2"}, "results": rows}
    words = ("report", tmp_path / "r.json", "-o", tmp_path / "p.html")
    (tmp_path / "r.json").write_text(json.dumps(tree))
    assert commsim(*words).code == 0, commsim.err
    (tmp_path / "r.json").write_text(json.dumps(tree | {"results": [*rows, {"size_B": "x"}]}))
    assert "results[3].size_B must be a finite" in commsim.refuses(*words)


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("report", "r.txt"), "a report is made of"),
        (("report", "nothing.json"), "No such file"),
        (("report", "r.json", "-o", "p.txt"), "ends with .html"),
        (("report", "r.json", "-o", "not/there.html"), "no such folder"),
        (("plot", "busbw", "r.json", "-o", "p.gif"), "ends with .pdf"),
        (("plot", "busbw", "r.json", "-o", "FOLDER.svg"), "FOLDER.svg: cannot write: Is a directory"),
        (("plot", "busbw", "r.json", "-o", "numbers.svg"), "numbers.csv: cannot write: Is a directory"),
        (("report", "r.json", "-o", "FOLDER.html"), "FOLDER.html: cannot write: Is a directory"),
        (("trace", "--topology", NETWORK, "-o", "FOLDER.json"), "FOLDER.json: cannot write: Is a directory"),
        (("plot", "busbw", "nothing.json", "-o", "p.svg", "--width", "0"), "--width must be"),
    ],
)
def test_wrong_flags_are_refused(commsim, tmp_path, monkeypatch, argv, why):
    monkeypatch.chdir(tmp_path)
    for name in ("FOLDER.svg", "FOLDER.html", "FOLDER.json", "numbers.csv"):
        (tmp_path / name).mkdir()
    assert why in commsim.refuses(*argv)


def test_a_baseline_and_a_column_must_be_there(commsim, tmp_path):
    assert commsim(*RUN, "--json", tmp_path / "r.json").code == 0
    assert "--baseline must be one of ring_all_reduce" in commsim.refuses(
        "report", tmp_path / "r.json", "--baseline", "x"
    )
    assert "--by must be a column that varies (size_B)" in commsim.refuses("report", tmp_path / "r.json", "--by", "x")


def test_a_sweep_is_reported_and_plotted(commsim, tmp_path):
    pytest.importorskip("pyarrow")
    sweep = tmp_path / "s.toml"
    sweep.write_text(
        '[topology]\nname = "star"\nn_hosts = 8\n'
        '[collective]\nname = ["ring_all_reduce", "double_tree_all_reduce"]\nranks = [2, 4]\nsize = ["1MiB", "2MiB"]\n'
    )
    if commsim("sweep", sweep, "-o", tmp_path / "out", "--executor", "serial").code != 0:
        pytest.fail(commsim.err)
    assert commsim("report", tmp_path / "out", "-o", tmp_path / "p.html").code == 0, commsim.err
    assert names(tmp_path / "p.html") == ["busbw", "time", "speedup", "choice", "cdf", "strong", "weak"]
    assert data_of(tmp_path / "p.html")["filters"] == ["collective", "n_ranks", "size_B"]


def test_a_page_says_what_was_broken_and_how_it_was_made(commsim, tmp_path):
    result, page = tmp_path / "r.json", tmp_path / "page.html"
    broken = ("--fail", "link:leaf0:spine0", "--scale", "link:h0:leaf0=0.5")
    assert commsim(*RUN, *broken, "--json", result).code == 0, commsim.err
    assert commsim("report", result, "-o", page, "--no-detail").code == 0, commsim.err
    title = page.read_text().partition("<title>")[2].partition("</title>")[0]
    assert "--fail link:leaf0:spine0 --scale link:h0:leaf0=0.5" in title
    command = data_of(page)["provenance"]["command"]
    assert command.startswith("commsim run ")
    assert f"{broken[0]} {broken[1]} {broken[2]} {broken[3]}" in command
    assert "--json" not in command
    assert "--bound" not in command


def test_a_run_with_losses_is_played_again(commsim, tmp_path):
    lossy = ("--engine", "packet", "--transport", "dctcp", "--loss", "1%", "--json", tmp_path / "r.json")
    assert commsim(*RUN, *lossy).code == 0, commsim.err
    assert commsim("report", tmp_path / "r.json", "-o", tmp_path / "p.html").code == 0, commsim.err
    assert "timeline" in names(tmp_path / "p.html")


@pytest.mark.slow
def test_plot_writes_the_figure_and_its_numbers(commsim, tmp_path):
    pytest.importorskip("matplotlib")
    assert commsim(*RUN, "--json", tmp_path / "r.json").code == 0
    for kind in ("busbw", "timeline"):
        assert commsim("plot", kind, tmp_path / "r.json", "-o", tmp_path / f"{kind}.svg").code == 0, commsim.err
        assert (tmp_path / f"{kind}.csv").read_text().count("\n") > 3
    assert "nothing to draw as choice: there is only one algorithm" in commsim.refuses(
        "plot", "choice", tmp_path / "r.json", "-o", tmp_path / "c.svg"
    )
    assert "--run must be one of ring_all_reduce" in commsim.refuses(
        "plot", "timeline", tmp_path / "r.json", "-o", tmp_path / "c.svg", "--run", "x"
    )
    assert not (tmp_path / "c.svg").exists()


def test_several_results_are_one_figure(commsim, tmp_path):
    pytest.importorskip("matplotlib")
    names = [tmp_path / f"{name}.json" for name in "ab"]
    assert commsim(*RUN, "--json", names[0]).code == commsim(*RUN, "--overhead", "5us", "--json", names[1]).code == 0
    assert commsim("plot", "busbw", *names, "-o", tmp_path / "ab.svg").code == 0, commsim.err
    rows = (tmp_path / "ab.csv").read_text()
    assert {line.split(",")[0] for line in rows.splitlines() if not line.startswith("#")} >= {"a", "b"}
    assert commsim("diff", *names, "-o", tmp_path / "ab.html").code == 0, commsim.err
    assert "busbw" in (tmp_path / "ab.html").read_text()
    assert "timeline shows one run: give one result, got 2" in commsim.refuses(
        "plot", "timeline", *names, "-o", tmp_path / "t.svg"
    )


def test_several_results_of_several_algorithms_have_a_curve_each(commsim, tmp_path):
    pytest.importorskip("matplotlib")
    run = ("run", "ring_all_reduce", "double_tree_all_reduce", "-b", "1M", "-e", "2M", "--topology")
    names = [tmp_path / f"{name}.json" for name in "ab"]
    for n_hosts, name in zip((4, 8), names, strict=True):
        assert commsim(*run, f"star:n_hosts={n_hosts}", "--json", name).code == 0
    assert commsim("plot", "busbw", *names, "-o", tmp_path / "ab.svg").code == 0, commsim.err
    assert "median" not in commsim.out
    lines = [line.split(",") for line in (tmp_path / "ab.csv").read_text().splitlines() if line[:2] in ("a ", "b ")]
    assert len({line[0] for line in lines}) == 4
    assert [line[-1] for line in lines] == ["1"] * 8  # rows of each point
    assert commsim("plot", "busbw", *names, "--by", "n_ranks", "-o", tmp_path / "c.svg").code == 0
    assert "--by n_ranks: a curve for each algorithm too" in commsim.out
    assert "median over" not in commsim.out.replace("no median", "")
    assert [line.split(",")[-1] for line in (tmp_path / "c.csv").read_text().splitlines()[1:]] == ["1"] * 8
    four = ("--by", "size_B", "--where", "n_ranks<100", "-o", tmp_path / "d.svg")
    assert commsim("plot", "cdf", *names, *four).code == 0, commsim.err
    assert "each curve has all values of n_ranks, result; --by or --where COLUMN=VALUE tells them apart" in commsim.out


def test_a_plot_without_a_kind_or_a_file_to_write(commsim, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commsim(*RUN, "--json", "a.json").code == 0
    assert "comes first, as in: commsim plot busbw a.json -o busbw.png" in commsim.refuses("plot", "a.json")
    assert "comes first" in commsim.refuses("plot", "a.json", "-o", "x.svg")
    assert "no 'buswb'; did you mean busbw?" in commsim.refuses("plot", "buswb", "a.json")
    pytest.importorskip("matplotlib")
    assert commsim("plot", "time", "a.json").code == 0
    assert (tmp_path / "time.svg").exists()


def test_a_plot_shows_the_rows_names_and_remarks_that_are_asked_for(commsim, tmp_path):
    line = [
        "run",
        "omnireduce:density=0.1",
        "omnireduce:density=0.2",
        "--topology",
        "star:n_hosts=8",
        "-b",
        "1M",
        "-e",
        "2M",
    ]
    saved = tmp_path / "r.json"
    assert commsim(*line, "--json", saved, "-v").code == 0
    said = [one for one in commsim.out.splitlines() if "times denser" in one]
    plot = ("plot", "busbw", saved, "-o", tmp_path / "p.svg")
    printed = commsim(
        *plot, "--rename", "density=0.2=one in five", "--label", "y=rate of the bus", "-v"
    ).out.splitlines()
    assert len(said) == 4
    assert set(said) <= set(printed)  # what `run` said of its results
    assert "one in five" in (tmp_path / "p.csv").read_text()
    assert "rate of the bus" in (tmp_path / "p.svg").read_text()
    assert "size_B has 1 MiB, 2 MiB" in commsim.refuses(*plot, "--where", "size=3MiB")
    assert "AXIS is x or y" in commsim.refuses(*plot, "--label", "z=depth")


def test_a_page_and_a_plot_of_a_sweep_say_what_run_says(commsim, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[topology]\nname = "star"\nn_hosts = 8\n'
        '[collective]\nname = "omnireduce:density=0.1"\nsize = ["1MiB", "2MiB"]\n'
    )
    folder = tmp_path / "out"
    assert commsim("sweep", "run", tmp_path / "s.toml", "-o", folder, "--executor", "serial", "-v").code == 0
    said = [line[2:] for line in commsim.out.splitlines() if "times denser" in line]
    (first,) = said
    assert first.startswith("point 0: ")
    assert first.endswith("; others of the kind at point 1")
    assert commsim("report", folder, "-o", tmp_path / "r.html", "-v").code == 0
    assert said[0] in (tmp_path / "r.html").read_text()
    assert said[0] in commsim("plot", "busbw", folder, "-o", tmp_path / "p.svg", "-v").out
    assert commsim("sweep", "export", folder, "-o", tmp_path / "rows.json", "-v").code == 0
    printed = commsim("report", tmp_path / "rows.json", "-o", tmp_path / "e.html", "-v").out
    assert "timeline, link-timeline, messages: a table of many points does not hold single runs" in printed
    assert first.removeprefix("point 0: ").partition(";")[0] in (tmp_path / "e.html").read_text()


def test_the_page_of_a_packet_run_has_queues_and_its_title_only_what_was_asked(commsim, tmp_path):
    path, saved = tmp_path / "page.html", tmp_path / "r.json"
    star = "star:n_hosts=4,bandwidth=100Gbps,latency=1us"
    asked = ("--collective", "pairwise_all_to_all", "--engine", "packet", "-b", "1M", "-e", "1M")
    commsim("run", "--overhead", "0us", "--topology", star, *asked, "--report", path, "--json", saved)
    text = path.read_text()
    assert f"<title>pairwise_all_to_all on {star}</title>" in text
    for title in ("Slowdown of messages", "Queue depth over time"):
        assert title in text
    commsim("plot", "queues", saved, "-o", tmp_path / "queues.svg")
    assert "queue_B [B]" in (tmp_path / "queues.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ("4", "--show-ranks: ranks are 0 to 3, got 4"),
        ("1,0-9", "--show-ranks: ranks are 0 to 3, got 0-9"),
        ("a", "--show-ranks is a list of ranks such as 0,5,8-11, got 'a'"),
        ("3-1", "a list of ranks such as"),
        ("", "a list of ranks such as"),
    ],
)
def test_ranks_of_timelines_are_those_of_the_run(commsim, tmp_path, ranks, said):
    commsim(*RUN, "--json", tmp_path / "r.json")
    assert said in commsim.refuses("report", tmp_path / "r.json", "--show-ranks", ranks, "-o", tmp_path / "p.html")
    nothing = ("--no-detail", "-o", tmp_path / "p.html")
    assert "needs runs in detail" in commsim.refuses("report", tmp_path / "r.json", "--show-ranks", "1", *nothing)


def test_a_report_of_messages_has_their_times_and_slowdowns(commsim, tmp_path):
    result, page = tmp_path / "t.json", tmp_path / "t.html"
    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=100Gbps"
    assert (
        commsim("traffic", "--overhead", "0us", "--topology", network, "--size", "100kB", "--json", result).code == 0
    ), commsim.err
    assert commsim("report", result, "-o", page).code == 0, commsim.err
    assert names(page) == ["times", "slowdown", "queues", "packets", "fullest", "ways"]
    assert commsim("report", result, "--no-detail", "-o", page).code == 0, commsim.err
    assert names(page) == ["times", "slowdown"]
    assert "use commsim traffic --report" in commsim.out
    assert "commsim traffic --topology" in page.read_text()
    assert "which are all shown" in commsim.refuses("report", result, "-o", page, "--by", "src")
    tree = json.loads(result.read_text())
    tree["results"][3]["slowdown"] = "x"
    result.write_text(json.dumps(tree))
    assert "results[3]" in commsim.refuses("report", result, "-o", page)


def test_a_run_that_is_to_be_plotted_names_the_way(commsim):
    plotted = ("run", "ring_all_reduce", "--topology", "star:n_hosts=4", "--plot", "x.png")
    assert "commsim plot busbw FILE.json -o FILE.png" in commsim.refuses(*plotted)


@pytest.mark.parametrize("engine", [("--engine", "flow"), ("--engine", "packet", "--transport", "dctcp")])
def test_a_run_with_a_flap_is_reported_in_detail(commsim, tmp_path, engine):
    result, page = tmp_path / "r.json", tmp_path / "r.html"
    flap = ("--flap", "link:h0:leaf0@50us+100us", "--collective", "ring_all_reduce", *engine)
    assert (
        commsim(
            "run",
            "--overhead",
            "0us",
            "--topology",
            NETWORK,
            "-b",
            "4M",
            "-e",
            "4M",
            *flap,
            "--json",
            result,
            "--report",
            page,
        ).code
        == 0
    )
    assert "in detail" not in commsim.out
    shown = names(page)
    assert {"network", "links", "timeline"} <= set(shown)
    if "packet" in engine:
        counted = next(figure for figure in data_of(page)["figures"] if figure["name"] == "packets")
        assert "sent again" in counted["caption"]
        assert "lost" in counted["caption"]
    assert commsim("report", result, "-o", page).code == 0, commsim.err
    assert names(page) == shown


JOBS = """
[[job]]
collective = "ring_all_reduce"
ranks = "0-3"
size = "1MiB"

[[job]]
collective = "direct_all_to_all"
ranks = "4-7"
size = "1MiB"
start = "10us"
"""


@pytest.mark.parametrize("asked", ["jobs", "groups"])
def test_queues_of_jobs_that_share_links_are_drawn(commsim, tmp_path, asked):
    """Ranks are spread over the leaves, so that both jobs meet in the cables of the only spine."""
    file, result = tmp_path / "jobs.toml", tmp_path / "r.json"
    file.write_text(JOBS)
    fabric = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=100Gbps,oversubscription=4"
    of = ("--jobs", file) if asked == "jobs" else ("-b", "1M", "-e", "1M", "--group", "0,1,2,3", "--group", "4,5,6,7")
    argv = ("run", "--topology", fabric, *of, "--placement", "spread", "--engine", "packet", "--json", result)
    assert commsim(*argv).code == 0, commsim.err
    last = max(row["time_s"] for row in json.loads(result.read_text())["results"])
    assert commsim("plot", "queues", result, "-o", tmp_path / "q.svg").code == 0, commsim.err
    with (tmp_path / "q.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["queues"] == "between switches, fullest"]
    assert max(float(row["queue_B [B]"]) for row in rows) > 4160  # both jobs' packets wait there
    assert 0.9 * last < max(float(row["time_s [s]"]) for row in rows) <= last
    assert commsim("report", result, "-o", tmp_path / "p.html").code == 0, commsim.err
    assert "queues" in names(tmp_path / "p.html")
    assert "no packet was" in commsim.refuses("plot", "packets", result, "-o", tmp_path / "w.svg")
