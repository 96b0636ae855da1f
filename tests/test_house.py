"""Rules that keep the tree readable: one subject per file, sizes, names, layers, users of modules, typed kernels."""

import ast
import functools
import graphlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commsim
from benchmarks.house import glue, rules, slices, wording
from benchmarks.house.path import COMMAND
from benchmarks.house.sources import ROOT, Source, sources


@functools.cache
def files() -> list[Source]:
    """Read the shipped tree: in the process that tests it, not in each that collects."""
    return sources()


def written(text, path="commsim/x.py"):
    """Return a file with this text."""
    return Source(Path(path), text, ast.parse(text))


@pytest.mark.slow
def test_no_module_is_two_glued_together():
    assert glue.glued(files()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(): ...\n\nLIMIT = 3\n", ["commsim/x.py:3 LIMIT"]),
        ("class A: ...\n\na: int = 3\nb = a\n", ["commsim/x.py:3 a", "commsim/x.py:4 b"]),
        ("LIMIT = 3\ndef f(): ...\n", []),
        ("def f(): ...\nTABLE = {'f': f}\nSIZE = len(TABLE)\n", []),
        ("def f(): ...\nlog[0] = 1\nf()\n", []),
    ],
)
def test_a_constant_below_a_function_needs_one_in_its_value(text, found):
    assert glue.late_constants([written(text)]) == found


@pytest.mark.parametrize(
    ("paragraph", "is_headline"),
    [
        ("A network with other costs of messages.", True),
        ("How long a GPU takes to add two vectors: from a table, or at a given rate.", True),
        ("Write an algorithm as XML, in the form that MSCCL's runtime reads.", True),
        ("A file is read by what it begins with, not by its name.", False),
        ("Nothing is drawn at random. So the same graph gives the same times.", False),
        ("Source: Li et al., SIGCOMM 2019, algorithm 1.", False),
        ("To add one, write ``topologies/NAME.py``.", False),
        ("References\n----------\nGraham, 1969: list scheduling.", False),
    ],
)
def test_a_second_headline_is_told_from_a_sentence(paragraph, is_headline):
    assert bool(glue.second_headlines([written(f'"""What it is.\n\n{paragraph}\n"""\n')])) == is_headline


def test_no_folder_is_too_full_to_be_read():
    assert rules.full_folders(files()) == {}


def test_no_name_of_a_file_stands_more_than_twice():
    assert rules.common_names(files()) == {}


def test_a_class_name_means_one_thing():
    assert slices.homonyms(files()) == {}


def test_a_verb_is_a_file_with_a_name():
    """A newcomer looks for a verb by the names of files: ``__init__.py`` of a folder ``cli`` only lists commands."""
    packages = [one for one in files() if one.path.name == "__init__.py" and one.path.parts[2:3] == ("cli",)]
    assert len(packages) > 10
    definitions = (ast.FunctionDef, ast.ClassDef)
    assert [str(one.path) for one in packages if any(isinstance(node, definitions) for node in one.tree.body)] == []


def test_the_file_of_a_verb_has_a_word_of_it():
    """``plot`` stood in ``report.py``; what `formats` lists is said by the file of imports."""
    from commsim.cli import commands_of, listed_verbs

    files_of = {name: one.run.__module__ for verb in listed_verbs() for name, one in commands_of(verb).items()}
    assert len(files_of) > 60
    words = {name: name.replace("-", " ").split() for name in files_of if not name.endswith(" formats")}
    assert {
        name: files_of[name] for name in words if not {*words[name]} & {*files_of[name].rpartition(".")[2].split("_")}
    } == {}


def test_no_file_is_too_long():
    assert {str(f.path): f.n_lines for f in files() if f.n_lines > rules.MAX_LINES} == {}


@pytest.mark.slow
def test_every_shipped_module_has_a_shipped_user():
    assert rules.unused_modules(files()) == []


@pytest.mark.slow
def test_every_shipped_definition_has_a_shipped_user():
    """What only tests need is in tests/oracles, and what only benchmarks need in benchmarks."""
    assert rules.unused_definitions(files()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(): ...\n", ["commsim/x.py:1 f"]),
        ("class A: ...\nLIMIT = 3\n", ["commsim/x.py:1 A", "commsim/x.py:2 LIMIT"]),
        ("@dataclass(frozen=True)\nclass A: ...\n", ["commsim/x.py:2 A"]),
        ("LIMIT = 3\nprint(LIMIT)\n", []),
        ("@topology\ndef f(): ...\n", []),
        ("f = made('f', 3)\n", []),
        ("A, B = range(2)\nprint(B)\n", []),
        ("COMMANDS = {}\n", []),
    ],
)
def test_a_definition_without_a_user_is_found(text, found):
    assert rules.unused_definitions([written(text)]) == found


@pytest.mark.parametrize(
    "user",
    [
        "from commsim.x import f\n",
        "from commsim import x\nx.f()\n",
        "from . import x\nx.f()\n",
        "import commsim.x\ncommsim.x.f()\n",
        "NAMES = {'commsim.x': ('f',)}\nprint(NAMES)\n",
        "load('commsim.x:f')\n",
    ],
)
def test_a_definition_is_used_where_another_module_names_it(user):
    used = [written("def f(): ...\n"), written(user, "commsim/y.py")]
    assert rules.unused_definitions(used) == []
    assert rules.unused_definitions([used[0], written(user.replace("x", "z"), "commsim/y.py")]) != []


def test_kernels_have_types_and_few_arguments():
    assert rules.untyped_kernels(files()) == []
    assert rules.long_signatures(files()) == []
    assert len(list(rules.kernels(files()))) > 100  # that there is something to look at


@pytest.fixture(scope="module")
def walks():
    """Return what each door goes through in a fresh process, whatever this one has asked before."""
    words = [sys.executable, "-m", "benchmarks.house.path", "--json"]
    return json.loads(subprocess.run(words, cwd=ROOT, capture_output=True, check=True, text=True).stdout)


@pytest.mark.parametrize(("door", "most"), [("commsim run", (47, 221, 11)), ("cs.predict", (38, 159, 9))])
def test_a_simple_question_takes_a_short_way(walks, door, most):
    """Files, functions and frames from the door to the kernel: raise a bound only with the reason in the commit."""
    (found,) = (one for name, one in walks.items() if name.startswith(door))
    assert found["to_kernel"][-1] == "commsim/core/jit.py Kernel.__call__"
    assert len(found["files"]) <= most[0], found["files"]
    assert found["n_functions"] <= most[1]
    assert len(found["to_kernel"]) <= most[2], found["to_kernel"]


def test_a_simple_question_loads_few_modules():
    """Modules of ours that are imported: one that only other questions need is imported where they are asked."""
    code = (
        "import sys\nfrom commsim.cli import main\n"
        f"assert main({COMMAND!r}.split()) == 0\n"
        "print(*(m for m in sys.modules if m.partition('.')[0] in ('commsim', 'collectives', 'topologies')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert 100 < len(loaded) <= 115, loaded


def test_docstrings_name_only_parameters_that_there_are():
    assert rules.unknown_parameters(files()) == []
    text = 'def f(a):\n    """F.\n\n    Parameters\n    ----------\n    a, gone : int\n        X.\n    """\n'
    wrong = written(text)
    assert rules.unknown_parameters([wrong]) == ["commsim/x.py:1 f: gone"]


def test_few_parameters_are_described_by_a_fragment():
    """A description says what a parameter is: "Bandwidth of each link, one way.", not "Of every link"."""
    found = list(wording.descriptions(files()))
    fragments = [f"{one.path}:{one.line} {one.text}" for one in found if one.is_fragment]
    assert len(found) > 4000  # that there is something to look at
    assert len(fragments) <= wording.MAX_FRAGMENTS * len(found), fragments


def test_a_fragment_is_found():
    text = '''def f(a, b, c):
    """F.

    Parameters
    ----------
    a : float, bytes/s
        Of every link, in each
        direction.
    b : int
        Number of links.

    Returns
    -------
    int
        Of all.
    """
'''
    one = written(text)
    first, second = wording.descriptions([one])
    assert (first.text, first.line, first.end) == ("Of every link, in each direction.", 7, 8)
    assert (first.is_fragment, second.is_fragment) == (True, False)


def test_no_page_has_both_sides_of_a_merge():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    lines = [(page.name, line) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert [one for one in lines if one[1].startswith(("<<<<<<< ", ">>>>>>> "))] == []


def test_the_glossary_is_short():
    terms = wording.glossary_terms()
    assert 30 < len(terms) <= wording.MAX_TERMS
    assert {"routing", "hash", "latency"} <= set(terms)  # two in a row, and one with its symbol
    assert "L (s)" not in terms


@pytest.mark.parametrize(
    ("page", "others"),
    [
        ("docs/design.md", set()),
        ("docs/design_parts.md", {"topologies.py", "commsim.topologies"}),  # a user's file, and a name that was refused
        ("docs/design_engines.md", set()),
        ("docs/glossary.md", set()),
        ("CONTRIBUTING.md", {"FILE.py", "renamed.toml"}),
    ],
)
def test_pages_name_only_modules_that_there_are(page, others):
    assert set(wording.missing_modules((ROOT / page).read_text(encoding="utf-8"))) <= others
    assert wording.missing_symbols((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_symbol_that_a_page_names_is_looked_up():
    there = "`rank_key` of `commsim/placement/scored_placements.py`, `Remark` of `core/remark.py`"
    assert wording.missing_symbols(there) == []
    assert wording.missing_symbols("`COLUMNS` of `report/table_of_run.py`") == ["COLUMNS of report/table_of_run.py"]


@pytest.mark.parametrize(
    ("name", "is_there"),
    [
        ("core/units.py", True),
        ("commsim/engine/ways", True),
        ("packets.hosts.host_kernel.run", True),
        ("commsim.engine.flow_paths", True),
        ("core/gone.py", False),
        ("commsim/engine/known", False),
        ("packets.gone.run", False),
        ("commsim.engine.ways.known_time", False),
        ("numba.np.arrayobj", True),  # not ours
        ("2(p-1)/p", True),
    ],
)
def test_a_module_that_a_page_names_is_looked_up(name, is_there):
    assert wording.missing_modules(f"as in `{name}`.") == ([] if is_there else [name])


def contract(name):
    """Return a contract of import-linter by its name."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = (one for one in config["tool"]["importlinter"]["contracts"] if one["name"] == name)
    return found


def test_no_import_of_an_extension_in_the_core_is_excepted():
    assert "ignore_imports" not in contract("the core never imports an extension")


def test_every_package_is_core_or_an_extension():
    walls = contract("the core never imports an extension")
    sources = {f"commsim.{name}" for name in slices.CORE}
    assert sources <= set(walls["source_modules"])
    beside = {name if name == "switch_model" else f"commsim.{name}" for name in slices.extensions()}
    assert beside == {one for one in walls["forbidden_modules"] if not one.startswith("collectives.")}


def test_an_extension_imports_only_the_core_and_what_it_says_that_it_needs():
    assert slices.needed(files()) == slices.declared()


def test_extensions_that_need_each_other_do_so_only_when_they_are_asked():
    graphlib.TopologicalSorter(slices.needed_at_start(files())).prepare()  # refuses a cycle


def test_no_two_files_import_each_other_not_even_inside_of_functions():
    graphlib.TopologicalSorter(slices.imported(files())).prepare()  # refuses a cycle


def test_no_package_has_the_name_of_a_public_function():
    """Importing a package sets its name in the one above, where ``cs.predict`` is."""
    assert {path.parent.name for path in (ROOT / "commsim").glob("*/__init__.py")}.isdisjoint(commsim.__all__)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (
            '"""What."""\n\nx = 1  # why\n# a comment\n',
            {"files": 1, "docstring": 1, "blank": 1, "code": 1, "comment": 1},
        ),
        ('def f():\n    """One.\n\n    Two.\n    """\n    return "a"\n', {"files": 1, "docstring": 4, "code": 2}),
    ],
)
def test_lines_are_counted_by_kind(text, counts):
    one = written(text)
    assert one.counts() == counts


def test_a_module_that_only_tests_import_is_found():
    lonely = written("x = 1\n", "commsim/lonely.py")
    assert "commsim.lonely" in rules.unused_modules([*files(), lonely])


def test_an_untyped_kernel_is_found():
    text = "@kernel\ndef f(a: Any, b, c: int) -> None:\n    pass\n"
    wrong = written(text)
    assert rules.untyped_kernels([wrong]) == ["commsim/x.py:2 f"]
