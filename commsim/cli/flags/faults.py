"""The flags for networks that are not as built: ``--fail`` and ``--scale``."""

from __future__ import annotations

import argparse
import re

from commsim.core.errors import InputError
from commsim.core.network import Network

_PART = re.compile(r"(\d{1,9})|(\d{1,9}(?:\.\d+)?)%", re.ASCII)
_MOST_NAMES = 8


def add_damage_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--fail`` and ``--scale``, which take effect in this order."""
    what = "link:A->B, switch:NAME, or drawn by --seed: links:5%%, links:3, switches:1; repeat for several"
    parser.add_argument("--fail", action="append", default=[], metavar="WHAT", help=what)
    what = "link:PATTERN=0.5 or links:10%%=0.5: multiply the rate of some cables; repeat for several"
    parser.add_argument("--scale", action="append", default=[], metavar="WHAT=FACTOR", help=what)


def damaged(network: Network, args: argparse.Namespace) -> tuple[Network, list[str]]:
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
    if args.seed is not None and args.seed < 0:
        raise InputError(f"--seed must be 0 or more, got {args.seed}")
    notes: list[str] = []
    for text in args.fail:
        network = _fail(network, text, args.seed or 0, notes)
    for text in args.scale:
        network = _scale(network, text, args.seed or 0)
    return network, notes


def draws_damage(args: argparse.Namespace) -> bool:
    """Whether a flag draws at random, so that the seed matters."""
    return any(text.partition(":")[0] in ("links", "switches") for text in (*args.fail, *args.scale))


def _fail(network: Network, text: str, seed: int, notes: list[str]) -> Network:
    from commsim.core.faults import draw_failures, fail_links, fail_switches, remove_cables, remove_switches

    what, _, name = text.partition(":")
    if what in ("link", "switch") and name:
        return fail_links(network, [name]) if what == "link" else fail_switches(network, [name])
    if what not in ("links", "switches"):
        wanted = "link:A->B, switch:NAME, links:5%, links:3, switches:5% or switches:1"
        raise InputError(f"--fail takes {wanted}, got {text!r}")
    drawn = draw_failures(network, what, _part(name, f"--fail {what}"), seed)
    shown = [network.link_name(int(i)) if what == "links" else network.nodes[i] for i in drawn[:_MOST_NAMES]]
    more = ", ..." if len(drawn) > _MOST_NAMES else ""
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
