"""``commsim switch serve``: a switch that real workers talk to over UDP, in this process or in the kernel."""

from __future__ import annotations

import ipaddress
import re
import signal
from typing import TYPE_CHECKING, ClassVar

from commsim.cli.flags import DefaultOf, Flags, flag, repeated, switched
from commsim.core.errors import BackendError, InputError
from commsim.core.spec import is_whole
from commsim.core.units import parse_time, share, write_time
from commsim.report.answer import Answer, Facts
from commsim.report.terminal import announce, tell

from .secret import WithSecret

if TYPE_CHECKING:
    from switch_model.bpf.server import KernelSwitch, StaticJob
    from switch_model.live.server import LiveSwitch, SwitchOptions

HOST = DefaultOf("switch_model.live.server:SwitchOptions.host")
DATAPLANES = ("user", "bpf")
_WORKER = re.compile(r"(?P<host>[0-9.]+)(:(?P<port>[0-9]+))?(@(?P<interface>[^@:+,]+))?")


class Dataplane(Flags):
    """The dataplane: this process, or a program in the kernel."""

    TITLE: ClassVar[str] = "in the kernel (Linux, root)"
    dataplane: str = flag(
        choices=DATAPLANES, default="user",
        help="user: this process handles the packets; bpf: a program in the kernel, at the ports' ingress",
    )  # fmt: skip
    interfaces: str | None = flag(metavar="P0,P1,...", help="with --dataplane bpf: ports of the switch")
    job: tuple[str, ...] = repeated(
        metavar="NAME:KEY=...",
        help="job whose workers do not use the control server: NAME:slots=32,workers=HOST[:PORT][@PORT]+...",
    )  # fmt: skip


def kernel_switch(config: Dataplane, options: SwitchOptions, host: str | None) -> KernelSwitch | None:
    """Put a switch into the kernel, if that was asked for and is possible here.

    Parameters
    ----------
    config : Dataplane
        The flags.
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
    if config.dataplane == "user":
        if config.interfaces or config.job:
            raise InputError("--interfaces and --job belong to --dataplane bpf; workers join at the control server")
        return None
    if not config.interfaces:
        raise InputError("--dataplane bpf needs its ports: --interfaces P0,P1,...")
    jobs = [static_job(text) for text in config.job]
    from switch_model.bpf.server import KernelSwitch

    try:
        switch = KernelSwitch(options, config.interfaces.split(","), jobs, host or "")
    except BackendError as error:
        if jobs:
            raise BackendError(f"no switch in the kernel ({error}), and the user-space switch has no --job") from None
        tell(f"commsim switch serve: no switch in the kernel: {error}; the user-space switch serves")
        return None
    if options.seed or options.mode:
        tell("commsim switch serve: --seed and --datagrams have no effect in the kernel")
    for job in switch.jobs:
        slots = f"slots {job['first_slot']} to {job['first_slot'] + job['slots'] - 1}"
        announce(f"job {job['name']}: {job['workers']} workers, number {job['number']}, {slots}")
    return switch


def static_job(text: str) -> StaticJob:
    """Read a job that is given on the command line.

    Raises
    ------
    InputError
        If it is not written as it should be.
    """
    from switch_model.bpf.server import StaticJob
    from switch_model.packets.wire_format import WORKER_PORT

    name, _, rest = text.partition(":")
    fields = dict(part.partition("=")[::2] for part in rest.split(","))
    matches = [_WORKER.fullmatch(worker) for worker in fields.get("workers", "").split("+")]
    workers = [m for m in matches if m]
    slots = fields.get("slots", "32")
    ports = [int(m["port"] or WORKER_PORT) for m in workers]
    right = bool(name) and len(workers) == len(matches) and fields.keys() <= {"slots", "workers"}
    if not right or not is_whole(slots) or not int(slots) or not all(0 < port < 65536 for port in ports):
        raise InputError(f"--job is NAME:slots=32,workers=10.0.0.1:4000@p0+10.0.0.2:4000@p1 "
                         f"(slots, :PORT and @INTERFACE may be left out), got {text!r}")  # fmt: skip
    peers = tuple((m["host"], port) for m, port in zip(workers, ports, strict=True))
    return StaticJob(name, peers, tuple(m["interface"] or "" for m in workers), int(slots))


class SwitchServeConfig(WithSecret, Dataplane):
    """All flags of ``commsim switch serve``."""

    host: str | None = flag(
        metavar="ADDRESS", help="IPv4 address to listen on (default: %(usual)s)", shown={"usual": HOST}
    )
    port: int = flag(
        default=DefaultOf("switch_model.live.server:SwitchOptions.port"),
        metavar="N",
        help="UDP port, and TCP port of the control server; 0: any free one",
    )
    pool_size: int = flag(
        default=DefaultOf("switch_model.live.server:SwitchOptions.pool_size"),
        metavar="N",
        help="number of slots, for all jobs together",
    )
    elements_per_packet: int = flag(
        default=DefaultOf("switch_model.live.server:SwitchOptions.elements"), metavar="K", help="64 or 256"
    )
    drop_in: float = flag(type=share, default=0.0, metavar="P", help="probability that an incoming packet is lost")
    drop_out: float = flag(type=share, default=0.0, metavar="P", help="probability that an outgoing packet is lost")
    seed: int = flag(default=0, metavar="N", help="seed of these losses")
    no_secret: bool = switched(help="accept workers without a secret, even if other machines can reach --host")
    worker_timeout: str = flag(
        default=DefaultOf("switch_model.live.server:SwitchOptions.worker_timeout", write_time),
        metavar="TIME",
        help="time after which a silent worker is considered dead",
    )
    datagrams: str | None = flag(
        metavar="segments|messages|single", help="how to receive and send datagrams (default: the fastest that works)"
    )
    json: str | None = flag(metavar="FILE", help="write the final status as JSON")


def run(config: SwitchServeConfig) -> Answer:
    """Serve until told to stop by SIGINT or SIGTERM."""
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: stopped.append(number))
    with _switch(config) as switch:
        host, port = switch.address
        plane, facts = switch.plane, switch.status()
        announce(f"serving on {host}, port {port} (UDP; TCP is the control server): {plane.pool_size} slots of "
                 f"{plane.elements} elements, datagrams: {facts['datagrams']}")  # fmt: skip
        while not stopped:
            switch.step()
        status = {**switch.status(), **switch.control.jobs.status()}
    counters = {name.replace("_", " "): f"{count}" for name, count in status["counters"].items() if count}
    return Answer([Facts(counters)], [status])


def _switch(config: SwitchServeConfig) -> LiveSwitch | KernelSwitch:
    from switch_model.live.server import LiveSwitch, SwitchOptions

    timeout = parse_time(config.worker_timeout, "--worker-timeout")
    if not timeout >= 0.1:
        raise InputError(f"--worker-timeout must be at least 100ms, got {config.worker_timeout}")
    options = SwitchOptions(
        host=_address(config.host or str(HOST)), port=port_number(config.port, 0), pool_size=config.pool_size,
        elements=config.elements_per_packet, drop_in=config.drop_in, drop_out=config.drop_out,
        seed=config.seed, worker_timeout=timeout, mode=config.datagrams, secrets=config.secrets(),
    )  # fmt: skip
    if config.no_secret and options.secrets:
        raise InputError("--secret-file and --no-secret exclude each other")
    if options.secrets and config.dataplane == "bpf":
        raise InputError("--dataplane bpf has no secrets: the program in the kernel cannot check tags")
    if not (ipaddress.ip_address(options.host).is_loopback or options.secrets or config.no_secret):
        raise InputError(f"{options.host} can be reached from other machines: give --secret-file, which workers then "
                         "need too, or --no-secret to let anybody take part")  # fmt: skip
    return kernel_switch(config, options, config.host) or LiveSwitch(options)


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
