import io
import zipfile

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.core.formats import files
from commsim.core.formats.files import (
    parse_json,
    read_arrays,
    read_tree,
    replacing,
    write_arrays,
    write_json,
    write_tree,
)

pytestmark = pytest.mark.nojit


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
        ("x.json", "", "line 1 column 1"),
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
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 10)
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
    with pytest.raises(InputError, match="holds something that is no array"):
        read_arrays(tmp_path / "x.npz")


def test_one_array_can_be_read_without_the_others(tmp_path):
    write_arrays(tmp_path / "x.npz", {"header": np.ones(2), "large": np.zeros(10_000)})
    assert list(read_arrays(tmp_path / "x.npz", 500, only="header")) == ["header"]
    with pytest.raises(InputError, match="would unpack to more"):
        read_arrays(tmp_path / "x.npz", 500)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    write_arrays(tmp_path / "x.npz", {"a": np.zeros(10_000)})
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", 50_000)
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


def test_json_is_strict_but_takes_what_is_right():
    assert parse_json('{"a": [1, 2.5, null, "x"]}') == {"a": [1, 2.5, None, "x"]}


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(InputError, match=r"x\.json: cannot write: Permission denied"):
        write_json(tmp_path / "x.json", {})
