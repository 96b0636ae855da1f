"""Tables that benchmarks of PyTorch's collectives print are measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.formats.logs.log_formats import log_format_in
from commsim.formats.measured import read_measured

TIMED = """size(MB)   tavg(usec)    tmin(usec)    tmax(usec)  avgbw(GB/sec)  maxbw(GB/sec)  minbw(GB/sec)
1.00      121.5          116.5          151.2         14.41          15.02          11.57
"""
RATES = """using communicator =  data ; order = tdp ; group size =  16
groups_per_node =  {groups}
size(MB)   avgbw(GB/sec)   maxbw(GB/sec)   minbw(GB/sec)
    8.0          0.0           0.1             0.0
 1000.0        300.0         345.0           280.0
"""
MARKDOWN = """The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|   32{kib} |   1.18GBps |   0.79GBps |
|    1{gib} | 355.72GBps | 237.15GBps |
"""
ALONE = """The average bandwidth of all_reduce with a 4.0GB payload (50 trials, 16 ranks):
 algbw: 239.742 GBps (1917.9 Gbps)
 busbw: 449.515 GBps (3596.1 Gbps)
"""


def written(folder: Path, text: str) -> Path:
    (folder / "log.txt").write_text(text)
    return folder / "log.txt"


def test_a_table_with_times_needs_its_operation(tmp_path: Path) -> None:
    notes: list[str] = []
    (row,) = read_measured(written(tmp_path, TIMED), operation="all_reduce", n_ranks=8, notes=notes)
    assert (row.size, row.low, row.time, row.high) == pytest.approx((1e6, 116.5e-6, 121.5e-6, 151.2e-6))
    assert any("a wait of the host" in note for note in notes)
    with pytest.raises(InputError, match="the measured operation is unknown"):
        read_measured(tmp_path / "log.txt")


@pytest.mark.parametrize(("groups", "rate"), [(1, 300e9), (8, 37.5e9)])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_a_rate_is_the_busbw_of_all_groups_of_a_node(tmp_path: Path, groups: int, rate: float, operation: str) -> None:
    notes: list[str] = []
    (row,) = read_measured(written(tmp_path, RATES.format(groups=groups)), operation=operation, notes=notes)
    assert (row.operation, row.n_ranks, row.size) == (operation, 16, 1e9)
    assert row.busbw == pytest.approx(rate)
    assert any("1 row whose rate is 0" in note for note in notes)


def test_a_rate_without_the_number_of_ranks_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, RATES.format(groups=1).split("\n", 1)[1])
    with pytest.raises(InputError, match=r"give it: --ranks 8"):
        read_measured(path, operation="all_reduce")
    assert read_measured(path, operation="all_reduce", n_ranks=4)[0].busbw == pytest.approx(300e9)


@pytest.mark.parametrize(("kib", "gib"), [("KiB", "GiB"), ("KB", "GB")])
def test_a_table_in_markdown_names_its_ranks(tmp_path: Path, kib: str, gib: str) -> None:
    small, large = read_measured(written(tmp_path, MARKDOWN.format(kib=kib, gib=gib)))
    assert (small.operation, small.n_ranks, small.size, large.size) == ("all_reduce", 4, 2**15, 2**30)
    assert large.busbw == pytest.approx(355.72e9, rel=1e-4)


def test_one_number_of_a_payload_is_read(tmp_path: Path) -> None:
    (row,) = read_measured(written(tmp_path, ALONE))
    assert (row.size, row.n_ranks) == (4e9, 16)
    assert row.busbw == pytest.approx(449.515e9, rel=1e-5)


@pytest.mark.parametrize("text", [TIMED, RATES, MARKDOWN, ALONE])
def test_they_are_no_log_of_nccl_tests(text: str) -> None:
    assert (found := log_format_in(text.encode())) is not None
    assert found.name == "PyTorch's benchmarks"


@pytest.mark.parametrize(
    "text",
    [TIMED.replace("avgbw(GB/sec)  maxbw", "avgbw(GB/sec)maxbw"), TIMED.replace("size(MB)   ", "size(MB)"),
     MARKDOWN.format(kib="KiB", gib="GiB").replace("0.79", "0.7.9").replace("237.15", "-237.15"),
     ALONE.replace("239.742", "2.3.9")],
)  # fmt: skip
def test_a_damaged_table_is_refused_in_words(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_measured(written(tmp_path, text), operation="all_reduce", n_ranks=8)
