"""The engine ``auto``: for each size the cheapest engine whose known error is within a tolerance."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from commsim.auto.choose import choose
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.packets.packet_options import name_of
from commsim.packets.transports.spraying import Spraying, over_path
from commsim.prediction.plans.dense import Plan
from commsim.prediction.scenario import Engine, Wish, engine_of


@dataclass(frozen=True, slots=True)
class AutoEngine(Engine):
    """The cheapest engine that is close enough.

    Parameters
    ----------
    tolerance : float
        Largest known error.
    transport : Spraying, optional
        Senders and switches, where it is the packet engine.

    Raises
    ------
    InputError
        If there is no tolerance, or messages are sprayed.
    """

    NAME: ClassVar[str] = "auto"
    tolerance: float | None = None
    transport: Spraying | None = None

    def __post_init__(self) -> None:
        if self.transport is not None and not self.transport.on_path:
            raise InputError("engine auto knows errors of window, dctcp and dcqcn over one path; use engine packet")
        if self.tolerance is None:
            raise InputError("engine auto needs a tolerance, such as 10%")

    def choose(self, plan: Plan, size: float, wish: Wish) -> tuple[Wish, tuple[Remark, ...]]:
        """Return a wish with the engine that is chosen, and why it is.

        Raises
        ------
        InputError
            If no errors are known with an option, or as :func:`commsim.auto.choose.choose`.
        """
        given = {"--start-jitter": wish.start_jitter, "--header": wish.framing}
        for flag in (flag for flag, value in given.items() if value):
            wish.require_engine(flag)
        name = name_of(self.transport)
        choice = choose(plan, size, self.tolerance or 0.0, name)
        transport = (self.transport or over_path(name)) if choice.engine == "packet" else None
        return dataclasses.replace(wish, model=engine_of(choice.engine, transport=transport)), (choice.remark,)
