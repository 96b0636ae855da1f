"""``python -m benchmarks.house [FOLDER...]``: lines of each folder by kind, and what breaks a rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from . import glue, rules
from .sources import sources


def main(folders: Iterable[str]) -> None:
    """Print the counts of each folder and of all, and what breaks a rule."""
    files = sources(folders)
    count: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in files:
        for folder in (str(one.path.parent), "all"):
            count[folder].update(one.counts())
    kinds = ("files", "code", "docstring", "comment", "blank")
    print(f"{'folder':<36}", *(f"{kind:>9}" for kind in kinds))
    for folder in [*sorted(count.keys() - {"all"}), "all"]:
        print(f"{folder:<36}", *(f"{count[folder][kind]:>9}" for kind in kinds))
    print("folders with too many files:", rules.full_folders(files))
    print("names that stand too often:", rules.common_names(files))
    print("files that are too long:", {str(f.path): f.n_lines for f in files if f.n_lines > rules.MAX_LINES})
    print("modules without a user:", rules.unused_modules(files))
    print("definitions without a user:", *rules.unused_definitions(files), sep="\n  ")
    print("parameters that no function takes:", rules.unknown_parameters(files))
    print("kernels without types:", len(rules.untyped_kernels(files)))
    print("kernels with too many arguments:", rules.long_signatures(files))
    print("constants below the functions that use them:", *glue.late_constants(files), sep="\n  ")
    print("second headlines:", *glue.second_headlines(files), sep="\n  ")
    print("glued modules:", len(glue.glued(files)))
