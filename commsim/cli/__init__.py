"""The command line: ``commsim VERB``, and the verbs: a verb's module, with its flags, is imported when it is called."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from commsim.extensions import house

from .parsing import Parser, print_error

if TYPE_CHECKING:
    from .flags import Verb

# Verbs under the question that they answer; one whose extension is not there is left out.
GROUPS: dict[str, tuple[str, ...]] = {
    "predict": ("expect", "run", "advise", "nccl", "traffic", "bound", "synthesize"),
    "compare with reality": ("watch", "calibrate", "validate", "emulate", "testbed", "compare", "reproduce", "fit"),
    "in-network aggregation": ("switch",),
    "training and placement": ("workload", "place", "cluster"),
    "many points and figures": ("sweep", "report", "diff", "plot", "trace"),
    "networks, schedules and files": ("topo", "schedule", "export", "examples", "schema"),
    "this machine": ("warmup", "doctor"),
}
# The verbs of the first screen, of which each stands under one of these questions.
FIRST = (
    "expect", "run", "nccl", "compare", "topo", "place", "workload", "emulate", "sweep", "synthesize", "switch",
    "report",
)  # fmt: skip
# Those that need no NumPy.
WITHOUT_NUMPY = ("examples", "schema")
# Verbs of which some words are old names.
WITH_OLD_WORDS = ("advise", "report", "convert")

# Characters of the verbs of a verb that its usage lists.
MAX_LISTED = 70
# What stands under all verbs.
COMPLETION = (
    "\nTab completes verbs, flags and names of networks after\n"
    "  pip install 'commsim[complete]'; eval \"$(register-python-argcomplete commsim)\""
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 when it did what it should; 2 when what the user gave is wrong; 1 when something else failed.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    may_run = None
    if argv and argv[0].startswith("--only-code="):
        from commsim.core.files.own_files import read_only_code

        may_run, argv = read_only_code(argv[0]), argv[1:]
    if argv == ["help", "all"]:
        return _without_verb(["--help"], is_all=True)
    if argv[:1] == ["help"]:
        argv = [*argv[1:], "--help"]
    if argv and (argv[0] in WITH_OLD_WORDS or not house().summaries.get(argv[0])):
        from .parsing.aliases import in_new_words

        argv, note = in_new_words(argv)
        if note:
            print_error(f"commsim: {note}")
    verb = argv[0] if argv else ""
    if verb and not verb.startswith("-") and verb not in house().verbs:  # of a package that is installed
        house().read_installed()
    if not house().summaries.get(verb):
        return _without_verb(argv)
    from commsim.core.errors import BackendError, CommsimError, InputError

    try:
        words = argv[1:]
        parser, usual = parser_of(verb, words)
        if usual and (not words or words[0] not in (*usual[1:], "-h", "--help")):
            words = [usual[0], *words]
        args = parser.parse_args(words)
        command: Verb = vars(args).pop("command")
        verbose: bool = getattr(args, "show_all", False) or getattr(args, "verbose", False)
        config = command.config.from_args(args, may_run)
        from commsim.report.answer import show

        from .flags import WRITTEN

        if any(getattr(config, name, None) for name in WRITTEN):
            from .flags.outputs import check_outputs

            check_outputs(config)

        json, csv = getattr(config, "json", None), getattr(config, "csv", None)
        with contextlib.ExitStack() as outputs:
            if "-" in (json, csv):  # then tables and remarks do not go to standard output
                from commsim.report.answer_files import only_answer

                outputs.enter_context(only_answer(json, csv))
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
    except ModuleNotFoundError as error:
        if house().is_missing(error.name or ""):
            print_error(f"commsim {verb}: error: this needs an extension that is not installed: {error.name}")
            return 2
        from commsim.core.extras import told_extra

        if not (extra := told_extra(error.name or "")):
            raise
        print_error(f"commsim {verb}: error: {extra}")
        return 2
    except OSError as error:
        print_error(f"commsim {verb}: error: {error}")
        if error.errno == errno.ENOSPC:  # of what is printed, too
            _print_no_more()
        return 2
    except KeyboardInterrupt as stop:
        if stop.args:  # what was interrupted, where that is more than the command
            print_error(f"commsim {verb}: {stop}")
        return 130


def _print_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def listed_verbs() -> dict[str, str]:
    """Return what each verb of the help does, in its order; verbs of packages that were read already are last."""
    from .parsing.aliases import HIDDEN

    verbs = dict.fromkeys([*(verb for group in GROUPS.values() for verb in group), *house().verbs])
    return {verb: what for verb in verbs if verb not in HIDDEN and (what := house().summaries.get(verb))}


def commands_of(verb: str) -> dict[str, Verb]:
    """Return the commands of a verb by its words, from every module that brings some."""
    commands: dict[str, Verb] = {}
    for module in house().verbs[verb]:
        commands |= importlib.import_module(module).COMMANDS
    return {name: one for name, one in commands.items() if name.split()[0] == verb}


def parser_of(verb: str, words: Sequence[str] = ()) -> tuple[Parser, list[str]]:
    """Return the parser of a verb.

    Parameters
    ----------
    verb : str
        The verb.
    words : sequence of str
        Words after it. If the first one is a verb of the verb, the others have no flags, which take time to add.

    Returns
    -------
    Parser, list of str
        Where one of its verbs is meant if none is named: that one, and all of them; otherwise empty.
    """
    parser = Parser(prog=f"commsim {verb}", description=house().summaries[verb])
    commands = commands_of(verb)
    if verb in commands:
        commands[verb].config.add_arguments(parser)
        parser.set_defaults(command=commands[verb])
        return parser, []
    names = [name.partition(" ")[2] for name in commands]
    listed = "|".join(names)
    verbs = parser.add_subparsers(required=True, metavar=listed if len(listed) <= MAX_LISTED else "VERB")
    asked = words[0] if words else ""
    for name, command in zip(names, commands.values(), strict=True):
        own = verbs.add_parser(name, help=command.summary, description=command.summary)
        if asked == name or asked not in names:
            command.config.add_arguments(own)
            own.set_defaults(command=command)
    usual = [name for name, command in zip(names, commands.values(), strict=True) if command.is_usual]
    return parser, [*usual, *names] if usual else []


def _listed(verb: str, what: str, width: int) -> str:
    """Return a verb and what it does, in lines of a width."""
    return textwrap.fill(what, width, initial_indent=f"  {verb:<12}", subsequent_indent=" " * 14)


def _by_question(verbs: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """Return all verbs under their questions; those of installed packages stand under one of their own."""
    added = [verb for verb in verbs if not any(verb in group for group in GROUPS.values())]
    return {**GROUPS, **({"of installed packages": added} if added else {})}


def _without_verb(argv: list[str], *, is_all: bool = False) -> int:
    from commsim.version import __version__

    if is_all:
        house().read_installed()
    width = max(40, shutil.get_terminal_size().columns - 2)
    verbs = listed_verbs()
    groups = _by_question(verbs) if is_all else {"verbs to start with": FIRST}
    listing = "\n".join(
        f"\n{title}:\n" + "\n".join(_listed(verb, verbs[verb], width) for verb in group if verb in verbs)
        for title, group in groups.items()
    )
    others = COMPLETION if is_all else f"\n`commsim help all` lists all {len(verbs)} verbs by subject."
    parser = Parser(
        prog="commsim",
        usage="commsim [-h] [--version] VERB ...\n       commsim help [VERB | all]",
        description="Predict collectives on a network, then run the same schedule for real.",
        before_examples=f"{listing.strip()}\n\n`commsim help VERB` prints the flags of a verb.{others}",
    )
    parser.add_argument("--version", action="version", version=f"commsim {__version__}")
    parser.add_argument("verb", choices=verbs, metavar="VERB", help="subcommand")
    if not argv:
        parser.print_help()
        return 2
    if any(argv[0] in group for group in GROUPS.values()):
        print_error(f"commsim: the verb {argv[0]} is of an extension that is not installed{house().told_missing()}")
        return 2
    from commsim.core.errors import alike, did_you_mean

    if (hint := did_you_mean(alike(argv[0], [*verbs, "help"]), last=True)) and not argv[0].startswith("-"):
        parser.error(f"no verb {argv[0]!r}{hint}")
    parser.parse_args(argv)
    return 2
