import io
import zipfile

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.files import npz
from commsim.core.files.npz import read_arrays, write_arrays


def test_arrays_read_back_as_they_were_written(tmp_path):
    arrays = {"a": np.arange(5, dtype=np.int16), "b": np.array([[1.5, np.inf]]), "c": np.empty(0)}
    write_arrays(tmp_path / "x.npz", arrays)
    back = read_arrays(tmp_path / "x.npz")
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)


def test_an_array_of_objects_is_refused_because_it_is_a_pickle(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="not a readable npz file"):
        read_arrays(tmp_path / "x.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", b"\x93NUMPY\x01\x00"])
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match="npz"):
        read_arrays(tmp_path / "x.npz")


def test_a_member_that_is_no_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': (((    ")
    with pytest.raises(InputError, match="not a readable npz file"):
        read_arrays(tmp_path / "x.npz")


def test_a_member_without_the_form_of_an_array_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("header.npy", bytes(100))
    with pytest.raises(InputError, match="contains an object that is not an array"):
        read_arrays(tmp_path / "x.npz")


def test_one_array_can_be_read_without_the_others(tmp_path):
    write_arrays(tmp_path / "x.npz", {"header": np.ones(2), "large": np.zeros(10_000)})
    assert list(read_arrays(tmp_path / "x.npz", 500, only="header")) == ["header"]
    with pytest.raises(InputError, match="would unpack to more"):
        read_arrays(tmp_path / "x.npz", 500)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    write_arrays(tmp_path / "x.npz", {"a": np.zeros(10_000)})
    monkeypatch.setattr(npz, "MAX_ARRAY_BYTES", 50_000)
    with pytest.raises(InputError, match="would unpack to more"):
        read_arrays(tmp_path / "x.npz")


def test_an_array_that_claims_to_be_enormous_is_refused(tmp_path):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", out.getvalue())
    with pytest.raises(InputError, match="not a readable npz file"):
        read_arrays(tmp_path / "x.npz")


def test_every_damaged_npz_file_is_refused_or_read(tmp_path):
    path = tmp_path / "x.npz"
    write_arrays(path, {"a": np.arange(300) % 7, "b": np.ones(10)})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.2 else damaged)
        try:
            read_arrays(path)
        except InputError:
            refused += 1
    assert refused > 100
