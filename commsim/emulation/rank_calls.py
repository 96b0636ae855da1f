"""What a rank asks of the others, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from .clock import Ticks

ANY = -1
# What an element of a reduction does: (target, part) changes the target in place.
Reduce = Callable[[Any, Any], None]
__all__ = ["ANY", "Call", "Collective", "PendingCall", "Receive", "Reduce", "Send"]


@dataclass(slots=True)
class Collective:
    """A collective call of one rank.

    Parameters
    ----------
    operation : str
        A name of :data:`commsim.core.operations.OPERATIONS`.
    members : tuple of int
        World ranks of the group, in its order.
    context : hashable
        What tells communicators with the same members apart, and streams whose calls are matched by themselves.
    n_bytes : float, bytes
        Size as nccl-tests counts it: of the whole array.
    data : object
        What this rank gives. Reductions: an array in one dimension, NumPy's or torch's. Broadcast: anything, at the
        root. All-gather and gather: anything. All-to-all: a list of anything, one for each member; scatter too, at the
        root. None where only the time is wanted: then the result is None.
    root : int
        Rank in the group.
    counts : tuple of int
        Bytes of the blocks of all_gather_v (one for each rank) and all_to_all_v (what this rank sends to each).
    reduce : callable, optional
        Function of (target, part) that reduces in place. Default: ``target += part``.
    ordered : bool
        Whether the order of the ranks matters to it, so that it is applied in rank order.
    algorithm : str
        ``NAME[:key=value,...]`` of a collective. Default: what the emulation's library chooses.
    site : str
        Where in the program the call is, for the report.
    deliver : callable, optional
        Function of the result, called when it is complete, in threads; it may copy what others will overwrite.
    library : str
        Library whose rules choose the algorithm, in place of the emulation's: ``usual`` for what runs on the network's
        machines, as in ``commsim run``.
    in_order : bool
        Whether a rank enters it only when its call before of the same group and context is complete, as in a process
        group of torch.
    """

    operation: str
    members: tuple[int, ...]
    context: Hashable
    n_bytes: float
    data: Any = None
    root: int = 0
    counts: tuple[int, ...] = ()
    reduce: Reduce | None = None
    ordered: bool = False
    algorithm: str = ""
    site: str = ""
    deliver: Callable[[Any], None] | None = None
    library: str = ""
    in_order: bool = False

    @property
    def needs_all(self) -> bool:
        """Whether it can only be planned when every rank has said how many bytes it sends."""
        return self.operation == "all_to_all_v"


@dataclass(slots=True)
class Send:
    """A message to one rank; the parameters that :class:`Collective` has too are the same.

    Parameters
    ----------
    to, tag : int
        World rank, and tag.
    data : object
        What the receiver gets, not changed afterwards.
    synchronous : bool
        Whether it waits for its receive whatever its size, as MPI's Ssend.
    """

    to: int
    tag: int
    context: Hashable
    n_bytes: float
    data: Any = None
    synchronous: bool = False
    site: str = ""

    def __reduce__(self) -> tuple[type[Send], tuple[Any, ...]]:
        """Travel as its values, in a third of the time of a data class."""
        return Send, (self.to, self.tag, self.context, self.n_bytes, self.data, self.synchronous, self.site)


@dataclass(slots=True)
class Receive:
    """A receive: `source` and `tag` may be ``ANY``; the result is a :class:`Send`, and its `source` the sender.

    Parameters
    ----------
    sources : tuple of int
        World ranks from which a message may come, where `source` is ``ANY``; empty: any.
    keep : bool
        Whether the message is only looked at, as MPI's Probe does.
    """

    source: int
    tag: int
    context: Hashable
    keep: bool = False
    site: str = ""
    deliver: Callable[[Any], None] | None = None

    def __reduce__(self) -> tuple[type[Receive], tuple[Any, ...]]:
        """Travel as its values, in a third of the time of a data class."""
        return Receive, (self.source, self.tag, self.context, self.keep, self.site, self.deliver)


Call = Collective | Send | Receive


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call under way.

    Parameters
    ----------
    rank, number : int
        World rank, and the number of the call there.
    call : Call
        What was asked.
    start, end : int, ticks
        When the rank asked, and when it was complete; None before.
    result : object
        What the rank gets.
    source : int
        World rank of the sender of what was received.
    entry : object
        Row of the report in which it is counted, once it is complete.
    """

    rank: int
    number: int
    call: Any
    start: Ticks
    end: Ticks | None = None
    result: Any = None
    source: int = ANY
    cancelled: bool = field(default=False)
    entry: Any = None

    def __str__(self) -> str:
        call = self.call
        if isinstance(call, Send):
            text = f"send to {call.to}, tag {call.tag}"
        elif isinstance(call, Receive):
            source, tag = ("any" if value == ANY else value for value in (call.source, call.tag))
            text = f"{'probe' if call.keep else 'receive'} from {source}, tag {tag}"
        else:
            text = f"{call.operation} of {len(call.members)} ranks"
        return f"{text} ({call.site})" if call.site else text
