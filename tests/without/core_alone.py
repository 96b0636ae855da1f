"""The core with some extensions hidden: all its modules are imported, its verbs and its function answer.

``python tests/without/core_alone.py FOLDER`` imports the core with all hidden, and checks it so. Then it goes on in a
process for each extension, which hides only this one; what each prints is in ``FOLDER/NAME``, ``all`` among them.
"""

import contextlib
import gc
import importlib
import io
import os
import pkgutil
import sys
import traceback
from pathlib import Path

import sitecustomize  # beside this file
from hidden_extensions import modules as modules_of

from commsim.cli import main
from commsim.extensions import EXTENSIONS, house

PACKAGES = (
    "commsim.core", "commsim.routing", "commsim.engine", "commsim.prediction", "commsim.report", "topologies",
    "collectives", "commsim.cli",
)  # fmt: skip
STAR = "star:n_hosts=4,bandwidth=100Gbps"
# A verb that each extension brings alone, if it does.
VERBS = {
    "nccl": "nccl", "traffic": "traffic", "ranking": "advise", "real": "calibrate", "emulation": "emulate",
    "training": "workload", "papers": "reproduce", "placement": "place", "sweep": "sweep", "pages": "plot",
}  # fmt: skip


def modules(packages=PACKAGES):
    for package in packages:
        yield package
        found = importlib.import_module(package)
        yield from (module.name for module in pkgutil.walk_packages(found.__path__, f"{package}."))


def answers(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            code = main(list(words))
        except SystemExit as stop:
            code = stop.code or 0
    assert code == 0, words
    return out.getvalue()


def check(names):
    for module in modules():
        importlib.import_module(module)
    assert sorted(house().missing) == sorted(names), house().missing
    help_page = answers("--help")
    for name in names:
        if verb := VERBS.get(name):
            assert f"\n  {verb} " not in help_page
            with contextlib.redirect_stderr(io.StringIO()) as said:
                assert main([verb]) == 2, verb
            assert len(said.getvalue().splitlines()) == 1, said.getvalue()
            assert name in said.getvalue(), said.getvalue()
    assert "ring_all_reduce" in answers("run", "--topology", STAR, "--collective", "ring_all_reduce", "-b", "1M")
    assert ("--transport" in answers("run", "--help", "all")) == ("packets" not in names)
    assert "host" in answers("topo", "show", STAR)
    assert "correct" in answers("schedule", "check", "ring_all_reduce", "--ranks", "4")
    import commsim as cs

    assert cs.predict("ring_all_reduce", STAR, "1MiB").time > 0


def in_a_process(folder, name, hidden):
    """Check in a process of its own, which has what was imported so far."""
    if (child := os.fork()) == 0:
        with (folder / name).open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                sitecustomize.HIDDEN = tuple(f"{module}." for module in modules_of(hidden))
                check(hidden)
            except BaseException:
                traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    gc.disable()  # each process ends before there is garbage to speak of
    for module in modules(PACKAGES[:-1]):  # of the last, the flags of `run` ask the extensions at once
        importlib.import_module(module)
    assert house.cache_info().currsize == 0
    importlib.import_module("scipy.sparse")  # what a verb of the core loads in each
    in_a_process(Path(sys.argv[1]), "all", EXTENSIONS)
    for one in EXTENSIONS:
        in_a_process(Path(sys.argv[1]), one, [one])
