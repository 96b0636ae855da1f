"""What `pyproject.toml` cannot say: README's links are made absolute where an index of packages shows it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup

LINKS = runpy.run_path(str(Path(__file__).with_name("packaging") / "index_links.py"))


class WithIndexLinks(Distribution):
    """A distribution whose description is README with links that lead somewhere."""

    def parse_config_files(self, *args: Any, **options: Any) -> None:
        """Read `pyproject.toml`, then change the links."""
        super().parse_config_files(*args, **options)
        made = self.metadata
        if made.long_description:
            address = LINKS["address_of"](dict(made.project_urls or {}), os.environ)
            tag = f"v{made.version}"
            made.long_description = LINKS["with_index_links"](made.long_description, "README.md", address, tag)


setup(distclass=WithIndexLinks)
