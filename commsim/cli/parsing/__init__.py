"""How command lines are parsed, how help is printed, and how an error is reported."""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from commsim.core.errors import alike, did_you_mean, shorten_quotes
from commsim.core.spec import is_number

# Characters of an error: it may quote what a file holds.
MAX_SHOWN = 4000

ALL = (("--help", "all"), ("-h", "all"))
# Types of flags that are numbers, and what a wrong one should be.
NUMBERS: dict[Any, str] = {int: "a whole number", float: "a number"}
# A negative number with a unit, which argparse takes for a flag, as it does not a bare one.
NEGATIVE = re.compile(r"-(?!\d+$|\d*\.\d+$)\d\S*")
# Flags of a verb beyond which its help leaves out rare ones.
MANY_FLAGS = 21
# Likeness, as of difflib, of a mistyped flag to the one that is meant.
LIKE = 0.8


class Once(argparse.Action):
    """Keeps the value of a flag, and refuses it if it is given again: nobody means both values."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Keep a value."""
        if option_string is not None:
            if self in parser.given:
                is_list = self.nargs is None and "[," in str(self.metavar)
                several = f"; several are one list, {self.metavar}" if is_list else ", and it takes one value"
                raise argparse.ArgumentError(self, f"given twice{several}")
            parser.given.add(self)
        setattr(namespace, self.dest, values)


class _Formatter(argparse.HelpFormatter):
    """Wraps descriptions; what has lines already keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Reports an error on one line, and takes positional arguments and options in any order.

    Parameters
    ----------
    before_examples : str
        Text of the help above its examples.
    **options
        Options of argparse.
    """

    _is_mixed = False

    def __init__(self, before_examples: str = "", **options: Any) -> None:
        super().__init__(**options, formatter_class=_Formatter)
        self.before_examples = before_examples
        self.words: list[str] = []
        self.given: set[argparse.Action] = set()
        for name in (None, "store"):
            self.register("action", name, Once)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a help or a version, in place of a line of progress, which needs what is looked up here."""
        if (terminal := sys.modules.get("commsim.report.terminal")) is not None:
            terminal.EXPECTED.is_shown = True
            terminal.show_step()
        super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more, and exit with 2; a mistyped flag is named before one that lacks."""
        if message.startswith("the following arguments are required") and (word := self._unknown_flag()):
            message = f"unrecognized arguments: {word}{self._meant(word, self.words)}"
        print_error(f"{self.prog}: error: {message} (see {self.prog} --help)")
        self.exit(2)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse words that no flag takes, with what may have been meant."""
        found, extra = self.parse_known_args(args, namespace)
        if extra:  # argparse leaves what a verb's verb lacks to the verb
            asked = self._asked()
            asked.error(f"unrecognized arguments: {' '.join(extra)}{asked._meant(extra[0], self.words)}")
        return found

    def _asked(self) -> Parser:
        """Return the parser of the command that the words name: of the verb, or of its verb."""
        verbs = [one for one in self._actions if isinstance(one, argparse._SubParsersAction)]
        return next((one.choices[word] for one in verbs for word in self.words if word in one.choices), self)

    def _meant(self, word: str, words: Sequence[str]) -> str:
        """Return what may have been meant by a word that no flag takes, as the class of the flags says; or nothing."""
        command = self.get_default("command")
        meant = {} if command is None else command.config.MEANT
        name = word.partition("=")[0] if word[:1] == "-" else ""
        if name.startswith("--") and name not in meant:
            from .parameter_flags import parameter_meant

            if parameter := parameter_meant(word, words):
                return parameter
            known = [one for one in self._option_string_actions if one[:2] == "--"]
            return did_you_mean(alike(name, known, 1, LIKE), last=True)
        return str(meant.get(name, "")).format(word)

    def _unknown_flag(self) -> str:
        """Return the first word that begins as a flag does, and is none; empty if all are."""
        known = tuple(self._option_string_actions)
        for word in itertools.takewhile(lambda one: one != "--", self.words):
            name = word.partition("=")[0]
            if name[:2] == "--" and not any(one.startswith(name) for one in known):
                return name
        return ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check that a value is one of those that a flag takes; of one that is like another, say which is meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            from commsim.core.errors import close_names

            choices = [*map(str, action.choices or ())]
            if (several := str(value).split(",")) and len(several) > 1 and {*several} <= {*choices}:
                each = f": give {action.option_strings[0]} once for each" if "repeatable" in (action.help or "") else ""
                raise argparse.ArgumentError(action, f"takes one name, got {value!r}{each}") from None
            hint = did_you_mean(close_names(str(value), choices), last=True)
            if not hint:
                raise
            raise argparse.ArgumentError(action, f"no {value!r}{hint}") from None

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Convert a value; of several seeds, say where several may be given."""
        try:
            kind: Any = action.type
            if (wanted := NUMBERS.get(kind)) and not is_number(arg_string, kind):
                raise argparse.ArgumentError(action, f"must be {wanted}, got {arg_string!r}")
            value = super()._get_value(action, arg_string)
            if not (action.option_strings and action.choices) or value in action.choices:
                return value  # a verb within a verb has choices too, and takes the words after it
            from commsim.core.registry import usual_spelling

            return usual_spelling(str(value), map(str, action.choices))
        except argparse.ArgumentError as error:
            if action.dest == "seed" and "," in arg_string:
                error.message += ": one seed at a time; `repeats` in the file of `commsim sweep run` has several"
            raise

    def format_help(self) -> str:
        """Return the help: frequent flags, or all after ``--help all``, and examples."""
        from .examples import examples_of

        rare = self._rare_actions()
        for action in rare:
            action.help = argparse.SUPPRESS
        lines = [line for example in examples_of(self.prog) for line in _continued(example)]
        more = f"{len(rare)} more flags: {self.prog} --help all" if rare else ""
        examples = "\n".join(["examples:", *lines]) if lines else ""
        if len(self._flags()) > MANY_FLAGS:
            self.usage = self._short_usage()
        if self.description:
            self.description = f"{self.description[0].upper()}{self.description[1:].removesuffix('.')}."
        self.epilog = "\n\n".join(part for part in (self.before_examples, more, examples) if part) + "\n"
        return super().format_help()

    def _rare_actions(self) -> list[argparse.Action]:
        """Return the flags that the help leaves out."""
        flags = self._flags()
        if len(flags) <= MANY_FLAGS or any(pair in ALL for pair in itertools.pairwise(self.words)):
            return []
        named = " ".join(self.words)
        rare = {action: getattr(action, "rare_without", None) for action in flags}
        return [action for action, engine in rare.items() if engine is not None and not (engine and engine in named)]

    def _flags(self) -> list[argparse.Action]:
        return [action for action in self._actions if action.option_strings]

    def _short_usage(self) -> str:
        """Return the usage with the flags that are required only."""
        required = [f"{flag.option_strings[-1]} {flag.metavar}" for flag in self._flags() if flag.required]
        words = [_positional(action) for action in self._get_positional_actions()]
        usage = " ".join([self.prog, *required, "[FLAG ...]", *words])
        width = max(40, shutil.get_terminal_size().columns - len("usage: "))
        return textwrap.fill(usage, width, break_on_hyphens=False, subsequent_indent=" " * len("usage: "))

    # argparse takes the "--" of "--seed=--" for the end of the options, and hands the flag no text but a tuple
    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and refuse a value that argparse takes for something else: ``--``, and a negative size or time."""
        args = sys.argv[1:] if args is None else list(args)
        self.words = self.words if self._is_mixed else args  # the second pass has no flags
        options = args[: args.index("--")] if "--" in args else args
        for arg, value in itertools.zip_longest(options, options[1:], fillvalue=""):
            if arg.startswith("-") and arg.endswith("=--"):
                self.error(f"argument {arg.removesuffix('=--')}: expected a value, got --")
            action = self._option_string_actions.get(arg) if NEGATIVE.fullmatch(value) else None
            if action is not None and action.nargs is None:
                self.error(str(argparse.ArgumentError(action, f"must not be negative, got {value}")))
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


def print_error(message: str) -> None:
    """Print one line on standard error; of the ranks that a launcher started, only the first does."""
    from commsim.core.compiling.notices import is_first_rank
    from commsim.report.terminal import tell

    if is_first_rank():
        message = shorten_quotes(message)
        shown = message if len(message) <= MAX_SHOWN else f"{message[: MAX_SHOWN - 400]} ... {message[-400:]}"
        tell(shown)


def _positional(action: argparse.Action) -> str:
    """Return how a positional argument is written in a usage."""
    name = str(action.metavar or action.dest)
    return {"*": f"[{name} ...]", "?": f"[{name}]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _continued(command: str) -> list[str]:
    """Break a command into lines for a shell, so that it can be copied."""
    width = max(40, shutil.get_terminal_size().columns - 4)
    lines = textwrap.wrap(command, width, break_long_words=False, break_on_hyphens=False, subsequent_indent="    ")
    return [f"  {line} \\" for line in lines[:-1]] + [f"  {lines[-1]}"]
