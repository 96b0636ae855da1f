"""The quicker versions answer what Numba's own do, for functions that are compiled with both."""

import llvmlite.ir
import numba
import numpy as np
import pytest
from numba.core import ir, types
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target

from commsim.core.compiling import faster_numba
from commsim.core.compiling.pipelines import pipelines
from commsim.core.jit import _is_disabled

pytestmark = pytest.mark.skipif(_is_disabled(), reason="nothing is compiled")


@pytest.fixture
def own():
    """Numba's own functions, until the end of the test."""
    pipelines()
    was_ours = ir.Inst._rec_list_vars is faster_numba.list_vars_within
    faster_numba.remove()
    yield
    if was_ours:
        faster_numba.install()


def loops(a, b):
    total, names = 0, (a[0], 2.5, b.shape)
    for i in range(len(a)):
        if a[i] > b[i] and names[1] > 1:
            total += int(a[i]) % 7 - b[i] // 3
    return total, max(names[0], b[1]), names[2][0]


def calls(a, b):
    found = np.zeros(len(a) + 1, np.float64)
    found[1:] = np.cumsum(a * 2 - b)
    found[found < 0] = min(found.min(), -1.5)
    return found, np.searchsorted(found, b.sum()), np.abs(found[::-1]) ** 0.5


A, B = np.arange(9, dtype=np.int64) * 5 - 11, np.arange(9, dtype=np.int32)


def compiled(function):
    """Types of all variables and calls, and the answer."""
    anew = numba.njit(function)
    answer = anew(A, B)
    (found,) = anew.overloads.values()
    notes = found.type_annotation
    return dict(notes.typemap), [str(one) for one in notes.calltypes.values()], str(found.signature), answer


@pytest.mark.parametrize("function", [loops, calls])
def test_functions_get_the_types_and_answers_that_numba_gives(own, function):
    kinds, of_calls, signature, answer = compiled(function)
    faster_numba.install()
    for _ in range(2):  # then from what is remembered
        again = compiled(function)
        assert again[0] == kinds
        assert again[1:3] == (of_calls, signature)
        for one, other in zip(again[3], answer, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", [loops, calls, compiled])
def test_every_instruction_has_the_variables_that_numba_lists(own, function):
    instructions = [one for block in numba.core.compiler.run_frontend(function).blocks.values() for one in block.body]
    values = [*instructions, *(one.value for one in instructions if isinstance(one, ir.Assign))]
    wanted = [[variable.name for variable in one.list_vars()] for one in values if isinstance(one, ir.Inst)]
    faster_numba.install()
    assert [[variable.name for variable in one.list_vars()] for one in values if isinstance(one, ir.Inst)] == wanted
    assert max(map(len, wanted)) > 2


def test_a_call_that_has_no_type_is_refused_as_numba_refuses_it(own):
    def wrong(a):
        return a + None

    messages = []
    for change in (faster_numba.remove, faster_numba.install):
        change()
        with pytest.raises(numba.TypingError) as raised:
            numba.njit(wrong)(1)
        messages.append(str(raised.value).split())  # each further refusal is indented by one space more
    assert messages[0] == messages[1]


def test_types_have_the_size_and_alignment_that_llvm_says(own):
    context = cpu_target.target_context
    kinds = [types.int8, types.float64, types.complex128, types.boolean, types.UniTuple(types.int32, 3),
             types.Array(types.int64, 2, "C"), types.Tuple((types.int8, types.float64, types.uint16))]  # fmt: skip
    kinds = [context.get_value_type(kind) for kind in kinds]
    wanted = [(context.get_abi_sizeof(kind), context.get_abi_alignment(kind)) for kind in kinds]
    faster_numba.install()
    for _ in range(2):
        assert [(context.get_abi_sizeof(kind), context.get_abi_alignment(kind)) for kind in kinds] == wanted
    assert len(set(wanted)) > 4


@pytest.mark.parametrize("counts", [False, True])
def test_the_end_of_a_variable_is_marked_where_references_are_counted(own, monkeypatch, counts):
    marked, usual = [], PostProcessor._insert_var_dels
    monkeypatch.setattr(PostProcessor, "_insert_var_dels", lambda self, **of: (marked.append(1), usual(self, **of))[1])
    faster_numba.install()
    values = np.arange(5.0)
    numba.njit(_nrt=counts)(halve)(values)
    assert list(values) == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert bool(marked) == counts


def halve(a):
    for i in range(len(a)):
        a[i] /= 2


def test_generators_are_compiled_with_either(own):
    def in_turn(a):
        count = 0
        for x in a:
            if x > 2:
                count += x
            yield count

    for change in (faster_numba.remove, faster_numba.install):
        change()
        assert list(numba.njit(in_turn)(A)) == list(in_turn(A))


def test_a_value_refers_to_what_numba_says(own):
    rows = types.Array(types.int64, 1, "C")
    mixed = types.Tuple((types.int32, types.Array(types.int8, 1, "A"), types.UniTuple(rows, 2)))
    kinds = (types.int64, types.Array(types.float64, 2, "C"), mixed, types.Optional(rows), types.List(types.float64))
    # of its own: a context keeps its `nrt`, which without references would be that of all kernels compiled after
    context, noted = cpu_target.target_context.subtarget(enable_nrt=True), []
    for change in (faster_numba.remove, faster_numba.install):
        change()
        module = llvmlite.ir.Module()
        for kind in kinds:
            signature = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [context.get_value_type(kind)])
            function = llvmlite.ir.Function(module, signature, str(kind))
            builder = llvmlite.ir.IRBuilder(function.append_basic_block())
            found = context.nrt.get_meminfos(builder, kind, function.args[0])
            noted.append([(one, str(info.type)) for one, info in found])
    half = len(noted) // 2
    assert noted[:half] == noted[half:]
    assert [len(one) for one in noted[:half]] == [0, 1, 3, 1, 1]
