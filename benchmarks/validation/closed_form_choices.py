"""Choices that collectives make by themselves (order, cuts, rails, servers, waiting), against what they should give.

A note says what version 0.1 gave for the same command line.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from collectives.dense.broadcast import chain_cost
from commsim import predict
from commsim.core.cost import LogGP
from commsim.prediction.inputs import load_network
from commsim.prediction.read import with_costs

from .row import Row

KIB, GIB = 2**10, 2**30
RING = "ring:n_hosts=16,bandwidth=800Gbps"
STAR = "star:n_hosts=16,bandwidth=100Gbps,latency=1us"
TREE = "fat_tree:k=4,bandwidth=100Gbps,latency=1us"
DGX = "rail_optimized:n_hosts=4,preset=dgx-h100"
Choice = functools.partial(Row, kind="closed_form", engine="flow")


def rows(quick: bool) -> Iterator[Row]:
    """Compare; all of them are quick but the rings over rails."""
    yield from halving_doubling()
    yield chain()
    yield waiting_ring()
    yield servers()
    if not quick:
        yield rails()


def halving_doubling() -> Iterator[Row]:
    """1 GiB on a ring of 16: in each of 8 rounds the most loaded link carries S/2, if all paths are the shortest."""
    links, latency = GIB / 2 / 100e9, 500e-9
    theory = sum(2 * (links + distance * latency) for distance in (1, 2, 4, 8))
    ours = predict("halving_doubling_all_reduce", RING, GIB, routing="shortest", overhead="0us").time
    shown = functools.partial(Choice, model="halving_doubling_all_reduce", operation="all_reduce", ranks=16,
                              network="ring", size=float(GIB), unit="s", ours=ours)  # fmt: skip
    yield shown(id="closed_form/choices/halving_doubling/theory", against="closed form", reference=theory,
                source="2k rounds of S/2 on the most loaded link, nearest partner first",
                note="92.6 ms before, with the farthest partner first")  # fmt: skip


def chain() -> Row:
    """4 KiB along a chain of 8 with o = 1 us: the best number of chunks for this network, found by trying all."""
    size, link = 4 * KIB, LogGP(L=2e-6, o=1e-6, B=12.5e9)
    best = min(chain_cost(8, size, link, k) for k in range(1, 65))
    network = with_costs(load_network(STAR), overhead=link.o)
    before = predict("chain_broadcast:n_chunks=64", network, size, n_ranks=8).time
    return Choice(id="closed_form/choices/chain", against="closed form", model="chain_broadcast", operation="broadcast",
                  ranks=8, network="star", size=float(size), unit="s", reference=best,
                  ours=predict("chain_broadcast", network, size, n_ranks=8).time,
                  source="the least of the closed form over 1 to 64 chunks",
                  note=f"{before * 1e6:.1f} us before, with 64 chunks")  # fmt: skip


def waiting_ring() -> Row:
    """Compare a ring on a fat tree whose steps wait with 2(p-1) times a step between pods."""
    size, n_ranks = 1024 * KIB, 16
    step = 6e-6 + size / n_ranks / 12.5e9
    free = predict("ring_all_reduce", TREE, size, overhead="0us").time
    ours = predict("ring_all_reduce:blocking=true", TREE, size, overhead="0us").time
    return Choice(id="closed_form/choices/blocking", against="closed form", model="ring_all_reduce, blocking",
                  operation="all_reduce", ranks=n_ranks, network="fat_tree", size=float(size), unit="s",
                  reference=2 * (n_ranks - 1) * step, ours=ours,
                  source="2(p-1)(6 L + S/(pB)): each step takes what its slowest message takes",
                  note=f"{free * 1e6:.1f} us without waiting, the only way before")  # fmt: skip


def servers() -> Row:
    """Servers on all free hosts: with one for each rank every port carries the vector once in each direction."""
    size = 64 * 1024 * KIB
    one = predict("parameter_server:n_servers=1", STAR, size, n_ranks=8, overhead="0us").time
    return Choice(id="closed_form/choices/servers", against="closed form", model="parameter_server",
                  operation="all_reduce", ranks=8, network="star", size=float(size), unit="s",
                  reference=size / 12.5e9 * 65 / 64 + 4e-6,
                  ours=predict("parameter_server", STAR, size, n_ranks=8, overhead="0us").time,
                  source="(k+1)/k S/B + 2L with a server for each rank and k = 64 partitions",
                  note=f"{one * 1e3:.1f} ms before, with one server")  # fmt: skip


def rails() -> Row:
    """Rings on 4 DGX H100: as many as rails, whose rate bounds the bus bandwidth."""
    two = predict("multi_ring_all_reduce:n_channels=2", DGX, GIB, overhead="0us").busbw
    return Choice(id="closed_form/choices/rails", against="rate of the rails", model="multi_ring_all_reduce",
                  operation="all_reduce", ranks=32, network="rail_optimized", size=float(GIB), unit="B/s",
                  reference=8 * 48e9, ours=predict("multi_ring_all_reduce", DGX, GIB, overhead="0us").busbw,
                  source="8 rails at 48 GB/s, the PCIe rate behind each NIC",
                  note=f"{two / 1e9:.1f} GB/s before, with 2 rings")  # fmt: skip
