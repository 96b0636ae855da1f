import io

import pytest

from commsim.report import terminal

COLUMNS = ["size(B)", "count", "time(us)", "busiest_link"]
ROWS = [["1073741824", "268435456", "123456.78", "leaf0_gpu7:spine3"], ["8", "2", "1.50", "-"]]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Print on a terminal of a width, and return its lines without the bold face of headers."""

    def run(width, *args, **options):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr("sys.stdout", Terminal())
        terminal.print_table(*args, **options)
        return terminal.sys.stdout.getvalue().splitlines()

    return run


@pytest.mark.parametrize("width", [20, 39, 40, 45, 60, 80, 100, 140])
def test_no_cell_is_ever_cut_whatever_the_width(shown, width):
    lines = shown(width, COLUMNS, ROWS, verbose=True)
    words = " ".join(lines).split()
    assert all(cell in words for row in (COLUMNS, *ROWS) for cell in row)
    if width >= 40:
        assert max(map(len, lines)) <= width


def test_the_least_important_columns_go_first_and_are_named(shown):
    lines = shown(44, COLUMNS, ROWS, least=["count", "busiest_link"])
    assert lines[0].split() == ["size(B)", "time(us)", "busiest_link"]
    assert lines[-1] == "# -v also shows count"
    lines = shown(140, COLUMNS, ROWS, least=["count", "busiest_link"])
    assert lines[0].split() == COLUMNS
    assert len(lines) == 3


def test_a_hidden_column_with_one_value_says_it(shown):
    rows = [["1", "m1.pcie0:m1.gpu0", "a", "-"], ["2", "m1.pcie0:m1.gpu0", "b", "-"]]
    columns = ["time(us)", "busiest_link", "type", "#wrong"]
    lines = shown(40, columns, rows, least=["#wrong", "type", "busiest_link"])
    assert "busiest_link=m1.pcie0:m1.gpu0" not in " ".join(lines)  # it fits
    lines = shown(40, [*columns, "a long name, of much room"], [[*row, "x"] for row in rows], least=columns[:0:-1])
    assert "busiest_link=m1.pcie0:m1.gpu0" in " ".join(lines)
    assert not any("type=" in line or "wrong=" in line for line in lines)


def test_words_are_broken_before_numbers_move(shown):
    why = "its latency decides, the second takes twice as long"
    lines = shown(50, ["sizes", "why"], [["1..2128249", why]])
    assert max(map(len, lines)) <= 50
    assert lines[1].startswith("1..2128249")
    assert " ".join(" ".join(lines[1:]).split()) == f"1..2128249 {why}"


def test_what_does_not_fit_is_continued_under_the_first_column(shown):
    lines = shown(40, COLUMNS, ROWS, verbose=True)
    heads = [line.split() for line in lines if "size(B)" in line]
    assert [name for head in heads for name in head if name != "size(B)"] == COLUMNS[1:]


def test_what_is_continued_begins_with_the_columns_that_name_a_row_each_once(shown):
    """A hidden first column was repeated, and rows of one name could not be told apart."""
    columns = ["paper", "figure", "case", "ours", "error", "set-up"]
    rows = [["sapio", "figure3", case, "123456", "+12.3", "assumed"] for case in ("a", "b")]
    lines = shown(40, columns, rows, least=["paper"], verbose=True)
    heads = [line.split() for line in lines if "figure " in line]
    assert [head[:2] for head in heads] == [["figure", "case"]] * 2
    assert sorted(name for head in heads for name in head[2:]) == ["error", "ours", "paper", "set-up"]


def test_without_v_the_last_columns_are_hidden_in_one_line(shown):
    lines = shown(40, COLUMNS, ROWS)
    assert [line.split() for line in lines if "size(B)" in line] == [COLUMNS[:3]]
    assert next(line for line in lines if line.startswith("#")).startswith("# -v also shows ")


def test_a_name_is_broken_at_its_commas(shown):
    name = "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8"
    lines = shown(50, ["topology", "time(us)"], [[name, "1.50"]])
    assert max(map(len, lines)) <= 50
    assert "".join(line.replace("1.50", "").strip() for line in lines[1:]) == name


def test_of_many_remarks_those_with_room_on_three_lines_are_shown_below_the_table_and_all_if_verbose(monkeypatch):
    from commsim.core.remark import Remark
    from commsim.report.answer import Answer, Lines, Table, comments, remarks, show

    said = [Remark("effect", f"{k} per cent", k / 100) for k in range(40)]
    rest = [Table(["a"], [["1"]]), Lines(["done"]), *comments(["written"])]
    monkeypatch.setenv("COLUMNS", "80")
    for verbose, wanted in ((False, ["written", *(f"{k} per cent" for k in (39, 38))]), (True, None)):
        monkeypatch.setattr("sys.stdout", Terminal())
        show(Answer([*remarks(said), *rest]), {}, verbose=verbose)
        lines = [line[2:] for line in terminal.sys.stdout.getvalue().splitlines() if line.startswith("#")]
        assert lines == (wanted or [*(one.text for one in said), "written"])


def test_two_columns_may_have_one_name(shown):
    assert shown(60, ["a", "(95 %)", "b", "(95 %)"], [["1", "2", "3", "4"]], least=["b"])[1].split() == list("1234")


FACTS = {"network": "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=100Gbps", "why": "many words " * 20}


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_facts_go_on_below_themselves_on_a_terminal(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout", Terminal())
    terminal.print_facts(FACTS)
    first, *rest = terminal.sys.stdout.getvalue().splitlines()
    assert first == f"network  {FACTS['network']}"  # one word is never broken
    assert rest[0].startswith("why      many")
    assert all(len(line) <= width for line in rest)
    assert {line[:9] for line in rest[1:]} == {" " * 9}
    assert " ".join(rest).split() == ["why", *FACTS["why"].split()]


def test_facts_are_one_line_each_in_a_pipe(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    terminal.print_facts(FACTS)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_ratios_with_faults_are_one_table_of_80_columns(shown):
    from commsim import over_bound
    from commsim.ranking.tables_of_questions import table_of_ratios

    network = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2,bandwidth=100Gbps,latency=1us"
    table = table_of_ratios(over_bound("all_reduce", network, "32MiB", fail=["links:1"]))
    lines = shown(80, table.columns, table.rows, least=table.least)
    heads = [line.split() for line in lines if "size(B)" in line]
    assert len(heads) == 1
    assert {"algorithm", "time(us)", "times_bound", "faults_cost"} <= set(heads[0])


def test_a_comment_that_is_wrapped_goes_on_as_a_comment(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout", Terminal())
    terminal.print_line("# packets of 4 B : " + "30720 packets, 0 sent again, " * 3)
    lines = terminal.sys.stdout.getvalue().splitlines()
    assert len(lines) > 2
    assert all(line.startswith("#") for line in lines)


def test_a_title_with_a_topology_that_no_line_holds_is_broken_after_commas(shown):
    spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=12500000000.0,latency=1.0000001e-06"
    title = f"ring_all_reduce on {spec}, 8 ranks, engine flow"
    lines = [line for line in shown(80, COLUMNS, ROWS, title=title) if line.startswith("#")]
    assert max(map(len, lines)) <= 80
    assert "".join(line.removeprefix("#").strip() for line in lines).replace(" ", "") == title.replace(" ", "")
    assert all(number in " ".join(lines) for number in ("12500000000.0", "1.0000001e-06"))
    short = "ring_all_reduce on star:n_hosts=4,latency=1us, 8 ranks"
    assert shown(80, COLUMNS, ROWS, title=short)[0] == f"# {short}"


def test_a_sentence_with_a_word_that_no_line_holds_is_broken_after_commas(monkeypatch):
    spec = "leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=4,bandwidth=12500000000.0,latency=1.0000001e-06"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", Terminal())
    terminal.print_line(f"  8 ranks on {spec}")
    lines = terminal.sys.stdout.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert all(number in " ".join(lines) for number in ("12500000000.0", "1.0000001e-06"))


def test_rows_that_the_first_columns_do_not_tell_apart_are_numbered_where_they_are_continued(shown):
    columns = ["hosts", "rate(Gb/s)", "algorithm", "time(us)", "busbw(GB/s)"]
    rows = [["4", rate, name, "123.45", "10.1"] for rate in ("100", "400") for name in ("ring", "tree")]
    lines = shown(40, columns, rows, verbose=True)
    heads = [line.split() for line in lines if "row" in line]
    assert len(heads) == 2
    assert [name for head in heads for name in head if name != "row"] == columns
    assert [line.split()[0] for line in lines if line.strip()] == ["row", "1", "2", "3", "4"] * 2


def test_a_title_that_is_too_long_loses_parameters_and_never_half_a_word(shown):
    """The title of `expect` ended with "limited by leaf-s ...", and kept all parameters, which were asked for."""
    given = ":machines=8,n_leaves=4,n_spines=4,oversubscription=2"
    said = ", 64 ranks, limited by leaf-spine cables; floor: 1% of healthy machines are below it"
    title = f"dgx-h100@leaf_spine{given} without leaf0:spine1{said}"
    assert terminal.shortened(title, []) == title  # elsewhere than on a terminal
    shown(80, COLUMNS, ROWS)
    assert terminal.shortened(title, []) == title.replace(given, "")
    short = "dgx-h100@star:machines=2, 16 ranks"
    assert terminal.shortened(short, []) == short
    (_, cut, *_) = shown(40, COLUMNS, ROWS, title=title)
    assert cut == "#   n_leaves=4 ..."  # half of the next parameter is left out


def test_the_mean_of_one_row_is_shown_with_v_only(monkeypatch):
    from commsim.report.answer import Answer, Lines, show

    def printed(verbose, stream):
        monkeypatch.setattr("sys.stdout", stream)
        show(Answer([Lines(("# mean",), is_repeated=True), Lines(("# other",))]), {}, verbose=verbose)
        return stream.getvalue().splitlines()

    assert printed(False, Terminal()) == ["# other"]
    assert printed(True, Terminal()) == printed(False, io.StringIO()) == ["# mean", "# other"]


@pytest.mark.parametrize(("columns", "widest"), [(None, 80), ("60", 60)])
def test_sentences_for_people_are_broken_into_lines_in_a_pipe_too_without_escapes(monkeypatch, capsys, columns, widest):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    rows = [["mpi4py", "no", "running for real with MPI, " * 5], ["tc", "no: it needs root " * 4, "a switch"]]
    terminal.print_table(["what", "found", "for"], rows, is_read=True)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= widest
    terminal.print_table(["what", "found", "for"], rows)
    assert len(capsys.readouterr().out.splitlines()) == 3  # a row is a line for programs
