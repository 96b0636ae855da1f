"""Read XML strictly, with the line of every element; no document types, so that nothing can expand without limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from ..errors import InputError

MAX_XML_BYTES = 16 * 2**20
MAX_DEPTH = 64


@dataclass(slots=True)
class Element:
    """One element of a file.

    Parameters
    ----------
    path : path
        The file, for messages.
    line : int
        Where the element begins, from 1.
    tag : str
        Its name.
    attributes : dict of str to str
        As written.
    children : list of Element
        Elements inside it, in order. Text is ignored.
    """

    path: str | Path
    line: int
    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)

    def fail(self, message: str) -> NoReturn:
        """Raise an error that names the file, the line and the element."""
        raise InputError(f"{self.path}, line {self.line}: <{self.tag}> {message}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return an attribute; required without a default."""
        if key in self.attributes:
            return self.attributes[key]
        return default if default is not None else self.fail(f"needs the attribute {key}")

    def whole(self, key: str, default: int | None = None, minimum: int = 0) -> int:
        """Return an attribute that is a whole number; hexadecimal with 0x."""
        text = self.text(key, None if default is None else str(default)).strip()
        try:
            value = int(text, 16 if text.lower().startswith("0x") else 10)
        except ValueError:
            value = minimum - 1
        if not minimum <= value < 2**63 or "_" in text:
            self.fail(f"{key} must be a whole number of at least {minimum}, got {text!r}")
        return value

    def all(self, *tags: str) -> list[Element]:
        """Return the children with one of these names."""
        return [child for child in self.children if child.tag in tags]


def read_xml(path: str | Path) -> Element:
    """Read an XML file.

    Returns
    -------
    Element
        The outermost one.

    Raises
    ------
    InputError
        If the file is missing, too large or too deep, not well formed, or declares a document type or an entity.
    """
    try:
        if Path(path).stat().st_size > MAX_XML_BYTES:
            raise InputError(f"{path}: larger than {MAX_XML_BYTES >> 20} MiB")
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element(path, 0, "", {})
    around = [top]

    def refuse(*_: object) -> None:
        raise InputError(f"{path}, line {parser.CurrentLineNumber}: a document type or an entity is refused")

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(path, parser.CurrentLineNumber, tag, attributes)
        if len(around) > MAX_DEPTH:
            element.fail(f"is nested more than {MAX_DEPTH} deep")
        around[-1].children.append(element)
        around.append(element)

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: around.pop()
    try:
        parser.Parse(data, True)
    except InputError:  # a ValueError too
        raise
    except expat.ExpatError as error:
        raise InputError(f"{path}, line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:  # an encoding that Python does not have
        raise InputError(f"{path}, line {parser.CurrentLineNumber}: {error}") from None
    return top.children[0]
