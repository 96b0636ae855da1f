"""Formats of networks: tables of rates and cables, topologies of simulators, and real fabrics as tools print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .context import Context, Notes
from .fabrics.fabric_files import FABRICS, read_fabric

if TYPE_CHECKING:
    from commsim.core.network import Network

Reader = Callable[[str, Context], tuple[Any, Notes]]
Writer = Callable[[Any, str, Context], Notes]
NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Parameters
    ----------
    summary : str
        What it is.
    suffixes : tuple of str
        Suffixes by which a file to be written is recognised.
    reads, writes : mapping of str to function
        What of ours it becomes, and can be made from, the likeliest first, and how: a place in commsim of a function of
        the file, or of a value and the file, that returns the value, or what should be said; or a function that is
        given all there is.
    """

    summary: str
    suffixes: tuple[str, ...] = ()
    reads: Mapping[str, Reader | str] = field(default_factory=dict)
    writes: Mapping[str, Writer | str] = field(default_factory=dict)


def _read_node_link(source: str, _: Context) -> tuple[Network, Notes]:
    from commsim.core.files.network_file import read_node_link
    from commsim.core.files.whole_files import read_json

    tree = read_json(source)
    return read_node_link(tree if isinstance(tree, dict) else {}, source), ()


def _write_simai(value: Network, target: str, context: Context) -> Notes:
    from .simai import write_simai

    write_simai(value, target, context.gpu_type)
    return ()


def _reads_fabric(form: str) -> dict[str, Reader | str]:
    def network(source: str, _: Context) -> tuple[Network, Notes]:
        import dataclasses

        from commsim.core.spec import read_arguments, split_file

        path, raw = split_file(source)
        own = read_arguments(read_fabric, raw, names=("path", "form"), name=path)
        return dataclasses.replace(read_fabric(path, form, **own), name=Path(path).stem), ()

    return {NETWORK: network}


NETWORK_FORMATS = {
    "node-link": Format(
        "networkx's node-link JSON", (),
        {NETWORK: _read_node_link}, {NETWORK: "core.files.network_file:write_node_link"},
    ),
    "graphml": Format(
        "GraphML", (".graphml",), {NETWORK: "formats.graphml:read_graphml"}, {NETWORK: "formats.graphml:write_graphml"},
    ),
    "nccl-topology": Format(
        "NCCL's topology of a machine, XML", (), {NETWORK: "formats.machines.nccl_topology:read_nccl_topology"},
    ),
    "nvidia-smi": Format(
        "output of nvidia-smi topo -m, or of rocm-smi --showtopo", (),
        {NETWORK: "formats.machines.nvidia_smi:read_nvidia_smi"},
    ),
    "ns3": Format(
        "HPCC's and ASTRA-sim's ns-3 topology", (),
        {NETWORK: "formats.ns3:read_ns3"}, {NETWORK: "formats.ns3:write_ns3"},
    ),
    "simai": Format("SimAI's topology", (), {NETWORK: "formats.simai:read_simai"}, {NETWORK: _write_simai}),
    "htsim": Format(
        "htsim's topology", (".topo",),
        {NETWORK: "formats.htsim_topology:read_htsim"}, {NETWORK: "formats.htsim:write_htsim"},
    ),
    **{name: Format(one.summary, (), _reads_fabric(name)) for name, one in FABRICS.items()},
    "infragraph": Format(
        "InfraGraph, YAML or JSON", (".infragraph.yaml", ".infragraph.json"),
        {NETWORK: "formats.fabrics.infragraph:read_infragraph"},
        {NETWORK: "formats.fabrics.infragraph_writer:write_infragraph"},
    ),
}  # fmt: skip
