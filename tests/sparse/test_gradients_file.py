import os
import pickle

import numpy as np
import pytest

from commsim.core.errors import InputError
from commsim.sparse.gradients_file import read_gradients

GRADIENTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def same(rows, wanted=GRADIENTS):
    return len(rows) == len(wanted) and all(
        np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(rows, wanted, strict=True)
    )


def test_one_array_holds_all_ranks(tmp_path):
    np.save(tmp_path / "g.npy", GRADIENTS)
    np.savez(tmp_path / "g.npz", GRADIENTS)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(GRADIENTS))
    for name in ("g.npy", "g.npz", "fortran.npy"):
        assert same(read_gradients(tmp_path / name))
        assert same(read_gradients(str(tmp_path / name), n_ranks=3))


def test_an_array_per_rank_is_ordered_by_number_and_flattened(tmp_path):
    many = [np.full((2, 2), i, np.float64) for i in range(12)]
    np.savez_compressed(tmp_path / "g.npz", **{f"layer_rank{i}": g for i, g in enumerate(many)})
    folder = tmp_path / "ranks"
    folder.mkdir()
    for i, g in enumerate(many):
        np.save(folder / f"{i:03d}.npy", g)
    (folder / "notes.txt").write_text("not a gradient")
    for path in (tmp_path / "g.npz", folder):
        assert same(read_gradients(path, n_ranks=12), [g.reshape(-1) for g in many])


def test_a_large_file_is_mapped_and_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.npy"
    large = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(2, 2**38))  # 2 TiB, sparse on disk
    del large
    with pytest.raises(InputError, match="needs gradients of 3 ranks, got 2"):
        read_gradients(path, n_ranks=3)
    np.save(tmp_path / "g.npy", GRADIENTS)
    assert all(isinstance(row, np.memmap) for row in read_gradients(tmp_path / "g.npy"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_by_rank_and_index(tmp_path, bad):
    gradients = GRADIENTS.copy()
    gradients[2, 1] = bad
    np.save(tmp_path / "g.npy", gradients)
    with pytest.raises(InputError, match=r"g\.npy: rank 2: values must be finite, got (nan|inf|-inf) at index 1"):
        read_gradients(tmp_path / "g.npy")


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a pickle was loaded",)


def test_pickled_objects_are_never_loaded(tmp_path):
    objects = np.empty(2, object)
    objects[:] = [Trap(), Trap()]
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "o.npz", objects)
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Trap()))
    for name, message in (("o.npy", "holds objects"), ("o.npz", "allow_pickle=False"), ("p.npy", "not a readable npy")):
        with pytest.raises(InputError, match=message):
            read_gradients(tmp_path / name)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4), r"must be \[n_ranks, n_elements\], got shape \(4,\)"),
        (np.zeros((2, 3, 4)), r"got shape \(2, 3, 4\)"),
        (np.float32(1), r"got shape \(\)"),
        (np.zeros((2, 3), complex), "native float of 16, 32 or 64 bits or integer, got 3 of <c16"),
        (np.zeros((2, 3), bool), "got 3 of |b1"),
        (np.zeros((2, 3), ">f4"), "got 3 of >f4"),
        (np.zeros((2, 3), np.longdouble), "got 3 of <f16"),
    ],
)
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_what_are_no_gradients_is_refused(tmp_path, array, message, suffix):
    path = tmp_path / f"g.{suffix}"
    np.save(path, array) if suffix == "npy" else np.savez(path, array)
    with pytest.raises(InputError, match=message):
        read_gradients(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"rank0": np.ones(3), "rank1": np.ones(4)}, "rank 1 has 4 elements of float64, rank 0 3 of float64"),
        ({"rank0": np.ones(3), "rank1": np.ones(3, "f4")}, "rank 1 has 3 elements of float32"),
        ({"rank0": np.ones(3), "rank2": np.ones(3)}, r"one array for each rank 0\.\.1, rank 1 is missing"),
        ({"a0": np.ones(3), "b0": np.ones(3)}, "rank 0 appears twice, got 'b0'"),
        ({"rank0": np.ones(3), "bias": np.ones(3)}, "must end in the number of its rank, got 'bias'"),
        ({}, "holds no array"),
    ],
)
def test_ranks_that_do_not_fit_together_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "g.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_gradients(tmp_path / "g.npz")


def test_another_number_of_ranks_is_refused(tmp_path):
    np.savez(tmp_path / "g.npz", rank0=np.ones(3), rank1=np.ones(3))
    np.savez(tmp_path / "one.npz", GRADIENTS)
    for name, got in (("g.npz", 2), ("one.npz", 3)):
        with pytest.raises(InputError, match=f"needs gradients of 8 ranks, got {got}"):
            read_gradients(tmp_path / name, n_ranks=8)


@pytest.mark.parametrize("name", ["g.npy", "g.npz"])
@pytest.mark.parametrize("kept", [0, 3, 60, 0.5, 0.99])
def test_a_damaged_file_is_refused(tmp_path, name, kept):
    path = tmp_path / name
    np.save(path, GRADIENTS) if name == "g.npy" else np.savez(path, GRADIENTS)
    whole = path.read_bytes()
    path.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    with pytest.raises(InputError, match=f"{name}: not a readable np"):
        read_gradients(path)


def test_missing_files_and_empty_folders_are_refused(tmp_path):
    for name in ("none.npy", "none.npz"):
        with pytest.raises(InputError, match=f"{name}: No such file"):
            read_gradients(tmp_path / name)
    with pytest.raises(InputError, match=r"holds no \.npy file"):
        read_gradients(tmp_path)


@pytest.mark.parametrize("name", ["pipe.npy", "pipe.npz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="not a regular file"):
        read_gradients(tmp_path / name)
