import builtins
import sys

import pytest

from commsim.core.errors import InputError
from commsim.core.files.own_files import own_entry
from commsim.core.registry import Registry
from commsim.core.spec import OwnFile, is_own_file


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


def test_a_text_that_names_no_function_imports_nothing(package):
    assert "net.toml" not in package
    assert not any(name.startswith("shapes_of_test.") for name in sys.modules)
    with pytest.raises(InputError, match=r"unknown shape 'circle\.5'; did you mean circle\?"):
        package["circle.5"]


def test_an_entry_has_its_function_its_summary_its_parameters_and_its_facts(package):
    entry = package["square"]
    assert entry.build(side=3) == ("square", 3)
    assert entry.summary == "A square."
    assert list(entry.parameters) == ["side"]
    assert entry.metadata["corners"] == 6


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


GOOD = '''
import {registry} as home

def double(n: int, times: int = 2) -> int:
    """Double."""
    return n * times

home.NUMBERS.add(double, cost=lambda n: 1 / n)
'''


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A registry of functions that return numbers, in a package of its own."""
    folder = tmp_path / "numbers_of_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "known.py").write_text("import numbers_of_test as home\n\ndef one() -> int:\n    return 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    package = __import__("numbers_of_test")
    package.NUMBERS = Registry("number", "numbers_of_test")
    yield package.NUMBERS
    for name in [m for m in sys.modules if m.startswith(("numbers_of_test", "own file"))]:
        del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text.replace("{registry}", "numbers_of_test"))
        return OwnFile(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        ("a.py", True),
        ("./b/a.py", True),
        ("a.py:f", True),
        ("a.py:f:k=1", True),
        ("a.py:k=1", True),
        ("ring_all_reduce", False),
        ("star:n_hosts=4", False),
        ("net.toml", False),
        ("dgx-h100@./fabric.py:n=4", False),  # a machine on a fabric, which is a file of its own
        ("a.pyc", False),
    ],
)
def test_a_file_is_known_by_its_suffix(text, is_own):
    assert is_own_file(text) == is_own


def test_a_folder_with_an_at_sign_is_a_folder(tmp_path):
    (tmp_path / "a@b").mkdir()
    (tmp_path / "a@b" / "f.py").write_text("")
    assert is_own_file(str(tmp_path / "a@b" / "f.py"))


@pytest.mark.parametrize("rest", ["", ":double", ":times=3", ":double:times=3"])
def test_the_function_and_its_arguments_are_found(numbers, write, rest):
    entry, raw = own_entry(numbers, OwnFile(write(GOOD) + rest))
    assert (entry.name, entry.summary, list(entry.parameters)) == ("double", "Double.", ["n", "times"])
    assert raw == ({"times": "3"} if "3" in rest else {})
    assert entry.build(5, **{key: int(value) for key, value in raw.items()}) == (15 if raw else 10)
    assert entry.metadata["cost"](4) == 0.25


def test_a_file_that_was_changed_is_executed_again(numbers, write):
    path = write(GOOD)
    assert own_entry(numbers, path)[0].build(1) == 2
    write(GOOD.replace("n * times", "n + 99"))
    assert own_entry(numbers, path)[0].build(1) == 100


def test_nothing_is_written_beside_the_file(numbers, write, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    own_entry(numbers, write(GOOD))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "mine.py"])


@pytest.mark.parametrize(
    ("text", "rest", "message"),
    [
        ("x = 1", "", r"mine\.py: registers no number; decorate a function with @number"),
        ("import", "", r"mine\.py, line 1: SyntaxError: invalid syntax"),
        ("\n\nraise KeyError('k')", "", r"mine\.py, line 3: KeyError: 'k'"),
        ("import sys\nsys.exit(3)", "", r"mine\.py, line 2: SystemExit: 3"),
        ("def f():\n    return 1 / 0\nf()", "", r"mine\.py, line 2: ZeroDivisionError"),
        ("raise ValueError", "", r"mine\.py, line 1: ValueError: no message"),
        ("def f(): f()\nf()", "", r"mine\.py, line 1: RecursionError"),
        ("import nowhere_to_be_found", "", r"line 1: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        (GOOD, ":triple", r"mine\.py: registers no number 'triple'; known: double"),
        (GOOD, ":times", r"registers no number 'times'"),
        (GOOD, ":double:times", r"expected key=value"),
        (GOOD.replace("n: int", "n"), "", r"mine\.py: double: parameter n needs an annotation"),
        (GOOD.replace("n: int", "n: 'Nothing'"), "", r"mine\.py.*NameError: name 'Nothing' is not defined"),
        (GOOD + GOOD.replace("double", "triple"), "", r"registers several; name one: .*py:double, .*py:triple"),
        ("a\x00b", "", r"mine\.py.*null bytes"),
    ],
)
def test_whatever_is_wrong_with_a_file_is_one_line_that_names_it(numbers, write, text, rest, message):
    with pytest.raises(InputError, match=message) as caught:
        own_entry(numbers, OwnFile(write(text) + rest))
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_there_and_one_that_is_no_text_are_refused(numbers, tmp_path):
    with pytest.raises(InputError, match=r"gone\.py: No such file"):
        own_entry(numbers, OwnFile(tmp_path / "gone.py"))
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.py"):
        own_entry(numbers, OwnFile(tmp_path / "binary.py"))


def test_what_a_function_raises_later_names_the_file_and_the_line_too(numbers, write):
    entry, _ = own_entry(numbers, write(GOOD.replace("n * times", "[][n]")))
    with pytest.raises(InputError, match=r"mine\.py, line 6: IndexError: list index out of range"):
        entry.build(1)
    with pytest.raises(InputError, match=r"mine\.py, line 8: ZeroDivisionError"):
        entry.metadata["cost"](0)


def test_a_name_that_is_taken_is_refused(numbers, write):
    own_entry(numbers, write(GOOD, "first.py"))
    with pytest.raises(InputError, match=r"second\.py, line 8: two functions are registered as number 'double'"):
        own_entry(numbers, write(GOOD, "second.py"))


def test_a_name_that_is_no_text_is_unknown(package):
    with pytest.raises(InputError, match="unknown shape 'square\\\\udcff'; did you mean square"):
        package["square\udcff"]


def test_a_name_is_suggested_only_where_its_own_words_are_alike():
    """foo_all_reduce was said to be meant as torus_all_reduce: they end alike."""
    from collectives import COLLECTIVES

    for wrong, meant in (("rign_all_reduce", "ring"), ("torsu_all_reduce", "torus"), ("ringallreduce", "ring")):
        with pytest.raises(InputError, match=rf"did you mean {meant}_all_reduce\?"):
            COLLECTIVES[wrong]
    with pytest.raises(InputError, match=r"unknown collective 'foo_all_reduce'; \d+ are known"):
        COLLECTIVES["foo_all_reduce"]


def test_what_is_asked_for_by_a_module_waits_for_all_others(tmp_path, monkeypatch):
    """A module asks, while it is imported, for a call that adds names: a later module may have one of them itself."""
    (tmp_path / "full_house").mkdir()
    (tmp_path / "full_house/__init__.py").write_text("")
    (tmp_path / "full_house/a.py").write_text(
        "import builtins\nbuiltins.full_registry.when_complete('full_house.c:seen')\n"
    )
    (tmp_path / "full_house/b.py").write_text("import builtins\ndef b(): ...\nbuiltins.full_registry.add(b)\n")
    (tmp_path / "full_house/c.py").write_text(
        "import builtins\ndef seen():\n    builtins.full_seen = list(builtins.full_registry._entries)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("thing", "full_house")
    monkeypatch.setattr(builtins, "full_registry", registry, raising=False)
    monkeypatch.setattr(builtins, "full_seen", None, raising=False)
    assert list(registry) == ["b"]
    assert builtins.full_seen == ["b"]
