"""The command line: ``commsim VERB``. Each verb is a module that is imported only when it is called.

Verbs of verbs: ``commsim VERB WHAT`` is the module ``commsim/cli/VERB/WHAT.py``.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import keyword
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NoReturn

VERBS = {
    "run": "predict how long collectives take on a network",
    "advise": "rank all ways to add up a tensor on a network: dense, sparse, servers, switches",
    "bound": "how fast no schedule can be, and how far from that each algorithm is",
    "topo": "list, show, check and save topologies",
    "presets": "list and show machines and networks that exist",
    "schedule": "list, show, check and save schedules",
    "convert": "networks, schedules and workloads from and to the files of other simulators and runtimes",
    "switch": "switches that aggregate: simulate, budget, serve, all-reduce, status, pcap",
    "workload": "predict training iterations: buckets, priorities, sharding; and their demand on links",
    "profile": "measure the gradients of a torch module: sizes and ready times",
    "cluster": "replay a trace of jobs on a cluster under known schedulers, with and without CASSINI",
    "calibrate": "measure this machine under mpirun, and write it down as a network",
    "validate": "run schedules for real under mpirun, beside the prediction",
    "place": "rank placements of jobs on a cluster, when each should start, how long iterations take; serve schedulers",
    "testbed": "build a network out of namespaces on this machine, and run collectives in it",
    "sweep": "compute many points over any parameter, on all processors or a cluster, resumable",
    "report": "one offline page with the figures of a result or a sweep",
    "plot": "one figure of a result or a sweep for a paper, with the CSV behind it",
    "trace": "the timeline of a run for Perfetto and chrome://tracing",
    "compare": "predicted beside measured, size by size; why a bus bandwidth is above the line rate",
    "fit": "latency, bandwidth and efficiency out of measurements, and how sure they are",
    "explain": "which algorithm and protocol NCCL chooses on a network at which size, and why",
    "calls": "the collective calls of a profile (PyTorch's flight recorder, Kineto): a job for place, a graph of tasks",
    "doctor": "say what this machine can do",
}

MAX_SHOWN = 4000
"""Characters of an error: it may quote what a file holds."""

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK")


class Parser(argparse.ArgumentParser):
    """Reports an error on one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more, and exit with 2."""
        _report(f"{self.prog}: error: {message} (see {self.prog} --help)")
        self.exit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when it did what it should; 2 when what the user gave is wrong; 1 when something else failed.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    _open_what_is_closed()
    verb = argv[0] if argv else ""
    if verb not in VERBS:
        return _without_verb(argv)
    from commsim.core.errors import BackendError, CommsimError, InputError

    try:
        module = importlib.import_module(f"commsim.cli.{verb}")
        parser = Parser(prog=f"commsim {verb}", description=sentence(VERBS[verb]))
        module.add_arguments(parser)
        completed = getattr(module, "completed", list)  # a verb of verbs may have one that need not be named
        args = parser.parse_args(completed(argv[1:]))
        _check_json(args)
        code = int(module.main(args))
        sys.stdout.flush()
        return code
    except MemoryError as error:
        _report(f"commsim {verb}: error: this needs more memory than there is: {error or 'no more could be had'}")
        return 2
    except (InputError, BackendError) as error:
        _report(f"commsim {verb}: error: {error}")
        return 2
    except CommsimError as error:
        _report(f"commsim {verb}: {type(error).__name__}: {error}")
        return 1
    except BrokenPipeError:  # the reader of our output has left
        _print_no_more()
        return 0
    except OSError as error:
        _report(f"commsim {verb}: error: {error}")
        if error.errno == errno.ENOSPC:  # of what is printed, too
            _print_no_more()
        return 2
    except KeyboardInterrupt:
        return 130


def _open_what_is_closed() -> None:
    """Give streams that were closed when we were started, as by ``>&-``, a reader that throws away."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_json(args: argparse.Namespace) -> None:
    """Refuse a file for the results that cannot be written, before the work and not after it."""
    path = getattr(args, "json", None)
    if path and isinstance(path, str) and path != "-":
        from pathlib import Path

        from commsim.files.whole_files import check_writable

        check_writable(Path(path))


def sentence(text: str) -> str:
    """Begin a text with a capital, leave the others, and end it."""
    return f"{text[0].upper()}{text[1:]}."


def _report(message: str) -> None:
    """Print one line on standard error; of the ranks that a launcher started, only the first does."""
    from commsim.core.errors import printable

    if all(os.environ.get(name, "0") == "0" for name in RANK_VARIABLES):
        shown = message if len(message) <= MAX_SHOWN else f"{message[: MAX_SHOWN - 400]} ... {message[-400:]}"
        print(printable(shown), file=sys.stderr)


def _without_verb(argv: list[str]) -> int:
    from commsim import __version__

    listing = "\n".join(f"  {verb:<10} {what}" for verb, what in VERBS.items())
    parser = Parser(
        prog="commsim",
        description="Predict collectives on a network, then run the same schedule for real.",
        epilog=f"verbs:\n{listing}\n\n`commsim VERB --help` says more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"commsim {__version__}")
    parser.add_argument("verb", choices=VERBS, metavar="VERB", help="what to do")
    if not argv:
        parser.print_help()
        return 2
    import difflib

    close = difflib.get_close_matches(argv[0], VERBS, n=1)
    if close:
        parser.error(f"there is no verb {argv[0]!r}; did you mean {close[0]}?")
    parser.parse_args(argv)
    return 2


def add_verbs(parser: argparse.ArgumentParser, verb: str, whats: Mapping[str, str]) -> None:
    """Add the verbs of a verb, each with the flags of its own module.

    Parameters
    ----------
    parser : ArgumentParser
        Of the verb.
    verb : str
        Its name.
    whats : mapping of str to str
        What each of its verbs does.
    """
    verbs = parser.add_subparsers(dest="what", required=True, metavar="|".join(whats))
    for name, what in whats.items():
        one = verbs.add_parser(name, help=what, description=sentence(what))
        _module(verb, name).add_arguments(one)


def run_verb(verb: str, args: argparse.Namespace) -> int:
    """Do what was asked for, and return the exit code."""
    return int(_module(verb, args.what).main(args))


def _module(verb: str, what: str) -> ModuleType:
    name = what.replace("-", "_")
    return importlib.import_module(f"commsim.cli.{verb}.{name}{'_' if keyword.iskeyword(name) else ''}")
