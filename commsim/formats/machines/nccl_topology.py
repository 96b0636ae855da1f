"""One machine from the topology file that NCCL and RCCL read and dump (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE).

A file may be whole or partial. A partial one has only the PCI tree; what a leaf is then follows from its PCI class, and
its NVLinks from the board that such GPUs are sold on (:mod:`.board_links`).
Rates of PCIe follow from its generation and width, of NVLink and xGMI from the GPU, of sockets from the CPU, of ports
from their speed.

References
----------
NCCL 2.30 and RCCL 2.22, ``src/graph/topo.h`` and ``topo.cc``: the numbers are those that they plan with, so they are
effective rates.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.machines.parts import Parts
from commsim.core.network import CPU, GPU, NIC, SWITCH, Network
from commsim.core.units import Bandwidth
from commsim.formats.markup import Element, read_xml

from .board_links import links_of_board
from .gpu_links import Device, add_c2c, add_islands, islands_of, nvlinks_of, switches_of
from .gpu_models import MOST_SM, GpuGeneration, of_device, of_gcn, of_links, of_sm, of_user
from .rates import INTEL_GPU_SHARE, net_rate, pcie_rate, socket_rate, transport_of_nics, vendor_of

_KNOWN = {"cpu", "pci", "gpu", "nvlink", "xgmi", "c2c", "nic", "net", "pcilink", "gin", "rma"}
# PCI classes of GPUs: NVIDIA's, and AMD's, which are accelerators or displays of a kind of their own.
_GPU_CLASS, _AMD_CLASSES = "0x0302", ("0x1200", "0x0380")
_AMD_VENDOR = "0x1002"
MAX_CPUS, MAX_DEVICES = 64, 1024


def read_nccl_topology(
    path: str | Path, gpu: str | None = None, sm: int | None = None, nvlink: Bandwidth | None = None,
    nvls: bool | None = None, pxn: bool | None = None, pcie: Bandwidth | None = None, nic: Bandwidth | None = None,
) -> Network:  # fmt: skip
    """Read a machine from NCCL's or RCCL's topology XML.

    Parameters
    ----------
    path : path
        The file.
    gpu : str, optional
        Generation of the GPUs, such as hopper; default: that of the file (``sm=``, ``gcn=``, the PCI device). What the
        file leaves open is a guess, and the network's hardware says so.
    sm : int, optional
        Compute capability of the GPUs, 90 for 9.0, in place of `gpu`.
    nvlink : float, bytes/s, optional
        Bandwidth of all NVLinks of one GPU together, into an NVSwitch, for a file that does not have it.
    nvls : bool, optional
        Whether NVSwitches can add (NVLink SHARP); default: with GPUs since Hopper.
    pxn : bool, optional
        Whether a GPU sends over NVLink and the NIC of another one where that is on the receiver's rail; default: where
        one switch joins all GPUs and there are NICs.
    pcie : float, bytes/s, optional
        Bandwidth of each PCIe link of a GPU and of a PCIe switch; default: by generation and width.
    nic : float, bytes/s, optional
        Bandwidth of each NIC; default: that of its port, up to that of its PCIe link.

    Returns
    -------
    Network
        ``gpu0 …`` and ``nic0 …`` by their ``dev`` numbers where the file has them, else in the order of the file;
        ``cpu0 …``, ``pcie0 …``, ``nvswitch0 …``. Rates are those that NCCL plans with. Bridges with one device below
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
    trees = [[device for child in cpu.all("pci", "nic") for device in _devices(child)] for cpu in cpus]
    leaves = [leaf for tree in trees for leaf in _leaves(tree)]
    if len(leaves) > MAX_DEVICES:
        top.fail(f"has {len(leaves)} GPUs and NICs; a machine has up to {MAX_DEVICES}")
    for tree in trees:
        _set_rates(tree, pcie, nic)
    gpus = [leaf for leaf in leaves if leaf.kind == GPU]
    if not gpus:
        top.fail(f"has no GPU: neither a <gpu> nor a PCI device of class {_GPU_CLASS}")
    models = _models(path, gpus, gpu, sm)
    oldest = min(models.values(), key=lambda model: (model.sm, model.generation))
    islands = islands_of(gpus)
    board = links_of_board(top, gpus, oldest, is_told=gpu is not None or sm is not None) if nvlink is None else None
    if board is not None and board.to_switch:
        nvlink = board.to_switch * oldest.link
    joins = len(islands) == 1 and (bool(islands[0].to_switch) or nvlink is not None)
    parts = Parts()
    nodes = _add_leaves(parts, leaves, pxn=pxn if pxn is not None else joins and len(gpus) < len(leaves))
    sockets = [parts.add(f"cpu{i}", CPU) for i in range(len(cpus))]
    for a, b in itertools.combinations(range(len(cpus)), 2):
        parts.crossing(sockets[a], sockets[b], min(socket_rate(cpus[a]), socket_rate(cpus[b])))
    number_of = {id(leaf): number for number, leaf in nodes.items()}
    count = itertools.count()
    for cpu, socket, tree in zip(cpus, sockets, trees, strict=True):
        _plug(parts, socket, tree, number_of, count, INTEL_GPU_SHARE if vendor_of(cpu) == "intel" else 1.0)
        for leaf in (leaf for leaf in _leaves(tree) if leaf.kind == GPU):
            add_c2c(parts, leaf, number_of[id(leaf)], socket, models[id(leaf)].link)
    aggregates = nvls if nvls is not None else oldest.has_nvls
    if nvlink is not None:
        if any(island.to_switch or island.pairs for island in islands):
            raise InputError(f"{path}: the file has the rate of the NVLinks; nvlink= cannot be given as well")
        parts.join_gpus("nvswitch0", {number_of[id(leaf)]: nvlink for leaf in gpus}, aggregates=aggregates)
    add_islands(parts, islands, models, number_of, aggregates=aggregates)
    if board is not None and board.pairs:
        numbers = [number_of[id(leaf)] for leaf in gpus]
        parts.mesh({(numbers[a], numbers[b]): n * oldest.link for (a, b), n in board.pairs.items()}, numbers)
    return dataclasses.replace(parts.build(str(path)), hardware=_hardware(cpus[0], nodes, oldest))


def _models(path: str | Path, leaves: list[Device], gpu: str | None, sm: int | None) -> dict[int, GpuGeneration]:
    """Return which GPU each device (by identity) is: as the user says, else as the file does, else a guess."""
    models = [_model(leaf) for leaf in leaves]
    is_amd = any(_is_amd(leaf) for leaf in leaves)
    known = [model for model in models if model is not None]
    maker = "amd" if is_amd else "nvidia" if known or any(nvlinks_of(leaf) for leaf in leaves) else ""
    told = of_user(path, gpu, sm, maker)
    most = max((nvlinks_of(leaf) for leaf in leaves), default=0)
    usual = GpuGeneration("cdna3", is_guessed=True) if is_amd else of_links(
        most, len(leaves), is_switched=any(switches_of(leaf) for leaf in leaves)
    )  # fmt: skip
    if not known and told is None and not is_amd and not most:
        usual = GpuGeneration("")  # a partial file says nothing of its GPUs, and NCCL's choice says what it assumes
    oldest = min(known, key=lambda model: model.sm, default=usual)
    return {id(leaf): told or model or oldest for leaf, model in zip(leaves, models, strict=True)}


def _is_amd(leaf: Device) -> bool:
    pci, gpus = leaf.element, leaf.element.all("gpu")
    marked = any("gcn" in gpu.attributes or gpu.all("xgmi") or gpu.whole("sm", 0) > MOST_SM for gpu in gpus)
    return marked or pci.text("vendor", "").lower() == _AMD_VENDOR or pci.text("class", "").startswith(_AMD_CLASSES)


def _model(leaf: Device) -> GpuGeneration | None:
    """Return what a ``<gpu>`` or its PCI device says."""
    pci = leaf.element
    by_device = of_device(pci.text("vendor", ""), pci.text("device", ""))
    for gpu in pci.all("gpu"):
        if _is_amd(leaf):
            return of_gcn(gpu.text("gcn", "")) or by_device
        if "sm" in gpu.attributes:
            return of_sm(gpu.whole("sm"))
    return by_device


def _hardware(cpu: Element, nodes: Mapping[int, Device], oldest: GpuGeneration) -> str:
    """Write the generation of the oldest GPU, by which NCCL goes, and the vendor of the first CPU."""
    is_said = cpu.text("vendor", "").strip() or cpu.text("arch", "").strip()
    nics = (leaf.element for leaf in nodes.values() if leaf.kind == NIC)
    nets = [net for nic in nics for net in ([nic] if nic.tag == "net" else nic.all("net"))]
    net = transport_of_nics(net.text("name", "") for net in nets)
    lacks = nets and all(net.text("gdr", "1") == "0" for net in nets)
    return oldest.facts(cpu=vendor_of(cpu) if is_said else "", net=net, gpudirect="no" if lacks else "")


def _check_tags(element: Element) -> None:
    for child in element.children:
        if child.tag not in _KNOWN:
            child.fail(f"is not known inside <{element.tag}>; known: {', '.join(sorted(_KNOWN))}")
        _check_tags(child)


def _devices(element: Element) -> list[Device]:
    """Return the devices of a ``<pci>``, or of a ``<nic>`` that hangs on a CPU; bridges over nothing vanish."""
    if element.tag == "nic":
        return [Device(net, NIC, net_rate(net)) for net in element.all("net")]
    element.text("busid")
    rate, code = pcie_rate(element), element.text("class", "").lower()
    is_amd = element.text("vendor", "").lower() == _AMD_VENDOR and code.startswith(_AMD_CLASSES)
    if element.all("gpu") or code.startswith(_GPU_CLASS) or is_amd:
        return [Device(element, GPU, rate)]
    if element.all("nic") or code.startswith("0x02"):
        ports = [net for nic in element.all("nic") for net in nic.all("net")]
        below = [Device(net, NIC, min(rate, net_rate(net))) for net in ports] or [Device(element, NIC, rate)]
        return below if len(below) == 1 else [Device(element, SWITCH, rate, below)]
    if code.startswith(
        ("0x0680", "0x03")
    ):  # an NVSwitch, which NVLinks name as their target; a screen's VGA controller
        return []
    below = [device for child in element.all("pci") for device in _devices(child)]
    if len(below) > 1:
        return [Device(element, SWITCH, rate, below)]
    for device in below:
        device.rate = min(rate, device.rate)
    return below


def _leaves(devices: list[Device]) -> list[Device]:
    return [leaf for d in devices for leaf in (_leaves(d.below) if d.kind == SWITCH else [d])]


def _set_rates(tree: list[Device], pcie: float | None, nic: float | None) -> None:
    """Give PCIe links and NICs the rates that the user says."""
    for device in tree:
        rate = nic if device.kind == NIC else pcie
        device.rate = device.rate if rate is None else rate
        _set_rates(device.below, pcie, nic)


def _add_leaves(parts: Parts, leaves: list[Device], *, pxn: bool) -> dict[int, Device]:
    """Add GPUs and NICs; return them by the number of their node."""
    nodes: dict[int, Device] = {}
    for kind, name, tag in ((GPU, "gpu", "gpu"), (NIC, "nic", "net")):
        of_kind = [leaf for leaf in leaves if leaf.kind == kind]
        described = [leaf.element if leaf.element.tag == tag else next(iter(leaf.element.all(tag)), None)
                     for leaf in of_kind]  # fmt: skip
        order = list(range(len(of_kind)))
        if all(e is not None and "dev" in e.attributes for e in described):
            order.sort(key=lambda i: described[i].whole("dev"))  # type: ignore[union-attr]
        for i, k in enumerate(order):
            nodes[parts.add(f"{name}{i}", kind, forwards=pxn if kind == GPU else None)] = of_kind[k]
    return nodes


def _plug(
    parts: Parts,
    socket: int,
    tree: list[Device],
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


def _switch(parts: Parts, device: Device, number_of: dict[int, int], count: itertools.count[int]) -> int:
    """Add a PCIe switch with all that is below it; return its hub."""
    plain = [(number_of[id(d)], d.rate) for d in device.below if d.kind != SWITCH]
    hub = parts.pcie_switch(f"pcie{next(count)}", plain)
    for inner in device.below:
        if inner.kind == SWITCH:
            parts.crossing(hub, _switch(parts, inner, number_of, count), inner.rate)
    return hub
