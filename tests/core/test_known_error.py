from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from commsim.core import known_error as module
from commsim.core.errors import InputError
from commsim.core.known_error import AGAINST, KnownError, from_tree, known_error, known_errors, to_tree

pytestmark = pytest.mark.nojit
HERE = KnownError("flow", "all_reduce", "testbed", 1e6, math.inf, 9, 0.01, 0.04, 0.1, (4, 8), ("star",))
THERE = KnownError("flow", "all_reduce", "measured", 0.0, 2e6, 2, 0.1, 0.2, 0.2, (8,), ("star",))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put another file in the place of the shipped one."""
    monkeypatch.setattr(module.importlib, "resources", SimpleNamespace(files=lambda _: tmp_path))
    known_errors.cache_clear()
    yield tmp_path / "validation.json"
    known_errors.cache_clear()


def test_the_most_telling_comparison_of_a_size_is_returned(data: Path) -> None:
    data.write_text(json.dumps({"errors": [to_tree(THERE), to_tree(HERE)]}))
    assert known_error("flow", "all_reduce", 1.5e6) == HERE
    assert known_error("flow", "all_reduce", 1e6) == HERE
    assert known_error("flow", "all_reduce", 1e5) == THERE
    assert known_error("flow", "all_reduce", 1e15) == HERE
    assert known_error("flow", "broadcast", 1e6) is None
    assert known_error("packet", "all_reduce", 1e6) is None


def test_a_range_without_end_is_null_in_the_file(data: Path) -> None:
    assert to_tree(HERE)["high"] is None
    assert from_tree(json.loads(json.dumps(to_tree(HERE)))) == HERE


def test_nothing_is_known_where_nothing_was_written(data: Path) -> None:
    assert known_error("flow", "all_reduce", 1e6) is None


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"errors": [{}]}', '{"errors": [{"high": 1, "against": "hearsay"}]}', "3"]
)
def test_a_damaged_file_is_said_to_be(data: Path, text: str) -> None:
    data.write_text(text)
    with pytest.raises(InputError, match=r"commsim/data/validation.json: damaged"):
        known_error("flow", "all_reduce", 1e6)


def test_the_shipped_file_knows_the_flow_engine_on_all_reduce() -> None:
    known_errors.cache_clear()
    found = known_error("flow", "all_reduce", 4 * 2**20)
    assert found is not None
    assert found.against in AGAINST
    assert 0 <= found.median <= found.p90 <= found.largest
    assert found.count > 0
    assert found.ranks
    assert found.low <= 4 * 2**20 < found.high


def test_ranges_of_one_kind_do_not_overlap() -> None:
    known_errors.cache_clear()
    by_kind: dict[tuple[str, str, str], list[KnownError]] = {}
    for one in known_errors():
        by_kind.setdefault((one.engine, one.operation, one.against), []).append(one)
    for mine in by_kind.values():
        mine.sort(key=lambda one: one.low)
        assert all(a.high <= b.low for a, b in itertools.pairwise(mine))
