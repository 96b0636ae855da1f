import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.accuracy.known_errors import to_tree
from commsim.auto import known_error as module
from commsim.auto.case import PredictionCase
from commsim.auto.known_error import AGAINST, PACKET, ErrorSample, comparisons, from_tree
from commsim.core.errors import InputError

RING = PredictionCase("all_reduce", "ring_all_reduce", "star", "ecmp", "packed", 1, 1, 8, 8, 1e6, 12.5e9, 6250)
SOME = [ErrorSample("flow", "testbed", RING, -0.04), ErrorSample("flow", PACKET["dcqcn"], RING, 0.5)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put other files in the place of the shipped ones."""
    monkeypatch.setattr(importlib, "resources", SimpleNamespace(files=lambda _: tmp_path))
    comparisons.cache_clear()
    yield tmp_path
    comparisons.cache_clear()


def test_comparisons_come_back_as_they_were_written() -> None:
    assert from_tree(json.loads(json.dumps(to_tree(SOME)))) == SOME[::-1]  # in the order of their names


def test_both_files_are_read_and_either_may_be_absent(data: Path) -> None:
    assert comparisons() == ()
    for name, one in zip((module.REAL_FILE, module.PACKET_FILE), SOME, strict=True):
        (data / name).write_text(json.dumps(to_tree([one])))
    comparisons.cache_clear()
    assert comparisons() == tuple(SOME)


@pytest.mark.parametrize(
    "change", [{"against": "hearsay"}, {"rows": [[1, 2]]}, {"rows": [[1.0] * 8 + ["x"]]}, {"rows": [[1e999] * 9]}]
)
def test_a_damaged_file_is_said_to_be(data: Path, change: dict[str, object]) -> None:
    table = to_tree(SOME)["tables"][0] | change
    (data / module.PACKET_FILE).write_text(json.dumps({"tables": [table]}))
    with pytest.raises(InputError, match=r"commsim/auto/packet_vs_flow.json: damaged"):
        comparisons()


@pytest.mark.parametrize("text", ["{", "{}", "3", '{"tables": [3]}'])
def test_a_file_that_is_none_is_said_to_be_damaged(data: Path, text: str) -> None:
    (data / module.REAL_FILE).write_text(text)
    with pytest.raises(InputError, match=r"commsim/auto/validation.json: damaged"):
        comparisons()


def test_the_shipped_files_have_real_runs_and_packets() -> None:
    comparisons.cache_clear()
    kinds = {one.against for one in comparisons()}
    assert {"testbed", PACKET["window"]} <= kinds <= set(AGAINST)
    assert {one.engine for one in comparisons()} == {"flow"}
    assert all(one.error > -1 and one.case.ranks > 1 and one.case.size > 0 for one in comparisons())
