"""The command line: ``commsim VERB``. A verb's module, with its flags and functions, is imported when it is called."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import itertools
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .flags import Flags, Verb

# Verbs under the question that they answer.
GROUPS: dict[str, dict[str, str]] = {
    "predict": {
        "run": "predict how long collectives take on a network",
        "advise": "rank all ways to all-reduce a tensor on a network: dense, sparse, with servers, in switches",
        "explain": "print which algorithm and protocol NCCL chooses at which size, and why",
        "traffic": "send permutations and incasts over a fabric that sprays and trims packets (NSCC, RCCC, NDP)",
        "bound": "lower bound on the time of any schedule, and the distance of each algorithm from it",
        "synthesize": "make the fastest schedule for a network, with a proven lower bound",
    },
    "compare with reality": {
        "calibrate": "measure this machine under mpirun, and write it as a network",
        "validate": "run schedules for real under mpirun, beside the prediction",
        "emulate": "run a program, unchanged, on a network that is not there",
        "testbed": "build a network of namespaces on this machine, and run collectives in it",
        "compare": "compare predicted with measured times by size; explain a bus bandwidth above the line rate",
        "reproduce": "figures of papers: theirs beside ours, with the error and what was assumed or fitted",
        "fit": "fit latency, bandwidth and efficiency to measurements, with confidence intervals",
    },
    "in-network aggregation": {
        "switch": "switches that aggregate: simulate, budget, serve, all-reduce, status, pcap",
    },
    "training and placement": {
        "workload": "predict training iterations: buckets, priorities, sharding; and their demand on links",
        "profile": "measure the gradients of a torch module: sizes and ready times",
        "calls": "read the collective calls of a profile (flight recorder, Kineto) as a job and as a task graph",
        "place": "rank placements of jobs on a cluster, with start times and iteration times; serve schedulers",
        "cluster": "replay a trace of jobs on a cluster under known schedulers, with and without CASSINI",
    },
    "many points and figures": {
        "sweep": "compute many points over any parameter, on all processors or a cluster, resumable",
        "report": "write one offline page with the figures of a result or a sweep",
        "plot": "draw one figure of a result or a sweep for a paper, with the CSV of its numbers",
        "trace": "write the timeline of a run for Perfetto and chrome://tracing",
    },
    "networks, schedules and files": {
        "topo": "list, show, check, save and convert topologies",
        "presets": "list and show commercial machines and networks",
        "schedule": "list, show, check, save and convert schedules",
        "convert": "convert networks, schedules and workloads from and to the files of other simulators and runtimes",
        "schema": "print the JSON Schema of what a verb writes with --json",
    },
    "this machine": {
        "warmup": "compile all kernels now, so that no command waits for the compiler",
        "doctor": "print what this machine supports",
    },
}
VERBS = {verb: what for verbs in GROUPS.values() for verb, what in verbs.items()}
# Modules of verbs that share one with another verb.
MODULES = {"plot": "report", "presets": "topo", "validate": "calibrate", "profile": "calls"}

# Characters of an error: it may quote what a file holds.
MAX_SHOWN = 4000

# Where the parser keeps -v of a verb that has no --verbose.
SHOW_ALL = "show_all"

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK")


class Once(argparse.Action):
    """Keeps the value of a flag, and refuses it if it is given again: nobody means both values."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Keep a value."""
        if option_string is not None:
            if self in parser.given:
                raise argparse.ArgumentError(self, "given twice")
            parser.given.add(self)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Reports an error on one line, and takes positional arguments and options in any order."""

    _is_mixed = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.given: set[argparse.Action] = set()
        for name in (None, "store"):
            self.register("action", name, Once)

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more, and exit with 2."""
        _report(f"{self.prog}: error: {message} (see {self.prog} --help)")
        self.exit(2)

    # argparse takes the "--" of "--seed=--" for the end of the options, and hands the flag no text but a tuple
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse a flag whose value is ``--``."""
        args = sys.argv[1:] if args is None else list(args)
        for arg in itertools.takewhile(lambda arg: arg != "--", args):
            if arg.startswith("-") and arg.endswith("=--"):
                self.error(f"argument {arg.removesuffix('=--')}: expected a value, got --")
        # positional arguments may stand anywhere between options, but where a verb or all the rest follows
        positional = self._get_positional_actions()
        takes_rest = any(action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in positional)
        wants_help = not {"-h", "--help"}.isdisjoint(args)  # which says the defaults of positional arguments, too
        if self._is_mixed or not positional or takes_rest or wants_help:
            return super().parse_known_args(args, namespace)
        self._is_mixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixed = False


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
        parser, usual = parser_of(verb)
        words = argv[1:]
        if usual and (not words or words[0] not in (*usual[1:], "-h", "--help")):
            words = [usual[0], *words]
        _hide_flags_of_engines(parser, words)
        args = parser.parse_args(words)
        command: Verb = vars(args).pop("command")
        verbose: bool = vars(args).pop(SHOW_ALL, False) or getattr(args, "verbose", False)
        config = command.config.from_args(args)
        _check_answers(config)
        from commsim.report.render import show

        json, csv = getattr(config, "json", None), getattr(config, "csv", None)
        with _alone_on_standard_output(json, csv):
            answer = command.run(config)
            show(answer, config.flags(), json, csv, verbose)
        sys.stdout.flush()
        return answer.code
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


def _alone_on_standard_output(*paths: object) -> AbstractContextManager[None]:
    """Keep tables and remarks away from standard output where JSON or CSV goes there."""
    if "-" not in paths:
        return contextlib.nullcontext()
    from commsim.report.answer_files import only_answer

    return only_answer(*paths)


def parser_of(verb: str) -> tuple[Parser, list[str]]:
    """Return the parser of a verb.

    Returns
    -------
    Parser, list of str
        Where one of its verbs is meant if none is named: that one, and all of them; otherwise empty.
    """
    module = importlib.import_module(f"commsim.cli.{MODULES.get(verb, verb)}")
    parser = Parser(prog=f"commsim {verb}", description=sentence(VERBS[verb]))
    commands: dict[str, Verb] = {name: one for name, one in module.COMMANDS.items() if name.split()[0] == verb}
    if verb in commands:
        _add(parser, commands[verb])
        return parser, []
    names = [name.partition(" ")[2] for name in commands]
    verbs = parser.add_subparsers(required=True, metavar="|".join(names))
    for name, one in zip(names, commands.values(), strict=True):
        _add(verbs.add_parser(name, help=one.summary, description=sentence(one.summary)), one)
    usual = [name for name, one in zip(names, commands.values(), strict=True) if one.is_usual]
    return parser, [*usual, *names] if usual else []


def _hide_flags_of_engines(parser: Parser, words: Sequence[str]) -> None:
    """Leave flags of the packet engine out of the help (only) unless that engine is named."""
    from .flags.packets import PACKET_FLAGS

    hidden = [action for action in parser._actions if action.dest in PACKET_FLAGS]
    if "packet" in " ".join(words):
        return
    if len(hidden) == len(PACKET_FLAGS):  # `switch simulate`, which has some of them, simulates packets only
        for action in hidden:
            action.help = argparse.SUPPRESS
        parser.epilog = f"{len(hidden)} flags of the packet engine: {parser.prog} --engine packet --help"


def _add(parser: argparse.ArgumentParser, command: Verb) -> None:
    command.config.add_arguments(parser)
    if "-v" not in parser._option_string_actions:
        parser.add_argument("-v", dest=SHOW_ALL, action="store_true", help="show all columns and remarks on a terminal")
    parser.set_defaults(command=command)


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

            from commsim.files.whole_files import check_writable

            check_writable(Path(path))


def sentence(text: str) -> str:
    """Begin a text with a capital, leave the others, and end it."""
    return f"{text[0].upper()}{text[1:]}."


def _report(message: str) -> None:
    """Print one line on standard error; of the ranks that a launcher started, only the first does."""
    from commsim.report.render import tell

    if all(os.environ.get(name, "0") == "0" for name in RANK_VARIABLES):
        shown = message if len(message) <= MAX_SHOWN else f"{message[: MAX_SHOWN - 400]} ... {message[-400:]}"
        tell(shown)


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
        description="Predict collectives on a network, then run the same schedule for real.",
        epilog=f"{listing.strip()}\n\n`commsim VERB --help` says more.",
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
        parser.error(f"no verb {argv[0]!r}; did you mean {close[0]}?")
    parser.parse_args(argv)
    return 2
