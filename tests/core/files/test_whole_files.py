"""Only regular files are read and written: a pipe waits for ever, a device has no end, a folder is none.

Files of others are read whole, unpacked, and never more of them than a limit.
"""

import gzip
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from no_files import check_only_files_are_read

from commsim.core.errors import InputError
from commsim.core.files import whole_files
from commsim.core.files.npz import read_arrays
from commsim.core.files.whole_files import (
    first_line,
    parse_json,
    read_any,
    read_bytes,
    read_head,
    read_json,
    read_regular,
    read_text,
    read_tree,
    replacing,
    write_json,
    write_tree,
)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_tree_reads_back_as_it_was_written(tmp_path, suffix):
    tree = {"schema": 1, "name": "\u00e9", "list": [{"a": 1.5, "b": True}, {"a": 1e300, "b": False}]}
    path = tmp_path / f"x{suffix}"
    write_tree(path, tree)
    assert read_tree(path) == tree


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.json", '{"a": 1, "a": 2}', "key 'a' appears twice"),
        ("x.json", '{"b": {"a": 1, "a": 2}}', "key 'a' appears twice"),
        ("x.toml", "a = 1\na = 2\n", "line 2"),
        ("x.json", '{"a": NaN}', "NaN is not a JSON number"),
        ("x.json", '{"a": -Infinity}', "-Infinity is not a JSON number"),
        ("x.json", '{"a": ', "line 1 column"),
        ("x.json", "", "is empty"),
        ("x.toml", "a = \nb = 2", "line 1"),
        ("x.json", "[1]", "expected a table at the top level, got list"),
        ("x.json", "[" * 100_000, "nested too deeply"),
        ("x.json", '{"a": ' + "9" * 5000 + "}", "limit"),
    ],
)
def test_a_file_that_is_not_well_formed_is_refused_with_its_name(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_tree(path)
    assert str(refusal.value).startswith(f"{path}: ")
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_missing_a_folder_or_not_text_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_tree(tmp_path / "none.json")
    with pytest.raises(InputError, match="directory"):
        read_tree(tmp_path)
    (tmp_path / "x.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match="not UTF-8 text at byte 7"):
        read_tree(tmp_path / "x.json")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(whole_files, "MAX_TEXT_BYTES", 10)
    (tmp_path / "x.json").write_text(" " * 11)
    with pytest.raises(InputError, match="larger than"):
        read_tree(tmp_path / "x.json")


def test_a_number_that_json_lacks_is_not_written(tmp_path):
    with pytest.raises(InputError, match="cannot be written as JSON"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as out:
        out.write(b"half")
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_seen_of_a_new_file_until_it_is_whole(tmp_path):
    path = tmp_path / "x"
    with replacing(path) as out:
        out.write(b"half")
        out.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_gets_the_usual_permissions_and_keeps_those_that_it_has(tmp_path):
    new, usual, old = tmp_path / "new", tmp_path / "usual", tmp_path / "old"
    usual.write_text("")
    old.write_text("")
    old.chmod(0o600)
    for path in (new, old):
        with replacing(path) as out:
            out.write(b"x")
    assert new.stat().st_mode == usual.stat().st_mode
    assert old.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path / 'none' / 'x.json'}: cannot write"):
        write_json(tmp_path / "none" / "x.json", {})


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match="cannot write"):
        write_json(tmp_path / "x", {})
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_json_is_strict_but_takes_what_is_right():
    assert parse_json('{"a": [1, 2.5, null, "x"]}') == {"a": [1, 2.5, None, "x"]}


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(InputError, match=r"x\.json: cannot write: Permission denied"):
        write_json(tmp_path / "x.json", {})


@pytest.mark.parametrize("key", ["a" + ".a" * 20_000, '"a"' + ' . "a"' * 20_000, "[a" + ".a" * 20_000 + "]"])
def test_a_key_of_very_many_parts_is_refused_before_it_is_read(tmp_path, monkeypatch, key):
    monkeypatch.setattr("tomllib.loads", lambda _: pytest.fail("reading takes the square of the parts"))
    (tmp_path / "x.toml").write_text(f"{key} = 1" if key[0] != "[" else key)
    with pytest.raises(InputError, match="nested too deeply"):
        read_tree(tmp_path / "x.toml")


def test_looking_for_such_keys_takes_no_longer_than_the_text_is_long(tmp_path):
    for text in ("a" * 2**20, "a.a " * 2**18, '"' * 2**20, "a" + " " * 2**20, ("a." * 90 + "!") * 2**12):
        (tmp_path / "x.toml").write_text(f"x = 1\n# {text}\n")
        assert read_tree(tmp_path / "x.toml") == {"x": 1}


READERS = [read_bytes, read_any, read_arrays, lambda path: read_head(path, 5)]


@pytest.mark.parametrize("read", READERS)
def test_no_reader_opens_a_pipe_a_device_a_folder_or_what_is_missing(
    tmp_path: Path, read: Callable[[Any], Any]
) -> None:
    check_only_files_are_read(read, tmp_path)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_regular(tmp_path / "x", 5) == b"12345"
    assert read_regular(tmp_path / "x", 3, whole=False) == b"123"
    with pytest.raises(InputError, match="larger than 4 bytes"):
        read_regular(tmp_path / "x", 4)


@pytest.mark.parametrize("name", ["pipe", "null", "folder", "", "a\0b"])
def test_nothing_but_a_file_is_replaced(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError), replacing(tmp_path / name if name else Path()):
        pass
    assert sorted(tmp_path.iterdir()) == before


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


def test_what_another_library_says_of_a_damaged_file_is_cut():
    """The zip reader quotes all of a directory that rots."""
    assert first_line(ValueError("a" * 400 + "\nb")) == "a" * 300 + " ..."
    assert first_line(ValueError("a\nb")) == "a"
    assert first_line(KeyError()) == "KeyError"
