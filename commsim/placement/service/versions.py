"""Versions of the state in headers: ``ETag`` of answers, and ``If-Match`` of changes."""

from __future__ import annotations

import re

from .guard import Refusal

MAX_HEADER = 1000
_TAGS = re.compile(r'(W/)?"([^"]*)"')


def tag_of(version: int) -> dict[str, str]:
    """Return the header that names a version."""
    return {"ETag": f'"{version}"'}


def require_match(header: str | None, version: int) -> None:
    """Refuse a change of another version than the one that the client knows.

    Parameters
    ----------
    header : str, optional
        Value of ``If-Match``, such as ``"13"``, ``"13", "14"`` or ``*``; without one any version will do.
    version : int
        Version that is there.

    Raises
    ------
    Refusal
        If it is not one of these (412), or the header is none of these forms (400).
    """
    if header is None or header.strip() == "*":
        return
    texts = [text.strip() for text in header.split(",")]
    tags = [_TAGS.fullmatch(text) for text in texts]
    if len(header) > MAX_HEADER or not all(tags):
        raise Refusal(400, 'If-Match is a version in quotes, such as "13", or several, or *')
    if f"{version}" not in [tag[2] for tag in tags if tag is not None and tag[1] is None]:
        raise Refusal(412, f"the version is {version}, and If-Match asks for another one: read the jobs again")
