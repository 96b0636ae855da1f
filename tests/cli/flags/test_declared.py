"""Flags as frozen dataclasses: what argparse makes of them, and that nothing else reads argparse's namespace."""

from __future__ import annotations

import argparse
import ast
import dataclasses
from pathlib import Path
from typing import ClassVar

import pytest

import commsim
from commsim.cli import listed_verbs, parser_of
from commsim.cli.flags import Flags, WithJson, flag, repeated, switched

PACKAGE = Path(commsim.__file__).parent
READERS = {"from_args", "add_arguments"}


class Group(Flags):
    TITLE: ClassVar[str] = "group"
    size: str = flag("-b", default="1K", help="size (%(default)s)")
    loss: float | None = flag()


class Config(Group, WithJson):
    DEFAULTS: ClassVar[dict[str, str]] = {"size": "2K"}
    files: tuple[str, ...] = flag("files", nargs="+")
    ranks: tuple[int, ...] = repeated()
    is_on: bool = switched()
    collapse: bool | None = flag()


def read(*words: str) -> Config:
    parser = argparse.ArgumentParser()
    Config.add_arguments(parser)
    return Config.from_args(parser.parse_args(words))


def test_values_have_the_types_of_the_fields():
    config = read("a", "b", "--ranks", "1", "--ranks", "2", "--is-on", "--no-collapse", "--loss", "0")
    same = Config(files=("a", "b"), ranks=(1, 2), is_on=True, collapse=False, loss=0.0, size="2K")
    assert config.flags() == same.flags()
    assert read("a").flags() == Config(files=("a",), size="2K").flags()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.size = "3K"


def test_what_was_given_and_what_the_json_has():
    config = read("a", "--loss", "0", "--json", "x.json", "-b", "1M")
    assert config.given("loss", "ranks", "is_on", "collapse") == ["--loss"]
    assert config.flags("files") == {"size": "1M", "loss": 0.0, "ranks": (), "is_on": False, "collapse": None}


def test_the_help_has_the_groups_and_the_defaults():
    parser = argparse.ArgumentParser()
    Config.add_arguments(parser)
    assert "group:\n  -b SIZE, --size SIZE  size (2K)" in parser.format_help()


@pytest.mark.parametrize("verb", listed_verbs())
def test_every_verb_has_a_parser_and_help_for_every_flag(verb):
    parsers = [parser_of(verb)[0]]
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
            else:
                assert action.help or not action.option_strings, (parser.prog, action.dest)


def test_arguments_are_read_in_one_place():
    """No function takes argparse's namespace but those that turn it into a configuration."""
    offenders = []
    for path in PACKAGE.rglob("*.py"):
        if "Namespace" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in READERS:
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                notes = [ast.unparse(one.annotation) for one in every if one.annotation is not None]
                offenders += [f"{path.name}: {node.name}" for note in notes if note.endswith("Namespace")]
    assert offenders == []
