"""Run the notebooks of ``examples/gallery``; write a page of their pictures, and print what each takes.

``make test`` builds the site with empty pictures: `tests/docs/test_gallery.py` runs the notebooks and draws them.

``python docs/_site/gallery.py DIR`` writes ``gallery.md`` and a picture of each notebook into the folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# In the order of the page.
NAMES = (
    "busbw_by_nodes", "dead_cable", "ring_or_tree", "switchml_loss", "omnireduce_density", "byteps_servers",
    "cassini_circles", "step_by_parallelism",
)  # fmt: skip
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'
ABOUT = """# Gallery

Eight questions with a figure each. `commsim examples DIR` writes the notebooks into `DIR/gallery`; change network,
sizes and names in the first cell to those of your cluster. Pictures are drawn when this site is built.
"""


def notebook_of(name: str) -> list[tuple[str, str]]:
    """Return kind (``markdown`` or ``code``) and text of each cell of a notebook."""
    notebook = json.loads((ROOT / "examples" / "gallery" / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def executed(name: str) -> dict[str, Any]:
    """Run the cells of a notebook, and return its names; ``figure`` is the chart."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for kind, text in notebook_of(name):
        if kind == "code":
            exec(compile(text, name, "exec"), names)
    return names


def section_of(name: str) -> str:
    """Return the part of the page on a notebook: question, picture, how to read it, cells."""
    cells = notebook_of(name)
    (question, reading) = (text for kind, text in cells if kind == "markdown")
    code = "\n\n".join(text for kind, text in cells if kind == "code")
    title = question.splitlines()[0].removeprefix("# ")
    return f"#{question}\n\n![{title}]({name}.svg)\n\n{reading}\n\n```python\n{code}\n```\n"


def write(folder: Path, are_drawn: bool = True) -> None:
    """Write the page and its pictures, which are empty if they are not drawn."""
    for name in NAMES:
        begin = time.process_time()
        picture = executed(name)["figure"].svg() if are_drawn else EMPTY
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
        if are_drawn:
            print(f"{name}: {time.process_time() - begin:.1f} s")
    page = "\n".join([ABOUT, *map(section_of, NAMES)])
    (folder / "gallery.md").write_text(page, encoding="utf-8")


def write_apart(folder: Path) -> None:
    """Write them in a process that compiles kernels: the site's own does not, and would take minutes."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    environment["PYTHONPATH"] = str(ROOT)
    subprocess.run([sys.executable, __file__, str(folder)], env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
