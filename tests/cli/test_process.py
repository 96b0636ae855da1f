import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_command_ends_with_its_status_and_all_that_it_printed():
    def run(*argv):
        return subprocess.run([sys.executable, "-m", "commsim", *argv], capture_output=True, text=True, check=False)

    good = run("run", "--topology", "star:n_hosts=4,bandwidth=100Gbps,latency=1us")
    assert (good.returncode, good.stderr) == (0, "")
    assert "Avg bus bandwidth" in good.stdout
    bad = run("run", "--topology", "star:n_hosts=none")
    assert bad.returncode == 2
    assert len(bad.stderr.splitlines()) == 1


TERMINATED = """
import os, signal, tempfile, time
from commsim.cli import process

def command():
    with tempfile.TemporaryDirectory() as folder:
        print(folder, flush=True)
        heard, said = os.pipe()
        if not os.fork():
            os.write(said, b"x")  # signals before are lost in a fork
            time.sleep(60)
        os.read(heard, 1)
        os.kill(0, signal.SIGTERM)
        time.sleep(60)

process.main = lambda: quiet(command)

def quiet(command):
    try:
        command()
    except KeyboardInterrupt:
        return 130

process.run()
"""


def test_a_command_that_is_terminated_takes_its_temporary_files_and_children_along():
    done = subprocess.run([sys.executable, "-c", TERMINATED], capture_output=True, text=True, check=False,
                          timeout=50, start_new_session=True)  # fmt: skip
    assert (done.returncode, done.stderr) == (143, "")
    assert not Path(done.stdout.strip()).exists()


LIBRARY = """
import signal, sys
from commsim.cli import process

def interrupted():
    try:
        signal.raise_signal(getattr(signal, sys.argv[1]))
    except KeyboardInterrupt as error:
        raise ImportError("initialization failed") from error

process.main = interrupted
process.run()
"""


def test_ctrl_c_before_the_command_begins_is_no_traceback():
    code = "import signal\nfrom commsim.cli import process\n"
    code += "process.end_on_signals = lambda: signal.raise_signal(signal.SIGINT)\nprocess.run()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (130, "")


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_an_interrupted_library_that_makes_another_error_of_it_is_no_traceback(name, status):
    """SciPy's solver did, when it was interrupted while it was imported."""
    found = subprocess.run([sys.executable, "-c", LIBRARY, name], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (status, "")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="lists threads as Linux does")
def test_numpy_starts_no_threads_and_programs_that_are_started_may():
    code = (
        "import os, sys\nfrom commsim.cli import process\n"
        "def main():\n    import numpy\n    print(len(os.listdir('/proc/self/task')), process.THREADS in os.environ)\n"
        "process.main, sys.argv = main, ['commsim', 'run']\nprocess.run()"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["3", "False"]  # others show progress and hear signals


PAGES_ANEW = """
import resource, sys
from commsim.cli import process

def main():
    import numpy as np
    faults = []
    for _ in range(2):
        column = np.ones(8_000_000)
        del column
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
    print(faults[1] - faults[0])

process.main = main
process.run()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such options")
def test_run_uses_freed_memory_again_and_a_service_gives_it_back():
    environment = {**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0"}
    environment = {name: value for name, value in environment.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    pages = []
    for verb in ("run", "place"):
        command = [sys.executable, "-c", PAGES_ANEW, verb]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        pages.append(int(done.stdout))
    column = 64e6 / os.sysconf("SC_PAGE_SIZE")
    assert pages[0] < column / 10
    assert pages[1] > column / 2
