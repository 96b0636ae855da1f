"""Programs of mpi4py, and commands that run them."""

import pytest

from commsim.cli import main


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a program, and returns its path."""

    def write(text):
        path = tmp_path / "prog.py"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def command(write, capfd):
    """Return a function that emulates a program by the command, and returns exit code, output and error."""

    def command(text, *flags, n=4, ranks_as="threads", network="star:n_hosts=8,bandwidth=100Gbps,latency=1us"):
        given = ["-n", str(n), "--topology", network, "--ranks-as", ranks_as, *flags, "--", "python", write(text)]
        code = main(["emulate", *given])
        out, err = capfd.readouterr()
        return code, out, err

    return command
