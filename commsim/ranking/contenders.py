"""The candidates of a ranking: algorithms that can run on a network, what messages cost them, and who was left out."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from collectives import COLLECTIVES
from commsim.core.errors import InputError, NoAggregatorError, OtherAggregatorsError, PhysicsError, Reason
from commsim.core.jit import Kernel, compile_all
from commsim.core.limits import EXPECTED
from commsim.core.network import Network
from commsim.core.operations import no_bytes
from commsim.core.operations import operation as known_operation
from commsim.core.remark import SIZE_UNUSED, Remark, as_remarks
from commsim.core.result import Result
from commsim.core.units import format_time
from commsim.nccl.gpu_costs import costs
from commsim.nccl.plans.nccl_launch import PRICED, NcclLaunch
from commsim.nccl.plans.plan_nccl import NcclPlan
from commsim.packets.aggregated.plan_aggregated import NO_OVERHEAD, AggregatedPlan
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import OF_LIBRARY, why_not_here
from commsim.prediction.plans.dense import Plan
from commsim.prediction.software import software

# What compiles kernels that later algorithms of a ranking need.
COMPILES = "commsim.ranking.contenders:compile_regular"
# Codes of reasons for which algorithms are left out.
NO_AGGREGATOR, OTHER_AGGREGATORS, NOT_PROGRAMMABLE = "no-aggregator", "other-aggregators", "not-programmable"
# Reasons that many algorithms share, by their code, and how they are summed up.
SHARED_REASONS = {
    NOT_PROGRAMMABLE: "no aggregating switch: {} (programmable assumes it)",
    NO_AGGREGATOR: "no aggregating switch: {} (name one to assume it)",
    "no-costs": "no costs of them in the software: {}",
    "of-library": f"{OF_LIBRARY}: {{}} (name one to run it)",
    OTHER_AGGREGATORS: "the switches reduce by SHARP only: {} (name one to assume programmable switches)",
}
# Codes of what an error of a kind says.
CODES: dict[type[InputError], str] = {NoAggregatorError: NO_AGGREGATOR, OtherAggregatorsError: OTHER_AGGREGATORS}


def _in_packets(runnable: Mapping[str, Plan]) -> list[str]:
    return [name for name, prepared in runnable.items() if isinstance(prepared, AggregatedPlan)]


def about_given(runnable: Mapping[str, Plan], network: Network) -> list[Remark]:
    """Describe for what an overhead that is given does not count."""
    packets = _in_packets(runnable) if network.overhead_given else []
    costly = network.overhead.any() or network.recv_overhead.any()
    return [Remark("overhead-unused", f"{', '.join(packets)}: {NO_OVERHEAD}")] if packets and costly else []


def priced_apart(runnable: Mapping[str, Plan], size: float) -> list[Remark]:
    """Name the algorithms with the costs of a library's primitives, or of its calls, beside others without."""
    network, remarks = next(iter(runnable.values())).network, list[Remark]()
    known = software(network.software) if network.software else None
    if known is not None and known.own_costs:
        whose = [
            name for name, plan in runnable.items() if known.is_measured_of(plan.schedule.name) and plan.posts_calls
        ]
        rest = "; others: the rate of its ports" if len(whose) < len(runnable) else ""
        who = f"{', '.join(whose)}: with" if rest else "all with"
        who = who if whose else "all have the rate of its ports, without"
        remarks = [Remark("software-costs", f"{who} {known.own_costs} of software {known.name}{rest if whose else ''}")]
    priced = [
        name for name, prepared in runnable.items() if isinstance(prepared, NcclPlan) and prepared.at(size).before
    ]
    if not priced or len(priced) == len(runnable):
        return remarks
    text = f"{', '.join(priced)}: messages with costs of GPUs; the others with rates and latencies of links only"
    return [*remarks, Remark("priced-apart", text)]


def launch_of(plans: Iterable[Plan]) -> float:
    """Return how long the launch of a call of the GPUs' library takes, s; 0 where none is among the plans, or known.

    On GPUs every way is a kernel that is launched, so that a ranking beside the library's calls adds it to the others.
    """
    return max((_launch(plan.launch) for plan in plans if isinstance(plan, NcclPlan)), default=0.0)


def _launch(launch: NcclLaunch) -> float:
    if launch.rccl is not None:
        return launch.rccl.launch
    if launch.setting is None or not launch.is_known or launch.operation not in PRICED:
        return 0.0
    return costs().of_gpu(launch.setting.gpu).launch


def with_launch(plan: Plan, result: Result, launch: float) -> Result:
    """Return the result of a way with the launch, s, that others of the ranking have; the same where it has its own.

    A software preset says itself what its calls take.
    """
    if not launch or isinstance(plan, NcclPlan) or plan.network.software:
        return result
    interval, drawn = result.interval, result.hashes
    if interval is not None:
        interval = interval[0] + launch, interval[1] + launch
    if drawn is not None:
        drawn = drawn._replace(fastest=drawn.fastest + launch, slowest=drawn.slowest + launch)
    return dataclasses.replace(
        result, time=result.time + launch, time_from_last_start=result.time_from_last_start + launch,
        samples=result.samples + launch, interval=interval, hashes=drawn,
    )  # fmt: skip


def launch_in_title(launch: float) -> str:
    """Return what a title says, after a comma, of what calls on GPUs cost; nothing without a launch.

    All times have the launch. What a message costs on GPUs is known of the library's primitives only.
    """
    return f", launch of {format_time(launch)} each, GPU costs of messages in the library's only" if launch else ""


def algorithms_for(operation: str, network: Network | None = None) -> list[str]:
    """Names of the registered collectives that implement an operation on dense data.

    Parameters
    ----------
    operation : str
        Name of the operation.
    network : Network, optional
        Network that they run on: then without those of a library for other GPUs than it has.

    Raises
    ------
    InputError
        If the operation is unknown, or nothing implements it.
    """
    not_here = {} if network is None else left_to_libraries(operation, network)
    names = [name for name in _dense(operation) if name not in not_here]
    if not names:
        raise InputError(f"no collective implements {operation}")
    return names


def left_to_libraries(operation: str, network: Network) -> dict[str, str]:
    """Return the collectives of an operation that :func:`algorithms_for` leaves out on a network, and why."""
    why = {name: why_not_here(COLLECTIVES[name].metadata, name, network) for name in _dense(operation)}
    return {name: reason for name, reason in why.items() if reason}


def _dense(operation: str) -> list[str]:
    known_operation(operation)
    facts = {name: COLLECTIVES[name].metadata for name in COLLECTIVES}
    return [name for name in facts if facts[name]["operation"] == operation and facts[name]["sparse"] is None]


def require_blocks(operation: str) -> None:
    """Refuse an operation whose bytes follow from a routing, where an algorithm is asked for at some size.

    Raises
    ------
    InputError
        If the operation is unknown, or an exchange of experts.
    """
    if known_operation(operation).layout == "runs":
        raise InputError(
            f"{operation}: its bytes follow from a routing; use synthesize --operation {operation} for its bound, "
            "advise --operation expert_exchange to compare its modes, or run --collective"
        )


def legal_sizes(operation: str, sizes: Sequence[int]) -> tuple[list[int], list[Remark]]:
    """Return the sizes that an operation can have, in ascending order, and what to say where it has none.

    Raises
    ------
    InputError
        If the operation is unknown, its bytes follow from a routing, or no size is given.
    """
    require_blocks(operation)
    if not sizes:
        raise InputError("sizes must name at least one size, such as '64MiB'")
    if known_operation(operation).signals:
        return [0], [Remark(SIZE_UNUSED, no_bytes(operation))] if any(sizes) or len(sizes) > 1 else []
    return sorted(set(sizes)), []


@contextlib.contextmanager
def blaming(spec: str) -> Iterator[None]:
    """Name the algorithm in a bug of commsim that its prediction shows."""
    try:
        yield
    except PhysicsError as error:
        raise PhysicsError(f"{spec}: {error}") from error


def prepare_all(
    specs: Iterable[str],
    network: Network,
    *,
    n_ranks: int | None = None,
    probe: Callable[[str, Plan], object] = lambda _, __: None,
    named: Collection[str] | None = None,
    none_is_error: bool = True,
    **options: Any,
) -> tuple[dict[str, Plan], dict[str, str]]:
    """Prepare every algorithm that can run on the network, all with the same number of ranks.

    Parameters
    ----------
    specs : iterable of str
        ``name:key=value,...`` or own files.
    network : Network
        Network that it runs on.
    n_ranks : int, optional
        Default: one on every endpoint. Algorithms that need helpers on endpoints beside these are left out.
    probe : callable
        Function of each algorithm's name and plan; one for which it raises ``InputError`` is left out too.
    named : collection of str, optional
        Those that were asked for by name; by default all. For the others no switch is assumed to be programmable.
    none_is_error : bool
        Whether it is an error that none can run.
    **options
        Other parameters of :func:`commsim.prediction.prepare`.

    Returns
    -------
    dict of str to Plan, dict of str to str
        What can run, and why the others cannot.

    Raises
    ------
    InputError
        If none can run.
    """
    n_ranks = len(network.endpoints) if n_ranks is None else n_ranks
    runnable: dict[str, Plan] = {}
    left_out: dict[str, str] = {}
    every = list(specs)
    Kernel.needed_soon = Kernel.needed_soon or COMPILES
    for i, spec in enumerate(every, 1):
        EXPECTED.begin(f"{spec} ({i} of {len(every)})")
        try:
            assume = named is None or spec in named
            prepared = prepare(spec, network, n_ranks=n_ranks, assume_programmable=assume, **options)
            probe(spec, prepared)
            runnable[spec] = prepared
        except InputError as error:
            left_out[spec] = Reason(str(error), CODES.get(type(error), ""))
    EXPECTED.begin("")
    if not runnable and none_is_error:
        raise InputError("; ".join(dict.fromkeys(left_out.values())))
    return runnable, left_out


def compile_regular() -> None:
    """Compile the recurrences and the search for routes: a second process does so while the first compiles the rest."""
    compile_all()
    for spec in ("ring_all_reduce", "halving_doubling_all_reduce"):
        prepare(spec, "star:n_hosts=4").predict(2.0**20)


def skipped(left_out: Mapping[str, str]) -> list[Remark]:
    """Describe which algorithms were left out; those of one reason in one line."""
    lines, rest = [], dict(left_out)
    for code, line in SHARED_REASONS.items():
        same = [spec for spec, why in rest.items() if getattr(why, "code", "") == code]
        if len(same) > 1:
            lines.append("skipped, " + line.format(", ".join(same)))
            rest = {spec: why for spec, why in rest.items() if spec not in same}
    lines += [f"skipped: {spec}: {why.removeprefix(f'{spec}: ')}" for spec, why in rest.items()]
    return as_remarks(lines, "skipped")
