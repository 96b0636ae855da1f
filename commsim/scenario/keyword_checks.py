"""How the value of each keyword of a scenario, and of single questions, is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commsim.core.cost import Framing
from commsim.scenario.checks import (
    Check,
    flag,
    instance,
    lists,
    mapping,
    numbers_of,
    part,
    quantity,
    text,
    texts,
    whole,
)

__all__ = ["CHECKS", "checked", "checked_all"]


def _transports() -> tuple[type, ...]:
    from commsim.engine.packet.transports.spraying import Spraying

    return (Spraying,)


def _messages() -> tuple[type, ...]:
    from commsim.engine.packet.transports.spraying import Messages

    return (Messages,)


def _fabrics() -> tuple[type, ...]:
    from commsim.engine.packet.links.fabric import Fabric

    return (Fabric,)


def _compositions() -> tuple[type, ...]:
    from commsim.scenario.together.composition import Composition

    return (Composition,)


# How the value of each keyword is checked; `placement` is read with its network.
CHECKS: Mapping[str, Check] = {
    "fail": texts("links:5%"),
    "scale": texts("links:1*0.5"),
    "flap": texts("link:leaf0:spine0@1ms+1ms"),
    "detection": quantity("1ms"),
    "rto": quantity("1ms"),
    "overhead": quantity("1us"),
    "recv_overhead": quantity("1us"),
    "reduce_rate": quantity("50GB/s"),
    "software": text("gloo"),
    "n_ranks": whole(),
    "placement": Check("", lambda given: given),
    "routing": text("ecmp"),
    "seed": whole(0),
    "engine": text("flow", may_be_empty=True),
    "transport": instance("the name of a transport, such as 'dctcp', or a Spraying", _transports, or_text=True),
    "fabric": instance("a Fabric", _fabrics),
    "packets": mapping("{'window': '64KiB'}"),
    "operation": text("all_reduce"),
    "compressor": text("top_k:density=0.01"),
    "groups": lists("[[0, 1], [2, 3]]"),
    "jobs": instance("a file of jobs or a Composition", _compositions, or_text=True),
    "traffic": instance("a pattern such as 'incast:senders=8', a CSV file, or Messages", _messages, or_text=True),
    "assume_programmable": flag(),
    "tolerance": part("10%"),
    "method": text("auto"),
    "start_jitter": quantity("1ms"),
    "iterations": whole(1),
    "payload": quantity("4096B"),
    "header": quantity("82B"),
    "framing": instance("a Framing", lambda: (Framing,)),
    "trace": flag(),
}
# Keywords of single questions.
OF_QUESTIONS: Mapping[str, Check] = {
    "algorithms": texts("ring_all_reduce"),
    "named": texts("nccl"),
    "collective": text("ring_all_reduce"),
    "root": whole(0),
    "max_messages": whole(1),
    "n_workers": whole(),
    "n_servers": whole(),
    "density": numbers_of("[0.01, 0.1]"),
    "block": whole(),
    "pattern": text("random"),
}


def checked(name: str, given: Any) -> Any:
    """Return the value of a keyword.

    Raises
    ------
    InputError
        Naming the keyword, what was given and what would be right.
    """
    return (CHECKS.get(name) or OF_QUESTIONS[name])(name, given)


def checked_all(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the keywords that are given; None is the same as not given.

    Raises
    ------
    InputError
        Same as :func:`checked`.
    """
    return {name: checked(name, given) for name, given in options.items() if given is not None}
