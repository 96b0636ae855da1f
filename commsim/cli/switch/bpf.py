"""``commsim switch serve --dataplane bpf``: the flags of the kernel's switch, and its place among the others."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from commsim.core.errors import BackendError, InputError

if TYPE_CHECKING:
    from switch_model.bpf.server import KernelSwitch, StaticJob
    from switch_model.live.server import SwitchOptions

WORKER_PORT = 4000
DATAPLANES = ("user", "bpf")
_WORKER = re.compile(r"(?P<host>[0-9.]+)(:(?P<port>[0-9]+))?(@(?P<interface>[^@:+,]+))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose and describe the kernel's switch."""
    group = parser.add_argument_group("in the kernel (Linux, root)")
    group.add_argument(
        "--dataplane", choices=DATAPLANES, default="user",
        help="user: this process handles the packets; bpf: a program in the kernel does, at the ports' ingress",
    )  # fmt: skip
    group.add_argument("--interfaces", metavar="P0,P1,...", help="the kernel's switch has these ports")
    group.add_argument(
        "--job", action="append", default=[], metavar="NAME:KEY=...",
        help="a job whose workers do not come to the control door: NAME:slots=32,workers=HOST[:PORT][@PORT]+...",
    )  # fmt: skip


def kernel_switch(args: argparse.Namespace, options: SwitchOptions, host: str | None) -> KernelSwitch | None:
    """Put a switch into the kernel, if that was asked for and is possible here.

    Parameters
    ----------
    args : Namespace
        With the flags of `add_arguments`.
    options : SwitchOptions
        All else.
    host : str, optional
        Address of the switch, if given; otherwise that of the ports' bridge.

    Returns
    -------
    KernelSwitch or None
        None if packets are to be handled in user space; why is said in one line on standard error.

    Raises
    ------
    InputError
        If the flags do not make sense.
    """
    if args.dataplane == "user":
        if args.interfaces or args.job:
            raise InputError("--interfaces and --job belong to --dataplane bpf; here workers join at the control door")
        return None
    if not args.interfaces:
        raise InputError("--dataplane bpf needs its ports: --interfaces P0,P1,...")
    jobs = [static_job(text) for text in args.job]
    from switch_model.bpf.server import KernelSwitch

    try:
        switch = KernelSwitch(options, args.interfaces.split(","), jobs, host or "")
    except BackendError as error:
        if jobs:
            raise BackendError(f"no switch in the kernel ({error}), and the user-space switch has no --job") from None
        print(f"commsim switch serve: no switch in the kernel: {error}; the user-space switch serves", file=sys.stderr)
        return None
    if options.seed or options.mode:
        print("commsim switch serve: --seed and --datagrams have no effect in the kernel", file=sys.stderr)
    for job in switch.jobs:
        slots = f"slots {job['first_slot']} to {job['first_slot'] + job['slots'] - 1}"
        print(f"# job {job['name']}: {job['workers']} workers, number {job['number']}, {slots}")
    return switch


def static_job(text: str) -> StaticJob:
    """Read a job that is given on the command line.

    Raises
    ------
    InputError
        If it is not written as it should be.
    """
    from switch_model.bpf.server import StaticJob

    name, _, rest = text.partition(":")
    given = dict(part.partition("=")[::2] for part in rest.split(","))
    matches = [_WORKER.fullmatch(worker) for worker in given.get("workers", "").split("+")]
    workers = [m for m in matches if m]
    slots = given.get("slots", "32")
    ports = [int(m["port"] or WORKER_PORT) for m in workers]
    right = bool(name) and len(workers) == len(matches) and given.keys() <= {"slots", "workers"}
    if not right or not slots.isdecimal() or not int(slots) or not all(0 < port < 65536 for port in ports):
        raise InputError(f"--job is NAME:slots=32,workers=10.0.0.1:4000@p0+10.0.0.2:4000@p1 "
                         f"(slots, :PORT and @INTERFACE may be left out), got {text!r}")  # fmt: skip
    peers = tuple((m["host"], port) for m, port in zip(workers, ports, strict=True))
    return StaticJob(name, peers, tuple(m["interface"] or "" for m in workers), int(slots))
