"""Files of fabrics as networks: what each format is called, how a file of it is known, and how it is read.

To add one, write its reader beside this file, and a row of ``FABRICS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commsim.core.network import Network
from commsim.core.units import Bandwidth, Seconds
from topologies import LINK_LATENCY

from .cable_list import read_cable_list
from .cabled_network import FabricOptions, network_of_cables
from .cabling import Cabling
from .discovered import is_ibnetdiscover, read_ibnetdiscover
from .link_info import is_iblinkinfo, read_iblinkinfo
from .neighbour_rows import is_neighbour_rows, read_neighbour_rows
from .neighbours import is_lldp, read_lldp
from .netbox import is_netbox, read_netbox
from .port_report import is_port_report, read_port_report


@dataclass(frozen=True, slots=True)
class FabricFormat:
    """A format of files of cables.

    Parameters
    ----------
    summary : str
        What it is, for ``commsim topo formats``.
    read : callable
        Reader of a file.
    is_text : callable, optional
        Whether the first lines of a text are of it.
    is_tree : callable, optional
        Whether the value of a file of JSON is of it.
    """

    summary: str
    read: Callable[[str | Path], Cabling]
    is_text: Callable[[str], bool] | None = None
    is_tree: Callable[[object], bool] | None = None


# In the order in which a file is asked. A list of cables is any CSV of ports, and is asked after all else that is text.
FABRICS = {
    "cables": FabricFormat("a list of cables, CSV: device, port, device, port, rate", read_cable_list),
    "netbox": FabricFormat(
        "NetBox's cables, JSON of its API (its CSV is a list of cables)", read_netbox, is_tree=is_netbox
    ),
    "ibnetdiscover": FabricFormat("output of ibnetdiscover", read_ibnetdiscover, is_ibnetdiscover),
    "ibnetdiscover-ports": FabricFormat("output of ibnetdiscover -p", read_port_report, is_port_report),
    "iblinkinfo": FabricFormat("output of iblinkinfo", read_iblinkinfo, is_iblinkinfo),
    "netq": FabricFormat(
        "netq show lldp json: a row for each port (SuzieQ's too)", read_neighbour_rows, is_tree=is_neighbour_rows
    ),
    "lldp": FabricFormat(
        "lldpcli -f json show neighbors: NODE.json, a folder of these, or an object by node", read_lldp, is_tree=is_lldp
    ),
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
        A key of ``FABRICS``.
    rate : float, bytes/s, optional
        Rate of cables for which the file has none.
    latency : float, s
        Latency of each cable of which the file says none.
    healthy : bool
        Whether cables that are slower than they should be get their rate, and those that are down are up.
    """
    name = Path(path).name or str(path)
    return network_of_cables(name, FABRICS[form].read(path), FabricOptions(rate, latency, healthy))
