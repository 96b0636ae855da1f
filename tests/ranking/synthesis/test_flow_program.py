"""Linear programs of flows say what they do: `topo check` of 16 hosts said nothing for 20 s."""

import numpy as np
import scipy.optimize

from commsim.core.limits import EXPECTED
from commsim.ranking.synthesis.flow_program import FlowProgram


def test_a_program_that_is_solved_is_shown_as_progress(monkeypatch):
    parts = []

    def linprog(*_args, **_more):
        parts.append(EXPECTED.part)
        return scipy.optimize.OptimizeResult(success=True, x=np.ones(3))

    monkeypatch.setattr(scipy.optimize, "linprog", linprog)
    monkeypatch.setattr(FlowProgram, "_matrix", lambda *_: (None, None))
    monkeypatch.setattr(EXPECTED, "part", "")
    assert FlowProgram(3).solve("star", rounding=0.0) == 1.0
    EXPECTED.part = "ring (1 of 2)"
    FlowProgram(3).solve("star")
    assert parts == ["solving a linear program of 3 variables", "ring (1 of 2)"]
