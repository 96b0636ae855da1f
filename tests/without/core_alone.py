"""The core with some extensions hidden: all its modules are imported, its verbs and its function answer.

``PYTHONPATH=tests/without:. COMMSIM_HIDE=commsim.nccl,collectives.nccl python tests/without/core_alone.py nccl``
"""

import contextlib
import importlib
import io
import pkgutil
import sys

from commsim.cli import main
from commsim.extensions import house

PACKAGES = (
    "commsim.core", "commsim.routing", "commsim.engine", "commsim.prediction", "commsim.report", "commsim.cli",
    "topologies", "collectives",
)  # fmt: skip
STAR = "star:n_hosts=4,bandwidth=100Gbps"
# A verb that each extension brings alone, if it does.
VERBS = {
    "nccl": "nccl", "traffic": "traffic", "ranking": "advise", "real": "calibrate", "emulation": "emulate",
    "training": "workload", "papers": "reproduce", "placement": "place", "sweep": "sweep", "pages": "plot",
}  # fmt: skip


def modules():
    for package in PACKAGES:
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


if __name__ == "__main__":
    check(sys.argv[1:])
