"""Parts of a sweep: together they are the whole, each point once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commsim.core.errors import InputError
from commsim.sweep.parts import SweepPart, merge, read_part
from commsim.sweep.run_sweep import run_sweep
from commsim.sweep.table import read_table

TASK = {"SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_MIN": "10", "SLURM_ARRAY_TASK_STEP": "2",
        "SLURM_ARRAY_TASK_COUNT": "4"}  # fmt: skip


@given(st.integers(1, 50), st.integers(0, 300))
def test_every_point_is_in_one_part_and_parts_differ_by_one_at_most(n, n_points):
    parts = [SweepPart(k + 1, n) for k in range(n)]
    counts = [sum(part.has(place) for place in range(n_points)) for part in parts]
    assert counts == [part.n_of(n_points) for part in parts]
    assert sum(counts) == n_points
    assert max(counts) - min(counts) <= 1


def toml_of(tmp_path, more=""):
    lines = ("[topology]", "name = 'star'", "n_hosts = [4, 8, 16]", "bandwidth = '100Gbps'", "[collective]")
    lines += ("name = 'ring_all_reduce'", f"size = ['1KiB', '1MiB', '1GiB'{more}]", "[engine]", "name = 'alpha-beta'")
    path = tmp_path / f"sweep{len(more)}.toml"
    path.write_text("\n".join(lines))
    return path


def test_parts_put_together_are_the_sweep_that_ran_whole(tmp_path):
    sweep = toml_of(tmp_path)
    done = [run_sweep(sweep, tmp_path / f"p{k}", "serial", part=SweepPart(k, 4)) for k in range(1, 5)]
    assert [d.n_done for d in done] == [3, 2, 2, 2]
    assert merge(tmp_path / "all", [tmp_path / "p2", tmp_path / "p4"]) == (4, 9)
    assert merge(tmp_path / "all", [tmp_path / f"p{k}" for k in range(1, 5)]) == (9, 9)
    run_sweep(sweep, tmp_path / "whole", "serial")
    assert read_table(tmp_path / "all").equals(read_table(tmp_path / "whole"))
    assert run_sweep(sweep, tmp_path / "all", "serial").n_before == 9


def test_parts_of_another_sweep_are_refused_and_none_without_points_is_wrong(tmp_path):
    for name, more in (("a", ""), ("b", ", '2GiB'")):
        run_sweep(toml_of(tmp_path, more), tmp_path / name, "serial", part=SweepPart(1, 5))
    with pytest.raises(InputError, match="has the results of another sweep than"):
        merge(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    assert not (tmp_path / "all").exists()
    assert run_sweep(toml_of(tmp_path), tmp_path / "none", "serial", part=SweepPart(12, 12)).n_done == 0


def test_a_task_of_an_array_knows_its_part():
    assert read_part("slurm", TASK) == SweepPart(3, 4)
    assert read_part("3/16") == SweepPart(3, 16)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "-1/4", "a/b", "slurm", "1/4/2"])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(InputError, match=r"K/N|a task of an array"):
        read_part(text, {})
