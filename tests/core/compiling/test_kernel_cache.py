import __future__

import ast
import errno
import functools
import importlib
import os
import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import numpy as np
import pytest

from commsim.core.compiling import kernel_cache, notices
from commsim.core.compiling.kernel_cache import KernelCache, cache_folder, describe, stamp
from commsim.core.compiling.pipelines import pipelines
from commsim.core.jit import KERNEL, Kernel

ROOT = Path(__file__).parents[3]
SCALE = 3.0


def scaled(a):
    return SCALE * a.sum()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pipelines()  # first, since it compiles two kernels of its own
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(notices, "_told", set())
    monkeypatch.setattr(notices, "LONG", 0.0)
    monkeypatch.setattr(Kernel, "needed_soon", "")  # else another process may write the kernels of an engine there
    return tmp_path / "kernels"


def answer():
    """Call a kernel as a new process would; return what it gives, and whether it came from the disk."""
    notices._told.clear()
    compiled = Kernel(scaled, KERNEL).compiled
    return float(compiled(np.arange(4.0))), sum(compiled.stats.cache_hits.values()) == 1


def flipped(content, bit):
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def sealed_anew(change):
    """Write other content under a right checksum, which a fault of the disk does not do."""

    def damage(content, monkeypatch):
        keys = []
        monkeypatch.setattr(KernelCache, "_path", lambda _, key: keys.append(key) or Path(os.devnull) / "no")
        answer()
        monkeypatch.undo()
        return kernel_cache._sealed(change(content[kernel_cache.DIGEST_BYTES :]), keys[0])

    return damage


DAMAGES = {
    "empty": lambda *_: b"",
    "truncated in the checksum": lambda content, _: content[:9],
    "truncated": lambda content, _: content[: len(content) // 2],
    "a bit of the checksum": lambda content, _: flipped(content, 100),
    "a bit of the code": lambda content, _: flipped(content, 4 * len(content)),
    "random": lambda content, _: np.random.default_rng(1).bytes(len(content)),
    "longer": lambda content, _: content + b"\0",
    "of another version or processor": lambda content, _: kernel_cache._sealed(content[32:], b"another"),
    "no pickle": sealed_anew(lambda _: b"no pickle"),
    "of another signature": sealed_anew(lambda _: pickle.dumps(("other", ()))),
    "not what Numba wrote": sealed_anew(lambda payload: pickle.dumps((pickle.loads(payload)[0], (1, 2)))),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_entry_is_compiled_anew_with_one_line_and_replaced(folder, monkeypatch, capfd, name):
    assert answer() == (18.0, False)
    assert answer() == (18.0, True)
    (path,) = folder.iterdir()
    with monkeypatch.context() as inner:
        damaged = DAMAGES[name](path.read_bytes(), inner)
    path.write_bytes(damaged)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    capfd.readouterr()
    assert answer() == (18.0, False)
    (line,) = capfd.readouterr().err.splitlines()
    assert f"compiling kernels, {path} cannot be used" in line
    assert answer() == (18.0, True)
    assert capfd.readouterr().err == ""


def refuse(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_folder_means_uncached_with_one_line(folder, monkeypatch, capfd):
    with monkeypatch.context() as full:
        full.setattr(kernel_cache.tempfile, "TemporaryFile", refuse)
        full.setattr(Path, "write_bytes", refuse)
        assert answer() == (18.0, False)
        (line,) = capfd.readouterr().err.splitlines()
        assert "each time:" in line
        assert "No space left on device" in line
    assert answer() == (18.0, False)
    assert answer() == (18.0, True)


def test_a_folder_that_fills_while_a_kernel_is_compiled_leaves_no_part_of_a_file(folder, monkeypatch, capfd):
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", refuse)
        assert answer() == (18.0, False)
    compiling, lost = capfd.readouterr().err.splitlines()
    assert "compiling kernels, once for this kind of question; commsim warmup: for all" in compiling
    assert lost == "commsim: compiled kernels are not kept: No space left on device"
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_means_uncached_with_one_line(folder, capfd):
    folder.write_text("a file")
    assert answer() == (18.0, False)
    (line,) = capfd.readouterr().err.splitlines()
    assert f"{folder} cannot be written" in line


def test_what_has_been_compiled_can_be_read_where_nothing_can_be_written(folder, monkeypatch, capfd):
    answer()
    capfd.readouterr()
    monkeypatch.setattr(os, "utime", refuse)
    assert answer() == (18.0, True)
    assert capfd.readouterr().err == ""


def test_old_entries_of_a_kernel_are_deleted_and_those_of_others_stay(folder, monkeypatch):
    monkeypatch.setattr(kernel_cache, "MAX_ENTRIES", 3)
    folder.mkdir()
    prefix = KernelCache(scaled, KERNEL).name
    for i, name in enumerate([f"{prefix}0.nbc", f"{prefix}1.nbc", f"{prefix}2.nbc", f"{prefix}3.x.tmp", "other-0.nbc"]):
        (folder / name).write_bytes(b"")
        if name != f"{prefix}1.nbc":
            os.utime(folder / name, (i, i))
    answer()
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) == 3
    assert {f"{prefix}1.nbc", "other-0.nbc"} < kept
    Kernel(scaled, KERNEL).compiled._cache.flush()
    assert [path.name for path in folder.iterdir()] == ["other-0.nbc"]


def test_the_folder_is_named_by_the_variable_or_the_users(monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/chosen")
    assert cache_folder() == Path("/chosen")
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/user")
    assert cache_folder() == Path("/user/commsim/kernels")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/commsim/kernels")


OUTER = """
import sys
from commsim.core.compiling import notices
from commsim.core.jit import compile_all, kernel
import constants
from helper import add
@kernel
def total(n):
    result = 0
    for i in range(n):
        result = add(result, i) * constants.FACTOR
    return result
if __name__ == "__main__":
    notices.LONG = 0.0
    compile_all()
    print(total(4), sum(total.stats.cache_hits.values()), "numba.np.linalg" in sys.modules)
"""
HELPER = """
from commsim.core.jit import kernel
@kernel
def add(a, b):
    return a + b
"""


class Checkout:
    """A folder of kernels in three files."""

    def __init__(self, place: Path, cache: Path) -> None:
        place.mkdir()
        self.place = place
        self.environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
        self.write("outer", OUTER)
        self.write("helper", HELPER)
        self.write("constants", "FACTOR = 1\n")

    def write(self, name: str, text: str) -> None:
        (self.place / f"{name}.py").write_text(text)
        shutil.rmtree(self.place / "__pycache__", ignore_errors=True)  # whose resolution is a second

    def start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "outer.py"]
        path = os.pathsep.join([str(ROOT), str(self.place)])
        environment = {**self.environment, "PYTHONPATH": path}
        return subprocess.Popen(
            command, cwd=self.place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self) -> tuple[str, int]:
        """Return the answer with the hits of the cache, and the number of lines of notice."""
        return result(self.start())


def result(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert all("compiling kernels" in line for line in err.splitlines()), err
    return out.strip(), len(err.splitlines())


@pytest.mark.slow
def test_an_edit_of_a_helper_or_a_constant_in_another_file_is_compiled_and_equal_checkouts_share(tmp_path):
    # the last word: Numba loads the list of all that it can compile, and SciPy with it, only to compile
    first = Checkout(tmp_path / "first", tmp_path / "cache")
    assert first.run() == ("6 0 True", 1)
    second = Checkout(tmp_path / "second", tmp_path / "cache")
    assert second.run() == ("6 1 False", 0)
    second.write("helper", HELPER.replace("a + b", "a - b"))
    assert second.run() == ("-6 0 True", 1)
    second.write("constants", "FACTOR = 2\n")
    assert second.run() == ("-22 0 True", 1)
    assert first.run() == ("6 1 False", 0)


@pytest.mark.deep
@pytest.mark.slow
def test_processes_that_compile_at_once_disturb_neither_each_other_nor_a_later_one(tmp_path):
    checkout = Checkout(tmp_path / "here", tmp_path / "cache")
    for process in [checkout.start() for _ in range(2)]:
        out, lines = result(process)
        assert out.split()[0] == "6"
        assert lines <= 1
    assert checkout.run() == ("6 1 False", 0)


def shipped_kernels() -> dict[ModuleType, dict[Kernel, ast.FunctionDef]]:
    """Give every shipped kernel with its syntax tree, by the file that defines it."""
    found = {}
    for package in ("commsim", "switch_model", "collectives", "topologies"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if "jit import" in path.read_text():
                user = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                for kernel in dict.fromkeys(k for k in vars(user).values() if isinstance(k, Kernel)):
                    module = sys.modules[kernel.__module__]
                    found.setdefault(module, {})[kernel] = definition_in(module, kernel.__name__)
    return found


@functools.cache
def definition_in(module: ModuleType, name: str) -> ast.FunctionDef:
    (found,) = (n for n in parsed(module).body if isinstance(n, ast.FunctionDef) and n.name == name)
    return found


@functools.cache
def parsed(module: ModuleType) -> ast.Module:
    return ast.parse(Path(module.__file__).read_text())


def recompiled(kernel: Kernel, definition: ast.FunctionDef) -> FunctionType:
    """Make the function of a kernel from its changed syntax tree."""
    imports = ast.parse(
        "import numpy as np\nimport heapq\nimport math"
    ).body  # calls of what is imported are compiled differently
    tree = ast.Module([*imports, definition], type_ignores=[])
    decorators, definition.decorator_list = definition.decorator_list, []
    whole = compile(tree, "changed", "exec", __future__.annotations.compiler_flag, dont_inherit=True)
    definition.decorator_list = decorators
    (code,) = (c for c in whole.co_consts if isinstance(c, CodeType) and c.co_name == definition.name)
    function = FunctionType(code, kernel.py_func.__globals__, kernel.__name__, kernel.py_func.__defaults__)
    function.__qualname__, function.__module__ = kernel.__qualname__, kernel.__module__
    return function


def last_words(definition: ast.FunctionDef) -> dict[int, ast.AST]:
    """Find something on every line of a kernel that can be changed; annotations are not compiled."""
    ignored = {n for a in ast.walk(definition) if isinstance(a, ast.AnnAssign) for n in ast.walk(a.annotation)}
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    nodes = [n for statement in body for n in ast.walk(statement) if n not in ignored]
    return {n.lineno: n for n in nodes if isinstance(n, ast.Constant | ast.Name | ast.Attribute | ast.Compare)}


def change(node: ast.AST) -> tuple[str, object]:
    """Change one word of a syntax tree; return what brings it back."""
    name = {ast.Constant: "value", ast.Name: "id", ast.Attribute: "attr", ast.Compare: "ops"}[type(node)]
    before = getattr(node, name)
    if isinstance(before, str):
        after = before + "_changed"
    elif isinstance(before, list):
        after = [ast.NotEq() if isinstance(before[0], ast.Eq) else ast.Eq(), *before[1:]]
    else:
        after = not before if isinstance(before, bool | None) else before + 1
    setattr(node, name, after)
    return name, before


@pytest.mark.deep
def test_a_change_of_any_line_of_any_kernel_changes_what_is_hashed_and_a_new_place_does_not():
    n_lines = 0
    for kernels in shipped_kernels().values():
        for kernel, definition in kernels.items():
            original = describe(kernel.py_func)
            ast.increment_lineno(definition, 5)  # as a comment before it would
            assert describe(recompiled(kernel, definition)) == original
            for line, node in last_words(definition).items():
                name, before = change(node)
                assert describe.__wrapped__(recompiled(kernel, definition))[0] != original[0], (kernel, line - 5)
                setattr(node, name, before)
                n_lines += 1
    assert n_lines > 1000


@pytest.mark.slow
@pytest.mark.parametrize("n_modules", [12, pytest.param(None, marks=pytest.mark.deep)])
def test_a_change_of_a_kernel_or_constant_changes_the_stamps_of_exactly_those_that_reach_it(monkeypatch, n_modules):
    files = shipped_kernels()
    reads = {k: read_by(k, d) for kernels in files.values() for k, d in kernels.items()}
    reached = {k: reachable(k, reads) for k in reads}

    def stamps():
        describe.cache_clear()
        return {k: stamp(k.py_func, k.options) for k in reads}

    before = stamps()
    modules = list(files)
    for module in modules if n_modules is None else random.Random(1).sample(modules, n_modules):
        kernels = files[module]
        changed = next(iter(kernels))
        for owner, name, value in ((changed.py_func, "__defaults__", ("changed",)), (changed, "options", {"a": 1})):
            with monkeypatch.context() as inner:
                inner.setattr(owner, name, value)
                after = stamps()
            assert {k for k in reads if after[k] != before[k]} == {k for k in reads if changed in reached[k]}, changed
        constants = {n for k in kernels for n in reads[k] if isinstance(vars(module).get(n), int | float)}
        for name in sorted(constants)[:1]:
            with monkeypatch.context() as inner:
                inner.setattr(module, name, vars(module)[name] + 1)
                after = stamps()
            readers = {
                k for k in reads if any((name == n and k in kernels) or is_of(k, n, module, name) for n in reads[k])
            }
            assert {k for k in reads if after[k] != before[k]} == {k for k in reads if reached[k] & readers}, name
    assert stamps() == before


def is_of(kernel: Kernel, read: str, module: ModuleType, name: str) -> bool:
    """Tell whether what a kernel reads is `name` of `module`, by the module's name there."""
    owner, _, attribute = read.partition(".")
    return attribute == name and kernel.py_func.__globals__[owner] is module


def read_by(kernel: Kernel, definition: ast.FunctionDef) -> dict[str, object]:
    """Find the globals that a kernel reads, from its syntax tree."""
    local = {a.arg for a in definition.args.args} | {
        n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    read = {n.id for part in definition.body for n in ast.walk(part) if isinstance(n, ast.Name)} - local
    known = kernel.py_func.__globals__
    of_modules = {
        f"{n.value.id}.{n.attr}": getattr(known[n.value.id], n.attr)
        for part in definition.body
        for n in ast.walk(part)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in read
        and isinstance(known.get(n.value.id), ModuleType)
    }  # fmt: skip
    return {name: known[name] for name in read if name in known} | of_modules


def reachable(kernel: Kernel, reads: dict[Kernel, dict[str, object]]) -> set[Kernel]:
    found, waiting = {kernel}, [kernel]
    while waiting:
        called = {k for k in reads[waiting.pop()].values() if isinstance(k, Kernel)} - found
        found |= called
        waiting += called
    return found


@pytest.mark.parametrize(
    "value",
    [1, 1.0, np.int32(1), np.float32(1), True, None, "1", (1, 2), [1, 2], np.dtype("i4"), np.dtype([("a", "i4")]),
     np.arange(2), np.arange(2.0), frozenset({1, 2}), int, np.float32, np.sum, len, answer, scaled, np],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, '__name__', value)}"[:40],
)  # fmt: skip
def test_every_kind_of_constant_that_a_kernel_can_read_is_told_from_every_other(value):
    def reads():
        return CONSTANT  # noqa: F821

    def digest(constant):
        function = FunctionType(reads.__code__, {"CONSTANT": constant})
        return describe.__wrapped__(function)[0]

    others = [0, 2, 0.5, "2", (1, 3), [2, 1], np.dtype([("b", "i4")]), np.arange(3), frozenset({1, 3}), float]
    others += [np.float64, np.prod, max, change, pickle, np.zeros((1, 2)), np.int64(1)]
    assert digest(value) not in {digest(other) for other in others}
    assert digest(value) == digest(value)


def test_machine_code_of_another_version_of_our_compilers_is_not_taken(monkeypatch):
    before = kernel_cache.environment.__wrapped__()
    assert kernel_cache.environment.__wrapped__() == before
    usual = kernel_cache._module_code
    other = compile("WORD = 16", "tables_type.py", "exec")
    monkeypatch.setattr(
        kernel_cache, "_module_code", lambda name: other if name.endswith("tables_type") else usual(name)
    )
    assert kernel_cache.environment.__wrapped__() != before
