"""What extensions bring: names that are imported when they are asked for, and packages that are installed beside."""

import importlib.metadata
import subprocess
import sys

import pytest

from commsim import extensions
from commsim.core.errors import InputError
from commsim.extensions import EXTENSIONS, House, LazyTable, house


def test_registering_imports_only_the_packages_themselves():
    code = (
        "import sys\nfrom commsim.extensions import house\nhouse()\n"
        "print(*sorted(name for name in sys.modules if name.startswith(('commsim.', 'collectives', 'numpy', 'numba'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    named = {f"commsim.{name}" for name in EXTENSIONS}
    core = {"commsim._siblings", "commsim.core", "commsim.core.errors", "commsim.extensions", "commsim.prediction"}
    assert set(done.stdout.split()) == named | core
    assert house().missing == []


def test_every_name_that_is_brought_is_there():
    pytest.importorskip("matplotlib")
    tables = [table for table in vars(house()).values() if isinstance(table, LazyTable)]
    assert sum(map(len, tables)) > 30
    for table in tables:
        for name in table:
            assert table[name] is not None
    for modules in house().verbs.values():
        for module in modules:
            assert importlib.import_module(module).COMMANDS


def test_a_name_that_two_bring_is_refused():
    table = LazyTable("work")
    table["a"] = "json:loads"
    with pytest.raises(InputError, match="two extensions bring the work 'a': json:loads and json:dumps"):
        table["a"] = "json:dumps"


class Installed:
    """An entry point of a package that is installed."""

    def load(self):
        def register(house: House) -> None:
            house.works["new"] = "json:loads"
            house.commands("json", weigh="weigh a network")

        return register


def test_installed_packages_are_read_only_for_a_name_that_is_not_known(monkeypatch):
    made, asked = House(), []
    monkeypatch.setattr(extensions, "house", lambda: made)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: asked.append(group) or [Installed()])
    made.works["old"] = "json:dumps"
    assert made.works["old"] is importlib.import_module("json").dumps
    assert "new" not in made.works
    assert asked == []
    assert made.works["new"] is importlib.import_module("json").loads
    assert made.modules_of("weigh") == ["json"]
    assert asked == [extensions.GROUP]
    with pytest.raises(InputError, match="no extension that is installed brings the work 'other'"):
        made.works["other"]


def test_a_verb_of_an_extension_that_is_not_there_is_named_on_one_line(commsim, monkeypatch):
    made = House()
    made.missing = ["traffic"]
    for module in ("commsim.cli", "commsim.extensions"):
        monkeypatch.setattr(importlib.import_module(module), "house", lambda: made)
    said = commsim.refuses("traffic", "--topology", "star:n_hosts=4")
    assert "the verb traffic is of an extension that is not installed (not there: traffic)" in said


def test_what_needs_an_extension_that_is_not_there_is_not_there_either(monkeypatch):
    made = House()
    made.missing = ["gone"]
    monkeypatch.setattr(extensions, "house", lambda: made)
    made.services["of others"] = "commsim.gone.work:plan"
    assert made.services.get("of others") is None
    with pytest.raises(InputError, match="not there: gone"):
        made.services["of others"]
