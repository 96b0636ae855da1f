"""Hide the modules in COMMSIM_HIDE=commsim.nccl,collectives.nccl from processes with this folder on PYTHONPATH.

Their imports fail as if their folders were deleted, and no walk over modules finds them.
"""

import os
import pkgutil
import sys

HIDDEN = tuple(f"{module}." for module in os.environ.get("COMMSIM_HIDE", "").split(",") if module)


def is_hidden(name):
    return f"{name}.".startswith(HIDDEN)


class Hider:
    """The first finder of all, which finds nothing."""

    @staticmethod
    def find_spec(name, *_path_and_target, **_named):
        if is_hidden(name):
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)


def iter_modules(path=None, prefix="", walk=pkgutil.iter_modules):
    return (module for module in walk(path, prefix) if not is_hidden(module.name))


if HIDDEN:
    sys.meta_path.insert(0, Hider)
    pkgutil.iter_modules = iter_modules
