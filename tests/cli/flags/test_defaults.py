"""Defaults of flags stand once: where they are taken, and what the help shows is read from there."""

from __future__ import annotations

import argparse
import ast
import collections
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commsim
from commsim.cli import listed_verbs, parser_of
from commsim.cli.flags import DefaultOf, Flags, flag
from commsim.core.units import parse_bandwidth, parse_size, parse_time, share, write_time

ROOT = Path(commsim.__file__).parents[1]
TREES = ("commsim", "collectives", "topologies", "switch_model")
# Equal to what another name says by chance: a label of a table, or sizes of different questions.
BY_CHANCE = {"datatype", "operation", "size", "batch", "collective"}
LENGTH = 3.0


class Config(Flags):
    length: float = flag(default=DefaultOf(f"{__name__}:LENGTH"), help="length")
    pause: str = flag(default=DefaultOf("topologies:LINK_LATENCY", write_time), metavar="TIME", help="pause")
    limit: int | None = flag(help="limit (default: %(usual)s)", shown={"usual": DefaultOf(f"{__name__}:LENGTH")})


def read(*words: str) -> Config:
    parser = argparse.ArgumentParser()
    Config.add_arguments(parser)
    return Config.from_args(parser.parse_args(words))


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def test_a_default_is_read_from_where_it_stands():
    parser = argparse.ArgumentParser()
    Config.add_arguments(parser)
    shown = parser.format_help()
    for text in ("length (default: 3.0)", "pause (default: 500ns)", "limit (default: 3.0)"):
        assert text in shown
    usual = read()
    assert (usual.length, usual.pause, usual.limit) == (3.0, "500ns", None)
    assert usual.given("length", "pause") == []
    assert read("--pause", "1us").given("length", "pause") == ["--pause"]


def test_every_default_of_other_code_is_one_that_its_flag_takes():
    found = [
        (parser.prog, action)
        for verb in listed_verbs()
        for parser in parsers(parser_of(verb)[0])
        for action in parser._actions
        if isinstance(action.default, DefaultOf)
    ]
    assert len(found) > 50
    for prog, action in found:
        value = action.default.value()
        assert value not in (None, ""), (prog, action.dest)
        assert action.choices is None or value in action.choices, (prog, action.dest)
        assert isinstance(value, action.type or str), (prog, action.dest, value)


def literal(node: ast.expr | None) -> Any:
    """A number, in SI units if it is a text with one, or a text; None for anything else, and for what is no choice."""
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})  # constants, such as 2**20
    except Exception:
        return None
    for parse in (parse_time, parse_size, parse_bandwidth, share):
        try:
            value = parse(value) if isinstance(value, str) else value
        except ValueError:
            continue
    return None if isinstance(value, bool) or value in ("", 0, 1) or not isinstance(value, int | float | str) else value


def plain(name: str) -> str:
    return re.sub(r"_(s|bytes)$", "", re.sub(r"^(default|usual|n|max|link)_", "", name.lower().strip("_")))


def defaults(tree: ast.Module) -> Iterator[tuple[str, ast.expr, bool]]:
    """Names and values of all parameters, fields and constants with one, and whether it is a flag's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            every = [*node.args.posonlyargs, *node.args.args]
            yield from ((a.arg, d, False) for a, d in zip(every[::-1], node.args.defaults[::-1], strict=False))
            named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            yield from ((a.arg, d, False) for a, d in named if d is not None)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            if isinstance(node.value, ast.Call):
                given = {word.arg: word.value for word in node.value.keywords}
                is_flag = ast.unparse(node.value.func) == "flag"
                yield from ((node.target.id, given[name], is_flag) for name in ("default",) if name in given)
            else:
                yield node.target.id, node.value, False
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value, False


def test_no_default_of_a_flag_is_written_a_second_time():
    """A number, or a choice, that a flag and the code behind it both wrote could be changed in one of them only."""
    files = {path: path.read_text() for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))}
    files = {path: text for path, text in files.items() if "papers" not in path.parts}  # what papers measured is theirs
    of_flags = {
        plain(name): None
        for path, text in files.items()
        if "cli" in path.parts
        for name, node, is_flag in defaults(ast.parse(text))
        if is_flag and plain(name) not in BY_CHANCE and literal(node) is not None
    }
    may_be = re.compile(rf"({'|'.join(of_flags)})(_\w+)?\b[^=\n]{{0,40}}= *[\"'\d(]", re.IGNORECASE)
    places = collections.defaultdict(list)
    for path, text in files.items():
        for name, node, is_flag in defaults(ast.parse(text)) if "cli" in path.parts or may_be.search(text) else ():
            if plain(name) in of_flags and (value := literal(node)) is not None:
                places[plain(name), value].append((is_flag, f"{path.relative_to(ROOT)}:{node.lineno}"))
    twice = {
        name: [place for _, place in found]
        for (name, _), found in places.items()
        if len(found) > 1 and any(is_flag for is_flag, _ in found)
    }
    assert twice == {}


def test_no_number_is_written_as_a_default_into_a_help():
    """What is no choice of anybody, 0 and 1, may be; other numbers come from where they stand, by ``shown``."""
    offenders = []
    for path in sorted((ROOT / "commsim").rglob("cli/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "help":
                texts = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
                told = re.findall(r"\(default[^)]*\)", "".join(text for text in texts if isinstance(text, str)))
                numbers = [n for text in told for n in re.findall(r"(?<![\w.(])\d[\d.]*", text)]
                offenders += [f"{path.name}:{node.value.lineno}: {n}" for n in numbers if n not in ("0", "1")]
    assert offenders == ["packet_flags.py:56: 2"]  # of a rule, two bandwidth-delay products
