"""Trees of switches for tests of schedulers' files."""

from drawn_inputs import names
from hypothesis import strategies as st

from commsim.placement.schedulers.fabric_tree import Blocks, Switch, SwitchTree


@st.composite
def trees(draw, balanced=False):
    """Leaves over nodes, switches over these, up to one top; all of a tier on the same tier if balanced."""
    n_leaves = draw(st.integers(1, 5))
    sizes = [draw(st.integers(1, 4)) for _ in range(n_leaves)]
    nodes = draw(names(sum(sizes)))
    switches, tier = [], []
    for i, size in enumerate(sizes):
        switches.append(Switch(f"leaf{i}", nodes=tuple(nodes[sum(sizes[:i]) : sum(sizes[:i]) + size])))
        tier.append(f"leaf{i}")
    level = 0
    while len(tier) > 1:
        level += 1
        cut = draw(st.integers(1, len(tier))) if level < 3 else len(tier)
        groups = [tier[i : i + cut] for i in range(0, len(tier), cut)]
        if not balanced:  # a switch alone need not have one above it until the top
            kept = [group[0] for group in groups if len(group) == 1 and len(groups) > 1]
            groups = [group for group in groups if group[0] not in kept or len(group) > 1]
        else:
            kept = []
        above = [f"tier{level}-{i}" for i in range(len(groups))]
        switches += [Switch(name, switches=tuple(group)) for name, group in zip(above, groups, strict=True)]
        tier = above + kept
        if level >= 3 and len(tier) > 1:
            switches.append(Switch("top", switches=tuple(tier)))
            break
    return SwitchTree(tuple(switches))


@st.composite
def blocks(draw):
    """Blocks of nodes, with sizes or without."""
    n, base = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    sizes = [base + draw(st.integers(0, 2)) for _ in range(n)]
    found = draw(names(sum(sizes)))
    cut = [(f"b{i}", tuple(found[sum(sizes[:i]) : sum(sizes[: i + 1])])) for i in range(n)]
    return Blocks(tuple(cut), draw(st.sampled_from([(), (base,), (base, 2 * base, 8 * base)])))
