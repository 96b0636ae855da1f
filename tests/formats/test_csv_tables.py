"""Tables of times as people and sheets write them: other names of columns, separators, units, remarks."""

import pytest

from commsim.core.errors import InputError
from commsim.formats.measured import read_measured

TIMES = {2**20: 66.0, 2**24: 205.5, 2**28: 1350.0}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("bytes,time_us", "{0},{1}"), ("Size (B),time(us),busbw (GB/s)", "{0},{1},1"),
        ('"bytes","time_us"', '"{0}","{1}"'),
        ("# exported\nsize_bytes,time_us", "{0},{1}"), ("# bytes,time_us\nbytes,time_us", "{0},{1}"),
        ("size,time(us),busbw,time(us),busbw", "{0},{1},1,7,2"), ("bytes\ttime_us", "{0}\t{1}"),
        ("message_size_bytes;latency_us", "{0};{2}"), ("size,time_ms", "{0},{3}"), ("nbytes,time_s", "{0},{4}"),
        ("size,time_us", "{5}M,{1}"), ("size,time_us,which", "{0},{1},measured"),
    ],
)  # fmt: skip
def test_a_table_is_the_same_in_other_words(tmp_path, header, row):
    path = tmp_path / "all_reduce.csv"
    lines = [
        row.format(size, us, str(us).replace(".", ","), us / 1e3, us / 1e6, size >> 20) for size, us in TIMES.items()
    ]
    path.write_text("\n".join([header, *lines, ""]))
    rows = read_measured(path)
    assert {row.size: row.time for row in rows} == pytest.approx({size: us * 1e-6 for size, us in TIMES.items()})
    assert rows[0].operation == "all_reduce"
    assert rows[-1].line == header.count("\n") + 1 + len(TIMES)


@pytest.mark.parametrize("name", ["AllGather", "all_gather_perf", "nccl_all_gather", "allgather"])
def test_a_column_of_operations_says_them(tmp_path, name):
    path = tmp_path / "sweep.csv"
    path.write_text(f"operation,bytes,time_us\n{name},1024,10\nreduce_scatter,1024,11\n")
    assert [row.operation for row in read_measured(path)] == ["all_gather", "reduce_scatter"]
    assert [row.time for row in read_measured(path, operation="all_gather")] == pytest.approx([1e-5])
    path.write_text("operation,bytes,time_us\nfoo,1024,10\n")
    with pytest.raises(InputError, match="line 2: 'foo' is no operation; known: "):
        read_measured(path)


@pytest.mark.parametrize(
    ("column", "part"),
    [("busbw", 1), ("busbw_GBps", 1), ("busbw_gbps", 1), ("busbw (GB/s)", 1), ("busbw (Gb/s)", 8), ("busbw_Gbps", 8),
     ("busbw (Gbit/s)", 8)],
)  # fmt: skip
def test_a_rate_in_bits_is_an_eighth(tmp_path, column, part):
    path = tmp_path / "all_reduce.csv"
    path.write_text(f"bytes,{column}\n1000000,40\n")
    assert [row.time for row in read_measured(path, n_ranks=2)] == pytest.approx([25e-6 * part])
    path.write_text("bytes,busbw,busbw_Gbps\n1000000,40,320\n")  # of several the unit of the one that is read
    assert [row.time for row in read_measured(path, n_ranks=2)] == pytest.approx([25e-6])


def test_a_header_without_rows_is_said_to_be_one(tmp_path):
    (tmp_path / "all_reduce.csv").write_text("bytes,time_us\n")
    with pytest.raises(InputError, match="the header of a CSV without rows"):
        read_measured(tmp_path / "all_reduce.csv")


def test_a_time_without_its_unit_is_not_read(tmp_path):
    (tmp_path / "all_reduce.csv").write_text("size,time\n1024,10\n")
    with pytest.raises(InputError, match="it begins with 'size,time'"):
        read_measured(tmp_path / "all_reduce.csv")


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [("bytes,time_us", "8,x", "time_us"), ("Size (B),time(us)", "many,1", r"Size \(B\)"),
     ("nbytes;avg_latency_us", "8;-1", "avg_latency_us"), ("size,oop_busbw", "8,x", "oop_busbw"),
     ("size, busbw (GB/s)", "8,x", r"busbw \(GB/s\)")],
)  # fmt: skip
def test_a_wrong_number_is_named_by_its_column_as_the_file_writes_it(tmp_path, header, row, column):
    path = tmp_path / "all_reduce.csv"
    path.write_text(f"{header}\n{row}\n")
    with pytest.raises(InputError, match=f"line 2: {column} must be a number"):
        read_measured(path, n_ranks=2)
