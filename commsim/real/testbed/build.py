"""Build a layout: namespaces, cables with their rates, bridges or routers. All of it, or nothing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commsim.core.errors import BackendError
from switch_model.bpf.commands import output_of

from .cable_shape import FRAME, CableShape, shape_of
from .fair import queue_fairly
from .forwarding import NextHops, next_hops
from .layout import OTHER_END, OWN_DEVICE, PREFIX_LENGTH, CableEnd, TestbedLayout
from .places import NamesOfTestbed, has_fair_queues, require

SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",  # its neighbour discovery would be counted as traffic
    "ipv6/conf/default/disable_ipv6": "1",
    "ipv4/tcp_congestion_control": "reno",  # allowed in every namespace; keeps a queue full, which is all we ask of it
    "ipv4/tcp_no_metrics_save": "1",  # no connection learns from another
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_autocorking": "0",
    "ipv4/tcp_early_retrans": "0",  # no probe before the timeout, which it would put off by two round trips
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "ipv4/fib_multipath_hash_policy": "1",  # ports too: connections of one pair spread over equal paths
    "ipv4/tcp_wmem": "4096 4194304 16777216",  # a rank that waits for its core leaves enough behind
}
# Offloads join packets on a cable into one, which no wire does, and which a bucket of two packets cannot pass.
NO_OFFLOADS = ["tso", "off", "gso", "off", "gro", "off", "tx-udp-segmentation", "off"]


HASHED_APART = ("of equal paths the kernel takes one by its own hash, and predictions take another one: "
                "with --routing dmodk or shortest both take the same")  # fmt: skip
# Seconds of the slowest link, and bytes, that a receiver lets a sender have under way.
WINDOW, LEAST_WINDOW = 0.0105, 131072
SECONDS_TO_RUN = 5.0
NEW_NETWORK = 0x40000000  # unshare(2)


def build(place: NamesOfTestbed, layout: TestbedLayout) -> tuple[str, ...]:
    """Build a testbed.

    Parameters
    ----------
    place : NamesOfTestbed
        Name of the testbed.
    layout : TestbedLayout
        What.

    Returns
    -------
    tuple of str
        Warnings: what of the network this kernel cannot do.

    Raises
    ------
    BackendError
        If something cannot be made; nothing is left then.
    InputError
        If the name is taken, a rate cannot be had, or the routing cannot be built.
    """
    require()
    shapes = {port.link: shape_of(layout.network, port.link) for port in layout.ports}
    hops = {} if layout.bridged else next_hops(layout.network, layout.network.routing)
    place.claim(layout.network)
    try:
        _make(place, layout, shapes, hops)
        place.finish()
    except BaseException as error:
        place.remove()
        if isinstance(error, OSError) or type(error).__name__ == "NetlinkError":
            raise BackendError(f"the testbed could not be built, and what there was is gone: {error}") from error
        raise
    warnings = [warning for shape in shapes.values() for warning in shape.warnings]
    if any(len(links) > 1 for links in hops.values()):
        warnings.append(HASHED_APART)
    return tuple(dict.fromkeys(warnings))


def _make(place: NamesOfTestbed, layout: TestbedLayout, shapes: dict[int, CableShape], hops: NextHops) -> None:
    names = {node: place.namespace(node) for node in range(layout.network.n_nodes)}
    window = receive_window(layout)
    for name in names.values():
        _create(name)
        with inside(name):
            for setting, value in SETTINGS.items():
                Path("/proc/sys/net", setting).write_text(value)
            Path("/proc/sys/net/ipv4/tcp_rmem").write_text(f"4096 {min(131072, window)} {window}")
    with contextlib.ExitStack() as stack:
        into = {node: stack.enter_context(opened(name)) for node, name in names.items()}
        for door in into.values():
            door.link("set", index=1, state="up")
        for a, b in layout.cables:
            peer = {"ifname": b.device, "net_ns_fd": names[b.node], "mtu": FRAME.mtu}
            into[a.node].link("add", ifname=a.device, kind="veth", mtu=FRAME.mtu, peer=peer)
        for node in into:
            _set_up(layout, node, into[node], shapes)
        if not layout.bridged:
            _route(layout, names, into, hops)
        for node in into:
            _wait_until_running(layout, node, into[node])
    for node, name in names.items():
        for port in layout.ports_of(node):
            output_of([*entering(name), "ethtool", "-K", port.device, *NO_OFFLOADS])
            shapes[port.link].lose(name, port.device)
        if has_fair_queues():
            queue_fairly(layout, name, node, shapes)


def receive_window(layout: TestbedLayout) -> int:
    """Return the receive window, the same everywhere: flows share a queue evenly only if none of them can fill it."""
    slowest = float(layout.network.bandwidth.min()) if layout.cables else 0.0
    return int(max(LEAST_WINDOW, WINDOW * slowest))


def _set_up(layout: TestbedLayout, node: int, door: Any, shapes: dict[int, CableShape]) -> None:
    """Shape a node's ports, give it its addresses, and bring it up."""
    own = layout.device(node)
    if own == "br0":
        door.link("add", ifname=own, kind="bridge", mtu=FRAME.mtu)
    elif own == OWN_DEVICE:  # a pair, for not every kernel has dummies, and programs want an interface that is running
        door.link("add", ifname=own, kind="veth", mtu=FRAME.mtu, peer={"ifname": OTHER_END, "mtu": FRAME.mtu})
    devices = {own, *([OTHER_END] if own == OWN_DEVICE else []), *(port.device for port in layout.ports_of(node))}
    index = {name: door.link_lookup(ifname=name)[0] for name in sorted(devices)}
    length = PREFIX_LENGTH if layout.bridged else 32
    door.addr("add", index=index[own], address=str(layout.address(node)), prefixlen=length)
    for port in layout.ports_of(node):
        if own == "br0":
            door.link("set", index=index[port.device], master=index[own])
        if port.address is not None:
            door.addr("add", index=index[port.device], address=str(port.address), prefixlen=31)
        for kind, options in shapes[port.link].queues:
            door.tc("add", kind, index[port.device], **options)
    for number in index.values():
        door.link("set", index=number, state="up")


def _wait_until_running(layout: TestbedLayout, node: int, door: Any) -> None:
    """Wait until a node's ports carry: for a moment after it is up, a bridge drops what arrives."""
    deadline = time.monotonic() + SECONDS_TO_RUN
    ports = {port.device for port in layout.ports_of(node)}
    while not all(link.get("operstate") == "UP" for link in door.get_links() if link.get("ifname") in ports):
        if time.monotonic() > deadline:
            raise BackendError(f"the ports of {layout.network.nodes[node]} do not come up")
        time.sleep(0.01)


def _route(layout: TestbedLayout, names: dict[int, str], into: dict[int, Any], hops: NextHops) -> None:
    network = layout.network
    port_of = {port.link: port for port in layout.ports}
    for node in into:
        if network.forwards[node]:
            with inside(names[node]):
                Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for (node, destination), links in hops.items():
        set_route(layout, into[node], destination, [port_of[link] for link in links])


def set_route(layout: TestbedLayout, door: Any, destination: int, over: list[CableEnd]) -> None:
    """Send what a node has for another one over these ports, whatever it did before."""
    hops = [{"gateway": str(port.peer), "oif": door.link_lookup(ifname=port.device)[0]} for port in over]
    source = {"prefsrc": str(layout.address(over[0].node))} if over[0].node in layout.seats else {}
    target = f"{layout.address(destination)}/32"
    if len(hops) == 1:
        door.route("replace", dst=target, **hops[0], **source)
    else:
        door.route("replace", dst=target, multipath=hops, **source)


@contextlib.contextmanager
def opened(name: str) -> Iterator[Any]:
    """Open a netlink socket in a namespace, where it stays; pyroute2's own way forks, which threads can make hang."""
    from pyroute2 import IPRoute

    with inside(name):
        door = IPRoute()
        door.get_links()  # the socket is made by the first request at the latest
    try:
        yield door
    finally:
        door.close()


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Be in a namespace for a moment."""
    from pyroute2 import netns

    with _coming_back():
        netns.setns(name, flags=0)
        yield


def _create(name: str) -> None:
    """Make a namespace, and no process for it: that could go on making it when we are dead, and `down` has been."""
    from pyroute2 import netns

    with _coming_back():
        if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK):
            raise OSError(ctypes.get_errno(), f"namespace {name} cannot be made")
        netns.attach(name, os.getpid())


@contextlib.contextmanager
def _coming_back() -> Iterator[None]:
    """Return to the present namespace in the end."""
    from pyroute2 import netns

    with Path("/proc/self/ns/net").open("rb") as own:
        try:
            yield
        finally:
            netns.setns(own.fileno())


def entering(name: str) -> list[str]:
    """Return the beginning of a command that runs in a namespace, and finds that namespace's interfaces in /sys."""
    return ["ip", "netns", "exec", name]
