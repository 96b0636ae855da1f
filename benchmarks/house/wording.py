"""Wording of the shipped text: parameter lines that are fragments, and constructions that come back too often.

``python -m benchmarks.house.wording`` counts both. With ``--list`` it prints every fragment with its place, with the
names of packages those of these. ``tests/test_house.py`` holds the bounds.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.house.sources import ROOT, SHIPPED, Definition, Source, sources

# Packages of commsim, which pages name without it.
PARTS = sorted(path.parent.name for path in (ROOT / "commsim").glob("*/__init__.py"))

MAX_FRAGMENTS, MAX_TERMS = 0.03, 60
# A description that begins with one of these states a circumstance, not what the parameter is.
BEGINNING = re.compile(
    r"\W*(?:of|in|at|to|from|by|with|without|for|on|as|until|after|before|between|over|under|besides?|above|below|within"
    r"|through|along|among|across|behind|beyond|against|around|into|onto|since|per|that|which|who|whom|whose|where|when"
    r"|if|so|because|instead|unless|while|during)\b",
    re.IGNORECASE,
)
CONSTRUCTIONS = {
    "alone": r"\balone\b",
    "there is no/none": r"\bthere (?:is|are|was|were) (?:no|none|nothing)\b",
    "unless given": r"\bunless given\b",
    "of which": r"\bof which\b",
    "told": r"\btold\b",
    "Say ...": r'(?m)^\s*(?:r?""")Say\b',
    "stand(s) in/on": r"\bstands? (?:in|on)\b",
}
SECTIONS = ("Parameters", "Attributes")
DOCUMENTED = ast.ClassDef | Definition
# Names of pages that are paths, or dotted names of ours.
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]*)+|\w+\.(?:py|toml)")
_DOTTED = re.compile(rf"(?:benchmarks|{'|'.join(SHIPPED)}|{'|'.join(PARTS)})(?:\.\w+)+")
_HEADER = re.compile(r"^[A-Z][\w ]*$")


@dataclass(frozen=True, slots=True)
class Description:
    """The description of one entry of a numpydoc section "Parameters" or "Attributes".

    Parameters
    ----------
    path : str
        File, relative to the root of the repository.
    line, end : int
        First and last line of the description.
    function : str
        Name of the function or class.
    entry : str
        Names and type.
    text : str
        The description in one line.
    """

    path: str
    line: int
    end: int
    function: str
    entry: str
    text: str

    @property
    def is_fragment(self) -> bool:
        """Whether it begins with a preposition or a relative word."""
        return BEGINNING.match(self.text) is not None


def descriptions(files: Iterable[Source]) -> Iterator[Description]:
    """Find the descriptions of all documented parameters."""
    for one in files:
        lines = one.text.splitlines()
        for node in one.nodes:
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
                text = node.body[0]
                yield from _of_docstring(one, node.name, lines, text.lineno, text.end_lineno or text.lineno)


def _of_docstring(one: Source, name: str, lines: list[str], first: int, last: int) -> Iterator[Description]:
    """Find the descriptions between two lines of a file."""
    entry, found, inside, indent = "", list[int](), False, 0
    for number in range(first, last + 1):
        line = lines[number - 1].replace('"""', "")
        below = lines[number].strip() if number < len(lines) else ""
        here = len(line) - len(line.lstrip())
        is_header = below.startswith("---") and _HEADER.match(line.strip()) is not None
        if inside and (is_header or number == last or (line.strip() and here <= indent)):
            if found:
                yield _description(one, name, entry, lines, found)
            entry, found = line.strip(), []
        elif inside and line.strip():
            found.append(number)
        if is_header:
            inside, indent = line.strip() in SECTIONS, here


def _description(one: Source, name: str, entry: str, lines: list[str], found: list[int]) -> Description:
    text = " ".join(lines[number - 1].strip() for number in found)
    return Description(str(one.path), found[0], found[-1], name, entry, text)


def package(path: str) -> str:
    """Return the package that a file counts for: the first two folders below ``commsim``, or the top-level one."""
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] == "commsim" and len(parts) > 2 else 1])


def prose(code: str) -> str:
    """Return the comments and strings of a file's code: what people read, without names."""
    words = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))
    found = (t.string for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type in words)
    return re.sub(r"\{[^{}\n]*\}", "", "\n".join(found))


def constructions(text: str) -> Counter[str]:
    """Count the recurring constructions in a text."""
    return Counter({name: len(re.findall(pattern, text)) for name, pattern in CONSTRUCTIONS.items()})


def glossary_terms() -> list[str]:
    """List the terms of the glossary: the first cells of its tables' rows, of which some have two, without symbols."""
    rows = [line for line in (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = [row.split("|")[1].strip() for row in rows]
    named = [cell for cell in cells if cell not in ("", "term") and not cell.startswith("---")]
    return [term for cell in named for i, term in enumerate(cell.split(", ")) if i == 0 or "(" not in term]


def missing_modules(page: str) -> list[str]:
    """List the files, folders and modules that a page names, but which are not there.

    Parameters
    ----------
    page : str
        Text of a page of ``docs``; names are in backticks, paths are from the root or from ``commsim/``.
    """
    missing = []
    for name in re.findall(r"`([^`\n]+)`", page):
        path = name.replace(".", "/") if _DOTTED.fullmatch(name) else name if _PATH.fullmatch(name) else ""
        path = path.removesuffix("...").partition("NAME")[0]  # of a pattern its folder
        below = [ROOT / base / path for base in ("", "commsim", "docs")]
        found = path and any(one.exists() or one.with_suffix(".py").exists() for one in below)
        held = path != name and any(one.parent.with_suffix(".py").exists() for one in below)  # a module's function
        if path and not found and not held:
            missing.append(name)
    return missing


def missing_symbols(page: str) -> list[str]:
    """List what a page says "`NAME` of `file.py`" of, but which the file does not define.

    Parameters
    ----------
    page : str
        Text of a page; paths are from the root or from ``commsim/``.
    """
    missing = []
    for symbol, path in re.findall(r"`([A-Za-z_.]+)` (?:\([^)]*\) )?of `([\w/]+\.py)`", page):
        files = [ROOT / base / path for base in ("", "commsim")]
        text = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
        if not re.search(
            rf"^\s*(?:class |def |[\w, ]+, )?{re.escape(symbol.rpartition('.')[2])}\b", text, re.MULTILINE
        ):
            missing.append(f"{symbol} of {path}")
    return missing


def main(args: list[str]) -> None:
    """Print the counts, and the fragments of the packages that are named."""
    files = sources()
    found = list(descriptions(files))
    wanted = [arg for arg in args if arg != "--list"]
    for one in found:
        if one.is_fragment and ("--list" in args or package(one.path) in wanted):
            print(f"{one.path}:{one.line} {one.function} {one.entry}: {one.text}")
    n_all, n_bad = Counter(package(d.path) for d in found), Counter(package(d.path) for d in found if d.is_fragment)
    print(f"{'package':<24}{'parameters':>12}{'fragments':>12}")
    for name in sorted(n_all):
        print(f"{name:<24}{n_all[name]:>12}{n_bad[name]:>12}")
    print(f"{'all':<24}{len(found):>12}{n_bad.total():>12}  {n_bad.total() / len(found):.1%}")
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts = [prose(one.text) for one in files] + [page.read_text(encoding="utf-8") for page in pages]
    count = constructions("\n".join(texts))
    print(*(f"{name}: {count[name]}" for name in CONSTRUCTIONS), sep="\n")
    print("terms of the glossary:", len(glossary_terms()))


if __name__ == "__main__":
    main(sys.argv[1:])
