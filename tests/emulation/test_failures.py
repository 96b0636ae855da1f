"""Programs that fail, in threads and processes: one line with the rank, and nothing left behind."""

import os
import subprocess
import sys
import tempfile

import pytest

import commsim as cs
from commsim.cli import main
from commsim.core.errors import InputError
from commsim.emulation.rank import EAGER, FACTOR, NUMBER, SIZE, SOCKET

WELL = "from mpi4py import MPI\nc = MPI.COMM_WORLD\n"
BOTH = pytest.mark.parametrize("ranks_as", ["threads", "processes"])


@pytest.fixture(autouse=True)
def nothing_left(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert not list(folder.iterdir())


# What fails, what is said, and whether every run of the tests has it in processes, too: what the coordinator finds is
# the same code there.
FAILURES = [
    ("if c.rank == 2: 1 / 0\nc.Barrier()", "rank 2: {path}:3: ZeroDivisionError: division by zero", True),
    ("if c.rank == 1: raise SystemExit(3)\nc.Barrier()", "rank 1: e", True),
    ("if c.rank: c.recv(source=0, tag=c.rank)", "rank 1: receive from 0, tag 1", False),
    ("c.Ssend(b'a', (c.rank + 1) % 4)", "rank 0: send to 1, tag 0 (prog.py:3)", True),
    ("c.bcast(1) if c.rank else c.Barrier()", "calls broadcast with operation 'broadcast' where rank 0", False),
    ("while not c.Iprobe(): pass", "probe from any, tag any (prog.py:3)", False),
    ("import numpy\nif c.rank: c.Recv(numpy.empty(1), 0)\nelse: [c.Send(numpy.empty(2), k) for k in (1, 2, 3)]",
     "rank 1: {path}:4: MPIError: message truncated: 16 bytes for a buffer of 8", True),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks_as", "text", "said"),
    [*(("threads", text, said) for text, said, _ in FAILURES),
     *(pytest.param("processes", text, said, marks=() if always else pytest.mark.deep)
       for text, said, always in FAILURES)],
)  # fmt: skip
def test_one_line_says_which_rank_and_why(command, tmp_path, ranks_as, text, said):
    code, _, err = command(WELL + text, ranks_as=ranks_as)
    assert code == 1
    assert err.count("\n") == 1
    assert said.format(path=tmp_path / "prog.py") in err


def test_a_process_that_dies_is_named(command):
    text = WELL + "import os, signal\nif c.rank == 3: os.kill(os.getpid(), signal.SIGKILL)\nc.Barrier()"
    code, _, err = command(text, ranks_as="processes")
    assert code == 1
    assert "rank 3: killed by SIGKILL while others wait for it" in err


@pytest.mark.parametrize("n_bytes", [84, 150])
def test_the_folder_of_temporary_files_may_have_a_long_name(command, tmp_path, monkeypatch, n_bytes):
    folder = tmp_path / ("x" * max(1, n_bytes - len(str(tmp_path)) - 1))  # no room for sockets of ranks, or for any
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    code, out, err = command(WELL + "import sys; sys.stdout.write(f'{c.allreduce(1)}\\n')", ranks_as="processes", n=2)
    assert (code, err) == (0, "")
    assert out.startswith("2\n2\n")
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("name", "said"), [("missing/ranks", ""), ("x" * 200, "a rank cannot begin: AF_UNIX path")])
def test_a_rank_that_cannot_begin_says_why_unless_its_emulation_has_ended(tmp_path, name, said):
    own = {SOCKET: str(tmp_path / name), NUMBER: "0", SIZE: "1", FACTOR: "", EAGER: "0"}
    begin = [sys.executable, "-c", "from commsim.emulation.start_process import begin; begin(); print('goes on')"]
    begun = subprocess.run(begin, env=os.environ | own, capture_output=True, text=True, check=False)
    assert (begun.returncode, begun.stdout, begun.stderr.count("\n")) == (1, "", bool(said))
    assert said in begun.stderr


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            "p = os.fork()\nif p == 0: c.send(1, 0)\nassert os.waitpid(p, 0)[1]\nc.Barrier()",
            0,
            "BackendError: this process was",
        ),
        ("p = os.fork()\nif p: os.waitpid(p, 0); c.Barrier()", 0, ""),  # the end of the other is not that of the rank
        ("if c.rank and not os.fork(): time.sleep(99)\nif c.rank: os._exit(4)\nc.Barrier()", 1, "exit code 4"),
    ],
)
def test_a_process_that_is_forked_from_a_rank_is_none(command, text, code, said):
    found, out, err = command(f"{WELL}import os, time\n{text}", ranks_as="processes", n=2)
    assert (found, said in err, bool(err)) == (code, True, bool(said))
    assert ("barrier" in out) == (code == 0)


def test_ranks_that_are_threads_do_not_replace_their_process(command):
    code, _, err = command(WELL + "import os\nif c.rank: os.execlp('true', 'true')\nc.Barrier()", n=2)
    assert code == 1
    assert "RuntimeError: os.exec would replace all ranks, which are threads: use --ranks-as processes\n" in err


def test_a_program_without_mpi_runs_and_takes_no_time(command):
    code, out, _ = command("print('here')", ranks_as="processes", n=2)
    assert code == 0
    assert out.count("here") == 2


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--algorithm", "all_reduce"), "--algorithm must be OPERATION=NAME"),
        (("--algorithm", "broadcast=ring_all_reduce"), "ring_all_reduce is of all_reduce, not of broadcast"),
        (("--library", "lam"), "unknown library 'lam'; known: mpich, open-mpi, open-mpi-4.0, gloo"),
        (("--compute", "measured:0"), "compute must be none, measured or measured:FACTOR"),
        (("--eager", "x"), "eager"),
        (("--routing", "nowhere"), "unknown routing 'nowhere'"),
    ],
)
def test_wrong_values_are_one_line(command, flags, said):
    code, _, err = command(WELL, *flags)
    assert code == 2
    assert err.count("\n") == 1
    assert said in err


def test_a_command_that_cannot_be_started_is_wrong_input(capsys):
    assert main(["emulate", "-n", "2", "--topology", "star:n_hosts=2", "--", "no-such-program"]) == 2
    assert (
        capsys.readouterr().err
        == "commsim emulate: error: no-such-program: cannot be started: No such file or directory\n"
    )


def test_a_launcher_in_front_of_the_program_is_refused(capsys):
    argv = ["emulate", "-n", "2", "--topology", "star:n_hosts=2", "--", "mpiexec", "-n", "2", "python", "prog.py"]
    assert main(argv) == 2
    said = "mpiexec: commsim emulate starts the ranks itself; leave mpiexec and its flags out\n"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks-as", "threads", "--", "python", "-m", "no_such_module"], "-m no_such_module: No module named"),
        (["--ranks-as", "processes", "--", "true"], "a rank is a program of Python, without the flags -E, -I and -S"),
    ],
)
def test_what_cannot_be_a_rank_is_one_line(capfd, words, said):
    assert main(["emulate", "-n", "2", "--topology", "star:n_hosts=2", *words]) in (1, 2)
    err = capfd.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_more_ranks_than_hosts_are_refused(command):
    code, _, err = command(WELL, n=9)
    assert code == 2
    assert "9" in err


def test_measured_computing_takes_time(command):
    text = WELL + "sum(range(300000))\nc.Barrier()\nassert MPI.Wtime() > 1e-3"
    for ranks_as in ("threads", "processes"):
        assert command(text, "--compute", "measured:10", ranks_as=ranks_as, n=2)[0] == 0


def test_other_work_in_place_of_a_program_is_refused():
    with pytest.raises(InputError, match=r"^groups is not modelled for emulated programs$"):
        cs.emulate(lambda: None, "star:n_hosts=4", 4, groups=[[0, 1]])
