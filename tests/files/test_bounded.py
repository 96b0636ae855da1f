"""Files of others are read whole, unpacked, and never more of them than a limit."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.files.bounded import read_bytes, read_json, read_text

pytestmark = pytest.mark.nojit


def test_a_gzip_is_unpacked_whatever_its_name_and_members(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    assert read_bytes(path) == b"one two"
    path.write_bytes(b"plain")
    assert read_bytes(path) == b"plain"


def test_the_limit_is_of_what_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345678")
    assert read_bytes(path, 8) == b"12345678"
    with pytest.raises(InputError, match="larger than 7 bytes"):
        read_bytes(path, 7)
    path.write_bytes(gzip.compress(bytes(100_000)))
    assert len(read_bytes(path, 100_000)) == 100_000
    with pytest.raises(InputError, match="unpacks to more"):
        read_bytes(path, 99_999)


def test_a_gigabyte_of_zeros_costs_no_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(2**24)) * 64)
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than 4 MiB"):
        read_bytes(path, 2**22)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("cut", [3, 12, -9, -1])
def test_a_gzip_that_ends_early_or_is_damaged_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"abc" * 1000)[:cut])
    with pytest.raises(InputError, match="gzip"):
        read_bytes(path)
    path.write_bytes(gzip.compress(b"abc") + b"rubbish")
    with pytest.raises(InputError, match="gzip"):
        read_bytes(path)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "missing", "a\0b", "/dev/zero"):
        with pytest.raises(InputError):
            read_bytes(name)


def test_text_is_utf_8_and_json_strict(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert read_text(path) == "[1]"
    assert read_json(path) == [1]
    for bad in (b"\xff", b'{"a":1,"a":2}', b"[" * 200_000, b"[NaN]", b'{"a":' * 100_000, b"9" * 5000):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=r"x\.json"):
            read_json(path)
