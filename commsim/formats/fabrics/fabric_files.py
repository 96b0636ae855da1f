"""Files of fabrics as networks: what each is called in ``commsim topo formats``, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from commsim.core.network import Network
from commsim.core.units import Bandwidth, Seconds
from topologies import LINK_LATENCY

from .cable_list import read_cable_list
from .cabled_network import FabricOptions, network_of_cables
from .cabling import Cabling
from .discovered import read_ibnetdiscover
from .link_info import read_iblinkinfo
from .neighbours import read_lldp
from .netbox import read_netbox
from .port_report import read_port_report

READERS: dict[str, Callable[[str | Path], Cabling]] = {
    "cables": read_cable_list,
    "netbox": read_netbox,
    "ibnetdiscover": read_ibnetdiscover,
    "ibnetdiscover-ports": read_port_report,
    "iblinkinfo": read_iblinkinfo,
    "lldp": read_lldp,
}


def read_fabric(
    path: str | Path, form: str, rate: Bandwidth | None = None, latency: Seconds = LINK_LATENCY, healthy: bool = False
) -> Network:
    """Read a file of cables as a network.

    Parameters
    ----------
    path : path
        The file.
    form : str
        A key of ``READERS``.
    rate : float, bytes/s, optional
        Rate of cables for which the file has none.
    latency : float, s
        Latency of each cable of which the file says none.
    healthy : bool
        Whether cables that are slower than they should be get their rate, and those that are down are up.
    """
    name = Path(path).name or str(path)
    return network_of_cables(name, READERS[form](path), FabricOptions(rate, latency, healthy))
