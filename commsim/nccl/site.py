"""Tell from a network what a prediction needs beyond NCCL's own estimate: links, NICs, and the network's name."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware, transport_of
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement
from commsim.nccl.machine_links import fewest_nics, gpus_outside, links_inside, links_outside, ports_apart

from .channel_search import SINCE_HOPPER, NcclSetting
from .prediction import Site


def site_of(network: Network, placement: Placement, setting: NcclSetting) -> Site:
    """Derive links and network of a communicator.

    Parameters
    ----------
    network, placement
        Network and placement of the ranks.
    setting : NcclSetting
        What NCCL takes them for.

    Raises
    ------
    InputError
        If several machines are joined by a network that the description does not name.
    """
    nodes = placement.nodes[: setting.n_ranks]
    unit = units(network)
    link, path = links_inside(network, unit, nodes)
    if setting.n_nodes == 1:
        return Site(setting, link, path != "NVL", version=setting.version)
    outer = fewest_nics(network, unit, nodes)
    rate, n_nics, *_ = links_outside(network, unit, outer)
    facts = read_hardware(network.hardware)
    name = transport_of(network.hardware)
    if not name:
        raise InputError(
            f"{network.name} does not say which network joins its machines (hardware: net=infiniband, ...)"
        )
    if name == "efa":
        name = efa_of(setting.gpu, facts.get("gpudirect") != "no")
    n_nics = max(n_nics, 1)
    host, ports = gpus_outside(network, unit, outer) * n_nics, ports_apart(network, setting.version)
    return Site(setting, link, path != "NVL", rate * n_nics, name, setting.version, n_nics=n_nics * ports, host=host)


def efa_of(gpu: str, gpudirect: bool) -> str:
    """Return which EFA a generation's machines have first had; before P4d, and without GPUDirect, the CPU copies.

    Parameters
    ----------
    gpu : str
        Generation.
    gpudirect : bool
        Whether NICs reach the GPUs' memory. Without it a new EFA still writes to the host's memory by itself.
    """
    if gpu in SINCE_HOPPER:  # others than that of P4d: they write to the receiver's memory by themselves
        return "efa3" if gpu == "blackwell" else "efa2"
    return "efa" if gpudirect else "efa_staged"
