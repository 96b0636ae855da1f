"""Write the pages of the reference from registries, command-line parsers and the packages themselves."""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

GENERATED = "_generated"
WRITTEN_BY_HAND = (
    "index", "tutorial", "accuracy", "glossary", "limits", "trust", "design", "design_parts", "design_engines",
    "changes",
)  # fmt: skip
PACKAGES = ("commsim", "collectives", "topologies", "switch_model")
OF_VERBS = "cli"  # the page of verbs says what users see of them
INNER = ("_kernel", "kernels", "__main__")


def write(docs: Path) -> None:
    """Write all of them into ``docs/_generated``; files whose text is the same are not touched."""
    out = docs / GENERATED
    pages = {
        "verbs.md": verbs(),
        "registries.md": registries(),
        "guides.md": guides(docs),
        "modules.md": modules(),
    }
    pages |= {f"module_{name}.md": module_page(name, group) for name, group in rooms().items()}
    out.mkdir(exist_ok=True)
    for old in out.glob("*.md"):
        if old.name not in (*pages, "gallery.md"):
            old.unlink()
    for name, text in pages.items():
        path = out / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def verbs() -> str:
    """Return what every verb's ``--help`` prints."""
    from commsim.cli import listed_verbs, parser_of

    parts = ["# Commands\n\nWhat `commsim VERB --help` prints, for all verbs.\n"]
    for verb in listed_verbs():
        parser, _ = parser_of(verb)
        parts.append(f"## commsim {verb}\n")
        parts += [f"{heading}```text\n{one.format_help()}```\n" for heading, one in _parsers(parser, "")]
    return "\n".join(parts)


def _parsers(parser: argparse.ArgumentParser, heading: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield heading, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in dict.fromkeys(action.choices.values()):
                yield from _parsers(one, f"### {one.prog}\n\n")


def registries() -> str:
    """Return what can be named on a command line: every registry, with its entries' first lines and parameters."""
    parts = ["# What can be named\n\nEvery entry of every registry; `name:key=value,...` gives its parameters.\n"]
    for title, registry in _registries():
        parts.append(f"## {title}\n\n| name | what | parameters |\n| --- | --- | --- |")
        for name in registry:
            given = [_parameter(p) for p in registry[name].parameters.values()]
            parts.append(f"| `{name}` | {registry[name].summary.replace('|', ' or ')} | {', '.join(given)} |")
        parts.append("")
    return "\n".join(parts)


def _registries() -> Iterator[tuple[str, Any]]:
    """Find the registries: the capital-letter name of each package that has one."""
    from commsim.core.registry import Registry

    found: dict[int, tuple[str, str, Any]] = {}
    for name in _modules(PACKAGES):
        if not name.endswith("__main__") and OF_VERBS not in name.split("."):
            for value in vars(importlib.import_module(name)).values():
                if isinstance(value, Registry):
                    home = ".".join(name.split(".")[:2])
                    found.setdefault(id(value), (_plural(value.kind).capitalize(), home, value))
    titles = [title for title, _, _ in found.values()]
    for title, home, registry in sorted(found.values(), key=lambda item: item[:2]):
        yield (title if titles.count(title) == 1 else f"{title} of {home}"), registry


def _plural(kind: str) -> str:
    if kind.endswith("ware"):
        return kind
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return f"**{parameter.name}**"
    shown = "" if parameter.default is None else f"={parameter.default}"
    return f"{parameter.name}{shown}".replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


def guides(docs: Path) -> str:
    """Return the list of all pages that nobody has listed by hand: what there is to read on each part."""
    stems = (page.stem for page in sorted(docs.glob("*.md")))
    names = [stem for stem in stems if stem not in WRITTEN_BY_HAND and not stem.startswith("howto_")]
    about = "# Guides\n\nOne page on each part: what it does, what it assumes, how it was checked.\n\n"
    return about + _toctree(f"../{name}" for name in names)


def _toctree(rows: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":maxdepth: 1", "", *rows, "```", ""])


def rooms() -> dict[str, list[str]]:
    """Return public modules by room: a package of its own, or the modules that stand beside each other."""
    found: dict[str, list[str]] = {}
    for name in _modules(PACKAGES):
        parts = name.split(".")
        if OF_VERBS in parts or any(part.startswith("_") or part.endswith(INNER) for part in parts):
            continue
        room = parts[0] if parts[0] != "commsim" or len(parts) == 1 else ".".join(parts[:2])
        if parts[0] == "commsim" and len(parts) == 2 and not hasattr(importlib.import_module(name), "__path__"):
            room = "commsim"
        found.setdefault(room, []).append(name)
    return found


def modules() -> str:
    """Return the list of rooms."""
    about = "# Modules\n\nMade of docstrings. Kernels and the command line's own modules are left out.\n\n"
    return about + _toctree(f"module_{room}" for room in rooms())


def module_page(room: str, names: list[str]) -> str:
    """Return the page of a room."""
    parts = [f"# {room}\n"]
    for name in names:
        heading = "" if name == room else f"## {name}\n\n"
        parts.append(f"{heading}```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n```\n")
    return "\n".join(parts)


def _modules(packages: Iterable[str]) -> Iterator[str]:
    for package in packages:
        yield package
        path = importlib.import_module(package).__path__
        yield from sorted(found.name for found in pkgutil.walk_packages(path, f"{package}."))
