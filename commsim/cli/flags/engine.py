"""Flags of an engine, and what a group of flags of an extension is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from . import Flags, flag


class EngineFlags(Flags):
    """Engine, and packet headers."""

    TITLE: ClassVar[str] = "engine and packets"
    RARE: ClassVar[Mapping[str, str | None]] = dict.fromkeys(("payload", "header"), "packet")
    engine: str = flag(
        default="", metavar="NAME",
        help="flow, packet, alpha-beta, closed-form or auto (default: flow)",
    )  # fmt: skip
    payload: str | None = flag("--payload", "--mtu", metavar="SIZE", help="payload bytes of a packet, such as 4096B")
    header: str | None = flag(
        metavar="SIZE",
        help="header bytes of each packet, in addition to the payload (with --payload: 82B of RoCE and Ethernet)",
    )


class FlagGroup(NamedTuple):
    """Flags that an extension brings to verbs that predict collectives: ``house.flags``.

    Parameters
    ----------
    flags : type of Flags
        The flags.
    names : tuple of str
        Names of those that say something to a scenario.
    options : callable
        Function from the flags, of which one of these names is given, to what they say, by the scenario's keywords.
    """

    flags: type[Flags]
    names: tuple[str, ...]
    options: Callable[[Any], Mapping[str, Any]]
