"""Spanning trees by brute force: the largest fractional packing, and the worst cut over all sets of nodes."""

import itertools
from fractions import Fraction

import numpy as np


def worst_cut(whole, weight):
    """Largest ratio of the weight in a set to what leaves it, over all sets that miss a rank; Fraction."""
    n = whole.n_ranks
    best = Fraction(0)
    for members in itertools.product((False, True), repeat=whole.n_nodes):
        side = np.array(members)
        inside = int(weight[side[:n]].sum())
        if inside and not side[:n].all():
            leaves = int(whole.rate[side[whole.src] & ~side[whole.dst]].sum())
            best = max(best, Fraction(inside, leaves))
    return best


def spanning_trees(arcs, n_nodes, root):
    """All sets of arcs that lead from the root to every node, one into each other node."""
    into = [[e for e, (_, b) in enumerate(arcs) if b == node] for node in range(n_nodes) if node != root]
    for chosen in itertools.product(*into):
        parent = {arcs[e][1]: arcs[e][0] for e in chosen}
        if all(_leads(parent, node, root, n_nodes) for node in parent):
            yield chosen


def _leads(parent, node, root, n_nodes):
    for _ in range(n_nodes):
        if node == root:
            return True
        node = parent[node]
    return node == root


def most_trees(arcs, rates, n_nodes, roots):
    """Most trees of equal numbers per root that fit the rates, cut as finely as one likes, by a linear program."""
    from scipy.optimize import linprog

    columns = [(root, tree) for root in roots for tree in spanning_trees(arcs, n_nodes, root)]
    use = np.zeros((len(arcs), len(columns) + 1))
    share = np.zeros((len(roots), len(columns) + 1))
    for c, (root, tree) in enumerate(columns):
        use[list(tree), c] = 1.0
        share[roots.index(root), c] = 1.0
    share[:, -1] = -1.0
    cost = np.zeros(len(columns) + 1)
    cost[-1] = -1.0
    return -linprog(cost, use, rates, share, np.zeros(len(roots))).fun


def most_sums(arcs, rates, n_nodes):
    """Most that trees towards a root and trees from it carry together, over all roots, by a linear program."""
    from scipy.optimize import linprog

    back = [(b, a) for a, b in arcs]
    down = [(root, tree) for root in range(n_nodes) for tree in spanning_trees(arcs, n_nodes, root)]
    up = [(root, tree) for root in range(n_nodes) for tree in spanning_trees(back, n_nodes, root)]
    use = np.zeros((len(arcs), len(down) + len(up)))
    equal = np.zeros((n_nodes, len(down) + len(up)))
    for c, (root, tree) in enumerate((*down, *up)):
        use[list(tree), c] = 1.0
        equal[root, c] = 1.0 if c < len(down) else -1.0
    cost = np.array([-1.0] * len(down) + [0.0] * len(up))
    return -linprog(cost, use, rates, equal, np.zeros(n_nodes)).fun
