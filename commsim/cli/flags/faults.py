"""Flags for faults of a network: ``--fail`` and ``--scale``, and ``--flap`` for those in time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import parse_time

from . import Flags, flag, repeated

if TYPE_CHECKING:
    from commsim.routing.flaps import Flaps

_PART = re.compile(r"(\d{1,9})|(\d{1,9}(?:\.\d+)?)%", re.ASCII)
_MAX_NAMES = 8
DETECTION = "1ms"


class Faults(Flags):
    """Failures and slower links, which take effect in this order."""

    TITLE: ClassVar[str] = "faults"
    fail: tuple[str, ...] = repeated(
        metavar="WHAT",
        help="link:A->B or switch:NAME; links:5%%, links:3 or switches:1 are drawn by --seed; repeatable",
    )
    scale: tuple[str, ...] = repeated(
        metavar="WHAT=FACTOR",
        help="multiply the rate of cables: link:PATTERN=0.5 or links:10%%=0.5; repeatable",
    )
    seed: int | None = flag(metavar="N", help="seed of everything drawn at random (default: 0)")


class FaultsInTime(Flags):
    """Cables that go down during a run, and how the network and its hosts answer."""

    TITLE: ClassVar[str] = "faults"
    flap: tuple[str, ...] = repeated(
        metavar="WHAT@START+LENGTH",
        help="cables that go down during the run, such as link:leaf0->spine0@10ms+5ms or switch:spine0@1ms+1ms; "
        "repeatable",
    )
    detection: str | None = flag(metavar="TIME", help="until switches route around a cable that is down (default: 1ms)")
    rto: str | None = flag(
        metavar="TIME",
        help="after which senders repeat what a flap lost, doubled each time (default: at once; testbed: TCP's)",
    )

    def flaps(self, network: Network) -> Flaps | None:
        """Read the flags; None where nothing flaps.

        Raises
        ------
        InputError
            If a flap cannot be read or names what is not there, two overlap, or another flag is given without one.
        """
        from commsim.routing.flaps import read_flaps

        if not self.flap:
            for name in self.given("detection", "rto"):
                raise InputError(f"{name} goes with --flap")
            return None
        times = [parse_time(text or "0s", name) for text, name in ((self.detection or DETECTION, "--detection"),
                                                                   (self.rto, "--rto"))]  # fmt: skip
        return read_flaps(self.flap, network, detection=times[0], rto=times[1])


def flap_remarks(results: Sequence[Any]) -> list[str]:
    """Say what flaps cost, and how many connections they met."""
    return [
        f"{r.size:.0f} B: the flap costs {r.counters['flap_lost_s'] * 1e6:.2f} us; {_met(r.counters)}, connections "
        f"that were rerouted: {r.counters['rerouted']:.0f}"
        for r in results
        if "flap_lost_s" in r.counters
    ]


def _met(counters: Mapping[str, float]) -> str:
    if "stalled" in counters:
        return f"connections that waited: {counters['stalled']:.0f}"
    return f"packets that were lost: {counters['drops_loss']:.0f}, sent again: {counters['retransmissions']:.0f}"


def with_faults(network: Network, config: Faults) -> tuple[Network, list[str]]:
    """Apply the flags.

    Returns
    -------
    Network, list of str
        The network that is left, and what was drawn at random.

    Raises
    ------
    InputError
        If a flag says nothing that can be understood, or names what is not there, or the seed is negative.
    """
    seed = config.seed or 0
    notes: list[str] = []
    for text in config.fail:
        network = _fail(network, text, seed, notes)
    for text in config.scale:
        network = _scale(network, text, seed)
    return network, notes


def draws_faults(config: Faults) -> bool:
    """Whether a flag draws at random, so that the seed matters."""
    return any(text.partition(":")[0] in ("links", "switches") for text in (*config.fail, *config.scale))


def _fail(network: Network, text: str, seed: int, notes: list[str]) -> Network:
    from commsim.core.faults import draw_failures, fail_links, fail_switches, remove_cables, remove_switches

    what, _, name = text.partition(":")
    if what in ("link", "switch") and name:
        return fail_links(network, [name]) if what == "link" else fail_switches(network, [name])
    if what not in ("links", "switches"):
        wanted = "link:A->B, switch:NAME, links:5%, links:3, switches:5% or switches:1"
        raise InputError(f"--fail takes {wanted}, got {text!r}")
    drawn = draw_failures(network, what, _part(name, f"--fail {what}"), seed)
    shown = [network.link_name(int(i)) if what == "links" else network.nodes[i] for i in drawn[:_MAX_NAMES]]
    more = ", ..." if len(drawn) > _MAX_NAMES else ""
    notes.append(f"--fail {text}: {len(drawn)} failed{': ' if shown else ''}{', '.join(shown)}{more}")
    return remove_cables(network, drawn) if what == "links" else remove_switches(network, drawn)


def _scale(network: Network, text: str, seed: int) -> Network:
    from commsim.core.faults import scale_links

    chosen, _, factor = text.rpartition("=")
    what, _, name = chosen.partition(":")
    if what not in ("link", "links") or not name or not re.fullmatch(r"\d{1,9}(\.\d+)?", factor, re.ASCII):
        raise InputError(
            f"--scale takes link:PATTERN=FACTOR or links:10%=FACTOR, such as link:leaf0->*=0.5, got {text!r}"
        )
    if what == "link":
        return scale_links(network, float(factor), pattern=name)
    return scale_links(network, float(factor), part=_part(name, "--scale links"), seed=seed)


def _part(text: str, flag: str) -> float:
    """Read a number, or a percentage as a part of 1; a number stays an int."""
    match = _PART.fullmatch(text)
    if match is None:
        raise InputError(f"{flag} takes a number or a percentage, such as 3 or 5%, got {text!r}")
    return int(match[1]) if match[1] else float(match[2]) / 100
