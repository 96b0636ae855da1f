"""Python files of the shipped packages, and their lines by kind."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = ("commsim", "collectives", "topologies", "switch_model")

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file of the shipped packages.

    Parameters
    ----------
    path : Path
        Relative to the root of the repository.
    text : str
        What is in it.
    tree : ast.Module
        Its syntax tree.
    """

    path: Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Dotted name under which it is imported."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, listed once: a walk takes longer than what a rule asks of the nodes."""
        return list(ast.walk(self.tree))

    @property
    def n_lines(self) -> int:
        """Lines of the file."""
        return len(self.text.splitlines())

    def counts(self) -> Counter[str]:
        """Count lines of code, of docstrings, of comments, and blank ones."""
        in_docstring = {line for first, last in docstrings(self.tree) for line in range(first, last + 1)}
        count: Counter[str] = Counter(files=1)
        for number, line in enumerate(self.text.splitlines(), start=1):
            stripped = line.strip()
            if number in in_docstring:
                count["docstring"] += 1
            elif not stripped:
                count["blank"] += 1
            else:
                count["comment" if stripped.startswith("#") else "code"] += 1
        return count


def docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Find the first and the last line of every docstring."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | Definition)
            and ast.get_docstring(node, clean=False) is not None
        ):
            text = node.body[0]
            yield text.lineno, text.end_lineno or text.lineno


def sources(folders: Iterable[str] = SHIPPED) -> list[Source]:
    """Read every Python file below some folders of the repository."""
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in found]
    return [Source(p.relative_to(ROOT), t, ast.parse(t)) for p, t in zip(found, texts, strict=True)]
