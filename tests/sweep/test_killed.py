"""A driver and a worker that are killed in the middle; benchmarks.kill_sweep does this twenty times."""

import sys

import pytest

from benchmarks.kill_sweep import kill_in_turn
from commsim.core.formats.files import write_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_what_was_killed_and_gone_on_with_is_what_was_let_alone(small, tmp_path):
    small["collective"]["size"]["steps"] = 60
    write_tree(tmp_path / "sweep.toml", small)
    kills, _ = kill_in_turn(2, 0, tmp_path / "sweep.toml", tmp_path, compiled=True)
    assert [kill.whom for kill in kills] == ["driver", "worker"]
    assert all(kill.is_same and not kill.n_left for kill in kills), kills
