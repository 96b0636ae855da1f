"""Completion in bash, zsh and fish, by argcomplete: ``eval "$(register-python-argcomplete commsim)"``."""

from __future__ import annotations

import argparse
import os
from typing import Any

# The variable that argcomplete's shell functions set.
ASKED = "_ARGCOMPLETE"


def complete() -> None:
    """Print what may follow, and end the process; does nothing where argcomplete is not installed.

    Only the verb on the line is imported, since completion is waited for.
    """
    try:
        import argcomplete
    except ImportError:
        return
    from . import listed_verbs, parser_of

    words = os.environ.get("COMP_LINE", "").split()
    verb = words[1] if len(words) > 1 else ""
    parser = argparse.ArgumentParser(prog="commsim")
    verbs = parser.add_subparsers()
    known = listed_verbs()
    for name, what in known.items():
        verbs.add_parser(name, help=what)
    asked = verbs.add_parser("help", help="print the help of a verb")
    asked.add_argument("of", nargs="?", choices=list(known))
    if verb in known:
        verbs.choices[verb] = _with_names(parser_of(verb)[0])
    argcomplete.autocomplete(parser)


def _with_names(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Give a verb's networks and collectives the names that there are; other values are files."""
    for action in parser._actions:
        if action.dest in ("topology", "network"):
            action.completer = _networks  # type: ignore[attr-defined]
        elif action.dest in ("collective", "named"):
            action.completer = _collectives  # type: ignore[attr-defined]
    return parser


def _networks(prefix: str, **_: Any) -> list[str]:
    from topologies import TOPOLOGIES
    from topologies.presets import PRESETS

    return [name for name in (*TOPOLOGIES, *PRESETS) if name.startswith(prefix)]


def _collectives(prefix: str, **_: Any) -> list[str]:
    from collectives import COLLECTIVES

    return [name for name in COLLECTIVES if name.startswith(prefix)]
