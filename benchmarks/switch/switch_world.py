"""Hosts around a switch, each a network namespace: real cables, real rates, and nothing that leaves this machine.

Names begin with a prefix of our own and the number of our process, so that what a process that died has left is found
and taken away.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from commsim.core.errors import BackendError
from switch_model.bpf.commands import output_of
from switch_model.bpf.program import MAX_JOBS

PREFIX = "csworld"
SWITCH_ADDRESS = "10.77.0.254"
WORKER_PORT = 4000
# What it takes beside what the switch takes, and the Debian packages that have it.
PROGRAMS = {"nsenter": "util-linux", "ethtool": "ethtool", "nft": "nftables"}
_NUMBERS = itertools.count()
WORKER = Path(__file__).parents[2] / "tests" / "oracles" / "window_worker.py"


class SwitchWorld:
    """A bridge with ports p0, p1, ... in a namespace, and a host behind each; gone at the end of `with`.

    Parameters
    ----------
    n_hosts : int
        At most 200.
    rate : int, bit/s
        Of each cable, both ways; 0 for as fast as the machine.
    loss : float
        Probability with which a packet on a cable is lost, each way.
    mtu : int, bytes
        Of all interfaces.
    joined : bool
        Whether many datagrams may travel on a cable as one, which no wire does.
    """

    def __init__(self, n_hosts: int, rate: int = 0, loss: float = 0.0, mtu: int = 1500, joined: bool = False) -> None:
        self.n_hosts, self.rate, self.loss, self.mtu, self.joined = n_hosts, rate, loss, mtu, joined
        name = f"{PREFIX}{os.getpid()}w{next(_NUMBERS)}"
        self.switch, self.hosts = f"{name}s", [f"{name}h{i}" for i in range(n_hosts)]
        self.ports = [f"p{i}" for i in range(n_hosts)]
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> SwitchWorld:
        remove_dead_worlds()
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._remove()

    def address(self, host: int) -> str:
        """Return a host's address."""
        return f"10.77.0.{1 + host}"

    def start(self, namespace: str, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program in a namespace; it ends with the world."""
        inside = ["nsenter", f"--net=/run/netns/{namespace}", *command]
        pipe = subprocess.PIPE
        process = subprocess.Popen(inside, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._processes.append(process)
        return process

    def serve(self, elements: int, n_slots: int = 32, drop: float = 0.0) -> subprocess.Popen[str]:
        """Start a switch in the kernel on all ports, with a job of all hosts; return when it serves.

        It prints its counters as JSON when it is stopped.
        """
        facts = {"elements": elements, "pool_size": n_slots + 64, "drop_in": drop, "drop_out": drop}
        peers = [(self.address(i), WORKER_PORT) for i in range(self.n_hosts)]
        own = json.dumps([facts, self.ports, peers, n_slots])
        process = self.start(self.switch, [sys.executable, "-m", "benchmarks.switch.switch_world", own])
        line_of(process)
        return process

    def counters(self, switch: subprocess.Popen[str]) -> dict[str, int]:
        """Stop a switch, and return what it has counted."""
        switch.send_signal(signal.SIGINT)
        counted: dict[str, int] = json.loads(line_of(switch))
        self.stop(switch)
        return counted

    def workers(
        self, elements: int, size: int, tensors: int = 1, n_slots: int = 32, rto: float = 0.05
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Let a plain worker on each host reduce `tensors` tensors of `size` elements; return what each says."""
        options = {"switch": SWITCH_ADDRESS, "job": MAX_JOBS - 1, "first_slot": 64, "n_slots": n_slots,
                   "elements": elements, "size": size, "tensors": tensors, "rto": rto,
                   "n_workers": self.n_hosts}  # fmt: skip
        started = []
        for rank, host in enumerate(self.hosts):
            own = json.dumps({**options, "rank": rank, "host": self.address(rank)})
            started.append(self.start(host, [sys.executable, str(WORKER), own]))
        for _ in range(tensors + 1):
            for process in started:
                line_of(process)
            for process in started:
                _go(process)
        found = [json.loads(line_of(process)) for process in started]
        for process in started:
            self.stop(process)
        return found

    def stop(self, process: subprocess.Popen[str]) -> int:
        """Ask a program to end, and wait until it has."""
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if process in self._processes:
            self._processes.remove(process)
        return process.returncode

    def _build(self) -> None:
        switch = ["ip", "-netns", self.switch]
        output_of(["ip", "netns", "add", self.switch])
        output_of([*switch, "link", "add", "br0", "mtu", str(self.mtu), "type", "bridge"])
        output_of([*switch, "address", "add", f"{SWITCH_ADDRESS}/24", "dev", "br0"])
        for name in ("br0", "lo"):
            output_of([*switch, "link", "set", name, "up"])
        for i, (host, port) in enumerate(zip(self.hosts, self.ports, strict=True)):
            output_of(["ip", "netns", "add", host])
            both = ["link", "add", port, "mtu", str(self.mtu), "type", "veth"]
            output_of([*switch, *both, "peer", "name", "e0", "mtu", str(self.mtu), "netns", host])
            output_of([*switch, "link", "set", port, "master", "br0", "up"])
            inside = ["ip", "-netns", host]
            output_of([*inside, "address", "add", f"{self.address(i)}/24", "dev", "e0"])
            for name in ("e0", "lo"):
                output_of([*inside, "link", "set", name, "up"])
            if not self.joined:
                features = ["tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off"]
                output_of(["nsenter", f"--net=/run/netns/{host}", "ethtool", "-K", "e0", *features])
            self._shape(host, "e0")
            self._shape(self.switch, port)
            self._lose(host)

    def _shape(self, namespace: str, name: str) -> None:
        if self.rate:
            burst = max(32000, self.rate // 8 // 1000)
            output_of(["tc", "-netns", namespace, "qdisc", "add", "dev", name, "root", "tbf", "rate", f"{self.rate}bit",
                       "burst", str(burst), "limit", "16000000"])  # fmt: skip

    def _lose(self, host: str) -> None:
        """Lose packets where they leave and enter the host: at the switch's ingress, our program comes before."""
        if not self.loss:
            return
        rules = "table netdev losses {\n"
        for hook in ("ingress", "egress"):
            rules += f'chain {hook}s {{ type filter hook {hook} device "e0" priority 0; policy accept;\n'
            rules += f"meta l4proto udp numgen random mod 100000 < {round(1e5 * self.loss)} drop; }}\n"
        output_of(["nsenter", f"--net=/run/netns/{host}", "nft", "-f", "-"], rules + "}\n")

    def _remove(self) -> None:
        for process in list(self._processes):
            self.stop(process)
        for name in [self.switch, *self.hosts]:
            _delete(name)


def lacking() -> str:
    """Return which programs for a world are missing; or nothing."""
    missing = [f"{program} (package {package})" for program, package in PROGRAMS.items() if not shutil.which(program)]
    return f"there is no {', '.join(missing)} here" if missing else ""


def remove_dead_worlds() -> list[str]:
    """Take away the namespaces of processes that are no more; return their names."""
    found = []
    for path in Path("/run/netns").glob(f"{PREFIX}*"):
        number = path.name.removeprefix(PREFIX).partition("w")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            found.append(path.name)
            _delete(path.name)
    return found


def _delete(name: str) -> None:
    with contextlib.suppress(BackendError):
        output_of(["ip", "netns", "delete", name])


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a program prints.

    Raises
    ------
    BackendError
        If it has ended instead; with the last that it said.
    """
    assert process.stdout is not None
    said = process.stdout.readline()
    if not said:
        why = process.stderr.read() if process.stderr else ""
        raise BackendError(f"a program in a namespace ended: {(why.strip().splitlines() or ['without a word'])[-1]}")
    return said


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _serve(facts: dict[str, Any], ports: list[str], peers: list[tuple[str, int]], n_slots: int) -> None:
    """Be the switch of a world, in the process that `SwitchWorld.serve` started."""
    from switch_model.bpf.server import KernelSwitch, StaticJob
    from switch_model.live.server import SwitchOptions

    job = StaticJob("job", tuple((host, port) for host, port in peers), tuple(ports), n_slots)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)  # a shell in the background has its children ignore SIGINT
    with KernelSwitch(SwitchOptions(**facts), ports, [job]) as switch, contextlib.suppress(KeyboardInterrupt):
        print("serving", flush=True)
        try:
            while True:
                switch.step()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # what follows takes the switch out of the kernel
            print(json.dumps(switch.plane.counts()), flush=True)


if __name__ == "__main__":
    _serve(*json.loads(sys.argv[1]))
