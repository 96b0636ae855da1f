"""Verbs of verbs: ``commsim VERB WHAT`` is the module ``commsim/cli/VERB_WHAT.py``."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from types import ModuleType

from . import sentence


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
    return importlib.import_module(f"commsim.cli.{verb}_{what.replace('-', '_')}")
