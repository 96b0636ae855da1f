"""Times written to files are those that a result would have held."""

from pathlib import Path

import numpy as np
import pytest

from collectives import COLLECTIVES
from commsim.core.errors import InputError
from commsim.core.placement import place
from commsim.engine import trace_files
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_paths import FlowPaths
from commsim.engine.trace_files import TraceFile
from topologies.star import star


@pytest.mark.parametrize(
    ("method", "collective"),
    [("events", "ring_all_reduce"), ("recurrence", "ring_all_reduce"), ("symmetric", "ring_all_reduce"),
     ("simultaneous", "direct_all_to_all"), ("symmetric", "double_tree_all_reduce")],
)  # fmt: skip
@pytest.mark.parametrize("every", [1, 7])
def test_a_file_has_every_nth_transfer(
    method: str, collective: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_files, "PIECE", 100)
    network, path = star(64), tmp_path / "times.npy"
    arguments = {"n_chunks": 2} if "tree" in collective else {}
    paths = FlowPaths(network, FlowJob(COLLECTIVES[collective].build(64, **arguments), place(network, 64)), None, 0)
    kept = paths.simulate(1e6, method=method, trace=True).trace
    result = paths.simulate(1e6, method=method, trace=TraceFile(path, every))
    rows = np.load(path)
    assert result.trace is None
    assert kept is not None
    assert rows["transfer"].tolist() == list(range(0, len(kept.start), every))
    for name in ("start", "sent", "done"):
        assert (rows[name] == getattr(kept, name)[::every]).all()


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"goes to a \.npy file, got trace\.json"):
        TraceFile(Path("trace.json"))
    with pytest.raises(InputError, match="every=0"):
        TraceFile(tmp_path / "a.npy", 0)
