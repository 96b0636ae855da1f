"""Folders of sockets: a path that a system takes, wherever temporary files are."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from commsim.core.errors import InputError
from commsim.core.files import socket_folders
from commsim.core.files.socket_folders import MOST_BYTES, has_room_for_socket, socket_folder

NAME = "ranks.16"


@pytest.mark.parametrize("n_left", [-1, 0, 1])
def test_a_folder_stays_among_the_temporary_files_as_long_as_sockets_can_be_bound_there(tmp_path, monkeypatch, n_left):
    behind = len(f"/commsim-12345678/{NAME}")
    usual = tmp_path / ("x" * (MOST_BYTES - behind - n_left - len(os.fsencode(tmp_path)) - 1))
    usual.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(usual))
    with socket_folder(NAME) as name, socket.socket(socket.AF_UNIX) as bound:
        folder = Path(name)
        assert (folder.parent == usual) == (n_left >= 0)
        assert folder.stat().st_mode & 0o777 == 0o700
        bound.bind(str(folder / NAME))
    assert not folder.exists()


def test_the_limit_is_that_of_the_system(tmp_path):
    for n_bytes in (MOST_BYTES, MOST_BYTES + 1):
        name = "x" * (n_bytes - len(os.fsencode(tmp_path)) - 1)
        assert has_room_for_socket(str(tmp_path), name) == (n_bytes == MOST_BYTES)
        with socket.socket(socket.AF_UNIX) as bound:
            try:
                bound.bind(str(tmp_path / name))
            except OSError:
                assert n_bytes > MOST_BYTES


def test_without_a_place_what_to_do_is_said(tmp_path, monkeypatch):
    usual = tmp_path / ("x" * MOST_BYTES)
    usual.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(usual))
    monkeypatch.setattr(socket_folders, "SHORT_FOLDERS", (str(tmp_path / "missing"),))
    with pytest.raises(InputError, match=r"x: too long for sockets; set TMPDIR to a folder with a shorter name$"):
        socket_folder(NAME)
