"""One machine from the topology file that NCCL reads and dumps (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE), whole or partial.

A partial file has only the PCI tree; what a leaf is then follows from its PCI class. Rates of PCIe follow from its
generation and width, of NVLink from the GPU, of sockets from the CPU, of ports from their speed.

References
----------
NCCL 2.30, ``src/graph/topo.h`` and ``topo.cc``: the numbers are those that it plans with, so they are effective rates.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.machines.hardware import generation_of, write_hardware
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, NIC, SWITCH, Network
from commsim.core.units import Bandwidth

from .markup import Element, read_xml

_LANE_MBPS = {2.5: 1500, 5: 3000, 8: 6000, 16: 12000, 32: 24000, 64: 48000}
_UNKNOWN_LANE_MBPS = 6000
_GIGATRANSFERS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*GT/s.*", re.ASCII)
_NVLINK_GBS = ((100, 40.1), (90, 20.6), (87, 20.0), (86, 12.0), (70, 20.0), (60, 18.0))
_UNKNOWN_NET_MBPS = 10000

# Of a PCIe link into an Intel CPU that is left for GPU to GPU: the root complex cuts it into small packets.
INTEL_GPU_SHARE = 5 / 6
_KNOWN = {"cpu", "pci", "gpu", "nvlink", "c2c", "nic", "net", "pcilink", "gin", "rma"}
_UNKNOWN_SM = 80
_GPU_CLASS = "0x0302"
MAX_CPUS, MAX_DEVICES = 64, 1024


def pcie_rate(element: Element) -> float:
    """Bandwidth of a ``<pci>`` element's link, bytes/s; generation 3 and 16 lanes where the file does not say."""
    match = _GIGATRANSFERS.fullmatch(element.text("link_speed", ""))
    lane = _LANE_MBPS.get(float(match[1]), _UNKNOWN_LANE_MBPS) if match else _UNKNOWN_LANE_MBPS
    width = element.whole("link_width", 0) if element.text("link_width", "").strip() else 0
    return (width or 16) * lane * 1e6 / 8


def nvlink_rate(compute_capability: int) -> float:
    """Bandwidth of one NVLink of a GPU, bytes/s, by its compute capability: 90 for 9.0."""
    return 1e9 * next((rate for least, rate in _NVLINK_GBS if compute_capability >= least), 20.0)


def net_rate(element: Element) -> float:
    """Bandwidth of a ``<net>`` element, bytes/s; 10 Gb/s where its speed is not known."""
    speed = element.whole("speed", _UNKNOWN_NET_MBPS, minimum=-1)
    return (speed if speed > 0 else _UNKNOWN_NET_MBPS) * 1e6 / 8


def socket_rate(cpu: Element) -> float:
    """Bandwidth between two sockets, bytes/s, by the attributes of a ``<cpu>`` element."""
    arch, vendor = cpu.text("arch", "").strip(), cpu.text("vendor", "").strip()
    family, model = cpu.whole("familyid", 0, minimum=-1), cpu.whole("modelid", 0, minimum=-1)
    if arch == "ppc64":
        return 32e9
    if arch == "arm64":
        return 6e9
    if vendor == "GenuineIntel":
        return _intel(family, model)
    if vendor == "AuthenticAMD":
        return {26: 32e9, 0xBF: 32e9, 25: 24e9, 0xAF: 24e9}.get(family, 16e9)
    if vendor in ("CentaurHauls", "Shanghai"):
        return 9e9 if (family, model) == (7, 0x5B) else 6e9
    return 10e9


def is_intel(cpu: Element) -> bool:
    """Whether a ``<cpu>`` element is an Intel CPU."""
    return cpu.text("vendor", "").strip() == "GenuineIntel"


def _intel(family: int, model: int) -> float:
    if family == 6 and (model >= 0xCF or model in (0xAD, 0xAE, 0xAF)):
        return 40e9  # Emerald Rapids; Granite Rapids and Sierra Forest have lower numbers
    if family == 6 and model >= 0x8F:
        return 22e9  # Sapphire Rapids
    return 10e9 if family == 6 and model >= 0x55 else 6e9  # Skylake, Broadwell


@dataclass(slots=True)
class _Device:
    """A PCI device: a bridge with devices below it, a GPU, or a NIC (one of its ports, if it has several)."""

    element: Element
    kind: int
    rate: float
    below: list[_Device] = field(default_factory=list)


def read_nccl_topology(path: str | Path, nvlink: Bandwidth | None = None) -> Network:
    """Read a machine from NCCL's topology XML.

    Parameters
    ----------
    path : path
        The file.
    nvlink : float, bytes/s, optional
        Bandwidth of all NVLinks of one GPU together, into an NVSwitch, for a file that does not have it.

    Returns
    -------
    Network
        ``gpu0 …`` and ``nic0 …`` by their ``dev`` numbers where the file has them, else in the order of the file;
        ``cpu0 …``, ``pcie0 …``, ``nvswitch0``. Rates are those that NCCL plans with. Bridges with one device below
        them are drawn together with it.

    Raises
    ------
    InputError
        If the file is not well formed or something in it is wrong; names the line.
    """
    top = read_xml(path)
    if top.tag != "system":
        top.fail("is not the topology of a machine: expected <system>")
    _check_tags(top)
    cpus = top.all("cpu")
    if not cpus:
        top.fail("has no <cpu>")
    if len(cpus) > MAX_CPUS:
        top.fail(f"has {len(cpus)} <cpu>; a machine has up to {MAX_CPUS}")
    for cpu in cpus:
        if cpu.text("host_hash", "") != cpus[0].text("host_hash", ""):
            cpu.fail("is of another host than the first one; a file holds one machine")
    parts = Parts()
    trees = [[device for child in cpu.all("pci", "nic") for device in _devices(child)] for cpu in cpus]
    leaves = [leaf for tree in trees for leaf in _leaves(tree)]
    if len(leaves) > MAX_DEVICES:
        top.fail(f"has {len(leaves)} GPUs and NICs; a machine has up to {MAX_DEVICES}")
    nodes = _add_leaves(parts, leaves)
    if not any(leaf.kind == GPU for leaf in nodes.values()):
        top.fail(f"has no GPU: neither a <gpu> nor a PCI device of class {_GPU_CLASS}")
    sockets = [parts.add(f"cpu{i}", CPU) for i in range(len(cpus))]
    for a, b in itertools.combinations(range(len(cpus)), 2):
        parts.crossing(sockets[a], sockets[b], min(socket_rate(cpus[a]), socket_rate(cpus[b])))
    number_of = {id(leaf): number for number, leaf in nodes.items()}
    count = itertools.count()
    for cpu, socket, tree in zip(cpus, sockets, trees, strict=True):
        _plug(parts, socket, tree, number_of, count, INTEL_GPU_SHARE if is_intel(cpu) else 1.0)
    has_nvlinks = _add_nvlinks(
        parts, nodes, {id(leaf): s for s, tree in zip(sockets, trees, strict=True) for leaf in _leaves(tree)}
    )
    if nvlink is not None:
        if has_nvlinks:
            raise InputError(f"{path}: the file has the rate of the NVLinks; nvlink= cannot be given as well")
        parts.join_gpus(nvlink)
    return dataclasses.replace(parts.build(str(path)), hardware=_hardware(cpus[0], nodes))


def _hardware(cpu: Element, nodes: dict[int, _Device]) -> str:
    """Write the generation of the oldest GPU, by which NCCL goes, and the vendor of the first CPU."""
    capabilities = [
        gpu.whole("sm") for leaf in nodes.values() for gpu in leaf.element.all("gpu") if "sm" in gpu.attributes
    ]
    facts = {"gpu": generation_of(min(capabilities, default=0))}
    vendor, arch = cpu.text("vendor", "").strip(), cpu.text("arch", "").strip()
    known = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(vendor, "arm" if arch == "arm64" else "")
    facts["cpu"] = known or ("other" if vendor or arch else "")
    nics = (leaf.element for leaf in nodes.values() if leaf.kind == NIC)
    nets = [net for nic in nics for net in ([nic] if nic.tag == "net" else nic.all("net"))]
    if nets and all(net.text("gdr", "1") == "0" for net in nets):
        facts["gpudirect"] = "no"
    return write_hardware({key: value for key, value in facts.items() if value})


def _check_tags(element: Element) -> None:
    for child in element.children:
        if child.tag not in _KNOWN:
            child.fail(f"is not known inside <{element.tag}>; known: {', '.join(sorted(_KNOWN))}")
        _check_tags(child)


def _devices(element: Element) -> list[_Device]:
    """Return the devices of a ``<pci>``, or of a ``<nic>`` that hangs on a CPU; bridges over nothing vanish."""
    if element.tag == "nic":
        return [_Device(net, NIC, net_rate(net)) for net in element.all("net")]
    element.text("busid")
    rate, code = pcie_rate(element), element.text("class", "").lower()
    if element.all("gpu") or code.startswith(_GPU_CLASS):
        return [_Device(element, GPU, rate)]
    if element.all("nic") or code.startswith("0x02"):
        ports = [net for nic in element.all("nic") for net in nic.all("net")]
        below = [_Device(net, NIC, min(rate, net_rate(net))) for net in ports] or [_Device(element, NIC, rate)]
        return below if len(below) == 1 else [_Device(element, SWITCH, rate, below)]
    if code.startswith(
        ("0x0680", "0x03")
    ):  # an NVSwitch, which NVLinks name as their target; a screen's VGA controller
        return []
    below = [device for child in element.all("pci") for device in _devices(child)]
    if len(below) > 1:
        return [_Device(element, SWITCH, rate, below)]
    for device in below:
        device.rate = min(rate, device.rate)
    return below


def _leaves(devices: list[_Device]) -> list[_Device]:
    return [leaf for d in devices for leaf in (_leaves(d.below) if d.kind == SWITCH else [d])]


def _add_leaves(parts: Parts, leaves: list[_Device]) -> dict[int, _Device]:
    """Add GPUs and NICs; return them by the number of their node."""
    nodes: dict[int, _Device] = {}
    for kind, name, tag in ((GPU, "gpu", "gpu"), (NIC, "nic", "net")):
        of_kind = [leaf for leaf in leaves if leaf.kind == kind]
        described = [leaf.element if leaf.element.tag == tag else next(iter(leaf.element.all(tag)), None)
                     for leaf in of_kind]  # fmt: skip
        order = list(range(len(of_kind)))
        if all(e is not None and "dev" in e.attributes for e in described):
            order.sort(key=lambda i: described[i].whole("dev"))  # type: ignore[union-attr]
        for i, k in enumerate(order):
            nodes[parts.add(f"{name}{i}", kind)] = of_kind[k]
    return nodes


def _plug(
    parts: Parts,
    socket: int,
    tree: list[_Device],
    number_of: dict[int, int],
    count: itertools.count[int],
    share: float,
) -> None:
    """Plug the devices of one socket into it; `share` is what is left of a link into the socket."""
    for device in tree:
        if device.kind == SWITCH:
            parts.crossing(socket, _switch(parts, device, number_of, count), device.rate * share)
        else:
            rate = device.rate * share if device.kind == GPU else device.rate
            parts.leaf(socket, (number_of[id(device)], rate))


def _switch(parts: Parts, device: _Device, number_of: dict[int, int], count: itertools.count[int]) -> int:
    """Add a PCIe switch with all that is below it; return its hub."""
    plain = [(number_of[id(d)], d.rate) for d in device.below if d.kind != SWITCH]
    hub = parts.pcie_switch(f"pcie{next(count)}", plain)
    for inner in device.below:
        if inner.kind == SWITCH:
            parts.crossing(hub, _switch(parts, inner, number_of, count), inner.rate)
    return hub


def _add_nvlinks(parts: Parts, nodes: dict[int, _Device], socket_of: dict[int, int]) -> bool:
    """Add what ``<nvlink>`` and ``<c2c>`` say, and return whether there are NVLinks between GPUs.

    The links of a GPU to all NVSwitch chips are one cable to one switch. Where some GPUs are joined directly and
    others not, as in a cube mesh, GPUs forward for each other.
    """
    by_bus: dict[str, int] = {}
    for number, leaf in nodes.items():
        if leaf.kind == GPU and by_bus.setdefault(_bus(leaf.element), number) != number:
            leaf.element.fail(f"has the busid of another GPU, {leaf.element.text('busid')}")
    switch: int | None = None
    meshed: dict[tuple[int, int], float] = {}
    for number, leaf in nodes.items():
        for gpu in leaf.element.all("gpu") if leaf.kind == GPU else []:
            rate, to_switch, to_socket = nvlink_rate(gpu.whole("sm", _UNKNOWN_SM)), 0.0, 0.0
            for link in gpu.all("nvlink"):
                bandwidth = link.whole("count", minimum=1) * rate
                target, code = link.text("target").strip().lower(), link.text("tclass", "").lower()
                if target in by_bus:
                    pair = (min(number, by_bus[target]), max(number, by_bus[target]))
                    if pair[0] == pair[1]:
                        link.fail("joins a GPU to itself")
                    meshed[pair] = max(meshed.get(pair, 0.0), bandwidth)
                elif code.startswith("0x03"):
                    link.fail(f"leads to {target}, which is no GPU of this file")
                elif code.startswith("0x068001"):
                    to_socket += bandwidth
                else:
                    to_switch += bandwidth
            to_socket += sum(c.whole("bw", minimum=1) * c.whole("count", minimum=1) * 1e6 for c in gpu.all("c2c"))
            if to_switch:
                switch = parts.add("nvswitch0", SWITCH) if switch is None else switch
                parts.nvlink(number, switch, to_switch)
            if to_socket:
                parts.cable(number, socket_of[id(leaf)], to_socket)
    parts.mesh(meshed, sorted(by_bus.values()) if switch is None else [])
    return switch is not None or bool(meshed)


def _bus(element: Element) -> str:
    return element.text("busid").strip().lower()
