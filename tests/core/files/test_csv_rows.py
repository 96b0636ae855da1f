"""Rows of CSV files, of which one must be whole."""

import gzip

import pytest

from commsim.core.errors import InputError
from commsim.core.files import csv_rows
from commsim.core.files.csv_rows import read_rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_last_line_that_ends_is_read_and_one_that_does_not_may_be_cut(tmp_path, end):
    path = tmp_path / "a.csv"
    text = end.join(("name,time_s", "a,0.125", "b,0.25", ""))
    path.write_bytes(text.encode())
    assert [row.number("time_s") for row in read_rows(path, ["time_s"])] == [0.125, 0.25]
    path.write_bytes(text[: -len(end) - 1].encode())
    with pytest.raises(InputError, match="the last line has no line break"):
        list(read_rows(path, ["time_s"]))


def test_a_packed_table_is_read_and_is_bounded_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"name,time_s\na,0.125\n"))
    assert [row.number("time_s") for row in read_rows(path, ["time_s"])] == [0.125]
    path.write_bytes(gzip.compress(b"name,time_s\na,0.125\n")[:-9])
    with pytest.raises(InputError, match="a gzip file that ends early"):
        list(read_rows(path, ["time_s"]))
    monkeypatch.setattr(csv_rows, "MAX_BYTES", 1000)
    path.write_bytes(gzip.compress(b"name,time_s\n" + b"a" * 10**5))
    with pytest.raises(InputError, match="unpacks to more than"):
        list(read_rows(path, ["time_s"]))
