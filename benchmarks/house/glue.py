"""Glued modules: two subjects in one file, seen by constants between functions and by a second headline.

A module is one subject. Where two were put into one file, the second brought its constants, which then stand below the
first one's functions, and its headline, which became a paragraph of the docstring.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from .sources import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MAX_HEADLINE = 130  # characters

# A clause after one of these belongs to a noun, and may have a verb of its own.
_CLAUSE = re.compile(
    r"[,:;(]|\b(that|which|whose|who|whom|what|where|when|whether|how|if|as|than|so|in which|of which)\b"
)
# What tells a sentence from a headline, which is a noun with what belongs to it.
_VERB = re.compile(
    r"\b(is|are|was|were|has|have|had|can|may|must|should|needs?|takes?|gives?|gets?|makes?|says?|holds?|keeps?|goes|go"
    r"|comes?|stands?|lies?|follows?|begins?|ends?|waits?|writes?|knows?|becomes?|means?|does|do|counts?|differs?"
    r"|works?|serves?|contains?|returns?|reads|read back|belongs?|depends?|starts?|stays?|covers?|uses?|sends?|adds?)\b"
)
# Orders, questions and commands: headlines, whatever verbs they have.
_ALWAYS = re.compile(
    r"(Read|Write|Run|Make|Build|Find|Print|Save|Load) |(By )?(How|Which|Where) |What [^;.]*:|``[^`]+``: "
)
# A paragraph that begins so is an instruction, a source or a reference to code.
_NO_HEADLINE = re.compile(r"(To |Source|Not |As |See |For |With |Beside|\W|References|[A-Z]\w* = )")


def late_constants(files: Iterable[Source]) -> list[str]:
    """List the constants that stand below a function or class although nothing in their value needs one."""
    return [f"{one.path}:{node.lineno} {name}" for one in files for name, node in late(one.tree)]


def late(tree: ast.Module) -> list[tuple[str, ast.stmt]]:
    """Find the constants of a module that could stand above its first function or class.

    One may stand below if its value names a function or a class of the module, or a constant that does: a table of
    functions, a type that has a class in it, an instance.
    """
    bound: set[str] = set()
    found: list[tuple[str, ast.stmt]] = []
    for node in tree.body:
        if isinstance(node, Function):
            bound.add(node.name)
        elif bound and (names := _assigned(node)):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node
            if any(isinstance(part, ast.Name) and part.id in bound for part in ast.walk(value or node)):
                bound |= names
            else:
                found += [(", ".join(sorted(names)), node)]
    return found


def _assigned(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module gives a value for the first time."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name) and _stored(part)}


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def second_headlines(files: Iterable[Source]) -> list[str]:
    """List the paragraphs of modules' docstrings that are headlines like the first: a noun, and no sentence."""
    return [f"{one.path}: {text}" for one in files if (text := second_headline(one.tree))]


def second_headline(tree: ast.Module) -> str:
    """Return the first paragraph below the headline that is a headline too; empty if there is none."""
    paragraphs = re.split(r"\n\s*\n", ast.get_docstring(tree) or "")
    for paragraph in paragraphs[1:]:
        if re.search(r"\n\s*-{3,}", paragraph):  # sections of numpydoc follow
            break
        text = " ".join(paragraph.split())
        if _is_headline(text):
            return text
    return ""


def _is_headline(text: str) -> bool:
    if len(text) > MAX_HEADLINE or not text.endswith(".") or ". " in text:
        return False
    if _ALWAYS.match(text):
        return True
    return not _NO_HEADLINE.match(text) and not _VERB.search(_CLAUSE.split(text)[0])


def glued(files: Iterable[Source]) -> list[str]:
    """List the files with a constant below a function or with a second headline."""
    return sorted(str(one.path) for one in files if late(one.tree) or second_headline(one.tree))
