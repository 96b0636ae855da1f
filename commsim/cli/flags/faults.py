"""Flags for faults of a network: ``--fail`` and ``--scale``, and ``--flap`` for those in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from commsim.core.network import Network
from commsim.core.remark import Remark

from . import DefaultOf, Flags, flag, repeated

if TYPE_CHECKING:
    from commsim.routing.flaps import Flaps

_DRAWS = "commsim.prediction.plans.draws"
HASHES = DefaultOf(f"{_DRAWS}:HASHES")


class Faults(Flags):
    """Failures and slower links, which take effect in this order."""

    TITLE: ClassVar[str] = "faults"
    fail: tuple[str, ...] = repeated(
        metavar="WHAT",
        help="what fails: link:A:B, nic:m0.nic0, switch:NAME, rail:0 or plane:0 with all switches, host:NAME or "
        "gpu:m0.gpu0 (ranks of a failed host or GPU are left out); links:5%%, links:3 or switches:1 are drawn at "
        "random, with --seed; repeatable",
    )
    scale: tuple[str, ...] = repeated(
        metavar="WHAT=FACTOR",
        help="multiply the rate of cables: link:PATTERN=0.5, nic:m0.nic0=0.5 or links:10%%=0.5; or set their "
        "nominal rate: nic:m0.nic0=200Gbps; repeatable",
    )
    seed: int | None = flag(metavar="N", help="seed of everything drawn at random (default: 0)")


class Hashes(Flags):
    """Draws of the hash of routes."""

    TITLE: ClassVar[str] = "faults"
    hashes: int | None = flag(
        metavar="N",
        help="number of hashes of ECMP; times are medians over them. 1: only the hash of --seed (default: "
        "%(usual)s; %(few)s above %(many)s messages, and with packets; %(of_ratio)s up to %(few_messages)s messages, "
        "if faults have a cost or cables differ in rate)",
        shown={
            "usual": HASHES,
            **{n.lower(): DefaultOf(f"{_DRAWS}:{n}") for n in ("FEW", "MANY", "OF_RATIO", "FEW_MESSAGES")},
        },
    )


class FaultsInTime(Flags):
    """Cables that go down during a run, and how the network and its hosts answer."""

    TITLE: ClassVar[str] = "faults"
    RARE: ClassVar[Mapping[str, str | None]] = {"detection": "", "rto": ""}
    flap: tuple[str, ...] = repeated(
        metavar="WHAT@START+LENGTH",
        help="cables or switches that go down during the run, such as link:leaf0:spine0@10ms+5ms, "
        "link:leaf0:*@10ms+5ms or switch:spine0@1ms+1ms; repeatable",
    )
    detection: str | None = flag(
        metavar="TIME",
        help="time until switches route around a cable that is down (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.prediction.faults:DETECTION")},
    )
    rto: str | None = flag(
        metavar="TIME",
        help="time after which a sender retransmits a message that was lost in a flap; it doubles after each attempt "
        "(default: immediately; testbed: TCP's own)",
    )

    def flaps(self, network: Network) -> Flaps | None:
        """Return the cables that flap on a network; None where nothing does."""
        from commsim.prediction.faults import flaps_of

        return flaps_of(self.flap, network, self.detection, self.rto)


def with_faults(network: Network, config: Faults) -> tuple[Network, list[Remark]]:
    """Return the network with the faults of the flags, and what was drawn at random."""
    from commsim.prediction import faults

    return faults.with_faults(network, config.fail, config.scale, config.seed or 0)
