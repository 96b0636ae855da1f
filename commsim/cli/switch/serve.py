"""``commsim switch serve``: a switch that real workers talk to over UDP."""

from __future__ import annotations

import argparse
import ipaddress
import signal
import sys
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import parse_time, share
from commsim.report.table import print_facts, write_results

from . import bpf

if TYPE_CHECKING:
    from switch_model.bpf.server import KernelSwitch
    from switch_model.live.server import LiveSwitch

PORT = 48864


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("--host", metavar="ADDRESS", help="IPv4 address to listen on (127.0.0.1)")
    add("--port", type=int, default=PORT, metavar="N", help=f"UDP; TCP of the same number is the door ({PORT}; 0: any)")
    add("--pool-size", type=int, default=512, metavar="N", help="slots, for all jobs together (512)")
    add("--elements-per-packet", type=int, default=64, metavar="K", help="64 or 256 (64)")
    add("--drop-in", type=share, default=0.0, metavar="P", help="chance that a packet that comes is lost (0)")
    add("--drop-out", type=share, default=0.0, metavar="P", help="chance that a packet that leaves is lost (0)")
    add("--seed", type=int, default=0, metavar="N", help="of these losses (0)")
    add("--worker-timeout", default="5s", metavar="TIME", help="after which a silent worker counts as dead (5s)")
    add("--datagrams", metavar="segments|messages|single", help="how to receive and send (the fastest that works)")
    add("--json", metavar="FILE", help="at the end, write the status as JSON")
    bpf.add_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Serve until told to stop by SIGINT or SIGTERM."""
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopped.append(number))
    with _switch(args) as switch:
        host, port = switch.address
        plane, facts = switch.plane, switch.status()
        print(f"# serving on {host}, port {port} (UDP; TCP is the control door): {plane.pool_size} slots of "
              f"{plane.elements} elements, datagrams: {facts['datagrams']}", flush=True)  # fmt: skip
        while not stopped:
            switch.step()
        status = {**switch.status(), **switch.door.jobs.status()}
    print_facts({name.replace("_", " "): f"{count}" for name, count in status["counters"].items() if count})
    if args.json:
        write_results(args.json, {k: v for k, v in vars(args).items() if k != "json"}, [status])
    return 0


def _switch(args: argparse.Namespace) -> LiveSwitch | KernelSwitch:
    from switch_model.live.server import LiveSwitch, SwitchOptions

    timeout = parse_time(args.worker_timeout, "--worker-timeout")
    if not timeout >= 0.1:
        raise InputError(f"--worker-timeout must be at least 100ms, got {args.worker_timeout}")
    options = SwitchOptions(
        host=_address(args.host or "127.0.0.1"), port=port_number(args.port, 0), pool_size=args.pool_size,
        elements=args.elements_per_packet, drop_in=args.drop_in, drop_out=args.drop_out,
        seed=_not_negative(args.seed), worker_timeout=timeout, mode=args.datagrams,
    )  # fmt: skip
    if not ipaddress.ip_address(options.host).is_loopback:
        print(f"commsim switch serve: warning: {options.host} can be reached from other machines, and whoever "
              "reaches it may take part in jobs", file=sys.stderr)  # fmt: skip
    return bpf.kernel_switch(args, options, args.host) or LiveSwitch(options)


def _address(host: str) -> str:
    try:
        return str(ipaddress.IPv4Address("127.0.0.1" if host == "localhost" else host))
    except ValueError:
        raise InputError(f"--host is an IPv4 address to listen on, such as 127.0.0.1, got {host!r}") from None


def port_number(port: int, least: int = 1) -> int:
    """Return a port.

    Raises
    ------
    InputError
        If it is none.
    """
    if not least <= port <= 65535:
        raise InputError(f"--port is a number from {least} to 65535, got {port}")
    return port


def _not_negative(seed: int) -> int:
    if seed < 0:
        raise InputError(f"--seed must not be negative, got {seed}")
    return seed
