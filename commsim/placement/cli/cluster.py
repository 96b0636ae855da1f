"""``commsim cluster``: a cluster over weeks, under the policies of known schedulers, with and without CASSINI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from commsim.cli.flags import Flags, Verb, WithJson, flag, switched
from commsim.cli.flags.faults import Hashes
from commsim.core.errors import InputError
from commsim.core.limits import is_there
from commsim.core.remark import Remark, as_remarks
from commsim.core.units import count_text, format_time
from commsim.report.answer import Answer, Lines, Table, comments, remarks
from commsim.report.hash_columns import with_ends
from commsim.report.terminal import progress

if TYPE_CHECKING:
    from commsim.placement.clusters.machines import Machines
    from commsim.placement.clusters.outcome import ClusterReplay
    from commsim.placement.clusters.placement_choices import Placing
    from commsim.placement.clusters.trace_job import TraceJob

EXAMPLES = {
    "cluster": """
        commsim cluster policies
        commsim cluster models
        commsim cluster trace poisson:jobs=8,load=0.9,seed=1 --gpus 32 -o trace.csv
        commsim cluster run examples/cluster.toml --trace trace.csv --policy fifo,tiresias --compare
        commsim cluster run examples/cluster.toml --trace trace.csv --policy themis --cassini""",
}

COLUMNS = [
    "policy", "jct_mean(h)", "jct_p50(h)", "jct_p99(h)", "queued(h)", "makespan(h)", "gpus_used", "slowdown",
    "link_excess", "rho_p50", "rho_p99", "starts", "deadlines",
]  # fmt: skip
LEAST = ["starts", "rho_p50", "deadlines", "link_excess", "rho_p99", "gpus_used", "jct_p50(h)", "makespan(h)"]


class ClusterRunConfig(WithJson, Hashes):
    """All flags of ``commsim cluster run``."""

    cluster: str = flag("cluster", metavar="CLUSTER.toml", help="topology, and hosts with GPUs")
    trace: str = flag(
        required=True,
        metavar="FILE.csv|KIND:...",
        help="jobs, such as poisson:jobs=500,load=0.9,seed=1; FILE.csv:submit_s=NAME,gpus=NAME,... names its columns",
    )
    policy: str | None = flag(
        metavar="NAME[,NAME...]", help="policies, such as fifo, or FILE.py; see commsim cluster policies"
    )
    cassini: bool = switched(
        help="rank placements and shift the starts of jobs, as CASSINI (NSDI 2024) does; the same as --placing cassini"
    )
    placing: str | None = flag(
        metavar="NAME[,NAME...]",
        help="how jobs get GPUs: packed (default), drawn, random, shuffled, cassini, ideal; see docs/cluster.md",
    )
    compare: bool = switched(
        help="run all policies (or those of --policy) twice: packed, and with CASSINI or the --placing that you name"
    )
    assume: str | None = flag(
        metavar="FILE.toml",
        help="file that changes assumptions: models, GPU types, CPUs, restart time, hosts that inference clusters lend",
    )
    largest: int | None = flag(
        metavar="GPUS", help="omit jobs with more GPUs than this (default: a job that cannot fit is an error)"
    )
    seed: int = flag(default=0, help="seed of shifts, of hashes in routing and of models of public logs")
    csv: str | None = flag(metavar="FILE", help="also write one line per job")
    plot: str | None = flag(metavar="FILE.svg", help="also draw the distribution of JCT and the use of GPUs")


def run(config: ClusterRunConfig) -> Answer:
    """Replay the trace under each policy."""
    from commsim.placement.cluster import read_cluster
    from commsim.placement.clusters.machines import machines_of
    from commsim.placement.clusters.models import Assumptions, read_assumptions
    from commsim.placement.clusters.outcome import job_rows, unfilled
    from commsim.placement.clusters.reading_summary import ReadingSummary
    from commsim.placement.clusters.replay_hashes import replay_over_hashes
    from commsim.placement.clusters.traces import load_trace

    runs = _runs(config)
    if config.plot:
        from commsim.pages.pictures.paint import check_chart

        check_chart(config.plot)
    assumed = read_assumptions(config.assume) if config.assume else Assumptions()
    machines = machines_of(read_cluster(config.cluster), assumed)
    said = ReadingSummary()
    jobs = load_trace(config.trace, machines.n_gpus, assumed.models, config.seed, said)
    small = _small_enough(jobs, config.largest)
    outcomes = [
        replay_over_hashes(
            machines, small, policy, placing=placing, assumed=assumed, seed=config.seed, hashes=config.hashes
        )
        for policy, placing in progress(runs, "policies")
    ]
    if len({placing for _, placing in runs}) > 1 and config.placing:
        outcomes = [replace(outcome, names_packed=True) for outcome in outcomes]
    if config.plot:
        from commsim.pages.pictures.paint import write_picture
        from commsim.pages.plots.outcome_chart import draw_outcomes

        write_picture(draw_outcomes(outcomes), config.plot)
    rows = [outcome.row() for outcome in outcomes]
    cells = [_row(outcome) for outcome in outcomes]
    drawn = {outcome.hashes.n for outcome in outcomes if outcome.hashes is not None}
    over = f"; median of {'/'.join(map(str, sorted(drawn)))} hashes of ECMP" if drawn else ""
    parts = [
        *comments([_replayed(machines, small) + over]),
        *remarks([Remark("rows-of-log", text, needed=True) for text in said.told()]),
        *remarks(_about(config, machines, jobs, small)),
        Table(*with_ends(COLUMNS, cells, 2, rows, lambda time: f"{time / 3600:.3f}"), least=LEAST),
        *remarks([*as_remarks(unfilled(outcomes), "unfilled"), *_gains(outcomes)]),
    ]
    return Answer(parts, rows, config.flags("plot"), lines=job_rows(outcomes) if config.csv else None)


def _runs(config: ClusterRunConfig) -> list[tuple[str, Placing]]:
    from commsim.core.spec import derived
    from commsim.placement.clusters.placement_choices import known_placing
    from commsim.placement.clusters.policy import POLICIES, load_policy

    policies = config.policy or ""
    named = [load_policy(derived(policies, text)).name for text in policies.split(",")] if policies else []
    placings: list[Placing] = [known_placing(text) for text in config.placing.split(",")] if config.placing else []
    if config.cassini and (config.compare or placings):
        other = "--placing" if placings else "--compare"
        raise InputError(f"{other} sets how jobs are placed; --cassini has no effect with it")
    if not named and not config.compare:
        raise InputError(f"run needs --policy or --compare; policies are {', '.join(POLICIES)}")
    usual: list[Placing] = ["packed", "cassini"] if config.compare else ["cassini" if config.cassini else "packed"]
    if config.compare and len(placings) == 1:  # one way alone compares nothing
        placings = usual if placings[0] in usual else ["packed", *placings]
    return [(name, placing) for name in named or POLICIES for placing in placings or usual]


def _gains(outcomes: list[ClusterReplay]) -> Iterator[Remark]:
    """Describe for each policy how much faster iterations are with CASSINI, and what its shifts cost."""
    for best in (outcome for outcome in outcomes if outcome.placing == "cassini"):
        for other in (
            outcome
            for outcome in outcomes
            if outcome.policy == best.policy and outcome.placing in ("drawn", "random", "shuffled")
        ):
            mean, tail = best.times_faster(other)
            text = f"{best.label}: iterations {mean:.2f} times faster than {other.label}, {tail:.2f} times at p99"
            yield Remark("gain", text, mean - 1)
        if best.shifts:
            text = f"{best.label}: {best.shifts} shifts of running jobs, which waited {best.shift_delay:.3g} s in all"
            yield Remark("shifts", text)


def _small_enough(jobs: tuple[TraceJob, ...], largest: int | None) -> tuple[TraceJob, ...]:
    small = tuple(job for job in jobs if largest is None or job.n_gpus <= largest)
    if not small:
        raise InputError(f"--largest {largest} leaves no job of {len(jobs)}")
    return small


def _replayed(machines: Machines, small: tuple[TraceJob, ...]) -> str:
    """Describe what is replayed: jobs on machines."""
    from commsim.core.names.nodes_and_links import host_names

    network = machines.cluster.network
    host = dict(zip(network.nodes, host_names(network), strict=True))  # a seat may be a GPU of a machine
    size = f"{count_text(machines.n_gpus, 'GPU')} of {count_text(len({host[name] for name in machines.names}), 'host')}"
    return f"{count_text(len(small), 'job')} on {size}, {network.name}"


def _about(
    config: ClusterRunConfig, machines: Machines, jobs: tuple[TraceJob, ...], small: tuple[TraceJob, ...]
) -> Iterator[Remark]:
    """Describe what is left out, and what is assumed."""
    if len(small) < len(jobs):
        n, most = count_text(len(jobs) - len(small), "job"), count_text(config.largest or 0, "GPU")
        yield Remark("jobs-left-out", f"left out: {n} of more than {most}", needed=True)
    if n_whole := sum(job.n_gpus >= machines.n_gpus for job in small):
        text = f"{count_text(n_whole, 'job')} with all GPUs of the cluster: each waits until no other one runs"
        yield Remark("jobs-of-all", text, n_whole / len(small), details="--largest leaves out jobs")
    if machines.inference.any():
        lent = int(machines.gpus[machines.inference].sum())
        text = f"inference lends {lent} more GPUs, by the time of day (assumed)"
        yield Remark("gpus-lent", text, lent / machines.n_gpus)
    if any(job.model for job in small):
        text = "iteration times and traffic of models are assumed: commsim cluster models; --assume sets them"
        yield Remark("models-assumed", text, needed=True)


def _row(outcome: ClusterReplay) -> list[str]:
    row = outcome.row()
    hours = [
        f"{row[key] / 3600:.3f}" for key in ("jct_mean_s", "jct_p50_s", "jct_p99_s", "queued_mean_s", "makespan_s")
    ]
    met = "-" if row["deadlines_met"] is None else f"{row['deadlines_met']:.1%}"
    shares = [f"{row['utilisation']:.1%}", f"{row['slowdown_mean']:.3f}", f"{row['link_excess']:.2%}"]
    shares += [f"{row['rho_p50']:.2f}", f"{row['rho_p99']:.2f}"]
    return [outcome.label, *hours, *shares, f"{row['starts']}", met]


def list_policies(_: Flags) -> Answer:
    """List the policies."""
    from commsim.placement.clusters.policy import POLICIES

    lines = []
    for name in POLICIES:
        facts = POLICIES[name].metadata
        lease = f"may preempt jobs every {facts['interval']:g} s" if facts["interval"] else "no preemption"
        lines.append(f"{name.ljust(9)} {POLICIES[name].summary}")
        lines.append(f"{'':9} {lease}{'; ' if facts['paper'] else ''}{facts['paper']}")
    return Answer([Lines(lines)])


class ModelsConfig(Flags):
    """All flags of ``commsim cluster models``."""

    assume: str | None = flag(metavar="FILE.toml", help="file with changes to the table")


def list_models(config: ModelsConfig) -> Answer:
    """List the table of models."""
    from commsim.placement.clusters.models import EFFICIENCY, MODELS, read_assumptions

    models = read_assumptions(config.assume).models if config.assume else MODELS
    lines = [
        "sizes: CASSINI, table 3, the smallest of a range; vgg16's computation: CASSINI, section 2; CPUs per GPU, on "
        "hosts whose CPUs are given: two of Synergy's profiles; all else assumed",
        f"traffic: ring all-reduce of the size in every iteration, at {EFFICIENCY:.0%} of the host's port (assumed)",
    ]
    rows = [
        [
            model.name,
            f"{model.size / 1e6:g}MB",
            format_time(model.compute),
            f"{model.busy:g}",
            "yes" if model.skewed else "no",
            f"{model.cpu:g}",
            f"{model.noise:g}",
            " ".join(f"{kind}={speed:g}" for kind, speed in model.speeds.items()) or "-",
        ]
        for model in models.values()
    ]
    columns = ["model", "size", "compute", "busy", "skewed", "cpu", "noise", "speeds"]  # as --assume takes them
    return Answer([*comments(lines), Table(columns, rows)])


class ClusterTraceConfig(Flags):
    """All flags of ``commsim cluster trace``."""

    source: str = flag(
        "source",
        metavar="FILE|KIND:...",
        help="file of a log, or a synthetic trace such as poisson:jobs=500,load=0.9,seed=1",
    )
    kind: str | None = flag(
        "--from", metavar="KIND", help="kind of log: philly, helios, pai2020, pai2023, acme or sacct"
    )
    gpus: int | None = flag(metavar="N", help="number of GPUs of the cluster for which a synthetic trace is made")
    seed: int = flag(default=0, help="seed of the models drawn for a log's jobs")
    output: str = flag("-o", required=True, metavar="FILE.csv", help="file to write")


def trace(config: ClusterTraceConfig) -> Answer:
    """Read or make it, write it, and say what it holds."""
    from commsim.placement.clusters.logs import READERS, read_log
    from commsim.placement.clusters.models import MODELS
    from commsim.placement.clusters.reading_summary import ReadingSummary
    from commsim.placement.clusters.trace_file import write_trace
    from commsim.placement.clusters.traces import load_trace

    lines = []
    if config.kind is not None:
        if config.gpus is not None:
            raise InputError("--gpus has no effect on a log; it is for synthetic traces")
        said = ReadingSummary()
        jobs = read_log(config.kind, config.source, tuple(MODELS), config.seed, said)
        lines += said.told()
        lines.append(
            f"models are drawn at random from {', '.join(MODELS)}, seed {config.seed}: the log does not name them"
        )
    else:
        if config.gpus is None or config.gpus < 1:
            if is_there(config.source):
                raise InputError(f"{config.source}: give the kind of log with --from {'|'.join(READERS)}")
            raise InputError(f"a synthetic trace needs --gpus N, of the cluster to load, got {config.gpus}")
        jobs = load_trace(config.source, config.gpus, MODELS, config.seed)
    write_trace(config.output, jobs)
    mean = sum(job.n_gpus for job in jobs) / len(jobs)
    days = jobs[-1].submit / 86400
    lines.append(f"{count_text(len(jobs), 'job')} in {days:.2f} days, {mean:.2f} GPUs on average: {config.output}")
    return Answer(comments(lines))


COMMANDS = {
    "cluster run": Verb(ClusterRunConfig, run, "replay a trace of jobs under a policy"),
    "cluster policies": Verb(Flags, list_policies, "print the policies"),
    "cluster models": Verb(ModelsConfig, list_models, "print the assumptions about models"),
    "cluster trace": Verb(ClusterTraceConfig, trace, "write a trace: from a public log, or a synthetic one"),
}
