"""What is wished of an engine: which one, how messages are cut into packets, late starters, faults in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commsim.core.cost import Framing
from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.engine.link_samples import LinkWatch
    from commsim.engine.packet.transport import Fabric, Transport
    from commsim.routing.flaps import Flaps

ENGINES = ("flow", "packet", "alpha-beta", "closed-form")
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Wish:
    """The engine of a prediction, and its options.

    Parameters
    ----------
    engine : {"flow", "packet", "alpha-beta", "closed-form", "auto"}
        Model of time; ``auto`` is the cheapest one whose known error is within `tolerance`.
    start_jitter : float, s
        Latest start of a rank; starts are drawn uniformly between 0 and this.
    iterations : int
        Number of draws of the starts; the result has the median time.
    seed : int
        Seed of the jitter, and of losses and marks.
    framing : Framing, optional
        Packets that messages are cut into. Default: those of the collective's switch system or protocol, or none.
    trace : bool
        Whether the result keeps the times of every transfer.
    transport, fabric : Transport, Fabric, optional
        Senders and switches of the packet engine.
    method : str
        Way by which the flow engine computes, one of ``commsim.engine.flow_paths.METHODS``.
    flaps : Flaps, optional
        Cables that go down during the run, with the engines flow and packet.
    tolerance : float, optional
        Largest known error, with ``auto``.
    watch : LinkWatch, optional
        Observer of the packet engine's links.

    Raises
    ------
    InputError
        If the engine is unknown, or an option belongs to another engine.
    """

    engine: str = "flow"
    start_jitter: float = 0.0
    iterations: int = 1
    seed: int = 0
    framing: Framing | None = None
    trace: bool = False
    transport: Transport | None = None
    fabric: Fabric | None = None
    method: str = AUTO
    flaps: Flaps | None = None
    tolerance: float | None = None
    watch: LinkWatch | None = None

    def __post_init__(self) -> None:
        if self.engine not in (*ENGINES, AUTO):
            raise InputError(f"unknown engine {self.engine!r}; known: {', '.join((*ENGINES, AUTO))}")
        if self.engine != "flow" and self.method != AUTO:
            raise InputError(f"methods are the flow engine's, got method {self.method!r} and engine {self.engine!r}")
        if self.flaps is not None and self.engine not in ("flow", "packet"):
            raise InputError(f"links flap in the engines flow and packet, got --engine {self.engine}")
        is_packet = self.transport is not None or self.fabric is not None
        if is_packet and self.engine not in ("packet", AUTO):
            raise InputError(f"transports and queues are the packet engine's, got --engine {self.engine}")
        if self.engine == AUTO and self.tolerance is None:
            raise InputError("--engine auto needs --tolerance, such as --tolerance 10%")
        if self.engine != AUTO and self.tolerance is not None:
            raise InputError(f"--tolerance goes with --engine auto, got --engine {self.engine}")
        if not 0 <= self.start_jitter < float("inf"):
            raise InputError(f"start jitter must be 0 or more and finite, got {self.start_jitter}")
