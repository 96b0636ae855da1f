"""Rules of the source tree: folders, names of files, modules without a user, kernels, documented parameters."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Set

from .sources import Definition, Source

KERNEL_DECORATORS = ("kernel", "njit_norefcount", "njit_called")
# Decorators that register nothing.
PLAIN_DECORATORS = {
    *KERNEL_DECORATORS,
    "dataclass",
    "cache",
    "long_loops",
    "fact",
    "functools",
    "contextlib",
    "contextmanager",
    "True",
    "overload",
}
# Names that are looked up in modules: verbs, what an extension needs, what the root package registers.
ENTERED = ("COMMANDS", "EXAMPLES", "NEEDS", "register", "congestion_control", "Flow")  # the last two by users' files
MAX_IN_FOLDER, MAX_SAME_NAME, MAX_LINES, MAX_ARGUMENTS = 25, 2, 350, 8
_PARAMETERS = re.compile(r"Parameters\n-{4,}\n(.*?)(?=\n\w[\w ]*\n-{3,}|\Z)", re.DOTALL)


def full_folders(files: Iterable[Source]) -> dict[str, int]:
    """Count the files of each folder that has more than it should."""
    count = Counter(str(one.path.parent) for one in files)
    return {folder: n for folder, n in count.items() if n > MAX_IN_FOLDER}


def common_names(files: Iterable[Source]) -> dict[str, list[str]]:
    """List the files of each name that stands more often than it should."""
    of_name = defaultdict(list)
    for one in files:
        if one.path.name != "__init__.py":
            of_name[one.path.name].append(str(one.path))
    return {name: paths for name, paths in of_name.items() if len(paths) > MAX_SAME_NAME}


def unused_modules(files: Iterable[Source]) -> list[str]:
    """List the modules that neither a command, a registry nor the public interface reaches through imports.

    A module is reached when a reached one imports it or has its dotted name in a string, and when it lies in a package
    that a registry loads whole. Commands are all modules of a package ``cli``.
    """
    of_module = {one.module: one for one in files}
    uses = {name: _names(one) & of_module.keys() for name, one in of_module.items()}
    reached: set[str] = set()
    waiting = [m for m in of_module if m in ("commsim", "commsim.__main__") or "cli" in m.split(".")[1:3]]
    waiting += [m for m, one in of_module.items() if "def register(house" in one.text]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += uses[name]
        waiting += [name.rsplit(".", 1)[0]] if "." in name else []
        waiting += [m for package in _loaded_whole(of_module[name]) for m in of_module if m.startswith(f"{package}.")]
    return sorted(of_module.keys() - reached)


def _loaded_whole(one: Source) -> set[str]:
    """Find the packages of which a file imports every module: those of registries."""
    packages: set[str] = set()
    for node in one.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Registry":
            packages |= {str(arg.value) for arg in node.args[1:] if isinstance(arg, ast.Constant)}
            packages |= {one.module for arg in node.args[1:] if isinstance(arg, ast.Name) and arg.id == "__name__"}
    if "def register(house" in one.text:  # a package that it brings, and no name in one, is a registry's
        packages |= {
            text for text in _texts(one) if text.startswith("commsim.") and ":" not in text and ".cli" not in text
        }
    return packages | ({one.module} if "iter_modules(__path__)" in one.text else set())


@functools.cache
def _texts(one: Source) -> set[str]:
    """Find the strings of a file."""
    constants = (node.value for node in one.nodes if isinstance(node, ast.Constant))
    return {text for text in constants if isinstance(text, str)}


@functools.cache
def _names(one: Source) -> set[str]:
    """Find the dotted names that a file imports, or has in a string."""
    package = one.module if one.path.name == "__init__.py" else one.module.rpartition(".")[0]
    names: set[str] = set()
    for node in one.nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            text = node.value.split(":")[0]
            names |= {f"{package}{text}"} if text.startswith(".") else {text, f"commsim.{text}"}
    return names


def unused_definitions(files: Iterable[Source]) -> list[str]:
    """List functions, classes and constants at the top of a module that no shipped module names, its own included.

    Others name it by an import from the module, by an attribute where they import the module, or by a string in a file
    that has the module's name in a string, as the public interface does. What a decorator or a call registers under its
    own name is used; so are the names in ``ENTERED``, which are looked up.
    """
    of_module = {one.module: one for one in files}
    used = {(module, name) for one in of_module.values() for module, name in _used(one, of_module.keys())}
    return [
        f"{one.path}:{node.lineno} {name}"
        for one in of_module.values()
        for node, name in _defined(one)
        if (one.module, name) not in used and name not in ENTERED and not name.startswith("__")
    ]


def _defined(one: Source) -> Iterator[tuple[ast.stmt, str]]:
    """Find what a module defines at its top, but for what is registered there, and names of an enumeration."""
    for node in one.tree.body:
        if isinstance(node, Definition | ast.ClassDef):
            names = {name.id for top in node.decorator_list for name in ast.walk(top) if isinstance(name, ast.Name)}
            if names <= PLAIN_DECORATORS:
                yield node, node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            call = node.value if isinstance(node.value, ast.Call) else None
            said = {arg.value for arg in call.args if isinstance(arg, ast.Constant)} if call else set()
            counted = call is not None and isinstance(call.func, ast.Name) and call.func.id == "range"
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                stored = (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
                yield from ((node, name) for name in stored if name not in said and not counted)


def _used(one: Source, modules: Set[str]) -> Iterator[tuple[str, str]]:
    """Find the names of modules that a file uses, as far as its text says."""
    nodes, names = one.nodes, _names(one)
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    texts = _texts(one)
    loaded = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    yield from ((one.module, name) for name in loaded)
    yield from ((module, name) for module in names & modules for name in attributes)
    for name in names:
        module, _, last = name.rpartition(".")
        yield module, last
    for text in texts:
        module, _, name = text.partition(":")
        for known in {module, f"commsim.{module}"} & modules:
            yield from ((known, word) for word in ({name} if name else texts))


def kernels(files: Iterable[Source]) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """Find every jitted function."""
    for one in files:
        if not any(f"@{name}" in one.text for name in KERNEL_DECORATORS):  # most have none: do not walk their trees
            continue
        for node in one.nodes:
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id in KERNEL_DECORATORS for d in node.decorator_list
            ):
                yield one, node


def untyped_kernels(files: Iterable[Source]) -> list[str]:
    """List the kernels that name ``Any`` in their signature, or leave a parameter without a type."""
    wrong = []
    for one, node in kernels(files):
        types = [argument.annotation for argument in _arguments(node)] + [node.returns]
        if any(t is None or any(isinstance(x, ast.Name) and x.id == "Any" for x in ast.walk(t)) for t in types):
            wrong.append(f"{one.path}:{node.lineno} {node.name}")
    return wrong


def long_signatures(files: Iterable[Source]) -> list[str]:
    """List the kernels that take more arguments than they should."""
    found = ((one, node, len(_arguments(node))) for one, node in kernels(files))
    return [f"{one.path}:{node.lineno} {node.name}: {n}" for one, node, n in found if n > MAX_ARGUMENTS]


def unknown_parameters(files: Iterable[Source]) -> list[str]:
    """List the names in docstrings' Parameters that the function does not take, as a renaming may leave them."""
    wrong = []
    for one in files:
        for node in one.nodes:
            section = _PARAMETERS.search(ast.get_docstring(node) or "") if isinstance(node, Definition) else None
            if section is None or not isinstance(node, Definition):
                continue
            known = {a.arg for a in (*_arguments(node), node.args.vararg, node.args.kwarg) if a is not None}
            for line in re.findall(r"^\w.*$", section[1], re.MULTILINE):
                names = re.split(r",\s*", line.split(" : ")[0])
                wrong += [f"{one.path}:{node.lineno} {node.name}: {name}" for name in names if name not in known]
    return wrong


def _arguments(node: Definition) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
