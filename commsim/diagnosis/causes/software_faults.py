"""Faults of software and settings: algorithms, channels, transports, releases."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from collectives.nccl.call import ALLOWED
from commsim.diagnosis.causes.fabric_faults import rates_times
from commsim.diagnosis.causes.fault import ROUNDABOUT, Fault
from commsim.diagnosis.causes.ground import Ground, links_between, nics_of_machines, without_nodes
from commsim.nccl.model_versions import FIRST_RELEASE, MODELS
from commsim.nccl.tuning_table import Cell, cells

CHANNELS, MORE_CHANNELS = (1, 2, 4, 8), (16, 24, 32)
# Rates of one port that is not of the fabric, bytes/s: 1, 10, 25 and 100 Gb/s.
OTHER_PORTS = (0.125e9, 1.25e9, 3.125e9, 12.5e9)
# Parts of 42 Gb/s that a core moves over TCP with what the system offloads (Cai et al., SIGCOMM 2021, section 3.1: from
# all to little of it, and where a few cores serve the interrupts of all ranks).
COPIES = (1.0, 0.5, 0.25, 0.1)
# What LL keeps of it: its many small messages are calls of the system each.
LL_OF_SOCKETS = (1.0, 0.2)
# Parts of the rates that are left to a release that takes a link for a slower one, or a longer path than it could:
# known ones reach from 0.9 to 0.1.
MISTAKEN = (0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.12, 0.08)
FORCED = "wrong_algorithm_or_protocol_forced"
NAMES = {"ll": "LL", "ll128": "LL128", "simple": "Simple"}


def forced_choices(ground: Ground) -> Iterator[Fault]:
    """Yield grounds on which NCCL is held to one algorithm or one protocol."""
    table = _choices(ground)
    for algorithm in dict.fromkeys(cell.algorithm for cell in table):
        text = f"NCCL takes {algorithm} at every size"
        yield Fault(FORCED, text, dataclasses.replace(ground, algorithm=algorithm), other_way=True)
    for protocol in dict.fromkeys(cell.protocol for cell in table):
        text = f"NCCL takes {NAMES[protocol]} at every size"
        yield Fault(FORCED, text, dataclasses.replace(ground, protocol=protocol), other_way=True)


def _choices(ground: Ground) -> list[Cell]:
    """Return the algorithms with their protocols that NCCL chooses from; none where that is forced already."""
    if ground.operation not in ALLOWED or ground.algorithm or ground.protocol:
        return []
    return [cell for cell in cells(ground.site().setting, ground.operation) if cell.bandwidth]


def better_choices(ground: Ground) -> Iterator[Fault]:
    """Yield what a healthy table was forced to that is faster than NCCL's own choice: an algorithm, more channels."""
    table = _choices(ground)
    if not table:
        return
    for algorithm in dict.fromkeys(cell.algorithm for cell in table):
        forced = dataclasses.replace(ground, algorithm=algorithm)
        yield Fault(FORCED, f"{algorithm} is faster than what NCCL chooses", ground, other_way=True, reference=forced)
    usual = ground.site().max_channels
    for n in MORE_CHANNELS:
        if n > usual:
            more = dataclasses.replace(ground, options=dataclasses.replace(ground.options, min_ctas=n))
            text = f"{usual} channels, {n} are faster"
            yield Fault("too_few_channels_or_qps", text, ground, reference=more)


def fewer_channels(ground: Ground) -> Iterator[Fault]:
    """Yield grounds with a bound on the channels of a call."""
    usual = ground.site().max_channels
    for n in CHANNELS:
        if n < usual:
            options = dataclasses.replace(ground.options, max_ctas=n, min_ctas=min(n, ground.options.min_ctas))
            text = f"{n} channel{'s' * (n > 1)} in place of {usual}"
            yield Fault("too_few_channels_or_qps", text, dataclasses.replace(ground, options=options), number=n)


def sockets(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose machines talk over TCP sockets in place of verbs or the plugin."""
    net = ground.facts.get("net", "")
    if not ground.has_several or net in ("ena", "sockets"):
        return
    text, label = "TCP sockets in place of verbs or the plugin", "ib_disabled_tcp_sockets"
    for part, ll in itertools.product(COPIES, LL_OF_SOCKETS):
        tcp = dataclasses.replace(ground.with_facts(net="sockets"), plugin=(("copy", part), ("ll_efficiency", ll)))
        yield Fault(label, text, tcp, 1.0, ROUNDABOUT, other_way=True)
    if net in ("efa", "efa3"):
        yield Fault(label, text, ground.with_facts(net="ena"), 4.0, ROUNDABOUT, other_way=True)


def other_ports(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose machines talk by one port that is not of the fabric."""
    nics = nics_of_machines(ground)
    if not ground.has_several or not min(map(len, nics)):
        return
    few = without_nodes(ground, np.concatenate([some[1:] for some in nics]))
    links = links_between(few.network)
    rate = float(few.network.bandwidth[links].max())
    for port in OTHER_PORTS:
        if port < rate / 1.5:
            text = f"one port of {port * 8 / 1e9:g} Gb/s that is not of the fabric"
            slow = few.with_rates(links, port / rate)
            for ll in LL_OF_SOCKETS:
                tcp = dataclasses.replace(slow.with_facts(net="sockets"), plugin=(("ll_efficiency", ll),))
                yield Fault("wrong_interface_or_ethernet", text, tcp, 1.0, ROUNDABOUT, other_way=True)
            if port == OTHER_PORTS[-1]:
                yield Fault("wrong_interface_or_ethernet", text, slow.with_facts(net="roce"), 0.5)


def without_sharp(ground: Ground) -> Iterator[Fault]:
    """Yield the ground whose fabric does not reduce, where it is said to."""
    if ground.options.collnet or ground.facts.get("sharp") == "on":
        options = dataclasses.replace(ground.options, collnet=False)
        plain = dataclasses.replace(ground, options=options)
        if "sharp" in ground.facts:
            plain = plain.with_facts(sharp="off")
        yield Fault("sharp_expected_but_off", "the fabric does not reduce (SHARP, CollNet)", plain)


def other_releases(ground: Ground) -> Iterator[Fault]:
    """Yield grounds of other releases, and of one that takes a link for a slower one, or a longer path."""
    first = FIRST_RELEASE[ground.site().setting.gpu]
    for release in sorted({model.since for model in MODELS}):
        if first <= release != ground.options.version:
            options = dataclasses.replace(ground.options, version=release)
            text = f"NCCL behaves as {release[0]}.{release[1]}"
            yield Fault("version_regression", text, dataclasses.replace(ground, options=options), 0.3)
    between = links_between(ground.network)
    nic = float(ground.network.bandwidth[between].max(initial=0.0))
    for part in MISTAKEN:
        changed = ground.with_cost(rates_times(part, inside=not ground.has_several))
        if nic and ground.has_several:  # NCCL chooses by the rate that it takes a link to have
            changed = dataclasses.replace(changed, options=dataclasses.replace(ground.options, nic=nic * part))
        text = f"a release that finds slower links or longer paths than there are ({part:.0%} of the rate)"
        yield Fault("version_regression", text, changed, 1.0, ROUNDABOUT)
