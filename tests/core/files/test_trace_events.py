import gzip
import json

import pytest

from commsim.core.files.trace_events import AT_ONCE, process_name, sort_index, thread_name, write_events


def some():
    yield process_name(1, 'a "b"')
    yield thread_name(1, 2, "c")
    yield sort_index(1, None, 3)
    yield '{"ph":"X"}'


def test_events_are_well_formed_json(tmp_path):
    assert write_events(tmp_path / "t.json", some(), more={"x": 1}) == 4
    tree = json.loads((tmp_path / "t.json").read_text())
    assert tree["traceEvents"] == [json.loads(e) if isinstance(e, str) else e for e in some()]
    assert tree["more"] == {"x": 1}


@pytest.mark.parametrize("n", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_any_number_of_events_is_well_formed(tmp_path, n):
    assert write_events(tmp_path / "t.json.gz", ("{}" for _ in range(n))) == n
    assert len(json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]) == n


def test_the_same_events_are_the_same_bytes_under_any_name(tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        write_events(tmp_path / name, some())
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_a_failure_in_the_middle_leaves_nothing_behind(tmp_path):
    def failing():
        yield "{}"
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write_events(tmp_path / "t.json", failing())
    assert list(tmp_path.iterdir()) == []
