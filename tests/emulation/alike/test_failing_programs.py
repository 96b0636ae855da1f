"""Programs of ranks that are alike that fail: one line with the rank and exit code 1, and 2 where a flag is wrong."""

import os
from multiprocessing import Pipe

import pytest

from commsim.cli import main
from commsim.emulation.alike.stage_gpu import StageGpu

HEAD = """
import os, signal, torch
from torch import distributed as d
d.init_process_group("nccl")
r = d.get_rank()
x = torch.zeros(4, device="cuda")
"""
GIVEN = ["emulate", "-n", "4", "--topology", "star:n_hosts=4", "--compute", "roofline:h100"]

pytestmark = pytest.mark.torch


@pytest.fixture
def said(tmp_path, monkeypatch, capfd):
    """Return a function that emulates a program, and returns exit code and what was said; nothing is left behind."""
    pytest.importorskip("torch")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    def said(text, *flags):
        path = tmp_path / "prog.py"
        path.write_text(HEAD + text)
        code = main([*GIVEN, *flags, "--", "python", str(path)])
        return code, capfd.readouterr().err.replace(str(path), "prog.py")

    yield said
    assert not [one for one in folder.iterdir() if one.name.startswith("commsim-")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stages", "text", "why"),
    [
        (1, "d.all_reduce(x); 1 / 0", "rank 0: prog.py:7: ZeroDivisionError: division by zero"),
        (1, "raise SystemExit(3)", "prog.py: rank 0 exits with 3"),
        (1, "d.send(x, 1)", "rank 0: prog.py:7: send"),
        (1, "if x.sum() > 0: pass", "rank 0: prog.py:7: the program decides by the value of a tensor"),
        (2, "if r: os.kill(os.getpid(), signal.SIGKILL)\nd.barrier()", "rank 2 (stage 1): killed by SIGKILL"),
        *(pytest.param(*case, marks=pytest.mark.deep) for case in (
            (2, "if r: d.all_reduce(x); 1 / 0\nd.barrier()", "rank 2: prog.py:7: ZeroDivisionError: division by zero"),
            (2, "d.recv(x, 2 - r)\ntorch.cuda.synchronize()", "deadlock: nothing is under way, and all stages wait"),
        )),
    ],
)  # fmt: skip
def test_a_program_that_fails_is_one_line_and_exits_with_1(said, stages, text, why):
    code, err = said(text, "--stages", str(stages))
    assert code == 1, err
    assert why in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--stages", "3"), "--stages must divide the 4 ranks"),
        (("--algorithm", "all_reduce=none_such"), "none_such"),
        (("--algorithm", "all_reduce=ring_all_gather"), "is of all_gather, not of all_reduce"),
        (("--library", "gloo"), "--library chooses for ranks with data"),
    ],
)
def test_a_wrong_flag_is_one_line_and_exits_with_2(said, flags, why):
    code, err = said("d.all_reduce(x)", *flags)
    assert code == 2, err
    assert why in err
    assert err.count("\n") == 1


def test_a_stage_whose_emulation_has_ended_says_nothing(monkeypatch):
    """Its last question and its last word met a closed socket, and were a traceback of 107 lines."""
    monkeypatch.setattr(os, "_exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    for sends in (True, False):
        ours, theirs = Pipe()
        gpu = StageGpu(ours)
        if not sends:  # what was said is not read, so that the answer is a reset
            theirs.send(None)
            ours.send("unread")
            assert ours.recv() is None
        theirs.close()
        with pytest.raises(SystemExit, match="1"):
            gpu.synchronize()
        gpu.fail("deadlock")
        gpu.end(None)
