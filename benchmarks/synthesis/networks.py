"""Networks of published results of synthesizers, as files that `commsim synthesize --topology FILE` reads.

``python -m benchmarks.synthesis.networks`` writes ``examples/synthesis/*.toml``. Rates are GB/s of 1e9 bytes, each way,
unless a row of TACOS says GiB. Latency is 0.5 us a link unless a source has one.

References
----------
ForestColl (github.com/liangyuRain/ForestColl): DGX-A100 and MI250 boxes. TE-CCL (github.com/microsoft/TE-CCL): NDv2 and
DGX2. TACOS (github.com/astra-sim/tacos, tests/): meshes and tori. Jia et al., "Dissecting the NVIDIA Volta GPU
architecture via microbenchmarking", 2018: the cube mesh of DGX-1V.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from commsim.core.files.store import save
from commsim.core.network import GPU, SWITCH, Network

FOLDER = Path(__file__).parents[2] / "examples" / "synthesis"
GB, GIB = 1e9, 2.0**30

Link = tuple[int | str, int | str, float]
MI250 = (
    "0-1:4 0-4:2 0-8:1 1-5:1 1-9:1 1-10:1 2-3:4 2-6:1 2-9:1 2-10:1 3-7:2 3-11:1 4-5:4 4-6:1 5-6:1 5-7:1 6-7:4 8-9:4 "
    "8-12:2 9-13:1 10-11:4 10-14:1 11-15:2 12-13:4 12-14:1 13-14:1 13-15:1 14-15:4"
)
CUBE_MESH = "0-1:1 0-2:1 0-3:2 0-4:2 1-2:2 1-3:1 1-5:2 2-3:2 2-6:1 3-7:1 4-5:1 4-6:1 4-7:2 5-6:2 5-7:1 6-7:2"


def network(
    name: str,
    n_gpus: int,
    cables: Iterable[Link],
    arcs: Iterable[Link] = (),
    latency: float = 0.5e-6,
    unit: float = GB,
    far: float | None = None,
) -> Network:
    """Return a network of GPUs ``g0 ...`` and the switches that its links name.

    Parameters
    ----------
    name : str
        Of the network.
    n_gpus : int
        GPUs; a link names one by its number.
    cables, arcs : iterable of (end, end, rate)
        Links both ways, and links one way.
    latency : float, s
        Of each link.
    unit : float, bytes/s
        Of the rates.
    far : float, s, optional
        Latency of the links one way, if it is another.
    """
    both = [(a, b, r, latency) for a, b, r in cables]
    links = [*both, *((b, a, r, t) for a, b, r, t in both)]
    links += [(a, b, r, latency if far is None else far) for a, b, r in arcs]
    switches = list(dict.fromkeys(end for link in links for end in link[:2] if isinstance(end, str)))
    number: dict[int | str, int] = {i: i for i in range(n_gpus)} | {s: n_gpus + i for i, s in enumerate(switches)}
    src, dst = [number[a] for a, *_ in links], [number[b] for _, b, *_ in links]
    kind = [GPU] * n_gpus + [SWITCH] * len(switches)
    nodes = (*(f"g{i}" for i in range(n_gpus)), *switches)
    return Network(name, nodes, kind, src, dst, [r * unit for _, _, r, _ in links], [t for *_, t in links])


def lanes(text: str, rate: float, first: int = 0) -> list[Link]:
    """Read ``a-b:n``: n lanes between two GPUs, numbered from the first."""
    ends = [(pair.split(":")[0].split("-"), int(pair.split(":")[1])) for pair in text.split()]
    return [(first + int(a), first + int(b), rate * n) for (a, b), n in ends]


def boxes(name: str, n: int, inside: float, nic: float, rails: int) -> Network:
    """Boxes of 8 GPUs on one NVSwitch each; NIC number g is on network switch ``g % rails``."""
    cables: list[Link] = [(8 * box + g, f"nvs{box}", inside) for box in range(n) for g in range(8)]
    if n > 1:
        cables += [(8 * box + g, f"ib{g % rails}", nic) for box in range(n) for g in range(8)]
    return network(name, 8 * n, cables)


def mi250(n: int) -> Network:
    """Boxes of 16 GCDs; with several boxes each has 16 GB/s to one switch."""
    cables = [link for box in range(n) for link in lanes(MI250, 50, 16 * box)]
    if n > 1:
        cables += [(g, "ib", 16) for g in range(16 * n)]
    return network(f"mi250_x{n}", 16 * n, cables)


def grid(
    name: str, dims: tuple[int, ...], rates: tuple[float, ...], wrap: bool, latency: float = 0.5e-6, unit: float = GB
) -> Network:
    """Return a mesh or torus; a side of 2 has one cable."""
    cables: list[Link] = []
    for at in itertools.product(*map(range, dims)):
        for axis, side in enumerate(dims):
            if at[axis] + 1 < side or (wrap and side > 2):
                to = (*at[:axis], (at[axis] + 1) % side, *at[axis + 1 :])
                cables.append((int(np.ravel_multi_index(at, dims)), int(np.ravel_multi_index(to, dims)), rates[axis]))
    return network(name, int(np.prod(dims)), cables, latency=latency, unit=unit)


def star(name: str, n: int, slow: float = 100.0) -> Network:
    """Hosts with 100 GB/s on one switch; the fourth may be slower."""
    return network(name, n, [(i, "switch0", slow if i == 3 else 100.0) for i in range(n)])


def leaf_spine(name: str, leaves: int, hosts: int, spines: int, uplink: float) -> Network:
    """Leaves with 100 GB/s a host; with one spine less than one, leaves are joined directly."""
    cables: list[Link] = [(i, f"leaf{i // hosts}", 100.0) for i in range(leaves * hosts)]
    if spines:
        cables += [(f"leaf{i}", f"spine{j}", uplink) for i in range(leaves) for j in range(spines)]
    else:
        cables += [(f"leaf{i}", f"leaf{i + 1}", uplink) for i in range(leaves - 1)]
    return network(name, leaves * hosts, cables)


def fat_tree() -> Network:
    """Fat tree of k = 4 with 25 GB/s a link."""
    cables: list[Link] = [(h, f"edge{h // 2}", 25.0) for h in range(16)]
    for pod, i, j in itertools.product(range(4), range(2), range(2)):
        cables += [(f"edge{2 * pod + i}", f"agg{2 * pod + j}", 25.0), (f"agg{2 * pod + i}", f"core{2 * i + j}", 25.0)]
    return network("fat_tree_k4", 16, cables)


def ndv2() -> Network:
    """Two NDv2 of TE-CCL: cube meshes, and 12.5 GB/s from GPU 0 of each to GPU 1 of the other."""
    cables = [*lanes(CUBE_MESH, 25.0), *lanes(CUBE_MESH, 25.0, 8)]
    return network("ndv2_x2", 16, cables, [(0, 9, 12.5), (8, 1, 12.5)], 0.7e-6, far=1.3e-6)


def dgx2() -> Network:
    """Two DGX2 of TE-CCL: 125 GB/s from each GPU to a switch, and 12.5 GB/s from odd GPUs to even ones."""
    cables: list[Link] = [(16 * box + g, f"nvs{box}", 125.0) for box in range(2) for g in range(16)]
    arcs: list[Link] = [(16 * a + g + 1, 16 * (1 - a) + g, 12.5) for a in range(2) for g in range(0, 16, 2)]
    return network("dgx2_x2", 32, cables, arcs, 0.35e-6, far=2.6e-6)


def slow_cable() -> Network:
    """Ring of 8 hosts with 50 GB/s, one of whose cables has 25."""
    return network("ring8_slow_cable", 8, [(i, (i + 1) % 8, 25.0 if i == 3 else 50.0) for i in range(8)])


def tacos(name: str, dims: tuple[int, ...], rates: tuple[float, ...], wrap: bool, alpha: float) -> Network:
    """Return a network of TACOS' regression tests, in GiB/s."""
    return grid(f"tacos_{name}", dims, rates, wrap, alpha, GIB)


NETWORKS: tuple[Callable[[], Network], ...] = (
    *((lambda n=n: boxes(f"a100_x{n}", n, 300.0, 25.0, 2)) for n in (1, 2, 4, 8)),
    *((lambda n=n: boxes(f"h100_x{n}", n, 450.0, 50.0, 8)) for n in (1, 2, 4, 8, 16)),
    lambda: mi250(1),
    lambda: mi250(2),
    lambda: network("dgx1v", 8, lanes(CUBE_MESH, 25.0)),
    *((lambda n=n: grid(f"ring{n}", (n,), (50.0,), True)) for n in (8, 16)),
    slow_cable,
    lambda: grid("torus_4x4", (4, 4), (50.0,) * 2, True),
    lambda: grid("torus_4x4x4", (4, 4, 4), (50.0,) * 3, True),
    lambda: grid("mesh_5x5", (5, 5), (50.0,) * 2, False),
    fat_tree,
    lambda: leaf_spine("leaf_spine_4x16", 4, 16, 2, 400.0),
    lambda: leaf_spine("two_leaves", 2, 4, 0, 100.0),
    lambda: leaf_spine("two_leaves_slow", 2, 4, 0, 25.0),
    lambda: star("star8", 8),
    lambda: star("star8_half", 8, 50.0),
    lambda: star("star8_quarter", 8, 25.0),
    ndv2,
    dgx2,
    lambda: tacos("mesh_5x5", (5, 5), (50.0,) * 2, False, 0.5e-6),
    lambda: tacos("mesh_10x10", (10, 10), (100.0,) * 2, False, 1e-6),
    lambda: tacos("torus_3x3x3", (3, 3, 3), (50.0,) * 3, True, 0.5e-6),
    lambda: tacos("torus_4x2x3", (4, 2, 3), (50.0,) * 3, True, 0.5e-6),
    lambda: tacos("mesh_5x5_uneven", (5, 5), (75.0, 50.0), False, 0.5e-6),
)


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for build in NETWORKS:
        made = build()
        save(made, FOLDER / f"{made.name}.toml")


if __name__ == "__main__":
    main()
