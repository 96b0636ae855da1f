"""The flags of ``commsim run``, the options of a prediction that they stand for, and flags of other predictions."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_time
from commsim.routing.routing import is_hashed

from ..flags import WithJson, flag, repeated, switched
from ..flags.costs import TOPOLOGY, Costs, Placing, Sizes
from ..flags.faults import Faults, FaultsInTime, draws_faults, with_faults
from ..flags.packets import Packets, packet_notes, packet_options, read_framing

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.run import Prepared

AUTO = "auto"
# Bytes of an element of the types of nccl-tests.
DATATYPES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1,
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
}  # fmt: skip
COLLECTIVE = "NAME[:key=value,...]|FILE.py[:NAME]"


class PlayConfig(Packets, Faults, Costs, Sizes, Placing):
    """What is simulated: collectives on a network. ``commsim trace`` has these flags too."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8")
    collective: tuple[str, ...] = repeated(
        metavar=f"{COLLECTIVE}|FILE.npz",
        help="algorithm, or nccl (default: ring_all_reduce; on NVIDIA's machines nccl_all_reduce); repeatable",
    )
    routing: str | None = flag(
        metavar="NAME",
        help=f"routing, in place of the network's own: {', '.join(ROUTINGS)}, or spray:entropies=E[:trims]",
    )
    start_jitter: str | None = flag(metavar="TIME", help="ranks start late by up to this time, such as 1ms")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add all flags, and collectives without a flag."""
        super().add_arguments(parser)
        parser.add_argument("named", nargs="*", metavar="COLLECTIVE", help="the same as --collective")

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> Any:
        """Return the flags that were parsed, collectives without a flag first."""
        args.collective = [*args.named, *(args.collective or ())]
        return super().from_args(args)

    @property
    def placing(self) -> dict[str, Any]:
        """What places ranks and routes their messages, for :func:`commsim.run.prepare`."""
        return {"placement": self.placement, "routing": self.routing, "seed": self.seed or 0}


class Config(WithJson, FaultsInTime, PlayConfig):
    """All flags of ``commsim run``."""

    datatype: str = flag("-d", default="float", choices=tuple(DATATYPES), metavar="TYPE", help="of elements")
    compressor: str | None = flag(metavar="NAME[:key=value,...]", help="of gradients, such as top_k:density=0.01")
    operation: str | None = flag(metavar="NAME", help=f"compare all algorithms of it: {', '.join(OPERATIONS)}")
    algorithm: str | None = flag(
        metavar="NAME|best|all", help="of --operation: one; best: a ranking; all: the table of each (default: best)"
    )
    synthesized: bool = switched(help="with --operation: also what commsim synthesize makes for the network")
    group: tuple[str, ...] = repeated(
        metavar="RANK,RANK,...", help="ranks that run the collective, at once with other groups; repeatable"
    )
    jobs: str | None = flag(
        metavar="FILE", help="jobs and background traffic that share the network: TOML with [[job]] and [[background]]"
    )
    tolerance: str | None = flag(metavar="PART", help="largest known error with --engine auto, such as 10%% or 0.1")
    bound: bool = switched(help="print the ratio of each time to the lower bound")
    verbose: bool = switched("-v", help="print how the flow engine computed")
    draw: str | None = flag(metavar="FILE", help="draw the network with the loads of the last result: .svg or .png")
    osu: str | None = flag(metavar="FILE", help="also write the table that an OSU micro-benchmark would print")
    report: str | None = flag(
        metavar="FILE.html", help="also write a page with figures: loads, timelines, critical path"
    )

    @property
    def shown(self) -> dict[str, Any]:
        """How results are printed, for :func:`commsim.cli.run.predicted.predict_and_print`."""
        return {"verbose": self.verbose, "datatype": self.datatype}


Resolved = TypeVar("Resolved", bound=PlayConfig)


class Prediction(Costs, Placing):
    """Flags of verbs that set something beside one prediction."""

    topology: str | None = flag(metavar=TOPOLOGY, help="network, such as star:n_hosts=8")
    collective: str | None = flag(metavar=COLLECTIVE, help="algorithm to predict; of a file with several, which")
    routing: str | None = flag(choices=ROUTINGS, help="routing, in place of the network's own")
    engine: str = flag(
        default="", help="flow, packet, alpha-beta or closed-form (default: flow; of NCCL's collectives closed-form)"
    )
    seed: int = flag(default=0, help="seed of random placement and of hashes in routing")

    def prepared(self, n_ranks: int | None) -> Prepared:
        """Place --collective on the network."""
        from commsim.run import prepare, with_costs
        from commsim.run.inputs import load_network

        network = with_costs(load_network(self.topology or ""), **self.costs())
        placing: dict[str, Any] = {"placement": self.placement, "routing": self.routing, "seed": self.seed}
        return prepare(self.collective or "", network, n_ranks=n_ranks, **placing)


def resolved(config: Resolved, network: Network) -> tuple[Resolved, list[str]]:
    """Put the usual collective and engine where none is named, and spell out what stands for a library.

    Parameters
    ----------
    config : PlayConfig
        As it was given.
    network : Network
        On which it runs.

    Returns
    -------
    PlayConfig, list of str
        And what to say of the choice.
    """
    from commsim.run.usual import TEXTBOOK, spelled_out, usual_collective, usual_engine

    values: dict[str, Any] = {name: getattr(config, name, None) for name in ("operation", "algorithm")}
    specs, notes = tuple(spelled_out(spec, values["operation"]) for spec in config.collective), list[str]()
    if specs != config.collective and values["algorithm"] is None:
        values["operation"] = None  # it said which operation of the library is meant
    if not specs and values == {"operation": None, "algorithm": None}:
        if any(getattr(config, name, None) for name in ("group", "compressor")) or config.engine == AUTO:
            specs = (TEXTBOOK,)  # groups at once, compressed gradients and known errors are of textbook algorithms
        else:
            spec, told = usual_collective(network)
            specs, notes = (spec,), [told] if told else []
    changed: dict[str, Any] = {"collective": specs, "engine": config.engine or usual_engine(specs)}
    if hasattr(config, "operation"):
        changed["operation"] = values["operation"]
    return dataclasses.replace(config, **changed), notes


def network_and_options(config: Resolved) -> tuple[Resolved, Network, dict[str, Any], list[str]]:
    """Build the network, and read the options of a prediction on it.

    Returns
    -------
    PlayConfig, Network, dict, list of str
        With the usual collective and engine; with faults and costs; what ``Prepared.predict`` takes; what was chosen
        and drawn at random.

    Raises
    ------
    InputError
        If a flag is wrong, or changes nothing.
    """
    from commsim.run import with_costs
    from commsim.run.inputs import load_network
    from commsim.run.software import software

    framing = read_framing(config.payload, config.header)
    network = load_network(config.topology)
    config, chosen = resolved(config, network)
    options: dict[str, Any] = {
        "engine": config.engine,
        "start_jitter": parse_time(config.start_jitter, "--start-jitter") if config.start_jitter else 0.0,
        "iterations": config.iters or 1,
        "seed": config.seed or 0,
        "framing": framing,
    }
    network, notes = with_faults(network, config)
    network = with_costs(network, **config.costs())
    if config.software is not None:
        notes = [*notes, software(config.software).told]
    return config, network, options | packet_options(config, network), chosen + notes


def without_effect(config: PlayConfig, routing: str) -> list[str]:
    """Say which of the given flags change nothing."""
    lines = []
    if config.warmup_iters is not None or (config.iters is not None and not config.start_jitter):
        flags = " and ".join(f for f, v in (("-n", config.iters), ("-w", config.warmup_iters)) if v is not None)
        lines.append(f"{flags}: no effect, a simulation without jitter gives the same time every time")
        if config.start_jitter:
            lines[-1] = "-w: no effect, a simulation needs no warm-up"
    lines += packet_notes(config)
    drawn = config.placement == "random" or is_hashed(routing) or config.start_jitter or config.engine == "packet"
    drawn = drawn or draws_faults(config)
    if config.seed is not None and not drawn:
        lines.append("--seed: no effect, nothing here is drawn at random")
    return lines


def config_of(values: Mapping[str, Any], source: str) -> Config:
    """Read flags of ``commsim run`` as a file of results has them; other keys are left out.

    Raises
    ------
    InputError
        If a flag has a value that the command line cannot give it.
    """
    known: dict[str, Any] = {"topology": ""}
    for name, field in Config.__dataclass_fields__.items():
        value = values.get(name)
        if value is None:
            continue
        kind = str(field.type).partition(" ")[0]
        wanted = {"int": int, "float": float, "bool": bool}.get(kind, str)
        listed = kind.startswith("tuple")
        if listed != isinstance(value, list) or not all(type(one) is wanted for one in (value if listed else [value])):
            raise InputError(f"{source}: config.{name} is no value of commsim run's flag, got {value!r}")
        known[name] = tuple(value) if listed else value
    return Config(**known)
