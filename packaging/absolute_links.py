"""Make the links of a page of Markdown absolute, so that they also lead somewhere in a package index.

    python packaging/absolute_links.py README.md https://HOST/OWNER/NAME v0.3.0

The wheel holds README.md as its description, and nothing that its links name. The address is not in the tree: the
workflow of a release takes that of the repository that it runs in.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# The text of a link, of a picture with its mark in front; then what it leads to, unless that is absolute already.
_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?![a-z]+:)([^()\s]+)\)")


def absolute_links(text: str, page: str, address: str, tag: str) -> str:
    """Return a page whose links name their files in a repository at a tag.

    Parameters
    ----------
    text : str
        Markdown.
    page : str
        Name of the page, which links within it lead to.
    address : str
        Address of the repository, without a slash at its end.
    tag : str
        Tag or commit.
    """

    def absolute(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        path = page + target if target.startswith("#") else target
        return f"{mark}{label}({address}/{'raw' if mark else 'blob'}/{tag}/{path})"

    return _LINK.sub(absolute, text)


if __name__ == "__main__":
    if len(sys.argv) != 4 or not sys.argv[2].startswith("https://"):
        sys.exit("usage: absolute_links.py PAGE.md https://HOST/OWNER/NAME TAG")
    file = Path(sys.argv[1])
    made = absolute_links(file.read_text(encoding="utf-8"), file.name, sys.argv[2].rstrip("/"), sys.argv[3])
    file.write_text(made, encoding="utf-8")
