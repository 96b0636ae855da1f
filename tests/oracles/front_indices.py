"""Kernels in plain Python whose indices are looked at: compiled, some take a negative one as it is."""

import ast
import functools
import inspect
import textwrap

import numpy as np

NAME = "_from_front"


def from_front(index):
    """Return an index that is not negative, or is no number.

    Raises
    ------
    IndexError
        If it is: compiled, the kernel would read or write memory before the array.
    """
    if isinstance(index, int | np.integer) and index < 0:
        raise IndexError(f"index {index} of a kernel that counts from the front is negative")
    return index


class _Looks(ast.NodeTransformer):
    """Has each index that is neither a name of a field nor a range looked at."""

    def visit_Subscript(self, node):
        node.slice = (
            ast.Tuple([self._looked(one) for one in node.slice.elts], ast.Load())
            if isinstance(node.slice, ast.Tuple)
            else self._looked(node.slice)
        )
        node.value = self.visit(node.value)
        return node

    def visit_AnnAssign(self, node):
        """Leave the type as it is."""
        node.target, node.value = self.visit(node.target), node.value and self.visit(node.value)
        return node

    def _looked(self, index):
        index = self.visit(index)
        if isinstance(index, ast.Constant | ast.Slice):
            return index
        return ast.Call(ast.Name(NAME, ast.Load()), [index], [])


def looked_at(function):
    """Return a kernel as plain Python that raises where an index is negative."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (body,) = tree.body
    body.decorator_list, body.returns = [], None
    body.args.args = [ast.arg(one.arg) for one in body.args.args]
    body.body = [_Looks().visit(one) for one in body.body]
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    function.__globals__.setdefault(NAME, from_front)
    made = {}
    exec(compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec"), function.__globals__, made)
    return functools.update_wrapper(made[function.__name__], function)
