"""Tables of perftest (ib_write_bw, ib_send_lat) are times of messages between two ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.logs.log_formats import log_format_in
from commsim.formats.measured import read_measured
from commsim.formats.measurement import Measurement

HEAD = """---------------------------------------------------------------------------------------
                    {title} Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
---------------------------------------------------------------------------------------
"""
RATES = " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]\n"
TIMES = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec]\n"
)


def read(folder: Path, text: str) -> tuple[Measurement, ...]:
    (folder / "bw.txt").write_text(text)
    return read_measured(folder / "bw.txt")


@pytest.mark.parametrize(
    ("title", "unit", "rate"),
    [
        ("RDMA_Write BW", "MB/sec", 23841.86), ("RDMA_Read BW", "MiB/sec", 23841.86), ("Send BW", "Gb/sec", 200.0),
        ("RDMA_Write Bidirectional BW", "Gb/sec", 400.0),
    ],
)  # fmt: skip
def test_a_rate_is_that_of_messages_of_one_way(tmp_path: Path, title: str, unit: str, rate: float) -> None:
    text = HEAD.format(title=title) + RATES.format(unit=unit)
    text += "Conflicting CPU frequency values detected: 1496.1 != 1529.7. CPU Frequency is not max.\n"
    text += f" 65536      5000             0.00            {rate}\t\t   0.38\n"
    (row,) = read(tmp_path, text)
    assert (row.operation, row.algorithm, row.n_ranks, row.size) == ("send_recv", "stream", 2, 65536)
    assert row.algbw == pytest.approx(25e9, rel=1e-6)


def test_the_rate_of_messages_beside_it_shows_that_megabytes_are_mebibytes(tmp_path: Path) -> None:
    """A public table: 0.363584 million messages of 64 KiB a second."""
    text = HEAD.format(title="RDMA_Write BW") + RATES.format(unit="MB/sec") + " 65536  1000  0.00  22724.01  0.363584\n"
    assert read(tmp_path, text)[0].algbw == pytest.approx(0.363584e6 * 65536, rel=1e-5)


def test_columns_may_be_fewer_or_have_other_names(tmp_path: Path) -> None:
    head = "#bytes       #iterations       BW average[MB/sec]      MsgRate[Mpps]\n"
    (row,) = read(tmp_path, head + "1048576      93205             23302.26                0.023302\n")
    (old,) = read(tmp_path, "#bytes     #iterations    BW_peak[MB/sec]    BW_average[MB/sec]\n4096 100 9.0 8.0\n")
    assert row.algbw == pytest.approx(23302.26 * 2**20)
    assert old.algbw == pytest.approx(8.0 * 2**20)


def test_a_latency_is_half_of_a_round_trip_and_that_of_a_read_is_left_out(tmp_path: Path) -> None:
    row = " 2       1000          1.76           6.12         1.79                1.80      0.06   1.88   6.12\n"
    (found,) = read(tmp_path, HEAD.format(title="RDMA_Write Latency") + TIMES + row)
    assert (found.operation, found.algorithm, found.n_ranks) == ("send_recv", "", 2)
    assert (found.low, found.time, found.high) == pytest.approx((1.76e-6, 1.80e-6, 6.12e-6))
    with pytest.raises(InputError, match="left out: rows of reads and atomics"):
        read(tmp_path, HEAD.format(title="RDMA_Read Latency") + TIMES + row)


def test_a_rate_in_another_unit_and_a_row_without_one_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must be in MB/sec, MiB/sec, Gb/sec"):
        read(tmp_path, RATES.format(unit="Tb/sec") + "65536 5000 1.0 1.0 1.0\n")
    with pytest.raises(InputError, match="left out: rows of no rate or no bytes"):
        read(tmp_path, RATES.format(unit="Gb/sec") + "65536 5000 0.00 0.00 0.00\n")


def test_it_is_found_under_a_launcher(tmp_path: Path) -> None:
    table = HEAD.format(title="Send BW") + RATES.format(unit="Gb/sec") + " 65536  5000  99.0  98.0  0.187\n"
    text = "".join(f"[1,0]<stdout>:{line}\n" for line in table.splitlines())
    assert read(tmp_path, text)[0].algbw == pytest.approx(98e9 / 8)
    assert (found := log_format_in(table.encode())) is not None
    assert found.name == "perftest"
