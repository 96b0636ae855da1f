"""Links of README for an index of packages, which has README alone: absolute, or words where no address is known.

`setup.py` calls this at each build of a wheel or an sdist; it asks no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# The text of a link, of a picture with its mark in front; then what it leads to, unless that is absolute already.
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?![a-z]+:)([^()\s]+)\)")
# Of the addresses of a project, those of its files.
OF_FILES = ("Repository", "Source")


def with_index_links(text: str, page: str, address: str, tag: str) -> str:
    """Return a page whose links name their files in a repository at a tag; only their words without an address.

    Parameters
    ----------
    text : str
        Markdown.
    page : str
        Name of the page, which links within it lead to.
    address : str
        Address of the repository, or nothing.
    tag : str
        Tag or commit.
    """

    def absolute(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if not address:
            return label
        path = page + target if target.startswith("#") else target
        return f"{mark}[{label}]({address.rstrip('/')}/{'raw' if mark else 'blob'}/{tag}/{path})"

    return _LINK.sub(absolute, text)


def address_of(urls: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return the address of the repository: of the project, else of the workflow that builds; nothing elsewhere.

    Parameters
    ----------
    urls : mapping
        `[project.urls]`.
    variables : mapping
        Variables of the environment.
    """
    named = [urls[one] for one in OF_FILES if one in urls]
    server, repository = variables.get("GITHUB_SERVER_URL"), variables.get("GITHUB_REPOSITORY")
    return (named or [f"{server}/{repository}" if server and repository else ""])[0]
