"""How Numba compiles kernels: those that Python calls to machine code, those within them only to be linked.

Numba makes of each function machine code, a door for Python and one for C, and optimizes it before it is linked into
its callers, which are optimized again. Of a kernel that only other kernels call none of this is used: its callers take
its LLVM code, and most inline it. Leaving it out more than halves the time until a command is compiled.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import llvmlite.binding as llvm
from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import compiler, config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import AnnotateTypes, NativeLowering
from numba.core.typing import templates

from commsim.core.interrupts import signals_held

from .tables_type import LowerWithCopies, LowerWithoutReferences

_USUAL_JIT = templates._OverloadFunctionTemplate._get_jit_decorator
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
    """LLVM code of a kernel that is linked into others: simplified, since each of them reads it, but not compiled."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return its code, which callers copy as they link it; Numba's makes another copy, that differs in linkage."""
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = SHARED
            self._shared_module = self._final_module
        return self._shared_module

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what :func:`rebuild_linked` reads: its LLVM code only."""
        return self.name, "linked", self._get_module_for_linking().as_bitcode()


class Called(JITCodeLibrary):
    """Machine code of a kernel that Python calls, with all kernels within it."""

    counts_references, has_long_loops = True, False

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


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerLinked(NativeLowering):
    """Lower to LLVM code only."""

    _name = "lower_linked"
    lowering_class = LowerWithoutReferences

    def run_pass(self, state: Any) -> bool:
        """Lower without wrappers, and enter the kernel for its callers."""
        state.library = Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().run_pass(state)
        state.library.finalize()
        lowered = state["cr"]
        key = _entry_point(lowered.fndesc, lowered.env, state.library)
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class LowerCalled(NativeLowering):
    """Lower to machine code that Python calls."""

    _name = "lower_called"
    lowering_class = LowerWithCopies

    def run_pass(self, state: Any) -> bool:
        """Lower without a wrapper for C, and give the kernels within their constants."""
        state.library = Called(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.counts_references = bool(state.flags.nrt)
        state.library.has_long_loops = state.pipeline.has_long_loops
        state.library.enable_object_caching()
        state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT) and (environment := lookup_environment(variable.name)) is not None:
                state.library.codegen.set_env(variable.name, environment)
        return True


class HashedFlags(compiler.Flags):
    """Numba's flags, hashed and compared once: Numba does both for each overload that it tries at each call.

    They are those of a compilation that has begun, which nothing changes. Numba writes the name of the class into
    names of functions.
    """

    kept: tuple[tuple[str, Any], ...] = ()

    def copy(self) -> HashedFlags:
        """Return flags that are kept as they are."""
        copied = HashedFlags(self)
        copied.kept = tuple(copied.values().items())
        return copied

    def __hash__(self) -> int:
        return hash(type(self))

    def __eq__(self, other: object) -> bool:
        kept, others = self.kept, getattr(other, "kept", ())
        return kept == others if kept and others else bool(super().__eq__(other))


class Compiler(CompilerBase):
    """What both compilers share."""

    def _compile_core(self) -> Any:
        self.state.flags = HashedFlags(self.state.flags)
        with _overloads_linked():
            return super()._compile_core()


class LinkedCompiler(Compiler):
    """Of kernels that other kernels call, and of Numba's own functions within them."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes with another lowering."""
        return [_passes(self.state, LowerLinked)]


class FromFrontCompiler(LinkedCompiler):
    """Of kernels that other kernels call and whose indices are not negative: the context is this compilation's own."""

    def define_pipelines(self) -> list[Any]:
        """Return the same passes, with a context that tells :mod:`commsim.core.compiling.array_items`."""
        self.state.targetctx.counts_from_front = True
        return super().define_pipelines()


class CalledCompiler(Compiler):
    """Of kernels that Python calls; loops are left as they are, which saves a third of LLVM's time."""

    has_long_loops = False

    def define_pipelines(self) -> list[Any]:
        """Return Numba's passes with another lowering."""
        return [_passes(self.state, LowerCalled)]


class LongLoopsCompiler(CalledCompiler):
    """Of kernels that Python calls and whose loops are unrolled and vectorized."""

    has_long_loops = True


@contextlib.contextmanager
def _overloads_linked() -> Iterator[None]:
    """Have Numba compile its own functions, such as those of NumPy, only to be linked while it compiles a kernel."""
    usual = templates._OverloadFunctionTemplate._get_jit_decorator
    if usual is _linked_jit:
        yield
        return
    templates._OverloadFunctionTemplate._get_jit_decorator = _linked_jit  # type: ignore[method-assign]
    try:
        yield
    finally:
        templates._OverloadFunctionTemplate._get_jit_decorator = usual  # type: ignore[method-assign]


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


def _linked_jit(template: Any) -> Any:
    jit = _USUAL_JIT(template)
    return lambda **options: jit(**{"pipeline_class": LinkedCompiler, **options})


def widened(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace the types of signed integers, and of constants, by int64, to which Numba converts them at the call.

    Numba would compile a kernel once for each mixture of them: ten times where there are two kinds of arrays.
    """
    plain = [types.unliteral(kind) for kind in arguments]
    return tuple(types.int64 if kind in types.signed_domain else kind for kind in plain)


def rebuild_linked(context: Any, *reduced: Any) -> Any:
    """Make of what is on the disk a compiled kernel that can be linked; its counterpart of `CompileResult._rebuild`."""
    (name, _, code), fndesc, environment, signature, objectmode, lifted, typeann, reload_init, environments = reduced
    library = Linked(context.codegen(), name)
    library._final_module = library._shared_module = llvm.parse_bitcode(code)
    library._finalize_final_module()
    return compile_result(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=_entry_point(fndesc, environment, library),
        fndesc=fndesc,
        type_annotation=typeann,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _entry_point(fndesc: Any, environment: Any, library: Any) -> Any:
    """Return the object by which Numba knows a compiled function; it cannot be called from Python."""
    return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "linked only", 0, environment, (library,))


def _passes(state: Any, lowering: type) -> Any:
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes[:] = [
        (lowering if step is NativeLowering else step, text)
        for step, text in passes.passes
        if step is not AnnotateTypes  # the source with its types, for whoever reads it, in each file of the cache
    ]
    return passes
