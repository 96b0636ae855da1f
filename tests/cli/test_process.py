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
