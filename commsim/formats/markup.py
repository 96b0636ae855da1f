"""XML and YAML read strictly and with bounds.

XML keeps the line of every element; document types are refused, so that nothing can expand without limit. Every scalar
of YAML is the text that is there, and is written so that names stay text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np

from commsim.core.errors import InputError
from commsim.core.extras import of_extra
from commsim.core.files.whole_files import read_bytes

MAX_XML_BYTES = 16 * 2**20
MAX_DEPTH = 64
MAX_ELEMENTS = 2**19
# From one ``<`` to the next: a single tag can have a million attributes, which are read before anybody sees them.
MAX_TAG_BYTES = 2**16
MAX_EVENTS = 2**19
MAX_YAML_DEPTH = 32


@dataclass(slots=True)
class Element:
    """One element of a file.

    Parameters
    ----------
    path : path
        The file, for messages.
    line : int
        Line where the element begins, from 1.
    tag : str
        Its name.
    attributes : dict of str to str
        Attributes as written.
    children : list of Element
        Elements inside it, in order.
    content : str
        Text inside it, before its first child.
    """

    path: str | Path
    line: int
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    content: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise an error that names the file, the line and the element."""
        raise InputError(f"{self.path}, line {self.line}: <{self.tag}> {message}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return an attribute; required without a default."""
        if key in self.attributes:
            return self.attributes[key]
        return default if default is not None else self.fail(f"needs the attribute {key}")

    def one_of(self, key: str, known: Collection[str]) -> str:
        """Return an attribute that is one of some words."""
        text = self.text(key)
        return text if text in known else self.fail(f"{key} must be one of {', '.join(known)}, got {text!r:.60}")

    def whole(self, key: str, default: int | None = None, minimum: int = 0, maximum: int = 2**63 - 1) -> int:
        """Return an attribute that is a whole number; hexadecimal with 0x.

        Parameters
        ----------
        key : str
            The attribute.
        default : int, optional
            Default of a missing field or attribute; required without.
        minimum, maximum : int
            Both included.
        """
        text = self.text(key, None if default is None else str(default)).strip()
        try:
            value = int(text, 16 if text.lower().startswith("0x") else 10)
        except ValueError:
            value = minimum - 1
        if not minimum <= value < 2**63 or "_" in text:
            self.fail(f"{key} must be a whole number of at least {minimum}, got {text!r}")
        return value if value <= maximum else self.fail(f"{key} must be {minimum}..{maximum}, got {value}")

    def all(self, *tags: str) -> list[Element]:
        """Return the children with one of these names."""
        return [child for child in self.children if child.tag in tags]


def read_xml(path: str | Path) -> Element:
    """Read an XML file, unpacking it if it is a gzip.

    Returns
    -------
    Element
        The outermost one.

    Raises
    ------
    InputError
        If the file is missing, too large, too deep, not well formed, or declares a document type or an entity.
    """
    return _parse(path)


def outermost_tag(path: str | Path) -> str:
    """Return the name of the outermost element, without its namespace, having read no other element.

    Raises
    ------
    InputError
        As :func:`read_xml`, as far as can be seen by then.
    """
    return _parse(path, whole=False).tag.rpartition("}")[2].rpartition(":")[2]


def _parse(path: str | Path, whole: bool = True) -> Element:
    """Read all elements, or the first few, the outermost one among them."""
    data = read_bytes(path, MAX_XML_BYTES)
    _check_tags(data, path)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element(path, 0, "", {})
    around = [top]
    n_elements = 0

    def refuse(*_: object) -> None:
        raise InputError(f"{path}, line {parser.CurrentLineNumber}: a document type or an entity is refused")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal n_elements
        element = Element(path, parser.CurrentLineNumber, tag, attributes)
        n_elements += 1
        if len(around) > MAX_DEPTH:
            element.fail(f"is nested more than {MAX_DEPTH} deep")
        if n_elements > MAX_ELEMENTS:
            element.fail(f"is one of more than {MAX_ELEMENTS} elements")
        around[-1].children.append(element)
        around.append(element)

    def text(data: str) -> None:
        if not around[-1].children:
            around[-1].content += data
            if len(around[-1].content) > MAX_TAG_BYTES:
                around[-1].fail(f"has more than {MAX_TAG_BYTES} characters inside it")

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.CharacterDataHandler = text
    parser.EndElementHandler = lambda _: around.pop()
    try:
        for at in range(0, max(1, len(data)), MAX_TAG_BYTES):
            parser.Parse(data[at : at + MAX_TAG_BYTES], at + MAX_TAG_BYTES >= len(data))
            if top.children and not whole:
                break
    except InputError:  # a ValueError too
        raise
    except expat.ExpatError as error:
        raise InputError(f"{path}, line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:  # an encoding that Python does not have
        raise InputError(f"{path}, line {parser.CurrentLineNumber}: {error}") from None
    return top.children[0]


def _check_tags(data: bytes, path: str | Path) -> None:
    begins = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("<"))
    if begins.size > 2 * MAX_ELEMENTS + MAX_DEPTH:
        raise InputError(f"{path}: {begins.size} tags are more than {2 * MAX_ELEMENTS}")
    longest = np.diff(begins, append=len(data)).max(initial=0)
    if longest > MAX_TAG_BYTES:
        raise InputError(f"{path}: a tag, with the text behind it, has {longest} bytes, more than {MAX_TAG_BYTES}")


def read_yaml(text: str, path: str, most: int = MAX_EVENTS) -> Any:
    """Read one document of mappings, lists and text; nothing is turned into numbers, dates or objects.

    Parameters
    ----------
    text, path : str
        Content of the file, and its name for messages.
    most : int
        Values, and ends of lists and mappings, that it may hold.

    Raises
    ------
    InputError
        If it is not well formed, uses anchors or aliases (which can unfold without limit), is nested deeply, has a
        key twice, or is very large.
    """
    yaml = of_extra("yaml")

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_events(yaml.parse(text, Loader=loader), path, most)
        node = yaml.compose(text, Loader=loader)
        return None if node is None else _plain(node, path)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else path
        problem = getattr(error, "problem", None) or "not YAML"
        # libyaml has a limit of its own since PyYAML 6.0.4, which much deeper files meet before ours
        problem = f"nested more than {MAX_YAML_DEPTH} deep" if "nesting depth" in problem else problem
        raise InputError(f"{where}: {problem}") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not YAML") from None


def write_yaml(documents: Iterable[Any], comments: tuple[str, ...] = ()) -> str:
    """Write documents one after the other, keys in the order given, without aliases."""
    of_extra("yaml")
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    text = yaml.dump_all(list(documents), Dumper=Dumper, sort_keys=False, default_flow_style=False, width=120)
    return "".join(f"# {comment}\n" for comment in comments) + str(text)


def _check_events(events: Iterable[Any], path: str, most: int) -> None:
    depth = 0
    for n, event in enumerate(events):
        kind = type(event).__name__
        where = f"{path}, line {event.start_mark.line + 1}"
        depth += kind in ("MappingStartEvent", "SequenceStartEvent")
        depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
        if getattr(event, "anchor", None):
            raise InputError(f"{where}: anchors and aliases are refused; write it out")
        if depth > MAX_YAML_DEPTH:
            raise InputError(f"{where}: nested more than {MAX_YAML_DEPTH} deep")
        if n > most:
            raise InputError(f"{path}: more than {most} values")


def _plain(node: Any, path: str) -> Any:
    if node.id == "scalar":
        return node.value
    if node.id == "sequence":
        return [_plain(child, path) for child in node.value]
    table: dict[str, Any] = {}
    for key, value in node.value:
        where = f"{path}, line {key.start_mark.line + 1}"
        if key.id != "scalar":
            raise InputError(f"{where}: a key must be text")
        if key.value in table:
            raise InputError(f"{where}: key {key.value!r} appears twice")
        table[key.value] = _plain(value, path)
    return table
