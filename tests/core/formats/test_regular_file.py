"""Only regular files are read and written: a pipe waits for ever, a device has no end, a folder is none."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commsim.core.errors import InputError
from commsim.core.formats.array_file import read_arrays
from commsim.core.formats.bounded import read_bytes, read_head
from commsim.core.formats.files import read_any, replacing
from commsim.core.formats.regular_file import read_regular
from commsim.core.formats.xml_tree import outermost_tag, read_xml

pytestmark = pytest.mark.nojit
READERS = [read_bytes, read_any, read_arrays, read_xml, outermost_tag, lambda path: read_head(path, 5)]


@pytest.mark.parametrize("read", READERS)
def test_no_reader_opens_a_pipe_a_device_a_folder_or_what_is_missing(
    tmp_path: Path, read: Callable[[Any], Any]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name, why in (("pipe", "not a regular file"), ("zero", "not a regular file"), (".", "is a directory"),
                      ("none", "No such file"), ("a\0b", "is not the name of a file")):  # fmt: skip
        with pytest.raises(InputError, match=why):
            read(tmp_path / name if name != "." else tmp_path)


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
