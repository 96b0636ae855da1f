import sys

import pytest

from commsim.core.errors import InputError
from commsim.core.registry import Registry

pytestmark = pytest.mark.nojit


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose two modules register themselves."""
    folder = tmp_path / "shapes_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from commsim.core.registry import Registry\nSHAPES = Registry('shape', __name__)\n"
    )
    for name in ("square", "circle"):
        (folder / f"{name}.py").write_text(
            f'from . import SHAPES\n\ndef {name}(side: int = 1):\n    """A {name}.\n\n    More.\n    """\n'
            f"    return ('{name}', side)\n\nSHAPES.add({name}, corners={len(name)})\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    yield __import__("shapes_of_test").SHAPES
    for module in [m for m in sys.modules if m.startswith("shapes_of_test")]:
        del sys.modules[module]


def test_modules_are_found_on_first_use_and_sorted_by_name(package):
    assert "shapes_of_test.square" not in sys.modules
    assert list(package) == ["circle", "square"]
    assert len(package) == 2
    assert "square" in package
    assert "triangle" not in package


def test_an_entry_has_its_function_its_summary_its_parameters_and_its_facts(package):
    entry = package["square"]
    assert entry.build(side=3) == ("square", 3)
    assert entry.summary == "A square."
    assert list(entry.parameters) == ["side"]
    assert entry.facts["corners"] == 6


def test_an_unknown_name_lists_the_known_ones_and_the_nearest(package):
    with pytest.raises(InputError, match=r"unknown shape 'sqare'; did you mean square\? known: circle, square"):
        package["sqare"]
    with pytest.raises(InputError, match=r"unknown shape 'x'; known: circle, square"):
        package["x"]


def test_a_name_is_given_once():
    registry: Registry[int] = Registry("number", "topologies")

    def star():
        return 1

    registry.add(star)
    registry.add(star)  # a module that is imported again registers the same function again
    other = type(star)(star.__code__, {}, "star")
    other.__module__ = "elsewhere"
    with pytest.raises(InputError, match="two functions are registered as number 'star'"):
        registry.add(other)


def test_a_module_that_cannot_be_imported_fails_again_the_next_time(tmp_path, monkeypatch):
    folder = tmp_path / "broken_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry: Registry[int] = Registry("thing", "broken_of_test")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            list(registry)
