"""What changed in NCCL's tuning model from release to release: constants, and which rules hold.

The rules themselves are in :mod:`commsim.nccl.expected_costs`; each release is said as what differs from
the next one.

References
----------
NCCL, ``src/graph/tuning.cc`` of 2.17, 2.20, 2.27 and 2.30 (rules); tables of constants in the released libraries
2.14.3, 2.18.3, 2.19.3, 2.22.3, 2.23.4, 2.25.1, 2.26.5, 2.27.7, 2.28.9, 2.29.7, 2.30.7, 2.31.2 and 2.32.3. Releases
between two of these that agree are taken to be like them. Channels, and CollNet's factors, are those of 2.30 in every
release. 2.18 is 2.18.3; 2.18.1 still had 28 us for a tree's hop with Simple. All constants of 2.31.2 are those of
2.30.7, the factors of trees and of NVLink SHARP too; 2.32.3 changed two of Blackwell. The pipelined cost model of
2.32.6 has data of Vera Rubin only (its release notes), a generation that is not here.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from collectives.nccl.call import NEWEST, OLDEST
from commsim.core.errors import InputError

from .nccl_setting import GENERATIONS

Row = tuple[float, float, float]
Table = Mapping[str, Row]
# First release that knows a generation.
FIRST_RELEASE = {"volta": (2, 8), "ampere": (2, 8), "hopper": (2, 17), "blackwell": (2, 25)}
# The generation before each.
_BEFORE = dict(itertools.pairwise(GENERATIONS[::-1]))
_COLLNET = ("collnet_direct", "collnet_chain")
_LL = {"volta": (39.0, 39.0, 20.4), "ampere": (87.7, 22.5, 19.0)}
_LL_HOPPER = {**_LL, "hopper": (141.0, 45.0, 35.0)}
_TREE = {"volta": (26.5, 18.5, 10.0), "ampere": (24.0, 23.6, 17.8)}
_TREE_HOPPER = {**_TREE, "hopper": (38.7, 41.4, 36.0)}
# Of all releases, by protocol: what is left of a tree's rate from 64 B, 128 B and so on to 256 MiB; elsewhere all.
TREE_CORRECTION = (
    (1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    (1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
)
SMALLEST_CORRECTED = 64


@dataclass(frozen=True, slots=True)
class NcclModel:
    """The model of some releases.

    Rows of an algorithm are of LL, LL128 and Simple; those of a generation of GPUs, of one, two and more nodes.

    Parameters
    ----------
    since : (int, int)
        First release.
    base_us, hop_us : mapping
        Starting cost of each algorithm; cost of a hop by kind of link (``nvlink``, ``pci``, ``net``).
    ll_gbs, tree_gbs, ring_ll128_gbs, tree_ll128_gbs, nvls_tree_gbs : mapping
        Largest rates, GB/s: of LL as a whole, of the others for each channel. A generation without a row has that of
        the one before it.
    bus_gbs : mapping of str to float
        Largest rate of all channels together.
    algorithms : tuple of str
        Algorithms of these releases.
    ring_ll : (float, float)
        Part of the bus that a ring has with LL: of all-reduce, reduce and several nodes; of the rest.
    lone_ll128 : float
        Part that a ring has with LL128 where nodes have one GPU.
    nvls : {"efficiency", "search", "ring"}
        How the rate of NVLink SHARP follows: from the links by an efficiency; only from the search; from the ring's.
    nvls_share : float
        Share of the rate of NVLink SHARP, size over time, that is reached.
    halves_shared : bool
        Whether `nvls_share` counts for all-gather and reduce-scatter too.
    crossings : int
        Number of times that a ring's all-reduce crosses the network beyond 2(N-1).
    ll_hop : float
        What hops with LL inside a node cost more where there are several nodes.
    posts : bool
        Whether a message costs at least what posting it to the network does.
    plugin_replaces : bool
        Whether the plugin's latency replaces that of the network's hop, where it says one.
    lone_tree_hop : bool
        Whether nodes with one GPU have the network's hop of trees in every algorithm.
    plateau : (float, float)
        Factor of the latency of long all-reduces by rings with Simple: before and from `plateau_from` on.
    plateau_from : str
        Generation.
    plateau_bytes : int
        Size per channel and rank at which the plateau begins; if 0, it begins at 4 KiB for each rank.
    corrects_nvls_tree : bool
        Whether NVLS trees of Blackwell on x86 dip as trees do.
    """

    since: tuple[int, int]
    base_us: Table
    hop_us: Mapping[str, Table]
    ll_gbs: Table
    ring_ll128_gbs: Table
    tree_ll128_gbs: Table
    tree_gbs: Table
    nvls_tree_gbs: Table
    bus_gbs: Mapping[str, float]
    algorithms: tuple[str, ...]
    ring_ll: tuple[float, float] = (0.5, 0.5)
    lone_ll128: float = 0.92
    nvls: Literal["efficiency", "search", "ring"] = "efficiency"
    nvls_share: float = 1.0
    halves_shared: bool = False
    crossings: int = 0
    ll_hop: float = 1.0
    posts: bool = True
    plugin_replaces: bool = False
    lone_tree_hop: bool = True
    plateau: tuple[float, float] = (1.9, 1.4)
    plateau_from: str = "ampere"
    plateau_bytes: int = 64
    corrects_nvls_tree: bool = True


def row_of(table: Mapping[str, Row], gpu: str) -> Row:
    """Return the row of a generation, or where a release does not know it, of the one before."""
    return table[gpu] if gpu in table else row_of(table, _BEFORE[gpu])


def _of_all(row: Row) -> Table:
    """Return a table in which Volta and Ampere, which never changed, have LL128's 20 GB/s, and Hopper the row."""
    return {"volta": (20.0, 20.0, 20.0), "ampere": (20.0, 20.0, 20.0), "hopper": row}


_RING_LL128, _TREE_LL128 = _of_all((36.7, 36.7, 36.7)), _of_all((36.7, 36.7, 29.0))


def _changed(table: Mapping[str, Table], **by_kind: Table) -> dict[str, Table]:
    """Return hops with some rows of some kinds of link replaced."""
    return {kind: {**rows, **by_kind.get(kind, {})} for kind, rows in table.items()}


_2_30 = NcclModel(
    since=(2, 30),
    base_us={
        "tree": (6.8, 14.0, 8.4), "ring": (6.6, 14.0, 8.4), "collnet_direct": (0, 0, 0), "collnet_chain": (0, 0, 0),
        "nvls": (0, 0, 0), "nvls_tree": (0, 0, 0), "pat": (8.0, 8.0, 8.0),
    },
    hop_us={
        "nvlink": {
            "tree": (0.6, 1.25, 4.0), "ring": (0.6, 1.9, 3.4), "collnet_direct": (0, 0, 3.7),
            "collnet_chain": (0, 0, 2.8), "nvls": (0, 0, 25.0), "nvls_tree": (0, 0, 25.0), "pat": (0, 0, 4.0),
        },
        "pci": {
            "tree": (1.0, 1.9, 4.0), "ring": (1.0, 2.5, 5.7), "collnet_direct": (0, 0, 3.7),
            "collnet_chain": (0, 0, 2.8), "nvls": (0, 0, 0), "nvls_tree": (0, 0, 0), "pat": (0, 0, 4.0),
        },
        "net": {
            "tree": (5.0, 8.5, 14.0), "ring": (2.7, 4.0, 14.0), "collnet_direct": (0, 0, 31.0),
            "collnet_chain": (0, 0, 30.0), "nvls": (0, 0, 18.0), "nvls_tree": (0, 0, 20.9), "pat": (0, 0, 14.0),
        },
    },
    ll_gbs={**_LL_HOPPER, "blackwell": (282.0, 90.0, 70.0)},
    ring_ll128_gbs={**_RING_LL128, "blackwell": (40.0, 40.0, 40.0)},
    tree_ll128_gbs={**_TREE_LL128, "blackwell": (55.6, 31.67, 20.0)},
    tree_gbs={**_TREE_HOPPER, "blackwell": (70.0, 42.8, 24.0)},
    nvls_tree_gbs={**_TREE, "hopper": (0.0, 57.7, 45.5), "blackwell": (0.0, 96.0, 80.0)},
    bus_gbs={},
    algorithms=("tree", "ring", *_COLLNET, "nvls", "nvls_tree", "pat"),
)  # fmt: skip
_2_32 = dataclasses.replace(
    _2_30,
    since=(2, 32),
    ll_gbs={**_LL_HOPPER, "blackwell": (282.4, 90.0, 70.0)},
    tree_ll128_gbs={**_TREE_LL128, "blackwell": (55.6, 36.7, 20.0)},
)
_2_29 = dataclasses.replace(_2_30, since=(2, 29), nvls_tree_gbs={**_2_30.nvls_tree_gbs, "blackwell": (0.0, 96.0, 43.8)})
_2_28 = dataclasses.replace(
    _2_29, since=(2, 28), ring_ll128_gbs={**_RING_LL128, "blackwell": (73.4, 34.6, 73.4)}
)  # fmt: skip
# Blackwell is twice Hopper; what NVLink SHARP reaches is 5/6 of what the search finds.
_2_25 = dataclasses.replace(
    _2_28,
    since=(2, 25),
    hop_us=_changed(_2_28.hop_us, net={"nvls_tree": (0, 0, 14.0)}),
    ring_ll128_gbs={**_RING_LL128, "blackwell": (73.4, 73.4, 73.4)},
    tree_ll128_gbs={**_TREE_LL128, "blackwell": (73.4, 73.4, 58.0)},
    tree_gbs={**_TREE_HOPPER, "blackwell": (77.4, 82.8, 72.0)},
    nvls_tree_gbs={},
    nvls="search",
    nvls_share=5 / 6,
    corrects_nvls_tree=False,
)
_2_23 = dataclasses.replace(
    _2_25, since=(2, 23), ll_gbs=_LL_HOPPER, ring_ll128_gbs=_RING_LL128, tree_ll128_gbs=_TREE_LL128,
    tree_gbs=_TREE_HOPPER,
)  # fmt: skip
_2_22 = dataclasses.replace(
    _2_23,
    since=(2, 22),
    base_us={**_2_23.base_us, "tree": (6.8, 14.0, 0.0)},
    hop_us=_changed(
        _2_23.hop_us, nvlink={"tree": (0.6, 1.25, 28.0)}, pci={"tree": (1.0, 1.9, 28.0)}, net={"tree": (5.0, 8.5, 28.0)}
    ),
    algorithms=("tree", "ring", *_COLLNET, "nvls", "nvls_tree"),
    ring_ll=(1 / 4, 1 / 3),
    lone_ll128=0.7,
    halves_shared=True,
    crossings=2,
    lone_tree_hop=False,
)
_2_19 = dataclasses.replace(
    _2_22,
    since=(2, 19),
    hop_us=_changed(_2_22.hop_us, nvlink={"nvls": (0, 0, 23.0), "nvls_tree": (0, 0, 23.0)}),
    ll_gbs=_LL,
)
_2_18 = dataclasses.replace(
    _2_19,
    since=(2, 18),
    base_us={
        **_2_19.base_us, "collnet_direct": (6.8, 14.0, 0), "collnet_chain": (6.8, 14.0, 0), "nvls": (0, 0, 23.0),
        "nvls_tree": (0, 0, 23.0),
    },
    hop_us=_changed(
        _2_19.hop_us,
        nvlink={"tree": (0.6, 1.25, 4.0), "collnet_direct": (0, 0, 8.0), "collnet_chain": (0, 0, 4.75),
                "nvls": (0, 0, 0), "nvls_tree": (0, 0, 0)},
        pci={"tree": (1.0, 1.9, 6.0), "collnet_direct": (0, 0, 8.0), "collnet_chain": (0, 0, 8.0)},
        net={"tree": (5.0, 8.5, 14.0), "collnet_direct": (0, 0, 10.7), "collnet_chain": (0, 0, 14.0),
             "nvls_tree": (0, 0, 19.0)},
    ),
)  # fmt: skip
_2_17 = dataclasses.replace(
    _2_18,
    since=(2, 17),
    base_us={
        "tree": (4.4, 4.4, 0), "ring": (3.6, 10.0, 8.4), "collnet_direct": (4.4, 4.4, 0),
        "collnet_chain": (4.4, 4.4, 0), "nvls": (0, 0, 40.0),
    },
    hop_us={
        "nvlink": {"tree": (0.52, 1.25, 28.0), "ring": (0.47, 1.9, 3.4), "collnet_direct": (0, 0, 8.0),
                   "collnet_chain": (0, 0, 8.0), "nvls": (0, 0, 0)},
        "pci": {"tree": (1.0, 1.9, 28.0), "ring": (1.0, 2.5, 5.7), "collnet_direct": (0, 0, 8.0),
                "collnet_chain": (0, 0, 8.0), "nvls": (0, 0, 0)},
        "net": {"tree": (5.0, 8.5, 28.0), "ring": (2.7, 4.0, 9.6), "collnet_direct": (0, 0, 10.7),
                "collnet_chain": (0, 0, 10.7), "nvls": (0, 0, 0)},
    },
    ring_ll128_gbs=_of_all((36.7, 36.7, 36.7)),
    tree_ll128_gbs=_of_all((36.7, 36.7, 36.7)),
    tree_gbs={**_TREE, "hopper": (38.7, 41.4, 33.0)},
    bus_gbs={"ampere": 235.0, "hopper": 370.0},
    algorithms=("tree", "ring", *_COLLNET, "nvls"),
    nvls="ring",
    nvls_share=0.75,
    ll_hop=1.8,
    posts=False,
    plugin_replaces=True,
    plateau=(1.9, 1.5),
    plateau_from="hopper",
    plateau_bytes=0,
)  # fmt: skip
_2_14 = dataclasses.replace(
    _2_17,
    since=(2, 14),
    ring_ll128_gbs={k: v for k, v in _RING_LL128.items() if k != "hopper"},
    tree_ll128_gbs={k: v for k, v in _RING_LL128.items() if k != "hopper"},
    tree_gbs=_TREE,
    bus_gbs={"ampere": 235.0},
    algorithms=("tree", "ring", *_COLLNET),
    plateau=(1.9, 1.9),
)
# Before 2.14 there was one kind of CollNet, the tree's chain.
_2_8 = dataclasses.replace(_2_14, since=OLDEST, algorithms=("tree", "ring", "collnet_chain"))

MODELS = (_2_32, _2_30, _2_29, _2_28, _2_25, _2_23, _2_22, _2_19, _2_18, _2_17, _2_14, _2_8)


def check_release(gpu: str, version: tuple[int, ...]) -> None:
    """Refuse a release that does not know a generation of GPUs.

    Parameters
    ----------
    gpu : str
        Generation.
    version : (int, int)
        Release.

    Raises
    ------
    InputError
        If the first release that knows the generation is a later one.
    """
    first = FIRST_RELEASE[gpu]
    if version[:2] < first:
        release, known = (".".join(map(str, one[:2])) for one in (version, first))
        raise InputError(f"NCCL {release} does not know {gpu.capitalize()} GPUs; version is {known} or later there")


def model_of(version: tuple[int, int] = NEWEST) -> NcclModel:
    """Return the model of a release that is known, as :func:`collectives.nccl.call.read_version` makes sure."""
    return next(model for model in MODELS if model.since <= version)
