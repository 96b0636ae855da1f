"""``commsim examples``: write the example files that the documentation names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import commsim
from commsim.core.errors import InputError
from commsim.core.files.whole_files import replacing
from commsim.core.units import count_text
from commsim.report.answer import Answer, Lines

from .flags import Flags, Verb, flag

EXAMPLES = {
    "examples": """
        commsim examples my_examples
        commsim examples work/examples
        commsim examples files && commsim place files/cluster.toml files/jobs.json
        commsim examples first && commsim sweep plan first/sweep_cost.toml
        commsim examples both && commsim topo check both/cluster.toml""",
}
# Where an installed package has them, below the environment; after `pip install --target` beside the package.
INSTALLED = "share/commsim/examples/"


class ExamplesConfig(Flags):
    """All flags of ``commsim examples``."""

    folder: str = flag(
        "folder", nargs="?", default="examples", metavar="DIR", help="folder to write, which must not be there yet"
    )


def run(config: ExamplesConfig) -> Answer:
    """Write the examples into a new folder.

    Raises
    ------
    InputError
        If the folder is there already, or cannot be made.
    """
    folder = Path(config.folder)
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder}: is there already; name a new folder: commsim examples DIR")
    files = list(example_files())
    if not files:
        raise InputError("this installation has no examples; install the wheel, or see examples/ of the repository")
    for name, content in files:
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{target.parent}: cannot write: {error.strerror}") from None
        with replacing(target) as file:
            file.write(content)
    return Answer([Lines([f"{folder}: {count_text(len(files), 'file')}"])])


def example_files() -> Iterator[tuple[str, bytes]]:
    """Return name below the folder and content of each example: of a clone, or of what a wheel installed."""
    clone = Path(commsim.__file__).parents[1] / "examples"
    if (clone / "cluster.toml").is_file():
        for path in sorted(clone.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(clone).as_posix(), path.read_bytes()
        return
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = files("commsim") or ()
    except PackageNotFoundError:
        return
    for file in listed:
        _, found, name = file.as_posix().partition(INSTALLED)
        if found and not name.endswith(".pyc"):
            recorded, beside = Path(str(file.locate())), Path(commsim.__file__).parents[1] / INSTALLED / name
            yield name, (recorded if recorded.is_file() else beside).read_bytes()


COMMANDS = {"examples": Verb(ExamplesConfig, run)}
