"""YAML read with bounds, every scalar as the text that stands there; written so that names stay text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.errors import InputError

MAX_EVENTS = 2**19
MAX_DEPTH = 32


def read_yaml(text: str, path: str, most: int = MAX_EVENTS) -> Any:
    """Read one document of mappings, lists and text; nothing is turned into numbers, dates or objects.

    Parameters
    ----------
    text, path : str
        What stands in the file, and its name for messages.
    most : int
        Values, and ends of lists and mappings, that it may hold.

    Raises
    ------
    InputError
        If it is not well formed, uses anchors or aliases (which can unfold without limit), is nested deeply, has a
        key twice, or is very large.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_events(yaml.parse(text, Loader=loader), path, most)
        node = yaml.compose(text, Loader=loader)
        return None if node is None else _plain(node, path)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else path
        raise InputError(f"{where}: {getattr(error, 'problem', None) or 'not YAML'}") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not YAML") from None


def write_yaml(documents: Iterable[Any], comments: tuple[str, ...] = ()) -> str:
    """Write documents one after the other, keys in the order given, without aliases."""
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
        if depth > MAX_DEPTH:
            raise InputError(f"{where}: nested more than {MAX_DEPTH} deep")
        if n > most:
            raise InputError(f"{path}: more than {most} values")


def _plain(node: Any, path: str) -> Any:
    if node.id == "scalar":
        return node.value
    if node.id == "sequence":
        return [_plain(child, path) for child in node.value]
    found: dict[str, Any] = {}
    for key, value in node.value:
        where = f"{path}, line {key.start_mark.line + 1}"
        if key.id != "scalar":
            raise InputError(f"{where}: a key must be text")
        if key.value in found:
            raise InputError(f"{where}: key {key.value!r} is there twice")
        found[key.value] = _plain(value, path)
    return found
