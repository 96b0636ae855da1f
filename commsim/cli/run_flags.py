"""The flags of ``commsim run``, and the scenario that they stand for; flags of other predictions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from commsim.cli.flags import TOPOLOGY, CostFlags, Flags, Placing, Sizes, WithJson, flag, repeated, switched
from commsim.cli.flags.engine import EngineFlags, FlagGroup
from commsim.cli.flags.faults import Faults, FaultsInTime, Hashes
from commsim.core.errors import InputError
from commsim.core.network import ROUTINGS
from commsim.core.operations import OPERATIONS
from commsim.core.registry import usual_spelling
from commsim.core.remark import Remark
from commsim.core.spec import is_whole, with_parameter
from commsim.core.units import share
from commsim.extensions import house
from commsim.prediction.options import COSTS
from commsim.report.table_of_run import DATATYPES

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.prediction.scenario import Scenario

# Words that names of operations begin with, and of algorithms hardly one; MPI's among them.
OF_OPERATIONS = ("all", "reduce", "broadcast", "gather", "scatter", "barrier", "send", "neighbour", "mpi")
# Algorithms of a library that no textbook's collective is called.
OF_LIBRARY = ("ring", "tree", "pat")
# Flags of ``commsim nccl``, which are parameters of the collective here.
OF_NCCL = ("gpu", "cpu", "graph", "channels", "nvls", "nic", "net-type", "net-latency", "min-ctas", "max-ctas",
           "buffer", "socket-threads", "net-chunk", "nvls-chunk", "collnet")  # fmt: skip
Read = TypeVar("Read", bound=Flags)

AUTO = "auto"
COLLECTIVE = "NAME[:key=value,...]|FILE.py[:NAME]"
# Flags that have the name of what they give to a scenario, and those whose name differs.
SAME = ("placement", "routing", "seed", "hashes", "fail", "scale", *COSTS, "start_jitter", "engine", "payload",
        "header")  # fmt: skip
OTHER = {"ranks": "n_ranks", "iters": "iterations"}
OF_RUN = ("flap", "detection", "rto", "compressor", "operation", "work")
# Groups of flags that extensions bring, of those that are there.
GROUPS: list[FlagGroup] = [group for name in house().flags if (group := house().flags.get(name)) is not None]

if TYPE_CHECKING:

    class ExtensionFlags(Flags):
        """All flags that extensions bring."""

else:
    ExtensionFlags = type("ExtensionFlags", (*(group.flags for group in GROUPS), Flags), {})


class PlayConfig(ExtensionFlags, EngineFlags, Hashes, Faults, CostFlags, Sizes, Placing):
    """What is simulated: collectives on a network. ``commsim trace`` has these flags too."""

    TITLE: ClassVar[str] = "network and collective"
    RARE: ClassVar[Mapping[str, str | None]] = {"start_jitter": ""}
    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8; latency= is per link")
    collective: tuple[str, ...] = repeated(
        metavar=f"{COLLECTIVE}|FILE.npz",
        help="algorithm, or a library that chooses it: nccl, rccl, mpich, openmpi, gloo (default: nccl on NVIDIA GPUs, "
        "rccl on AMD's, torus_all_reduce on a torus, else ring_all_reduce); repeatable",
    )
    routing: str | None = flag(
        metavar="NAME",
        help=f"routing, in place of the network's own: {', '.join(ROUTINGS)}, ecmp:qps=N (queue pairs of a "
        "connection), or spray:entropies=E[:trims] (trims: count packets that are trimmed and sent again)",
    )
    start_jitter: str | None = flag(metavar="TIME", help="ranks start late by up to this time, such as 1ms")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add all flags, and collectives without a flag."""
        super().add_arguments(parser)
        parser.add_argument("named", nargs="*", metavar="COLLECTIVE", help="the same as --collective")

    @classmethod
    def from_args(cls, args: argparse.Namespace, code: Sequence[str] | None = None) -> Any:
        """Return the flags that were parsed, collectives without a flag first.

        An operation in place of a collective is that of ``--operation``; a library's ``--algorithm`` is its parameter.
        """
        args.collective = [*args.named, *(args.collective or ())]
        only = args.collective[0] if len(args.collective) == 1 else ""
        if only.lower().startswith(OF_OPERATIONS) and getattr(args, "operation", only) is None:
            operation = usual_spelling(only, OPERATIONS)
            args.collective, args.operation = ([], operation) if operation in OPERATIONS else ([only], None)
        algorithm = getattr(args, "algorithm", None)
        is_of_library = algorithm in OF_LIBRARY or (algorithm is not None and args.operation is None)
        if is_of_library and only.startswith(("nccl", "rccl")) and algorithm not in ("best", "all"):
            args.collective = [with_parameter(only, f"algorithm={algorithm}")]
            args.algorithm = None
        return super().from_args(args, code)

    def scenario(self, spec: str | None, network: Network | None = None, **more: Any) -> Scenario:
        """Return the scenario of one collective.

        Parameters
        ----------
        spec : str or None
            Collective; None for what runs on the network's machines.
        network : Network, optional
            Network that was loaded already. Default: that of ``--topology``.
        **more
            What else the scenario has, such as groups.
        """
        from commsim.prediction.read import scenario_of

        options = {name: getattr(self, name) for name in SAME}
        options |= {name: getattr(self, flag) for flag, name in OTHER.items()}
        options |= {name: getattr(self, name) for name in OF_RUN if hasattr(self, name)}
        for group in GROUPS:
            if self.given(*group.names):
                options |= group.options(self)
        options |= more | {"engine": self.engine or None}
        values = {name: value for name, value in options.items() if value not in (None, ())}
        return scenario_of(spec, network or self.topology, **values)


class Questions(Flags):
    """What is asked beside the times of one collective."""

    TITLE: ClassVar[str] = "what to predict"
    RARE: ClassVar[Mapping[str, str | None]] = dict.fromkeys(
        ("datatype", "compressor", "synthesized", "work", "tolerance"), ""
    )
    datatype: str = flag("-d", default="float", choices=tuple(DATATYPES), metavar="TYPE", help="type of the elements")
    compressor: str | None = flag(
        metavar="NAME[:key=value,...]", help="compressor of the gradients, such as top_k:density=0.01"
    )
    operation: str | None = flag(
        choices=OPERATIONS, metavar="NAME", help=f"rank the algorithms of an operation: {', '.join(OPERATIONS)}"
    )
    algorithm: str | None = flag(
        metavar="NAME|best|all",
        help="with --operation: one algorithm, best (a ranking) or all (a table for each) (default: best)",
    )
    synthesized: bool = switched(help="with --operation: also rank the schedules that commsim synthesize makes")
    group: tuple[str, ...] = repeated(
        metavar="RANK,RANK,...", help="ranks of one group; all groups run the collective at the same time; repeatable"
    )
    jobs: str | None = flag(
        metavar="FILE", help="jobs and background traffic that share the network: TOML with [[job]] and [[background]]"
    )
    beside: tuple[str, ...] = repeated(
        metavar="FROM:TO=SIZE", help="traffic beside the collective: each host of FROM sends SIZE to those of TO, such "
        "as h[0-3]:h4=1G to a store; repeatable",
    )  # fmt: skip
    work: str | None = flag(
        metavar="NAME:...", help="in place of a collective: work of an extension, such as traffic:incast:senders=8",
    )  # fmt: skip
    tolerance: str | None = flag(metavar="FRACTION", help="largest known error with --engine auto, such as 10%% or 0.1")
    bound: bool = switched(help="print the ratio of each time to the lower bound")


class RunOutputs(WithJson):
    """Where the answer goes, and how much of it."""

    TITLE: ClassVar[str] = "output"
    RARE: ClassVar[Mapping[str, str | None]] = {"osu": ""}
    verbose: bool = switched("-v", help="also print the busiest links, and how the flow engine computed the times")
    draw: str | None = flag(metavar="FILE", help="draw the network with the loads of the last result: .svg or .png")
    osu: str | None = flag(metavar="FILE", help="also write the table that an OSU micro-benchmark would print")
    report: str | None = flag(
        metavar="FILE.html", help="also write a page with figures: loads, timelines, critical path"
    )


class RunConfig(RunOutputs, Questions, FaultsInTime, PlayConfig):
    """All flags of ``commsim run``."""

    MEANT: ClassVar[Mapping[str, str]] = {
        "-c": ": --operation NAME, such as all_reduce, or --collective NAME, such as ring_all_reduce",
        "--nccl-version": "; of NCCL it is a parameter of the collective: nccl:version=2.28",
        **{
            f"--{name}": f"; of NCCL it is a parameter of the collective: nccl:{name.replace('-', '_')}=VALUE"
            for name in OF_NCCL
        },
        **{f"--{name}": "; --machines N is the number of machines" for name in ("nodes", "hosts")},
        "--plot": ": --json FILE.json keeps the result, and commsim plot busbw FILE.json -o FILE.png draws it",
    }

    @property
    def question(self) -> str:
        """Return what is asked for, one of ``house.questions``; empty of collectives, each with a table of its own.

        What a kind of work does not honour, its plan refuses.
        """
        if self.jobs is not None:
            return "jobs"
        if self.beside:
            return "beside"
        if self.operation is None:
            return ""
        from commsim.prediction.collective_names import LIBRARIES

        # `nccl --operation all_gather` names one collective
        names = [spec.partition(":")[0].strip() for spec in self.collective]
        if self.algorithm is None and any(name in LIBRARIES.values() for name in names):
            return ""
        return "ranking" if self.algorithm in (None, "best") else "algorithms"

    def scenario(self, spec: str | None, network: Network | None = None, **more: Any) -> Scenario:
        """Return the scenario of one collective, or of groups that run it at once."""
        more |= {
            "groups": tuple(read_group(text) for text in self.group),
            "tolerance": None if self.tolerance is None else share(self.tolerance, "--tolerance"),
            "iterations": self.iters if self.start_jitter else None,  # else `without_effect` names the flag
        }
        return PlayConfig.scenario(self, spec, network, **more)


class Prediction(Hashes, CostFlags, Placing):
    """Flags of verbs that set something beside one prediction."""

    topology: str | None = flag(metavar=TOPOLOGY, help="network, such as star:n_hosts=8; latency= is per link")
    collective: str | None = flag(metavar=COLLECTIVE, help="algorithm to predict; needed if a file has rows of several")
    routing: str | None = flag(choices=ROUTINGS, help="routing, in place of the network's own")
    engine: str = flag(default="", help="flow, packet, alpha-beta or closed-form (default: flow)")
    seed: int = flag(default=0, help="seed of random placement and of hashes in routing")


def read_group(text: str) -> list[int]:
    """Read ``0,2,4,6``.

    Raises
    ------
    InputError
        If it is no list of whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(is_whole(part) for part in parts):
        raise InputError(f"--group must be ranks such as 0,2,4,6, got {text!r}")
    return [int(part) for part in parts]


def without_effect(config: PlayConfig) -> list[Remark]:
    """Describe which of the flags -n and -w of nccl-tests, that are given, change nothing in a simulation."""
    flags = [name for name, value in (("-n", config.iters), ("-w", config.warmup_iters)) if value is not None]
    if not config.start_jitter:
        text = f"{' and '.join(flags)}: no effect, a simulation without jitter gives the same time every time"
        return [Remark("option-unused", text)]
    return [Remark("option-unused", "-w: no effect, a simulation needs no warm-up")] if "-w" in flags else []


def config_of(values: Mapping[str, Any], source: str) -> RunConfig:
    """Read flags of ``commsim run`` as a file of results has them; see :func:`read_flags`."""
    return read_flags(RunConfig, values, source, "run")


def read_flags(kind: type[Read], values: Mapping[str, Any], source: str, verb: str) -> Read:
    """Read flags of a verb as a file of results has them; other keys are left out.

    Raises
    ------
    InputError
        If a flag has a value that the command line cannot give it.
    """
    known: dict[str, Any] = {"topology": ""}
    for name, field in kind.__dataclass_fields__.items():
        value = values.get(name)
        if value is None:
            continue
        typed = str(field.type).partition(" ")[0]
        wanted = {"int": int, "float": float, "bool": bool}.get(typed, str)
        listed = typed.startswith("tuple")
        if listed != isinstance(value, list) or not all(type(one) is wanted for one in (value if listed else [value])):
            raise InputError(f"{source}: config.{name} is no value of commsim {verb}'s flag, got {value!r}")
        known[name] = tuple(value) if listed else value
    return kind(**known)
