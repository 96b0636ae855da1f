"""The samples are made up for the tests, in the form that nccl-tests 2.19 prints and writes."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.core.operations import operation
from commsim.core.result import Result
from commsim.formats import measurement
from commsim.formats.measured import read_measured
from commsim.formats.measurement import ranks_between, require_ranks
from commsim.report.table_of_run import RunRow, table_of

HALF = "     time   algbw   busbw #wrong"
HEADER = f"#       size         count      type   redop    root{HALF}{HALF}"
UNITS = "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
BEFORE = "     1048576        262144     float     sum      -1"
ROW = f"{BEFORE}    44.31   23.66   41.41      0    44.05   23.80   41.66      0"


def log(*rows, program="all_reduce_perf", ranks=8, prefix=""):
    devices = [
        f"#  Rank {r:2} Group  0 Pid {100 + r} on node1 device {r} [0000:1b:00] NVIDIA H100" for r in range(ranks)
    ]
    lines = [f"# Collective test starting: {program}", "# Using devices", *devices, "#", HEADER, UNITS, *rows]
    return "\n".join(f"{prefix}{line}" for line in [*lines, "# Out of bounds values : 0 OK"]) + "\n"


def read(tmp_path, text, name="log.txt", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_measured(path, **options)


@pytest.mark.parametrize(
    "prefix",
    [
        "", "[1,0]<stdout>:", "[1,0]<stdout>: ", "0: ", " 12: ", "[3] ", "[prterun-node1-8812@1,0]<stdout>: ",
        "Thu Mar  7 10:01:02 2024[1,0]<stdout>:", "Thu Mar 17 10:01:02 2024<stdout>:", "[pod/launcher-x7/main] ",
        "2024-03-07T10:01:02.123456789Z ", "[pod/launcher-x7/main] 2024-03-07T10:01:02Z [1,0]<stdout>:",
    ],
)  # fmt: skip
def test_both_halves_of_a_row_are_read_whatever_the_launcher_puts_before_it(tmp_path, prefix):
    out, inside = read(tmp_path, log(ROW, prefix=prefix))
    assert (out.operation, out.size, out.n_ranks, out.in_place) == ("all_reduce", 1048576, 8, False)
    assert (out.time, inside.time, inside.in_place) == (44.31e-6, 44.05e-6, True)
    assert out.line == 14
    # 41.41 is what the table says; the row's own times give it again
    assert out.busbw / 1e9 == pytest.approx(41.41, abs=0.01)


@pytest.mark.parametrize("label", ["[0] ", "[1,0]<stdout>:"])
def test_labels_that_a_launcher_writes_again_within_a_row_are_no_part_of_it(tmp_path, label):
    """nccl-tests prints a row in parts, and mpiexec -prepend-rank labels each of them."""
    parts = (BEFORE, "    44.31   23.66   41.41      0", "    44.05   23.80   41.66      0")
    excerpt = f"{label}{label.strip().join(parts)}\n"
    out, inside = read(tmp_path, excerpt, operation="all_reduce")
    assert (out.time, inside.time, out.n_ranks) == (44.31e-6, 44.05e-6, 8)


def test_rows_without_a_header_are_read_as_an_excerpt_of_a_log(tmp_path):
    cut = "     2097152        524288     float     sum      -1    80"
    notes = []
    out, inside = read(tmp_path, f"Before:\n```\n{ROW}\n{cut}\n", operation="all_reduce", notes=notes)
    assert (out.size, out.time, inside.time, out.n_ranks) == (1048576, 44.31e-6, 44.05e-6, 8)
    unchecked = "     1048576        262144     float     sum    44.31   23.66   41.41    44.05   23.80   41.66"
    assert [row.time for row in read(tmp_path, unchecked, operation="all_reduce")] == [44.31e-6, 44.05e-6]
    with pytest.raises(InputError, match="holds no measurement"):
        read(tmp_path, "1048576 262144 apples sum -1 44.31 23.66 41.41 0 44.05 23.80 41.66 0\n")


def test_runs_of_single_hosts_that_print_side_by_side_are_refused(tmp_path):
    devices = "".join(
        f"#  Rank  {r} Group  0 Pid 7 on {host} device {r} [0x0{r}] A100\n" for host in "ab" for r in (0, 1)
    )
    text = log(ROW, ranks=0).replace("# Using devices\n#\n", f"# Using devices\n# Using devices\n{devices}#\n")
    with pytest.raises(InputError, match=r"rank 0 is on a and on b: their runs print side by side.* without MPI=1"):
        read(tmp_path, text)
    again = text.replace("# Using devices\n# Using devices\n", "# Using devices\n").replace(
        "#  Rank  0 Group  0 Pid 7 on b", "# Using devices\n#  Rank  0 Group  0 Pid 7 on b"
    )
    assert len(read(tmp_path, again)) == 2  # the first run gave up before its table


def test_debug_lines_in_between_are_passed_over_and_a_broken_row_is_said(tmp_path):
    broken = "    16777216       4194304     float     sum      -1   node1:4711 NCCL INFO"
    notes = []
    rows = read(tmp_path, log("node1:4711:4711 [0] NCCL INFO Ring 00 : 0 -> 1", broken, ROW), notes=notes)
    assert [row.size for row in rows] == [1048576, 1048576]
    assert notes == [f"{tmp_path / 'log.txt'}: left out: 1 row, broken, the first in line 15"]


def test_columns_that_are_there_twice_are_no_header(tmp_path):
    text = f"all_reduce_perf\n#  size size time time algbw busbw size\n{ROW}\n"
    with pytest.raises(InputError, match="holds no measurement"):
        read(tmp_path, text)


def test_more_rows_than_are_read_are_refused_and_not_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(measurement, "MAX_ROWS", 4)
    assert len(read(tmp_path, log(ROW, ROW))) == 4
    with pytest.raises(InputError, match=r"log.txt: more than 4 rows"):
        read(tmp_path, log(ROW, ROW, ROW))
    row = tree()["results"][0]
    with pytest.raises(InputError, match=r"out.json: more than 4 rows"):
        read(tmp_path, json.dumps(tree() | {"results": [row] * 5}), "out.json")
    with pytest.raises(InputError, match=r"osu.txt: more than 4 rows"):
        read(tmp_path, "# OSU MPI Latency Test v5.9\n# Size   Latency (us)\n" + "8   1.25\n" * 5, "osu.txt")


def test_timestamps_and_columns_of_single_iterations_do_not_shift_the_times(tmp_path):
    header = HEADER.replace("#wrong     time", "#wrong  i_min  i_max  i_p99  i_cv%     time", 1) + "  timestamp"
    row = ROW.replace("      0    44.05", "      0  43.00  47.00  46.90   1.20    44.05", 1) + "  2026-11-20 12:00:00"
    out, inside = read(tmp_path, log(row).replace(HEADER, header))
    assert (out.time, inside.time) == (44.31e-6, 44.05e-6)


def test_rows_that_were_not_checked_or_have_only_one_half_are_read(tmp_path):
    unchecked = ROW.replace("41.41      0", "41.41    N/A").replace("41.66      0", "41.66    N/A")
    half = BEFORE.replace("1048576", "2097152") + "    50.00   41.94   73.40    N/A      N/A     N/A     N/A    N/A"
    rows = read(tmp_path, log(unchecked, half))
    assert [(row.size, row.in_place) for row in rows] == [(1048576, False), (1048576, True), (2097152, False)]


def test_the_old_table_without_a_root_is_read(tmp_path):
    header = (
        "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error"
    )
    row = "     1048576        262144   float     sum    44.31   23.66   41.41  1e-07    44.05   23.80   41.66  1e-07"
    out, inside = read(tmp_path, f"all_reduce_perf -b 1M\n{header}\n{row}\n", n_ranks=8)
    assert (out.time, inside.time, out.n_ranks) == (44.31e-6, 44.05e-6, 8)


def test_the_operation_is_that_of_the_program_of_the_file_or_of_the_user(tmp_path):
    plain = f"{HEADER}\n{ROW}\n"
    one_way, scattered = (plain.replace("41.41", rate).replace("41.66", rate) for rate in ("23.66", "20.70"))
    assert read(tmp_path, log(ROW, program="alltoall_perf"))[0].operation == "all_to_all"
    for name in ("sendrecv_perf.log", "sendrecv.log", "sendrecv.2.txt"):
        assert read(tmp_path, one_way.replace("23.80", "23.66"), name)[0].operation == "send_recv"
    notes = []
    assert read(tmp_path, scattered, operation="reduce_scatter", notes=notes)[0].operation == "reduce_scatter"
    assert "names no operation: reduce_scatter, as given" in notes[0]
    with pytest.raises(
        InputError, match=r"give it, as in --operation all_reduce, or in the file's name, as in all_red"
    ):
        read(tmp_path, plain.replace("  sum ", " none "))
    with pytest.raises(InputError, match=r"of all_gather or all_to_all or .*give it, as in --operation all_gather, or"):
        read(tmp_path, scattered.replace("  sum ", " none "))


@pytest.mark.parametrize(
    ("redop", "root", "algbw", "busbw", "name"),
    [
        ("sum", "-1", "23.66", "41.41", "all_reduce"),
        ("sum", "-1", "23.66", "20.70", "reduce_scatter"),
        ("max", "3", "23.66", "23.66", "reduce"),
        ("sum", "-1", "23.66", "23.66", ""),  # an all-reduce of 2 ranks, or rates that are rounded
        ("none", "-1", "23.66", "20.70", ""),  # an all-gather or an all-to-all
        ("none", "0", "23.66", "23.66", ""),
    ],
)
def test_columns_and_rates_name_the_operation_where_only_one_has_them(tmp_path, redop, root, algbw, busbw, name):
    row = f"1048576 262144 float {redop} {root} 44.31 {algbw} {busbw} 0 44.31 {algbw} {busbw} 0"
    notes = []
    if name:
        assert {one.operation for one in read(tmp_path, f"{HEADER}\n{row}\n", n_ranks=8, notes=notes)} == {name}
        assert f"names no operation: {name}, by redop {redop}, root {root} and its rates" in notes[0]
        assert {one.operation for one in read(tmp_path, f"{row}\n", n_ranks=8)} == {name}  # an excerpt without header
        with pytest.raises(InputError, match=f"is no table of gather: redop {redop}, root {root} .* are of {name}$"):
            read(tmp_path, f"{HEADER}\n{row}\n", "gather.log", n_ranks=8)
    else:
        with pytest.raises(InputError, match=f"operation is unknown .redop {redop}, root {root} and its rates are of"):
            read(tmp_path, f"{HEADER}\n{row}\n", n_ranks=8)


@pytest.mark.parametrize(
    "prefix",
    [
        "2025-11-03 10:11:{:02},123 ", "[2025-11-03 10:11:{:02}] ", "2025-11-03T10:11:12.12345678{}Z stdout F ",
        "mpi-launcher-abcde: ", "worker-0  | ", "Nov 03 10:11:{:02} node07 nccl[4001]: ", "> ", "[node07:0]: ",
        "Mär 03 10:11:{:02} knoten: ", "三月 {}: ",
        "node07: ", "\x1b[1;34m[node07]\x1b[0m ", "\x1b[32m", "0: [INFO {}] ",
    ],
)  # fmt: skip
def test_what_stands_before_the_header_is_cut_off_every_line(tmp_path, prefix):
    lines = log(ROW, ROW.replace("1048576", "2097152", 1)).splitlines()
    text = "".join(f"{prefix.format(i)}{line}\x1b[0m\r\n" for i, line in enumerate(lines))
    rows = read(tmp_path, text)
    assert [(row.size, row.time, row.n_ranks, row.line) for row in rows[::2]] == [
        (1048576, 44.31e-6, 8, 14), (2097152, 44.31e-6, 8, 15),
    ]  # fmt: skip


def test_lines_that_docker_keeps_as_json_are_those_of_the_program(tmp_path):
    lines = [{"log": f"{line}\n", "stream": "stdout", "time": "2026-01-01T00:00:00Z"} for line in log(ROW).splitlines()]
    rows = read(tmp_path, "\n".join(map(json.dumps, lines)) + "\n")
    assert [(row.operation, row.n_ranks, row.line) for row in rows[:1]] == [("all_reduce", 8, 14)]


def test_a_file_without_a_table_says_what_is_in_it(tmp_path):
    with pytest.raises(InputError, match=r"holds no measurement \(no header of nccl-tests, OSU, .* with 'hello world'"):
        read(tmp_path, "\nhello world\n")
    with pytest.raises(InputError, match=r"holds no measurement \(the header of a table .* without rows\)"):
        read(tmp_path, log())


def test_several_runs_in_one_log_are_told_apart(tmp_path):
    second = log(ROW, program="all_gather_perf", ranks=4)
    rows = read(tmp_path, log(ROW) + second)
    assert [(row.operation, row.n_ranks) for row in rows[::2]] == [("all_reduce", 8), ("all_gather", 4)]
    assert [row.operation for row in read(tmp_path, log(ROW) + second, operation="all_gather")] == ["all_gather"] * 2


def test_of_a_run_in_groups_the_ranks_are_those_of_one_group(tmp_path):
    text = log(ROW)
    for rank in range(4, 8):
        text = text.replace(f"Rank {rank:2} Group  0", f"Rank {rank:2} Group  1")
    assert read(tmp_path, text)[0].n_ranks == 4


def test_the_ranks_follow_from_the_rates_where_the_header_is_lost(tmp_path):
    text = f"all_reduce_perf\n{HEADER}\n{ROW}\n"
    assert read(tmp_path, text)[0].n_ranks == 8
    for one in (log(ROW), text):  # what the digits exclude is refused, too
        with pytest.raises(InputError, match="was measured on 8 ranks, got 16"):
            read(tmp_path, one, n_ranks=16)


@pytest.mark.parametrize("name", ["all_to_all", "all_gather", "reduce_scatter"])
def test_the_ranks_follow_from_the_count_of_one_rank_where_the_rates_allow_several(tmp_path, name):
    redop = "sum" if name == "reduce_scatter" else "none"
    rows = "\n".join(
        f"{size} {size // 2 // 64} half {redop} -1 {size / 500:.0f} 0.50 0.49 0 {size / 500:.0f} 0.50 0.49 0"
        for size in (2**26, 2**27)
    )
    assert {row.n_ranks for row in read(tmp_path, f"{HEADER}\n{rows}\n", f"{name}.log")} == {64}
    whole = rows.replace(str(2**26 // 128), str(2**25))  # rows of another tool, whose count is that of the array
    whole = whole.replace(str(2**27 // 128), str(2**26))
    found = read(tmp_path, f"{HEADER}\n{whole}\n", f"{name}.log")
    assert {(row.n_ranks, row.ranks_between) for row in found} == {(None, (26, 4096))}
    require_ranks(found, 8192)  # digits do not tell so many from 4,096
    with pytest.raises(InputError, match="is that of 26 or more ranks, got 25"):
        require_ranks(found, 25)


@given(st.sampled_from(["all_reduce", "all_gather"]), st.integers(2, 60), st.floats(50, 900))
def test_the_right_number_of_ranks_is_among_those_that_rates_allow(name, n_ranks, algbw):
    busbw = algbw * operation(name).busbw_factor(n_ranks)
    least, most = ranks_between(name, [(f"{algbw:.2f}", f"{busbw:.2f}")])
    assert least <= n_ranks <= most
    if n_ranks <= 8:
        assert least == most


@pytest.mark.parametrize("odd", ["1e308", "1/0", "N/A", "-3", "9" * 40, "1_0", "nan"])
def test_rates_that_are_no_printed_numbers_say_nothing(tmp_path, odd):
    assert ranks_between("all_reduce", [(odd, "41.41"), ("23.66", odd)]) is None
    row = f"{BEFORE}    44.31   {odd}   41.41      0    44.05   23.80   41.66      0"  # the first half is left out
    rows = read(tmp_path, f"all_reduce_perf\n{HEADER}\n{row}\n")
    assert [row.in_place for row in rows] == [True]


class _Network:
    bandwidth = 1.0

    def link_name(self, link):
        return f"h{link}->switch0"


@given(
    st.sampled_from(["ring_all_reduce", "ring_all_gather", "ring_reduce_scatter", "pairwise_all_to_all"]),
    st.integers(2, 4096),
    st.lists(st.tuples(st.integers(1, 2**40), st.floats(1e-7, 100)), min_size=1, max_size=5),
)
def test_what_run_prints_is_read_back(tmp_path_factory, name, n_ranks, runs):
    from collections import namedtuple

    from collectives import COLLECTIVES

    op = COLLECTIVES[name].metadata["operation"]
    results = [Result(name, op, "flow", n_ranks, size, time, time, link_bytes=[0.0]) for size, time in runs]
    schedule = namedtuple("Schedule", "root")(0)
    table = table_of([RunRow(result, _Network(), schedule) for result in results], "")
    cells = table.rows
    engine = "packet, transport nscc, balancing mixed" if n_ranks % 2 else "flow"
    lines = [f"# {name} on star:n_hosts={n_ranks}, {n_ranks} ranks, engine {engine}", "  ".join(table.columns)]
    path = tmp_path_factory.mktemp("printed") / "run.txt"
    path.write_text("\n".join([*lines, *("  ".join(row) for row in cells), "# Avg bus bandwidth    : 1.0"]) + "\n")
    rows = read_measured(path)
    for row, result, printed in zip(rows, results, cells, strict=True):
        assert (row.operation, row.algorithm, row.n_ranks, row.size) == (op, name, n_ranks, result.size)
        assert row.time == float(f"{printed[5]}e-6")  # exactly the digits that were printed
        assert abs(row.time - result.time) <= 0.0051e-6


def tree(**more):
    timing = {"time": 44.31, "alg_bw": 23.66, "bus_bw": 41.41, "nwrong": "0"}
    result = {
        "size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "     -1",
        "out_of_place": timing, "in_place": {**timing, "time": "nan"},
    }  # fmt: skip
    devices = [{"rank": r, "group": 0, "hostname": "node1"} for r in range(8)]
    return {
        "version": 1, "args": ["./build/all_reduce_perf", "-J", "out.json"], "env": ["AWS_SECRET=hunter2"],
        "config": {"ngpus": 1, "parallel_init": "false", "devices": devices},
        "results": [{**result, **more}], "out_of_bounds": {"count": 0, "okay": "true"}, "errors": "false",
    }  # fmt: skip


def test_the_json_of_nccl_tests_is_read_with_its_quirks(tmp_path):
    per_iter = {"min_us": 40.0, "max_us": 60.0, "times_us": [40.0, 44.0, 45.0, 60.0]}
    rows = read(tmp_path, json.dumps(tree(out_of_place_per_iter=per_iter)), "out.json")
    assert len(rows) == 1  # the other half is not a number
    row = rows[0]
    assert (row.operation, row.size, row.n_ranks, row.line) == ("all_reduce", 1048576, 8, 1)
    assert row.time == pytest.approx(44.31e-6)
    # by hand: percentile 5 of four values lies 0.15 of the way from the first to the second, 95 as far from the end
    assert row.low == pytest.approx((40 + 0.15 * 4) * 1e-6)
    assert row.high == pytest.approx((60 - 0.15 * 15) * 1e-6)
    assert "hunter2" not in repr(rows)


def test_least_and_largest_are_the_spread_where_single_times_are_not_kept(tmp_path):
    row = read(tmp_path, json.dumps(tree(out_of_place_per_iter={"min_us": 40.0, "max_us": 60.0})), "out.json")[0]
    assert (row.low, row.high) == (pytest.approx(40e-6), pytest.approx(60e-6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": "big"}, r"results\[0\].size must be a finite number, got 'big'"),
        ({"size": -8}, "size must be 0 or more and finite, got -8"),
        ({"out_of_place": [1]}, r"results\[0\].out_of_place must be a table"),
        ({"out_of_place": {"time": math.pi * -1}}, "time must be 0 or more"),
    ],
)
def test_json_that_is_wrong_is_refused_by_field(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, json.dumps(tree(**change)), "out.json")


@pytest.mark.parametrize(
    "text",
    ["", "nothing here\n", "{", "[" * 100_000, '{"a": ' * 100_000, '{"results": 1, "config": {}}', "[1, 2]", "\x00\x01",
     f"all_reduce_perf\n{HEADER}\n{'9' * 5000} {'9' * 5000} float sum -1 {'9' * 400} 1 1 0\n"],
)  # fmt: skip
def test_what_is_no_measurement_is_refused_in_one_line(tmp_path, text):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


def test_a_half_of_a_row_that_is_broken_wrong_or_in_other_units_is_left_out_and_said(tmp_path):
    """Out of place is spoiled, in place is right; a rate that is not size over time is in another unit."""
    good = ROW.split()
    for i, cell, why in ((5, "-44.31", "broken"), (5, "44310", "broken"), (5, "0.04431", "broken"),
                         (6, "0.02366", "broken"), (8, "17", "with wrong results")):  # fmt: skip
        notes = []
        spoiled = "  ".join(cell if k == i else one for k, one in enumerate(good))
        rows = read(tmp_path, log(spoiled, ROW), notes=notes)
        assert [row.in_place for row in rows] == [True, False, True]
        assert len(notes) == 1
        assert f"1 row, {why}" in notes[0]


def test_windows_line_ends_several_tests_and_averages_are_read(tmp_path):
    more = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 41.535", "#", "nThread 1 nGpus 1"]
    path = tmp_path / "log.txt"
    path.write_text(log(ROW, *more, ROW.replace("1048576", "2097152").replace(" 44.", " 88.")).replace("\n", "\r\n"))
    notes: list[str] = []
    assert [row.size for row in read_measured(path, notes=notes)] == [2**20, 2**20, 2**21, 2**21]
    assert notes == []


def test_a_header_that_names_a_part_of_the_ranks_gives_way_to_the_rates(tmp_path):
    rows = ["1048576 262144 float sum -1 35.00 29.96 52.43 0 35.00 29.96 52.43 0"]
    notes = []
    found = read(tmp_path, log(*rows, ranks=1), notes=notes)
    assert {row.n_ranks for row in found} == {8}
    assert "say 8 ranks" in notes[-1]


@pytest.mark.parametrize(
    ("name", "columns", "busbw", "operation"),
    [
        ("all_reduce_h100.log", "sum -1", "52.43", "all_reduce"),
        ("h100-reduce_scatter.txt", "sum -1", "26.22", "reduce_scatter"),
        ("all_to_all.2.log", "none -1", "26.22", "all_to_all"),
    ],
)
def test_a_file_is_recognised_by_the_operation_in_its_name(tmp_path, name, columns, busbw, operation):
    text = log(f"1048576 262144 float {columns} 35.00 29.96 {busbw} 0 35.00 29.96 {busbw} 0", program="")
    assert {row.operation for row in read(tmp_path, text, name)} == {operation}
