"""The site of a communicator: links, NICs and network, which NCCL's own estimate does not need; told from a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from collectives.nccl.call import FEW, KIB, MANY, MORE_CHANNELS, NEWEST
from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware, transport_of
from commsim.core.network import Network
from commsim.core.network_queries import units
from commsim.core.placement import Placement
from commsim.nccl.machine_links import fewest_nics, gpus_outside, links_inside, links_outside, ports_apart

from .nccl_setting import SINCE_HOPPER, NcclSetting

# What aws-ofi-nccl sets where the user does not, by EFA, and its release that began with it: NCCL_BUFFSIZE and
# NCCL_P2P_NET_CHUNKSIZE, and where GPUs have NVLink SHARP NCCL_NVLS_CHUNKSIZE and NCCL_NVLSTREE_MAX_CHUNKSIZE
# (src/platform-aws.cpp of 1.8 to 1.21). Machines before P4d are not in its list.
_BUFFERS = {"buffer": (8192 * KIB, (1, 16)), "net_chunk": (512 * KIB, (1, 16))}
_OF_HOPPER = _BUFFERS | {"nvls_chunk": (512 * KIB, (1, 8))}
SET_BY_PLUGIN = {"efa": _BUFFERS, "efa2": _OF_HOPPER, "efa3": _OF_HOPPER}
NEWEST_PLUGIN = (1, 21)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a communicator runs, beyond what NCCL's own estimate needs.

    Parameters
    ----------
    setting : NcclSetting
        Ranks, machines and channels, as NCCL sees them.
    link : float, bytes/s
        Bandwidth of a GPU to the others of its machine; infinite without others.
    pcie : bool
        Whether that is PCIe.
    nics : float, bytes/s
        Bandwidth of all NICs of a machine.
    network : str
        One of the networks with known costs; empty with one machine.
    version : tuple of int
        Version of NCCL.
    n_channels : int
        Least number of channels of a call (``NCCL_MIN_NCHANNELS``); 0 for what the search finds.
    p2p : bool
        Whether GPUs of a machine reach each other without the network.
    n_nics : int
        NICs of a machine.
    one_way : bool
        Whether only one of two ranks sends, and a send-receive is timed there.
    host : float, bytes/s
        Bandwidth of the links from a machine's GPUs to its NICs.
    """

    setting: NcclSetting
    link: float
    pcie: bool = False
    nics: float = 0.0
    network: str = ""
    version: tuple[int, ...] = NEWEST
    n_channels: int = 0
    p2p: bool = True
    n_nics: int = 1
    one_way: bool = False
    host: float = float("inf")

    @property
    def max_channels(self) -> int:
        """Channels of a call, as far as the version has them."""
        most = MANY if self.version >= MORE_CHANNELS else FEW
        return min(max(self.setting.call_channels, self.n_channels), most)


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


def as_plugin_sets(
    setting: NcclSetting, network: str, release: tuple[int, int] = NEWEST_PLUGIN
) -> NcclSetting:  # fmt: skip
    """Return a setting with the sizes that a network's plugin sets where the user has said none.

    Parameters
    ----------
    setting : NcclSetting
        What is known.
    network : str
        Name of the network, as in ``gpu_costs.toml``; one machine's NCCL loads the plugin, too.
    release : (int, int)
        Release of the plugin.
    """
    known = SET_BY_PLUGIN.get(network, {}).items()
    sizes: dict[str, Any] = {
        name: size for name, (size, since) in known if release >= since and not getattr(setting, name)
    }
    return replace(setting, **sizes)


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
