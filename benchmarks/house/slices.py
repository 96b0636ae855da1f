"""The core and the extensions around it: what belongs to each, its lines, and what it imports of the others.

``python -m benchmarks.house.slices`` prints files and lines of code of each slice (without blank lines, comments and
docstrings), what each extension needs, and class names that stand in more than one file.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from . import rules
from .sources import ROOT, Source, sources

CORE = ("core", "routing", "engine", "prediction", "report", "cli")
# What of the other top-level packages belongs to an extension; the rest of collectives and topologies is core.
HALVES = {
    "collectives.experts": "experts",
    "collectives.in_network": "packets",
    "collectives.nccl": "nccl",
    "collectives.sparse": "sparse",
    "switch_model.bpf": "live",
    "switch_model.live": "live",
    "switch_model": "switch_model",
}
# Modules of the root: entries of the program and of the Python interface, and what is registered.
ROOT_SLICE = "commsim"


@functools.cache
def extensions() -> tuple[str, ...]:
    """Return the names of the extensions: packages beside the core, and the model of switches."""
    beside = {path.parent.name for path in (ROOT / "commsim").glob("*/__init__.py")}
    return (*sorted(beside - set(CORE)), "switch_model")


def slice_of(module: str) -> str:
    """Return the slice of a module: a part of the core, an extension, or ``commsim`` for modules of the root."""
    for head, name in HALVES.items():
        if module == head or module.startswith(f"{head}."):
            return name
    parts = module.split(".")
    if parts[0] != "commsim":
        return parts[0]
    return parts[1] if len(parts) > 1 and parts[1] in (*CORE, *extensions()) else ROOT_SLICE


def declared() -> dict[str, set[str]]:
    """Return what each extension says that it needs: the tuple ``NEEDS`` in its ``__init__.py``."""
    return {name: _declared(name) for name in extensions()}


def _declared(name: str) -> set[str]:
    folder = ROOT / name if name == "switch_model" else ROOT / "commsim" / name
    for node in ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "NEEDS":
            return set(ast.literal_eval(node.value))
    raise ValueError(f"{folder}/__init__.py has no NEEDS")


def needed(files: Iterable[Source] | None = None) -> dict[str, set[str]]:
    """Return which other extensions each extension imports anywhere, or names by a string."""
    found: dict[str, set[str]] = {name: set() for name in extensions()}
    for one, target in _between(sources() if files is None else files, rules._names):
        if slice_of(one.module) in found and slice_of(target) in found:
            found[slice_of(one.module)].add(slice_of(target))
    return {name: others - {name} for name, others in found.items()}


def needed_at_start(files: Iterable[Source] | None = None) -> dict[str, set[str]]:
    """Return which other extensions each extension imports as soon as one of its modules is imported."""
    found: dict[str, set[str]] = {name: set() for name in extensions()}
    for one, target in _between(sources() if files is None else files, _names_at_top):
        if slice_of(one.module) in found and slice_of(target) in found:
            found[slice_of(one.module)].add(slice_of(target))
    return {name: others - {name} for name, others in found.items()}


def imported(files: Iterable[Source] | None = None) -> dict[str, set[str]]:
    """Return the modules that each file imports, inside of functions too; not what only type checkers read."""
    files = sources() if files is None else list(files)
    found: dict[str, set[str]] = {one.module: set() for one in files}
    for one, target in _between(files, _names_when_run):
        found[one.module].add(target)
    return {name: others - {name} for name, others in found.items()}


def _between(files: Iterable[Source], names: Callable[[Source], set[str]]) -> Iterator[tuple[Source, str]]:
    files = list(files)
    modules = {one.module for one in files}
    for one in files:
        yield from ((one, name) for name in names(one) & modules)


def _names_at_top(one: Source) -> set[str]:
    """Find the modules that a file imports outside of functions and of what only type checkers read."""
    return _names_of(one, (node for node in one.tree.body if not isinstance(node, ast.If)))


def _names_when_run(one: Source) -> set[str]:
    blocks = [node for node in one.nodes if isinstance(node, ast.If)] if "TYPE_CHECKING" in one.text else []
    for_types = [block for block in blocks if "TYPE_CHECKING" in ast.unparse(block.test)]
    left_out = {id(node) for block in for_types for top in block.body for node in ast.walk(top)}
    return _names_of(one, (node for node in one.nodes if id(node) not in left_out))


def _names_of(one: Source, nodes: Iterable[ast.AST]) -> set[str]:
    imports: list[ast.stmt] = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return set(rules._names(Source(one.path, "", ast.Module(imports, [])))) if imports else set()


def homonyms(files: Iterable[Source]) -> dict[str, list[str]]:
    """Return the names of classes that stand in more than one file, with the files."""
    of_name: dict[str, set[str]] = defaultdict(set)
    for one in files:
        for node in one.nodes:
            if isinstance(node, ast.ClassDef):
                of_name[node.name].add(str(one.path))
    return {name: sorted(paths) for name, paths in sorted(of_name.items()) if len(paths) > 1}


def main() -> None:
    """Print the slices."""
    files = sources()
    count: dict[str, Counter[str]] = defaultdict(Counter)
    for one in files:
        count[slice_of(one.module)] += one.counts()
    needs = needed(files)
    print(f"{'slice':<13}{'files':>6}{'code':>8}  needs")
    for name, lines in sorted(count.items(), key=lambda item: (item[0] in needs, -item[1]["code"])):
        print(f"{name:<13}{lines['files']:>6}{lines['code']:>8}  {' '.join(sorted(needs.get(name, ())))}")
    core = [lines for name, lines in count.items() if name not in needs]
    print(f"{'core':<13}{sum(c['files'] for c in core):>6}{sum(c['code'] for c in core):>8}")
    same = homonyms(files)
    print(f"\n{len(same)} class names in more than one file")
    for name, paths in sorted(same.items(), key=lambda item: -len(item[1])):
        print(f"{name:<20} {len(paths)}  {' '.join(paths)}")


if __name__ == "__main__":
    main()
