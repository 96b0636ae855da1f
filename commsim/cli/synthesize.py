"""``commsim synthesize``: the fastest schedule for a network, with the proof of how fast any can be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.operations import OPERATIONS, operation
from commsim.core.units import format_size, parse_time
from commsim.report.table import print_remarks, print_table

from .bound import times_bound
from .flags import Verb, WithJson, flag, switched
from .flags.costs import TOPOLOGY, Costs, Placing, Sizes
from .flags.faults import Faults, with_faults

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.placement import Placement
    from commsim.synthesis.made_schedules import Candidate
    from commsim.synthesis.synthesize import Synthesis
    from commsim.synthesis.trees.forest import Certificate

COLUMNS = ["size(B)", "time(us)", "bound(us)", "times_bound", "chosen"]
FAULT_COLUMNS = ["size(B)", "running", "whole(us)", "faults(us)", "cost", "repaired(us)", "cost"]
MAX_NAMES = 6


class Config(Faults, Costs, Sizes, Placing, WithJson):
    """All flags of ``commsim synthesize``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network, such as star:n_hosts=8")
    operation: str = flag(required=True, metavar="NAME", help=", ".join(OPERATIONS))
    root: int = flag(default=0, metavar="RANK", help="root of the operation")
    time_limit: str | None = flag(metavar="TIME", help="nothing new is tried after this, such as 60s")
    max_messages: int = flag(default=3_000_000, metavar="N", help="longer schedules are not tried")
    no_textbook: bool = switched(help="do not try the registered collectives")
    output: str | None = flag("-o", metavar="FILE.npz", help="write the schedule; with one size only")
    msccl: str | None = flag(metavar="DIR", help="write a file of MSCCL for each range of sizes")
    running: str | None = flag(
        metavar="NAME|FILE.npz", help="what runs without the faults (default: the fastest registered collective)"
    )
    tuner_csv: str | None = flag(metavar="FILE", help="write rules for NCCL's tuner plugin: the best that NCCL has")


def run(config: Config) -> None:
    """Make schedules, print and write them."""
    sizes = config.sizes()
    op = operation(config.operation)
    from commsim.synthesis.ready import NAME, operation_of

    operation_of(f"{NAME}_{op.name}")
    if config.output and (len(sizes) > 1 or Path(config.output).suffix != ".npz"):
        raise InputError(f"-o takes a .npz file, and one size (-b equal to -e), got {config.output} and {len(sizes)}")
    if config.max_messages < 1:
        raise InputError(f"--max-messages must be at least 1, got {config.max_messages}")
    limit = None if config.time_limit is None else parse_time(config.time_limit, "--time-limit")
    from commsim.run import with_costs
    from commsim.run.inputs import PACKED, load_network, load_placement
    from commsim.run.ranking import without_overhead
    from commsim.synthesis.synthesize import synthesize

    whole = with_costs(load_network(config.topology), **config.costs())
    network, notes = with_faults(whole, config)
    if config.running is not None and network is whole:
        raise InputError("--running goes with --fail or --scale: it is compared with what is made for the faults")
    if config.running is not None:
        from commsim.run.ranking import require_operation

        require_operation(config.running, op.name)
    p = len(network.endpoints) if config.ranks is None else config.ranks
    if not 1 <= p <= len(network.endpoints):
        raise InputError(f"--ranks must be 1..{len(network.endpoints)}, got {p}")
    if not 0 <= config.root < p:
        raise InputError(f"--root must be a rank 0..{p - 1}, got {config.root}")
    placement = load_placement(config.placement or PACKED, network, p, config.seed or 0)
    found = synthesize(
        op.name,
        network,
        sizes,
        ranks=placement.nodes,
        root=config.root,
        time_limit=limit,
        max_messages=config.max_messages,
        textbook=not config.no_textbook,
        report=_progress if sys.stderr.isatty() else None,
    )
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print_table(COLUMNS, [_cells(found, size) for size in found.candidates], f"{op.name} on {network.name}, {p} ranks")
    costs = [] if network is whole else _costs(found, whole, placement, config)
    ranges = found.ranges()
    if len(ranges) > 1:
        cells = [[f"{one.low}", f"{one.high}", one.method] for one in ranges]
        print_table(["from(B)", "to(B)", "chosen"], cells, "crossovers: geometric middles of the sizes above")
    print_remarks(_beside(found, size) for size in found.candidates)
    print_remarks([*notes, *([_proof(found.certificate)] if found.certificate else []), *found.notes])
    print_remarks(without_overhead(network, sizes))
    if config.output:
        _write(network, found.best(sizes[0]), config.output)
    if config.msccl:
        from commsim.formats.msccl.rules import write_rules

        written = write_rules(op.name, ranges, config.msccl)
        print_remarks(one.note for one in written if one.note)
        print(f"{config.msccl}: {len(written)} files of MSCCL")
    config.write_json(
        [_row(found, size) for size in found.candidates],
        cost_of_faults=costs,
        ranges=[{"low_B": one.low, "high_B": one.high, "chosen": one.method} for one in ranges],
        notes=[*notes, *found.notes],
    )
    if config.tuner_csv:
        _write_tuner(found, p, config.tuner_csv)


def _costs(found: Synthesis, whole: Network, placement: Placement, config: Config) -> list[dict[str, Any]]:
    """Print what the faults cost with the schedule that runs without them, and with the one made for them."""
    from commsim.synthesis.cost_of_faults import cost_of_faults

    if not found.candidates:
        return []
    rows = cost_of_faults(found, whole, placement, running=config.running, root=config.root)
    cells = []
    for one in rows:
        now = ("-", "fails") if one.faulted is None else (f"{one.faulted * 1e6:.2f}", f"{one.cost:.3f}x")
        repaired = f"{one.repaired * 1e6:.2f}", f"{one.repaired_cost:.3f}x"
        cells.append([f"{one.size}", one.running, f"{one.whole * 1e6:.2f}", *now, *repaired])
    print_table(FAULT_COLUMNS, cells, "cost of the faults: with what runs without them, and with what is made here")
    return [
        {
            "size_B": one.size, "running": one.running, "whole_s": one.whole, "faulted_s": one.faulted,
            "faults_cost": one.cost, "repaired_s": one.repaired, "repaired_cost": one.repaired_cost,
            "bound_s": one.bound,
        }
        for one in rows
    ]  # fmt: skip


def _write_tuner(found: Synthesis, p: int, path: str) -> None:
    """Write the best that NCCL has at each size; what it does not have cannot be asked of it."""
    from commsim.formats.measured import Measured
    from commsim.formats.nccl_plans import rules_of_rows, write_tuner

    rows = []
    for size, tried in found.candidates.items():
        for one in tried:
            launched = one.prepared.at(size).parameters if one.prepared.launch else {}
            algorithm, protocol = (str(launched.get(key, "")) for key in ("algorithm", "protocol"))
            rows.append(Measured(found.operation, size, one.time, p, algorithm or one.method, protocol))
    rules = rules_of_rows(rows)
    write_tuner(path, rules, f"the best for {found.operation} on {found.network.name} that NCCL has")
    print(f"{path}: {len(rules)} rules, of what NCCL has; it cannot run what is made here")


def _write(network: Network, candidate: Candidate, path: str) -> None:
    from commsim.files.store import write_schedule

    schedule = candidate.prepared.schedule
    write_schedule(schedule, path, network, candidate.prepared.placement)
    print(f"# {path}: {schedule.n_transfers} messages, their routes and weights: run --collective {path}")


def _progress(what: str, done: int, of: int) -> None:
    """Show what is being done, on a terminal."""
    share = f" {done}/{of}" if of > 1 else ""
    print(f"\r\033[K# {what}{share}", end="", file=sys.stderr, flush=True)


def _proof(certificate: Certificate) -> str:
    """Say the certificate in one line."""
    names = ", ".join(certificate.cut[:MAX_NAMES])
    more = f" and {len(certificate.cut) - MAX_NAMES} others" if len(certificate.cut) > MAX_NAMES else ""
    proved = "attained" if certificate.proved else "not proved to be attained"
    return (
        f"optimum: {certificate.fraction} s/GB times {certificate.per}, k = {certificate.k}, {proved}; "
        f"cut around {names}{more}"
    )


def _cells(found: Synthesis, size: int) -> list[str]:
    best, bound = found.best(size), found.bounds[size]
    times = f"{best.time * 1e6:.2f}", f"{bound * 1e6:.2f}", f"{times_bound(best.time, bound):.3f}x"
    return [f"{size}", *times, best.method]


def _beside(found: Synthesis, size: int) -> str:
    """Say how the best schedule of a size works, and what the best of another kind takes."""
    best = found.best(size)
    how = f"{best.method} of height {best.height} in {best.pieces} pieces" if best.height else best.method
    others = [one for one in found.candidates[size] if one.method.split()[0] != best.method.split()[0]]
    then = f"; {others[0].method} takes {others[0].time / best.time:.3f} times that" if others else ""
    return f"{format_size(size)}: {how}{then}"


def _row(found: Synthesis, size: int) -> dict[str, Any]:
    best, bound, proof = found.best(size), found.bounds[size], found.certificate
    return {
        "size_B": size,
        "operation": found.operation,
        "chosen": best.method,
        "time_s": best.time,
        "bound_s": bound,
        "times_bound": times_bound(best.time, bound),
        "simulated": best.result is not None,
        "pieces": best.pieces,
        "height": best.height,
        "n_messages": best.prepared.schedule.n_transfers,
        "certificate": None
        if proof is None
        else {
            "fraction": str(proof.fraction),
            "per": proof.per,
            "k": proof.k,
            "cut": list(proof.cut),
            "proved": proof.proved,
        },
        "tried": [
            {"method": one.method, "time_s": one.time, "simulated": one.result is not None}
            for one in found.candidates[size]
        ],
    }


COMMANDS = {"synthesize": Verb(Config, run)}
