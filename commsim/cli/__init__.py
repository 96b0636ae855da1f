"""The command line: ``commsim VERB``. A verb's module, with its flags and functions, is imported when it is called."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from .parsing import Parser, print_error, sentence

if TYPE_CHECKING:
    from .flags import Flags, Verb

# Verbs under the question that they answer.
GROUPS: dict[str, dict[str, str]] = {
    "predict": {
        "run": "predict how long collectives take on a network",
        "advise": "rank all ways to all-reduce a tensor on a network: dense, sparse, with servers, in switches",
        "nccl": "print which algorithm and protocol NCCL chooses at each size, and why",
        "traffic": "simulate permutations and incasts over a fabric that sprays and trims packets (NSCC, RCCC, NDP)",
        "bound": "print a lower bound on the time of any schedule, and each algorithm's distance from it",
        "synthesize": "make the fastest schedule for a network, with a proven lower bound",
    },
    "compare with reality": {
        "calibrate": "measure this machine under mpirun, and write the results as a network file",
        "validate": "run schedules for real under mpirun, and compare with the prediction",
        "emulate": "run an unmodified program on an emulated network",
        "testbed": "build a network of namespaces on this machine, and run collectives in it",
        "compare": "compare predicted with measured times by size; explain a bus bandwidth above the line rate",
        "reproduce": "print figures of papers next to predictions, with the error and what was assumed or fitted",
        "fit": "fit latency, bandwidth and efficiency to measurements, with confidence intervals",
    },
    "in-network aggregation": {
        "switch": "switches that aggregate: simulate, budget, serve, all-reduce, status, pcap",
    },
    "training and placement": {
        "workload": "predict training steps; read profiles of programs; measure the gradients of a torch module",
        "place": "rank placements of jobs on a cluster, with start and iteration times; answer schedulers over HTTP",
        "cluster": "replay a trace of jobs under published schedulers, with or without CASSINI's time shifts",
    },
    "many points and figures": {
        "sweep": "vary any parameters over many points, and resume if interrupted; find the cheapest topology",
        "report": "write one offline page with the figures of a result or a sweep",
        "diff": "print two results, sweeps or schedules side by side, and where they differ",
        "plot": "draw one figure of a result or a sweep for a paper, with the CSV of its numbers",
        "trace": "write the timeline of a run for Perfetto and chrome://tracing",
    },
    "networks, schedules and files": {
        "topo": "list, show, check, save, import and export topologies; list commercial machines and networks",
        "schedule": "list, show, check, save, import and export schedules",
        "schema": "print the JSON Schema of what a verb writes with --json",
    },
    "this machine": {
        "warmup": "compile all Numba kernels now, so that no command waits for the compiler",
        "doctor": "print what this machine supports",
    },
}
VERBS = {verb: what for verbs in GROUPS.values() for verb, what in verbs.items()}
# Verbs that are understood, but not listed.
UNLISTED = {"convert": "convert networks, schedules and workloads from and to the files of other tools"}
# Modules of verbs that are not in a module of their name beside this one; each brings some words of its verb.
MODULES: dict[str, tuple[str, ...]] = {
    "nccl": ("commsim.nccl.cli.nccl_choices",),
    "traffic": ("commsim.traffic.cli.traffic",),
    "advise": ("commsim.ranking.cli.advise",),
    "bound": ("commsim.ranking.cli.bound",),
    "synthesize": ("commsim.ranking.cli.synthesize",),
    "calibrate": ("commsim.real.cli.calibrate",),
    "validate": ("commsim.real.cli.calibrate",),
    "testbed": ("commsim.real.cli.testbed",),
    "compare": ("commsim.real.cli.compare",),
    "fit": ("commsim.real.cli.fit",),
    "emulate": ("commsim.emulation.cli",),
    "reproduce": ("commsim.papers.cli.reproduce",),
    "switch": (
        "commsim.switches.cli",
        "commsim.live.cli",
    ),
    "workload": (
        "commsim.training.cli",
        "commsim.papers.cli.systems",
        "commsim.profiles.cli",
        "commsim.formats.cli.import_export",
    ),
    "place": ("commsim.placement.cli",),
    "cluster": ("commsim.placement.cli.cluster",),
    "sweep": ("commsim.sweep.cli",),
    "report": ("commsim.pages.cli.report",),
    "plot": ("commsim.pages.cli.report",),
    "diff": ("commsim.pages.cli.diff",),
    "trace": ("commsim.pages.cli.trace",),
    "topo": (
        "commsim.cli.topo",
        "commsim.formats.cli.import_export",
    ),
    "schedule": (
        "commsim.cli.schedule",
        "commsim.formats.cli.import_export",
    ),
    "convert": ("commsim.formats.cli.convert",),
}
# Verbs of which some words are old names.
WITH_OLD_WORDS = ("advise", "report")

# Where the parser keeps -v of a verb that has no --verbose.
SHOW_ALL = "show_all"
# Characters of the verbs of a verb that its usage lists.
MAX_LISTED = 70


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when it did what it should; 2 when what the user gave is wrong; 1 when something else failed.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    _open_what_is_closed()
    may_run = None
    if argv and argv[0].startswith("--only-code="):
        from commsim.core.files.own_files import read_only_code

        may_run, argv = read_only_code(argv[0]), argv[1:]
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if argv and (argv[0] not in VERBS or argv[0] in WITH_OLD_WORDS):
        from .parsing.aliases import in_new_words

        argv, note = in_new_words(argv)
        if note:
            print_error(f"commsim: {note}")
    verb = argv[0] if argv else ""
    if verb not in VERBS and verb not in UNLISTED:
        return _without_verb(argv)
    from commsim.core.errors import BackendError, CommsimError, InputError

    try:
        parser, usual = parser_of(verb)
        words = argv[1:]
        if usual and (not words or words[0] not in (*usual[1:], "-h", "--help")):
            words = [usual[0], *words]
        args = parser.parse_args(words)
        command: Verb = vars(args).pop("command")
        verbose: bool = vars(args).pop(SHOW_ALL, False) or getattr(args, "verbose", False)
        config = command.config.from_args(args, may_run)
        _check_answers(config)
        from commsim.report.render import show

        json, csv = getattr(config, "json", None), getattr(config, "csv", None)
        with _alone_on_standard_output(json, csv):
            answer = command.run(config)
            code = show(answer, config.flags(), json, csv, verbose)
        sys.stdout.flush()
        return code
    except MemoryError as error:
        print_error(f"commsim {verb}: error: this needs more memory than there is: {error or 'no more could be had'}")
        return 2
    except (InputError, BackendError) as error:
        print_error(f"commsim {verb}: error: {error}")
        return 2
    except CommsimError as error:
        print_error(f"commsim {verb}: {type(error).__name__}: {error}")
        return 1
    except BrokenPipeError:  # the reader of our output has left
        _print_no_more()
        return 0
    except OSError as error:
        print_error(f"commsim {verb}: error: {error}")
        if error.errno == errno.ENOSPC:  # of what is printed, too
            _print_no_more()
        return 2
    except KeyboardInterrupt as stop:
        if stop.args:  # what was interrupted, where that is more than the command
            print_error(f"commsim {verb}: {stop}")
        return 130


def _alone_on_standard_output(*paths: object) -> AbstractContextManager[None]:
    """Keep tables and remarks away from standard output where JSON or CSV goes there."""
    if "-" not in paths:
        return contextlib.nullcontext()
    from commsim.report.answer_files import only_answer

    return only_answer(*paths)


def _open_what_is_closed() -> None:
    """Give streams that were closed when we were started, as by ``>&-``, a reader that throws away."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_answers(config: Flags) -> None:
    """Refuse a file for the results that cannot be written, before the work and not after it."""
    for path in (getattr(config, "json", None), getattr(config, "csv", None)):
        if path and isinstance(path, str) and path != "-":
            from pathlib import Path

            from commsim.core.files.whole_files import check_writable

            check_writable(Path(path))
    from .flags import WRITTEN

    if any(getattr(config, name, None) for name in WRITTEN):
        from .flags.outputs import check_outputs

        check_outputs(config)


def commands_of(verb: str) -> dict[str, Verb]:
    """Return the commands of a verb by its words, from every module that brings some."""
    commands: dict[str, Verb] = {}
    for module in MODULES.get(verb, (f"commsim.cli.{verb}",)):
        commands |= importlib.import_module(module).COMMANDS
    return {name: one for name, one in commands.items() if name.split()[0] == verb}


def parser_of(verb: str) -> tuple[Parser, list[str]]:
    """Return the parser of a verb.

    Returns
    -------
    Parser, list of str
        Where one of its verbs is meant if none is named: that one, and all of them; otherwise empty.
    """
    parser = Parser(prog=f"commsim {verb}", description=sentence((VERBS | UNLISTED)[verb]))
    commands = commands_of(verb)
    if verb in commands:
        _add(parser, commands[verb])
        return parser, []
    names = [name.partition(" ")[2] for name in commands]
    listed = "|".join(names)
    verbs = parser.add_subparsers(required=True, metavar=listed if len(listed) <= MAX_LISTED else "VERB")
    for name, command in zip(names, commands.values(), strict=True):
        _add(verbs.add_parser(name, help=command.summary, description=sentence(command.summary)), command)
    usual = [name for name, command in zip(names, commands.values(), strict=True) if command.is_usual]
    return parser, [*usual, *names] if usual else []


def _add(parser: argparse.ArgumentParser, command: Verb) -> None:
    command.config.add_arguments(parser)
    if "-v" not in parser._option_string_actions:
        parser.add_argument(
            "-v", dest=SHOW_ALL, action="store_true", help="show all columns and notes, even on a terminal"
        )
    parser.set_defaults(command=command)


def _listed(verb: str, what: str, width: int) -> str:
    """Return a verb and what it does, in lines of a width."""
    return textwrap.fill(what, width, initial_indent=f"  {verb:<12}", subsequent_indent=" " * 14)


def _without_verb(argv: list[str]) -> int:
    from commsim import __version__

    width = max(40, shutil.get_terminal_size().columns - 2)
    listing = "\n".join(
        f"\n{title}:\n" + "\n".join(_listed(verb, what, width) for verb, what in verbs.items())
        for title, verbs in GROUPS.items()
    )
    parser = Parser(
        prog="commsim",
        usage="commsim [-h] [--version] VERB ...\n       commsim help [VERB]",
        description="Predict collectives on a network, then run the same schedule for real.",
        before_examples=f"{listing.strip()}\n\n`commsim help VERB` prints the flags of a verb.",
    )
    parser.add_argument("--version", action="version", version=f"commsim {__version__}")
    parser.add_argument("verb", choices=VERBS, metavar="VERB", help="what to do")
    if not argv:
        parser.print_help()
        return 2
    import difflib

    close = difflib.get_close_matches(argv[0], [*VERBS, "help"], n=1)
    if close and not argv[0].startswith("-"):
        parser.error(f"no verb {argv[0]!r}; did you mean {close[0]}?")
    parser.parse_args(argv)
    return 2
