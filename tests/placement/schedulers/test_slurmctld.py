"""The files as a real slurmctld reads them; only where it is installed.

Which plugins can be asked depends on its version: topology/tree in all of them, topology/block since 23.11,
topology.yaml since 25.05.
"""

import os
import re
import shutil
import subprocess
import time

import pytest
from ports import free_ports

from commsim.core.names.hostlist import compress_hosts, expand_hosts
from commsim.placement.schedulers.fabric_tree import Switch, SwitchTree, blocks_of
from commsim.placement.schedulers.slurm import read_slurm_conf, write_slurm_conf
from commsim.placement.schedulers.slurm_yaml import NamedTopology, write_slurm_yaml
from commsim.placement.schedulers.tree_network import tree_of
from commsim.prediction.inputs import load_network

PROGRAMS = {name: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
            for name in ("slurmctld", "scontrol", "munged")}  # fmt: skip
LIMIT_S = 100  # of what takes a second on a machine that is not busy
CONF = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={slurmd}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/pgid
MpiDefault=none
TopologyPlugin=topology/{plugin}
NodeName={nodes} NodeAddr=127.0.0.1 CPUs=1
PartitionName=all Nodes=ALL Default=YES
"""
TREES = {
    "leaf_spine": tree_of(load_network("leaf_spine:n_leaves=3,n_spines=2,hosts_per_leaf=4"))[0],
    "fat_tree": tree_of(load_network("fat_tree:k=4"))[0],
    "uneven": SwitchTree((Switch("a", nodes=("gpu-a08", "gpu-a09", "gpu-a10")), Switch("b", nodes=("x1", "y2")),
                    Switch("mid", ("a",)), Switch("top", ("mid", "b"), speed="400"))),
}  # fmt: skip


def version():
    words = subprocess.run([PROGRAMS["slurmctld"], "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", words).groups())


class Controller:
    """A munged and slurmctlds of our own, in a folder of our own, on ports of loopback."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "state").mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o600)
        files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "seed-file": "munge.seed"}
        self._munged = subprocess.Popen(
            [PROGRAMS["munged"], "--foreground", "--force", *(f"--{k}={folder / v}" for k, v in files.items())],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def topology(self, plugin, text, nodes, name="topology.conf"):
        """Start slurmctld with a file; return what `scontrol show topology` prints."""
        port, slurmd = free_ports(2)
        user = "root" if os.geteuid() == 0 else os.environ.get("USER", "root")
        conf = CONF.format(port=port, slurmd=slurmd, folder=self.folder, user=user, plugin=plugin, nodes=nodes)
        (self.folder / "slurm.conf").write_text(conf)
        for old in ("topology.conf", "topology.yaml"):
            (self.folder / old).unlink(missing_ok=True)
        (self.folder / name).write_text(text)
        log = self.folder / "slurmctld.log"
        with log.open("w") as out:
            daemon = subprocess.Popen(
                [PROGRAMS["slurmctld"], "-D", "-c", "-f", str(self.folder / "slurm.conf")], stdout=out, stderr=out
            )
        try:
            end = time.monotonic() + LIMIT_S
            while daemon.poll() is None and time.monotonic() < end:
                shown = subprocess.run([PROGRAMS["scontrol"], "show", "topology"], capture_output=True, text=True,
                                       env=os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf")})  # fmt: skip
                if shown.returncode == 0:
                    return shown.stdout, log.read_text()
                time.sleep(0.05)
            raise AssertionError(log.read_text())
        finally:
            end_process(daemon)

    def close(self):
        end_process(self._munged)


def end_process(process):
    process.terminate()
    try:
        process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def shown_switches(text):
    """By switch, its level and the nodes that Slurm counts below it."""
    found = {}
    for line in text.splitlines():
        record = dict(word.split("=", 1) for word in line.split())
        below = set(expand_hosts(record["Switches"])) if "Switches" in record else set()
        found[record["SwitchName"]] = (int(record["Level"]), set(expand_hosts(record["Nodes"])), below)
    return found


def wanted_switches(tree):
    tier, layers = tree.tiers(), tree.layers()
    return {
        s.name: (tier[s.name] - 1, {node for node, above in layers.items() if s.name in above}, set(s.switches))
        for s in tree.switches
    }


if all(PROGRAMS.values()):
    VERSION = version()

    @pytest.fixture(scope="module")
    def controller(tmp_path_factory):
        running = Controller(tmp_path_factory.mktemp("slurm"))
        yield running
        running.close()

    @pytest.mark.parametrize("name", TREES)
    def test_slurmctld_shows_the_switches_of_our_topology_conf(controller, name):
        tree = TREES[name]
        text = write_slurm_conf(tree, ("a comment",))
        shown, log = controller.topology("tree", text, compress_hosts(tree.nodes))
        assert shown_switches(shown) == wanted_switches(tree)
        assert "opology" not in "".join(line for line in log.splitlines() if "error" in line)
        assert read_slurm_conf(text) == tree

    if VERSION >= (23, 11):

        def test_slurmctld_shows_the_blocks_of_our_topology_conf(controller):
            found = blocks_of(TREES["leaf_spine"])
            shown, _ = controller.topology("block", write_slurm_conf(found), compress_hosts(TREES["leaf_spine"].nodes))
            for name, nodes in found.blocks:
                assert re.search(rf"BlockName={name}\b.*Nodes={re.escape(compress_hosts(nodes))}", shown)

    if VERSION >= (25, 5):

        def test_slurmctld_shows_the_switches_of_our_topology_yaml(controller):
            tree = TREES["leaf_spine"]
            text = write_slurm_yaml([NamedTopology("default", tree, True)])
            shown, _ = controller.topology("tree", text, compress_hosts(tree.nodes), "topology.yaml")
            assert shown_switches(shown) == wanted_switches(tree)
