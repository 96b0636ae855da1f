import os
import subprocess
import sys


def test_a_command_ends_with_its_status_and_all_that_it_printed():
    def run(*argv):
        return subprocess.run([sys.executable, "-m", "commsim", *argv], capture_output=True, text=True, check=False)

    good = run("run", "--topology", "star:n_hosts=4,bandwidth=100Gbps,latency=1us")
    assert (good.returncode, good.stderr) == (0, "")
    assert "Avg bus bandwidth" in good.stdout
    bad = run("run", "--topology", "star:n_hosts=none")
    assert bad.returncode == 2
    assert len(bad.stderr.splitlines()) == 1


def test_scipy_can_be_imported_after_numba_was_loaded_without_it():
    program = """
import sys
from commsim.core import jit
jit.ALONE = True
jit._numba()
hidden = [name for name in jit.UNUSED if sys.modules.get(name, "") is None]
print(hidden, "scipy.linalg" in sys.modules)
import scipy.linalg
print(scipy.linalg.norm([3.0, 4.0]))
"""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    out = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["[] False", "5.0"]
