"""Keywords of a scenario: declared and described once, for every function that takes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from commsim.core.cost import Framing

if TYPE_CHECKING:
    from commsim.prediction.inputs import Composition, Fabric, Messages, PlacementLike, Spraying
    from commsim.prediction.work_plan import Work

Quantity = float | str | None
Function = TypeVar("Function", bound=Callable[..., Any])
# Options that set what messages cost, and what text says of each: flags, checks and axes of sweeps are made of these.
COSTS: Mapping[str, str] = {"overhead": "time", "recv_overhead": "time", "reduce_rate": "bandwidth", "software": "text"}
_ENTRIES = re.compile(r"Parameters\n *-{4,}\n(.*?)\s*\Z", re.DOTALL)
__all__ = [
    "COSTS",
    "CostOptions",
    "NetworkOptions",
    "PlacedOptions",
    "Quantity",
    "RankedOptions",
    "ScenarioOptions",
    "WorkOptions",
    "takes",
]


class NotGiven:
    """Default of an option in a signature that is shown."""

    def __repr__(self) -> str:
        return "..."


class CostOptions(TypedDict, total=False):
    """Costs of messages, as the flags of ``commsim run``.

    Parameters
    ----------
    overhead, recv_overhead : float, s, or str
        Time per message at the sender and at the receiver. Default: the network's own, else 1 us to send.
    reduce_rate : float, bytes/s, or str
        Rate at which a rank reduces. Default: the network's own.
    software : str
        Preset of measured rates and costs, of :mod:`commsim.prediction.software`.
    """

    overhead: Quantity
    recv_overhead: Quantity
    reduce_rate: Quantity
    software: str | None


class NetworkOptions(CostOptions, total=False):
    """Faults of the network, as the flags of ``commsim run``.

    Parameters
    ----------
    fail, scale : sequence of str
        Faults: links and switches that fail, such as ``["links:5%"]``, and links that are slower.
    flap : sequence of str
        Cables that go down during the run, such as ``["link:leaf0:spine0@1ms+1ms"]``.
    detection, rto : float, s, or str
        Time until switches route around a cable that is down, and until senders repeat what it lost.
    """

    fail: Sequence[str]
    scale: Sequence[str]
    flap: Sequence[str]
    detection: Quantity
    rto: Quantity


class PlacedOptions(NetworkOptions, total=False):
    """Ranks on the network, and the engine.

    Parameters
    ----------
    n_ranks : int
        Number of ranks. Default: all that the placement or the network has.
    placement : str, Placement, or sequence of int or str
        Strategy, file, or node of each rank, by number or by name. Default: ``packed``.
    routing : str
        Routing in place of the network's own.
    seed : int
        Seed of all that is drawn: faults, placement, hashes of routes, data, jitter, losses.
    hashes : int
        Number of hashes of routes that are drawn where their times differ: a time is their median. Default: 8, or
        3 where a draw takes seconds. More are drawn while all are alike though cables have unequal rates; with 1 none.
    engine : str
        Model of time: ``flow`` (default), ``packet``, ``alpha-beta``, ``closed-form`` or ``auto``.
    transport : str or Spraying
        Transport of the packet engine, by name or as a value.
    fabric : Fabric
        Switches of the packet engine.
    packets : mapping of str to value
        Further options of the packet engine, by the keys of :mod:`commsim.packets.packet_options`.
    """

    n_ranks: int | None
    placement: PlacementLike | None
    routing: str | None
    seed: int | None
    hashes: int | None
    engine: str
    transport: str | Spraying | None
    fabric: Fabric | None
    packets: Mapping[str, Any] | None


class RankedOptions(PlacedOptions, total=False):
    """Late starters, and packets as bytes of messages: what all algorithms of a ranking have.

    Parameters
    ----------
    start_jitter : float, s, or str
        Latest start of a rank; starts are drawn uniformly between 0 and this.
    iterations : int
        Number of draws of the starts; the result has the median time.
    payload, header : float, bytes, or str
        Bytes of packets that messages are cut into.
    framing : Framing
        Packets as a value, in place of `payload` and `header`.
    """

    start_jitter: Quantity
    iterations: int | None
    payload: Quantity
    header: Quantity
    framing: Framing | None


class WorkOptions(TypedDict, total=False):
    """What is simulated in place of a collective, or how one is run: one of these.

    Parameters
    ----------
    jobs : str, path or Composition
        Jobs and background traffic in place of a collective: a TOML or JSON file as ``commsim run --jobs`` reads it.
    traffic : str or Messages
        Messages between hosts in place of a collective: ``name:key=value,...`` of a pattern, a CSV file, or messages.
    groups : sequence of sequence of int
        Ranks of each group; all groups run the collective at the same time.
    compressor : str
        Compressor of gradients, such as ``top_k:density=0.01``.
    work : str or Work
        Work of any extension, those of installed packages too: ``NAME:...``, such as ``traffic:incast:senders=8``, or
        a value.
    """

    jobs: Composition | str | PathLike[str] | None
    traffic: str | Messages | None
    groups: Sequence[Sequence[int]]
    compressor: str | None
    work: str | Work | None


class ScenarioOptions(RankedOptions, WorkOptions, total=False):
    """The operation, and further options of engines.

    Parameters
    ----------
    operation : str
        Operation that a library's name stands for. Default: all_reduce.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that declares none as able to aggregate. Default: True.
    tolerance : float
        Largest known error, with the engine ``auto``.
    method : str
        Way by which the flow engine computes. Default: ``auto``.
    trace : bool
        Whether results keep the times of every transfer.
    """

    operation: str | None
    assume_programmable: bool
    tolerance: float | None
    method: str
    trace: bool


# Each with those that it extends, for what a function shows.
_PARTS: Mapping[type, tuple[type, ...]] = {
    CostOptions: (CostOptions,),
    RankedOptions: (CostOptions, NetworkOptions, PlacedOptions, RankedOptions),
    ScenarioOptions: (CostOptions, NetworkOptions, PlacedOptions, RankedOptions, WorkOptions, ScenarioOptions),
}


def takes(options: type) -> Callable[[Function], Function]:
    """Return a decorator of a function with ``**options``: help and completion show each of them.

    Parameters
    ----------
    options : type
        Typed dictionary of the keywords, from this module.
    """

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = [
            parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
        ]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=NotGiven(), annotation=kind.__forward_arg__)
            for name, kind in options.__annotations__.items()
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        entries = [_ENTRIES.search(inspect.getdoc(part) or "") for part in _PARTS[options]]
        described = "\n".join(entry[1] for entry in entries if entry)
        text = inspect.getdoc(function) or ""
        function.__doc__ = re.sub(r"\*\*options\n(?: +.*\n)+", lambda _: f"{described}\n", text)
        return function

    return show
