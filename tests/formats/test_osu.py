"""The samples are made up for the tests, in the forms that OSU's programs print."""

import pytest

from commsim.core.errors import InputError
from commsim.formats.log_health import LogHealth
from commsim.formats.measured import read_measured


def read(tmp_path, text, **options):
    path = tmp_path / "osu.txt"
    path.write_text(text)
    return read_measured(path, **options)


FULL = """
# OSU MPI-CUDA Allreduce Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.15              1.90              2.60        1000
1048576               512.25            500.00            530.50         100
"""


def test_a_full_table_has_the_spread(tmp_path):
    small, large = read(tmp_path, FULL)
    assert (small.operation, small.size, small.n_ranks) == ("all_reduce", 4, None)
    assert (large.time, large.low, large.high) == pytest.approx((512.25e-6, 500e-6, 530.5e-6))
    assert large.line == 6


def test_a_header_without_the_number_sign_and_a_launcher_prefix_are_read(tmp_path):
    text = "[1,0]<stdout>:# OSU MPI Broadcast Latency Test v5.9\n[1,0]<stdout>:Size       Avg Latency(us)\n"
    rows = read(tmp_path, text + "[1,0]<stdout>:8                      10.00\n", n_ranks=4)
    assert [(row.operation, row.size, row.time, row.n_ranks) for row in rows] == [("broadcast", 8, 10e-6, 4)]


@pytest.mark.parametrize(
    ("title", "operation", "times"),
    [
        ("Allgather", "all_gather", 8), ("All-to-All Personalized Exchange", "all_to_all", 8), ("Gather", "gather", 8),
        ("Scatter", "scatter", 8), ("Reduce_scatter", "reduce_scatter", 1), ("Reduce", "reduce", 1),
        ("Bcast", "broadcast", 1),
    ],
)  # fmt: skip
def test_the_size_of_one_block_becomes_that_of_the_whole_array(tmp_path, title, operation, times):
    text = f"# OSU MPI {title} Latency Test v7.4\n# Size          Avg Latency(us)\n1024     20.0\n"
    row = read(tmp_path, text, n_ranks=8)[0]
    assert (row.operation, row.size) == (operation, 1024 * times)
    if times > 1:
        with pytest.raises(InputError, match=r"sizes of \w+ are those of one block, .*; give it, as in --ranks 8"):
            read(tmp_path, text)


def test_a_barrier_has_no_size(tmp_path):
    row = read(tmp_path, "# OSU MPI Barrier Latency Test v7.4\n# Avg Latency(us)\n             3.50\n", n_ranks=4)[0]
    assert (row.operation, row.size, row.time) == ("barrier", 0, 3.5e-6)


def test_of_a_call_that_does_not_block_the_communication_alone_counts(tmp_path):
    names = (
        "Overall(us)",
        "Compute(us)",
        "Coll. Init(us)",
        "MPI_Test(us)",
        "MPI_Wait(us)",
        "Pure Comm.(us)",
        "Overlap(%)",
    )
    header = f"# Size      {'      '.join(names)}"
    text = f"# OSU MPI Non-blocking Allreduce Latency Test v7.4\n{header}\n1024  12.0 6.0 1.0 0.0 5.0 7.5 50.0\n"
    assert read(tmp_path, text, n_ranks=2)[0].time == pytest.approx(7.5e-6)


@pytest.mark.parametrize(
    ("head", "rate"),
    [
        ("# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n", 12000.0),
        ("# OSU MPI Bi-Directional Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n", 24000.0),
        ("# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 4 ] [ window size: 64 ]\n"
         "# Size                  MB/s        Messages/s\n", 48000.0),
    ],
)  # fmt: skip
def test_rates_become_the_time_between_messages_of_one_way_of_one_pair(tmp_path, head, rate):
    more = " 11444.09" if "pairs" in head else ""
    row = read(tmp_path, f"{head}1048576   {rate}{more}\n")[0]
    assert (row.operation, row.algorithm, row.n_ranks) == ("send_recv", "stream", 2)
    assert row.time == pytest.approx(1048576 / 12e9)  # MB are 1e6 bytes


def test_latency_between_two_is_a_message(tmp_path):
    row = read(tmp_path, "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n8      1.25\n")[0]
    assert (row.operation, row.algorithm, row.n_ranks, row.time) == ("send_recv", "", 2, 1.25e-6)


def test_rates_of_many_messages_do_not_mix_with_latencies_of_one(tmp_path):
    """Of osu_bw 64 messages are under way at once: 1 byte takes 0.4 us of it, and 2.5 us alone."""
    bandwidth = (
        "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1  2.50\n1024  2000.00\n4194304  12000.00\n"
    )
    latency = "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1  2.54\n1024  3.10\n"
    notes = []
    rows = {row.size: row.time for row in read(tmp_path, bandwidth + latency, notes=notes)}
    assert rows == pytest.approx({1: 2.54e-6, 1024: 3.10e-6, 4194304: 4194304 / 12e9})
    assert any("left out: 2 rows of bandwidth" in note for note in notes)
    assert len(read(tmp_path, bandwidth)) == 3
    assert len(read(tmp_path, bandwidth + latency, streams=True)) == 5  # `fit` takes the gap from them


def test_with_c_a_row_that_is_wrong_is_left_out_and_said(tmp_path):
    head = (
        "# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_INT.\n# Size       Avg Latency(us)        Validation\n"
    )
    notes, health = [], LogHealth()
    text = head + "4    1.90    Pass\n8    2.00    Fail\n16    nan    Pass\n32    2.20\n"
    rows = read(tmp_path, text, notes=notes, health=health)
    assert (health.wrong, health.dropped) == ([5], [5, 6, 7])
    assert [(row.size, row.time) for row in rows] == [(4, 1.9e-6)]
    assert notes == [f"{tmp_path / 'osu.txt'}: left out: 3 rows, failed or broken, the first in line 5"]


def test_percentiles_after_the_times_are_not_taken_for_them(tmp_path):
    head = "# OSU MPI Allreduce Latency Test v7.4\n# Size   Avg Latency(us)   Min Latency(us)   Max Latency(us)"
    row = read(tmp_path, f"{head}  Iterations   P50 Tail Lat(us)\n4   1.90   1.80   2.10   1000   1.88\n")[0]
    assert (row.time, row.low, row.high) == (1.9e-6, 1.8e-6, 2.1e-6)


@pytest.mark.parametrize("accelerator", ["", "-CUDA", "-CUDA MANAGED", "-ROCM"])
def test_the_memory_in_the_title_changes_nothing(tmp_path, accelerator):
    text = f"# OSU MPI{accelerator} Reduce Latency Test v7.4\n# Size          Avg Latency(us)\n8      1.25\n"
    assert read(tmp_path, text)[0].operation == "reduce"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# OSU MPI_Put Latency Test v5.9\n# Size   Latency (us)\n8   1.25\n", "the benchmark 'mpi_put' is not known"),
        ("# OSU MPI\n# Size   Latency (us)\n8   1.25\n", "the benchmark 'without a title' is not known"),
        ("# OSU MPI Allreduce Latency Test v5.9\n# Size   Cost\n8   1.25\n", "line 3: none of its columns is a time"),
        ("# OSU MPI Bandwidth Test v5.9\n# Size\n8   1.25\n", "a rate must be more than 0"),
    ],
)
def test_what_is_no_such_table_is_not_taken_for_one(tmp_path, text, why):
    with pytest.raises(InputError, match=why):
        read(tmp_path, text)


def test_an_unknown_benchmark_is_refused_by_line(tmp_path):
    with pytest.raises(InputError, match=r"osu.txt, line 3: the benchmark 'exscan' is not known; known: all-to-all"):
        read(tmp_path, "# OSU MPI Exscan Latency Test v7.4\n# Size          Avg Latency(us)\n8      1.25\n")


def test_units_that_osu_does_not_print_and_averages_outside_of_their_spread_are_refused(tmp_path):
    path = tmp_path / "osu.txt"
    head = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
    path.write_text(head.replace("(us)", "(ms)") + "4  5.0  4.0  6.0\n")
    with pytest.raises(InputError, match=r"line 2: the column 'Avg Latency\(ms\)' must be in us"):
        read_measured(path)
    path.write_text(head + "4  5.0  9.0  2.0\n8  5.0  4.0  6.0\n")
    notes: list[str] = []
    assert [row.size for row in read_measured(path, notes=notes)] == [8]
    assert "left out: 1 row, failed or broken" in notes[0]


def test_a_table_that_is_cut_inside_its_last_number_is_read_without_that_row(tmp_path):
    text = "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)\n4   2.15\n8   8.16"
    assert [row.size for row in read(tmp_path, text)] == [4, 8]
    for cut in (1, 2, 3):
        assert [row.size for row in read(tmp_path, text[:-cut])] == [4]
