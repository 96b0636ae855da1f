"""Builders of the collectives that have algorithms and protocols: those of a library differ in operation and text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from collectives import collective
from commsim.core.schedule import Schedule

from .call import KNOWN
from .launch import SIZE, VERSION, Algorithm, Choice, Machines, NcclParameters, Rings, launch
from .sharp_trees import SharpTrees

_DOC = """{summary}

Parameters
----------
n_ranks : int
    p, at least 1.
algorithm : {{{algorithms}}}
    {chooses}
protocol : {{"auto", "ll", "ll128", "simple"}}
    Decides chunks, and in ``commsim run`` bytes on the wire; {protocol}.
channels : int, optional
    C of the communicator; small calls use fewer. {channels}, else 2.
{own}n_bytes : int
    Size of the array that is cut into chunks; ``commsim run`` takes each size that it runs.
machines : tuple of tuple of int, optional
    Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.
{root}{cycles}{sharp}{slow}{heads}{rails}{buffer}{nvls_chunk}
Returns
-------
Schedule
    {returns}

Raises
------
InputError
    If algorithm, protocol and version exclude each other, or the algorithm does not fit the machines.

References
----------
{source}
"""
_SHARP = """sharp : tuple of tuple of int, optional
    With an algorithm that adds in the network: for each rail the switch above each machine and then above each
    switch, -1 for the topmost, -2 for a switch of other rails. ``commsim run`` takes trees of shortest paths from the
    network. Default: one switch above all machines.
"""
_HEADS = """heads : int
    GPUs of a machine that head a part of an all-reduce with CollNet direct. ``commsim run`` takes one for each NIC.
    Default: 0, all of them.
"""
_RAILS = """rails : int
    NICs of a machine: rings leave by a GPU of each in turn. ``commsim run`` takes it from the network. Default: 0, as
    many as GPUs.
"""
_NVLS_CHUNK = """nvls_chunk : int
    Bytes of the largest chunk of NVLink SHARP (``NCCL_NVLS_CHUNKSIZE``). ``commsim run`` takes what release, GPU and
    network plugin have. Default: 0, 128 KiB, and 64 KiB with trees of four machines and more.
"""
_BUFFER = """buffer : int
    Bytes of a connection's buffer with Simple (``NCCL_BUFFSIZE``); default: 0, NCCL's own 4 MiB.
"""
_NCCL = {
    "rails": _RAILS,
    "buffer": _BUFFER,
    "slow": "slow : bool\n    Whether all rings together carry at most 12 GB/s: NCCL then gives them fewer threads, "
    "and small\n    calls more channels. ``commsim run`` takes it from the network.\n",
    "chooses": "``commsim run`` takes what NCCL would choose at each size; without a network it is a ring.",
    "protocol": "likewise chosen, else Simple",
    "channels": "What NCCL's search finds",
    "cycles": "cycles : tuple of tuple of int, optional\n    Rings in a machine, as places in it, one for each channel "
    "in turn. ``commsim run``\n    takes those over direct links of a machine's GPUs. Default: in order.\n",
    "own": f"version : str\n    Version of NCCL, {KNOWN}; ``any``: the newest, with an interval over all.\n",
}
_RCCL = {
    "rails": "",
    "buffer": "",
    "slow": "",
    "chooses": "Default: a ring.",
    "protocol": "LL for small arrays in ``commsim run``, else Simple",
    "channels": "Seven for each GPU of a mesh, 56 of eight MI300X",
    "cycles": "cycles : tuple of tuple of int, optional\n    With ``mesh``: rings in every machine, as places in it. "
    "``commsim run`` takes\n    rings over direct links where GPUs form no full mesh.\n",
    "own": 'rings : {"mesh", "rails", "pairs"}\n    Layout: over all links of a full mesh of GPUs, or through each '
    "machine;\n    ``pairs`` is no ring, but an all-reduce in which all pairs of one machine send at once.\n",
}


@dataclass(frozen=True, slots=True)
class Text:
    """Parts of a collective's description that are its own.

    Parameters
    ----------
    summary : str
        First line, with the cost.
    algorithms : tuple of str
        Algorithms that the operation has.
    returns : str
        What is sent; lines are indented by four spaces.
    source : str
        What it is described by.
    root : str
        Description of the root; empty without one.
    """

    summary: str
    algorithms: tuple[str, ...]
    returns: str
    source: str
    root: str = ""

    def of(self, library: str) -> str:
        """Return the docstring of a library's collective."""
        shared = _NCCL if library == "nccl" else _RCCL
        algorithms = ", ".join(f'"{name}"' for name in ("auto", *self.algorithms))
        root = f"root : int\n    {self.root}\n" if self.root else ""
        adds = library == "nccl" and "collnet_direct" in self.algorithms
        own = {"sharp": _SHARP, "heads": _HEADS, "nvls_chunk": _NVLS_CHUNK}
        shared = shared | (own if adds else dict.fromkeys(own, ""))
        return _DOC.format(
            summary=self.summary, algorithms=algorithms, returns=self.returns, source=self.source, root=root, **shared,
        )  # fmt: skip


def nccl_collective(name: str, operation: str, text: Text) -> Callable[..., Schedule]:
    """Register a collective of NCCL.

    Parameters
    ----------
    name, operation : str
        Name and operation of the collective.
    text : Text
        Its description.
    """

    def build(
        n_ranks: int, algorithm: Algorithm = "auto", protocol: Choice = "auto", channels: int | None = None,
        version: str = VERSION, n_bytes: int = SIZE, machines: Machines | None = None,
        slow: bool = False, rails: int = 0, buffer: int = 0, cycles: Machines | None = None,
    ) -> Schedule:  # fmt: skip
        parameters = NcclParameters(
            name, operation, n_ranks, algorithm, protocol, channels, version, n_bytes, machines, slow=slow, rails=rails,
            buffer=buffer, cycles=cycles,
        )  # fmt: skip
        return launch(parameters)

    def rooted(
        n_ranks: int, algorithm: Algorithm = "auto", protocol: Choice = "auto", channels: int | None = None,
        version: str = VERSION, n_bytes: int = SIZE, machines: Machines | None = None, root: int = 0,
        slow: bool = False, rails: int = 0, buffer: int = 0, cycles: Machines | None = None,
    ) -> Schedule:  # fmt: skip
        parameters = NcclParameters(
            name, operation, n_ranks, algorithm, protocol, channels, version, n_bytes, machines, slow=slow, rails=rails,
            buffer=buffer, cycles=cycles,
        )  # fmt: skip
        return launch(parameters, root)

    def adding(
        n_ranks: int, algorithm: Algorithm = "auto", protocol: Choice = "auto", channels: int | None = None,
        version: str = VERSION, n_bytes: int = SIZE, machines: Machines | None = None,
        sharp: SharpTrees | None = None, slow: bool = False, heads: int = 0, rails: int = 0, buffer: int = 0,
        cycles: Machines | None = None, nvls_chunk: int = 0,
    ) -> Schedule:  # fmt: skip
        parameters = NcclParameters(
            name, operation, n_ranks, algorithm, protocol, channels, version, n_bytes, machines, sharp=sharp, slow=slow,
            heads=heads, rails=rails, buffer=buffer, cycles=cycles, nvls_chunk=nvls_chunk,
        )  # fmt: skip
        return launch(parameters)

    kind = adding if "collnet_direct" in text.algorithms else rooted if text.root else build
    return _registered(kind, name, operation, text.of("nccl"))


def rccl_collective(name: str, operation: str, text: Text) -> Callable[..., Schedule]:
    """Register a collective of RCCL; parameters are those of :func:`nccl_collective`."""

    def build(
        n_ranks: int, algorithm: Algorithm = "auto", protocol: Choice = "auto", channels: int | None = None,
        rings: Rings = "mesh", n_bytes: int = SIZE, machines: Machines | None = None,
        cycles: Machines | None = None,
    ) -> Schedule:  # fmt: skip
        parameters = NcclParameters(
            name, operation, n_ranks, algorithm, protocol, channels, VERSION, n_bytes, machines, rings, cycles
        )
        return launch(parameters)

    def rooted(
        n_ranks: int, algorithm: Algorithm = "auto", protocol: Choice = "auto", channels: int | None = None,
        rings: Rings = "mesh", n_bytes: int = SIZE, machines: Machines | None = None, root: int = 0,
        cycles: Machines | None = None,
    ) -> Schedule:  # fmt: skip
        parameters = NcclParameters(
            name, operation, n_ranks, algorithm, protocol, channels, VERSION, n_bytes, machines, rings, cycles
        )
        return launch(parameters, root)

    return _registered(rooted if text.root else build, name, operation, text.of("rccl"))


def _registered(build: Callable[..., Schedule], name: str, operation: str, doc: str) -> Callable[..., Schedule]:
    build.__name__ = build.__qualname__ = name
    build.__module__ = f"{__package__}.{name.partition('_')[0]}"
    build.__doc__ = doc
    return collective(operation, needs=("nccl",))(build)
