"""The code of kernels: of those within others LLVM code only, of those that Python calls machine code."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

import llvmlite.binding as llvm
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import lookup_environment

from commsim.core.interrupts import signals_held

ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba names the places of the constants of a function
SHARED = "linkonce_odr"  # linkage of what may be defined in several modules, and is left out where nothing uses it
# Named here so that a version of llvmlite without them is found at the import: what is marked is inlined, and what
# nothing uses goes.
INLINE = llvm.ModulePassManager.add_always_inliner_pass
REMOVE = llvm.ModulePassManager.add_global_dead_code_eliminate_pass
INLINED = "alwaysinline"
# Instructions of a function that is inlined though it is not marked: about as many as its call takes.
SHORT = 16


class Linked(JITCodeLibrary):
    """LLVM code of a kernel that is linked into others: simplified, since each of them reads it, but not compiled.

    It is without the code of the kernels that it calls, which whoever becomes machine code links once each: Numba's own
    libraries hold all that they call, so that each caller copies it again.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def finalize(self) -> None:
        """Take no more code."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def has_dynamic_globals(self) -> bool:
        """Whether its code, or what it calls, holds an address in this process."""
        return any(one._dynamic_globals for one in reached((self,)))

    @functools.cached_property
    def own_code(self) -> Any:
        """Its own code, which callers copy as they link it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = SHARED
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """Return its code with all that it calls, for libraries of Numba's own."""
        if self._shared_module is None:
            whole = self.own_code.clone()
            for library in reached(self._linking_libraries):
                whole.link_in(code_of(library), preserve=True)
            self._shared_module = whole
        return self._shared_module

    def serialize_using_object_code(self) -> tuple[str, str, list[tuple[bytes, tuple[Any, ...]]]]:
        """Return what :func:`rebuild_linked` reads: its LLVM code, and that of each library that it calls."""
        return self.name, "linked", [_kept(one) for one in reached((self,))]


class Kept(Linked):
    """LLVM code from the disk, which is read when something is linked that calls it."""

    def __init__(self, codegen: Any, kept: tuple[bytes, tuple[Any, ...]]) -> None:
        super().__init__(codegen, "kept")
        self.kept = kept
        self._finalized = True

    @functools.cached_property
    def own_code(self) -> Any:
        """Its own code."""
        return llvm.parse_bitcode(self.kept[0])


def reached(libraries: Iterable[Any]) -> list[Any]:
    """List libraries and those that they call, each once; those that are not :class:`Linked` hold what they call."""
    found: dict[Any, None] = {}
    waiting = [*libraries][::-1]
    while waiting:
        if (one := waiting.pop()) not in found:
            found[one] = None
            waiting += one._linking_libraries[::-1] if isinstance(one, Linked) else ()
    return list(found)


def code_of(library: Any) -> Any:
    """Return the code that a library adds to what is linked with all that it calls."""
    return library.own_code if isinstance(library, Linked) else library._get_module_for_linking()


@functools.cache
def _kept(library: Any) -> tuple[bytes, tuple[Any, ...]]:
    """Return what the disk keeps of a library: its own code, and the constants that this reads from Python."""
    if isinstance(library, Kept):
        return library.kept
    module = code_of(library)
    names = [one.name for one in module.global_variables if one.name.startswith(ENVIRONMENT)]
    found = [lookup_environment(name) for name in names]
    return module.as_bitcode(), tuple(one for one in found if one is not None and one.can_cache())


class Called(JITCodeLibrary):
    """Machine code of a kernel that Python calls, with all kernels within it."""

    counts_references, has_long_loops = True, False

    def finalize(self) -> None:
        """Link what it calls, and optimize all of it."""
        for library in reached(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(code_of(library), preserve=True)
        self._linking_libraries.clear()
        super().finalize()

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code, and a module with names only of what it defines, which is all that Numba reads."""
        module = self._final_module
        defined = [f'define void @"{one.name}"() {{ ret void }}' for one in module.functions if not one.is_declaration]
        defined += [f'@"{one.name}" = global i8 0' for one in module.global_variables if not one.is_declaration]
        names = llvm.parse_assembly("\n".join(defined))
        return self.name, "object", (self._get_compiled_object(), names.as_bitcode())

    def _optimize_final_module(self) -> None:
        if self.counts_references:  # inlined first, by passes of their own, so that counts of references meet
            cheap, builder = self._codegen._module_pass_manager(loop_vectorize=False, opt=0, cost="cheap")
            cheap.run(self._final_module, builder)
        if not (self.counts_references or self.has_long_loops) and _marks_functions():
            self._simplify()
            return
        builder = self._builder(most=3)
        passes = builder.getModulePassManager()
        if self.counts_references:
            passes.add_refprune_pass()
        passes.run(self._final_module, builder)

    def _simplify(self) -> None:
        """Inline what is marked, then simplify each function once: there is nothing that LLVM could find by inlining.

        LLVM's own order for a module simplifies each function before, while and after it decides what to inline.
        """
        builder, shrinking = self._builder(most=1), llvm.create_new_module_pass_manager()
        for function in self._final_module.functions:
            if function.linkage == llvm.Linkage.linkonce_odr and _is_short(function):
                function.add_function_attribute(INLINED)
        INLINE(shrinking)
        REMOVE(shrinking)
        shrinking.run(self._final_module, builder)
        passes = builder.getFunctionPassManager()
        for function in self._final_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        shrinking.run(self._final_module, builder)  # with addresses of objects, which had dead readers

    def _builder(self, most: int) -> Any:
        """Return what makes LLVM's passes, of a level at most, in which only long loops are unrolled and vectorized."""
        tuning = llvm.create_pipeline_tuning_options(min(most, int(config.OPT)))  # type: ignore[attr-defined]
        tuning.loop_unrolling = tuning.loop_vectorization = self.has_long_loops
        return llvm.create_pass_builder(self._codegen._tm, tuning)

    def _optimize_functions(self, ll_module: Any) -> None:
        # the passes over the whole, after linking, do what those over each function would do
        ll_module.data_layout = self._codegen._data_layout

    def _finalize_final_module(self) -> None:
        with signals_held():  # LLVM calls Python, where an exception would be swallowed
            super()._finalize_final_module()


@functools.cache
def from_disk(codegen: Any, code: bytes, environments: tuple[Any, ...]) -> Kept:
    """Return one library for each code, however many kernels call it."""
    return Kept(codegen, (code, environments))


@functools.cache
def _marks_functions() -> bool:
    """Whether llvmlite marks a function: before 0.48 it marks what the function returns, which LLVM refuses."""
    function = llvm.parse_assembly("define void @f() { ret void }").get_function("f")
    function.add_function_attribute(INLINED)
    return INLINED.encode() in function.attributes


def _is_short(function: Any) -> bool:
    """Whether a function of a module takes about as long as its call."""
    few = islice(chain.from_iterable(block.instructions for block in function.blocks), SHORT + 1)
    return 0 < sum(1 for _ in few) <= SHORT and not any(b"noinline" in one for one in function.attributes)
