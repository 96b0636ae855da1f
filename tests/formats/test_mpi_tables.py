"""Tables of the Intel MPI Benchmarks, of ucc_perftest and of old nccl-tests are measurements as others are."""

from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.measured import read_measured

IMB = """#----------------------------------------------------------------
# Benchmarking Alltoall
# #processes = 16
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.16         0.20         0.18
          128         1000         7.44         8.32         7.92

# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
         1024         1000         2.50       409.60

# Benchmarking Exchange
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
         1024         1000         2.50         2.60         2.55       409.60
"""
UCC = """Collective:             {name}
Memory type:            cuda
Datatype:               float32
Reduction:              sum
Inplace:                0

       Count        Size                Time, us                           Bandwidth, GB/s
                                 avg         min         max         avg         max         min
        1024        4096       12.50       11.00       14.00        0.33        0.37        0.29
"""
OLD = """#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  0e+00
"""


def test_tables_of_imb_have_blocks_as_osus_do(tmp_path: Path) -> None:
    (tmp_path / "imb.txt").write_text(IMB)
    notes: list[str] = []
    exchange, ping = read_measured(tmp_path / "imb.txt", notes=notes)
    assert (exchange.operation, exchange.size, exchange.n_ranks) == ("all_to_all", 128 * 16, 16)
    assert (exchange.low, exchange.time, exchange.high) == pytest.approx((7.44e-6, 7.92e-6, 8.32e-6))
    assert (ping.operation, ping.size, ping.time) == ("send_recv", 1024, pytest.approx(2.5e-6))
    assert any("Exchange" in note for note in notes)
    assert any("1 row, of 0 bytes" in note for note in notes)


@pytest.mark.parametrize(
    ("name", "operation", "size"), [("Allreduce", "all_reduce", 4096), ("Alltoall", "all_to_all", 32768)]
)
def test_tables_of_ucc_perftest_are_read(name: str, operation: str, size: int, tmp_path: Path) -> None:
    (tmp_path / "ucc.txt").write_text(UCC.format(name=name))
    (row,) = read_measured(tmp_path / "ucc.txt", n_ranks=8)
    assert (row.operation, row.size, row.n_ranks) == (operation, size, 8)
    assert (row.low, row.time, row.high) == pytest.approx((11e-6, 12.5e-6, 14e-6))


def test_a_table_is_found_behind_a_mebibyte_of_other_lines(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("node3: NCCL INFO Channel 00/0\n" * 2**16 + UCC.format(name="Allreduce"))
    (row,) = read_measured(tmp_path / "job.log", n_ranks=8)
    assert (row.operation, row.size) == ("all_reduce", 4096)


def test_the_barrier_of_ucc_perftest_has_no_size(tmp_path: Path) -> None:
    """Count and Size are N/A in its only row, and the bandwidths where they are printed."""
    row = "        1024        4096       12.50       11.00       14.00        0.33        0.37        0.29\n"
    assert UCC.endswith(row)
    own = "         N/A         N/A       12.50       11.00       14.00         N/A         N/A         N/A\n"
    (tmp_path / "ucc.txt").write_text(UCC.removesuffix(row).format(name="Barrier") + own)
    (found,) = read_measured(tmp_path / "ucc.txt", n_ranks=8)
    assert (found.operation, found.size, found.time) == ("barrier", 0, pytest.approx(12.5e-6))


@pytest.mark.parametrize(
    ("name", "columns", "row"),
    [
        ("Iallreduce", "t_ovrl[usec]  t_pure[usec]   t_CPU[usec]   overlap[%]", "30.00  17.50  18.00  35.00"),
        ("Iallreduce_pure", "t_min[usec]  t_max[usec]  t_avg[usec]", "17.00  18.00  17.50"),
    ],
)
def test_non_blocking_calls_of_imb_have_the_time_without_work_beside_them(name, columns, row, tmp_path) -> None:
    head = f"# Benchmarking {name}\n# #processes = 4\n       #bytes #repetitions  {columns}\n"
    (tmp_path / "imb.txt").write_text(f"{head}         4096         1000  {row}\n")
    (found,) = read_measured(tmp_path / "imb.txt")
    assert (found.operation, found.size, found.n_ranks) == ("all_reduce", 4096, 4)
    assert found.time == pytest.approx(17.5e-6)


@pytest.mark.parametrize(
    ("head", "size"),
    [
        ("#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n", 4 * 4096),
        ("#    Intel(R) MPI Benchmarks 2019 Update 6, MPI-1 part\n", 4 * 4096),
        ("", 4 * 4096),
        ("#    Intel (R) MPI Benchmarks 2018, MPI-1 part\n", 4096),
        ("#    Intel (R) MPI Benchmark Suite V3.2, MPI-1 part\n", 4096),
    ],
)
@pytest.mark.parametrize("name", ["Reduce_scatter", "Reduce_scatter_block", "Ireduce_scatter_pure"])
def test_sizes_of_imbs_reduce_scatter_are_blocks_since_2019(head: str, size: int, name: str, tmp_path: Path) -> None:
    table = (
        f"# Benchmarking {name}\n# #processes = 4\n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    )
    (tmp_path / "imb.txt").write_text(f"{head}{table}         4096         1000  17.00  18.00  17.50\n")
    (found,) = read_measured(tmp_path / "imb.txt")
    assert (found.operation, found.size) == ("reduce_scatter", size)


def test_blocks_without_a_number_of_ranks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ucc.txt").write_text(UCC.format(name="Allgather"))
    with pytest.raises(InputError, match="give it, as in --ranks 8"):
        read_measured(tmp_path / "ucc.txt")


def test_old_nccl_tests_leave_the_reduction_blank(tmp_path: Path) -> None:
    (tmp_path / "alltoall.log").write_text(OLD)
    rows = read_measured(tmp_path / "alltoall.log")
    assert [(row.operation, row.size, row.in_place) for row in rows] == [
        ("all_to_all", 268435456, False), ("all_to_all", 268435456, True),
    ]  # fmt: skip
    assert rows[0].time == pytest.approx(0.520935)


def test_a_row_that_is_cut_is_not_taken_for_one_with_blanks(tmp_path: Path) -> None:
    (tmp_path / "alltoall.log").write_text(OLD.replace("520935    0.52", "520935"))
    with pytest.raises(InputError, match="holds no measurement"):
        read_measured(tmp_path / "alltoall.log")


def test_osus_test_of_other_sizes_gives_all_ranks_the_same(tmp_path: Path) -> None:
    title = "# OSU MPI All-to-Allv Personalized Exchange Latency Test v7.5\n# Size  Avg Latency(us)\n"
    (tmp_path / "osu.txt").write_text(f"{title}4096   467.38\n")
    (row,) = read_measured(tmp_path / "osu.txt", n_ranks=16)
    assert (row.operation, row.size) == ("all_to_all", 65536)
