"""The interfaces that are a switch's ports, as `ip` shows them in our network namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.errors import BackendError, InputError

from .commands import records_of
from .program import PACKET_HEADERS


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface.

    Parameters
    ----------
    name : str
        Name in this namespace.
    number : int
        Index of the interface in the kernel.
    mtu : int, bytes
        The largest IP packet.
    bridge : str
        Name of the bridge that it belongs to; empty for none.
    addresses : tuple of str
        IPv4, of its own.
    """

    name: str
    number: int
    mtu: int
    bridge: str = ""
    addresses: tuple[str, ...] = ()


def all_ports() -> dict[str, Interface]:
    """Return every interface of this namespace."""
    ports = {}
    for row in records_of(["ip", "-json", "address", "show"]):
        if "ifname" not in row:
            continue
        addresses = tuple(a["local"] for a in row.get("addr_info", ()) if a.get("family") == "inet")
        ports[row["ifname"]] = Interface(row["ifname"], row["ifindex"], row["mtu"], row.get("master", ""), addresses)
    return ports


def chosen_ports(names: Sequence[str], elements: int) -> list[Interface]:
    """Return the interfaces with these names.

    Raises
    ------
    InputError
        If an interface is unknown, a name comes twice, or packets of `elements` values do not fit.
    """
    if not names or len(set(names)) < len(names):
        raise InputError(f"a switch needs interfaces, each once, got {','.join(names) or 'none'}")
    known = all_ports()
    for name in names:
        if name not in known:
            raise InputError(f"no interface {name!r} here; known: {', '.join(known)}")
        needed, mtu = PACKET_HEADERS + 4 * elements, known[name].mtu
        if mtu < needed:
            raise InputError(f"packets of {elements} values need an MTU of {needed}, {name} has {mtu}")
    return [known[name] for name in names]


def switch_address(ports: Sequence[Interface]) -> str:
    """Return the address that workers reach the switch by: of a port, or of the bridge that ports belong to.

    Raises
    ------
    BackendError
        If none exists, or several.
    """
    known = all_ports()
    bridges = {port.bridge for port in ports} - {""}
    addresses = {a for port in ports for a in port.addresses}
    addresses |= {a for bridge in bridges & known.keys() for a in known[bridge].addresses}
    if len(addresses) != 1:
        what = " and ".join(sorted(addresses)) if addresses else "none"
        raise BackendError(f"the ports and their bridge should have one IPv4 address, the switch's; they have {what}")
    return addresses.pop()
