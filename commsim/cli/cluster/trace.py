"""``commsim cluster trace``: a public log, or a made-up trace, as our CSV."""

from __future__ import annotations

import argparse
from pathlib import Path

from commsim.core.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this verb."""
    add = parser.add_argument
    add("source", metavar="FILE|KIND:...", help="the log, or such as poisson:jobs=500,load=0.9,seed=1")
    add("--from", dest="kind", metavar="KIND", help="of log: philly, helios, pai2020, pai2023 or acme")
    add("--gpus", type=int, metavar="N", help="of the cluster that a made-up trace is to load")
    add("--seed", type=int, default=0, help="of the models that are drawn for a log's jobs (0)")
    add("-o", "--output", required=True, metavar="FILE.csv", help="where to")


def main(args: argparse.Namespace) -> int:
    """Read or make it, write it, and say what it holds."""
    from commsim.cluster.logs import READERS, read_log
    from commsim.cluster.models import MODELS
    from commsim.cluster.trace_file import write_trace
    from commsim.cluster.traces import load_trace

    if args.seed < 0:
        raise InputError(f"--seed must be 0 or more, got {args.seed}")
    if args.kind is not None:
        if args.gpus is not None:
            raise InputError("--gpus says nothing about a log: it goes with a made-up trace")
        jobs = read_log(args.kind, args.source, tuple(MODELS), args.seed)
        print(f"# models are drawn at random from {', '.join(MODELS)}, seed {args.seed}: the log does not say them")
    else:
        if args.gpus is None or args.gpus < 1:
            if Path(args.source).exists():
                raise InputError(f"{args.source}: say what log it is, --from {'|'.join(READERS)}")
            raise InputError(f"a made-up trace needs --gpus N, of the cluster that it loads, got {args.gpus}")
        jobs = load_trace(args.source, args.gpus, MODELS, args.seed)
    write_trace(args.output, jobs)
    mean = sum(job.gpus for job in jobs) / len(jobs)
    print(f"# {len(jobs)} jobs in {jobs[-1].submit / 86400:.2f} days, {mean:.2f} GPUs on average: {args.output}")
    return 0
