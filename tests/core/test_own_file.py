import sys

import pytest

from commsim.core.errors import InputError
from commsim.core.own_file import is_own_file, own_entry
from commsim.core.registry import Registry

pytestmark = pytest.mark.nojit
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
        return str(tmp_path / name)

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
    entry, raw = own_entry(numbers, write(GOOD) + rest)
    assert (entry.name, entry.summary, list(entry.parameters)) == ("double", "Double.", ["n", "times"])
    assert raw == ({"times": "3"} if "3" in rest else {})
    assert entry.build(5, **{key: int(value) for key, value in raw.items()}) == (15 if raw else 10)
    assert entry.facts["cost"](4) == 0.25


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
        (GOOD + GOOD.replace("double", "triple"), "", r"registers several; say which: .*py:double, .*py:triple"),
        ("a\x00b", "", r"mine\.py.*null bytes"),
    ],
)
def test_whatever_is_wrong_with_a_file_is_one_line_that_names_it(numbers, write, text, rest, message):
    with pytest.raises(InputError, match=message) as caught:
        own_entry(numbers, write(text) + rest)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_is_not_there_and_one_that_is_no_text_are_refused(numbers, tmp_path):
    with pytest.raises(InputError, match=r"gone\.py: No such file"):
        own_entry(numbers, str(tmp_path / "gone.py"))
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.py"):
        own_entry(numbers, str(tmp_path / "binary.py"))


def test_what_a_function_raises_later_names_the_file_and_the_line_too(numbers, write):
    entry, _ = own_entry(numbers, write(GOOD.replace("n * times", "[][n]")))
    with pytest.raises(InputError, match=r"mine\.py, line 6: IndexError: list index out of range"):
        entry.build(1)
    with pytest.raises(InputError, match=r"mine\.py, line 8: ZeroDivisionError"):
        entry.facts["cost"](0)


def test_a_name_that_is_taken_is_refused(numbers, write):
    own_entry(numbers, write(GOOD, "first.py"))
    with pytest.raises(InputError, match=r"second\.py, line 8: two functions are registered as number 'double'"):
        own_entry(numbers, write(GOOD, "second.py"))
