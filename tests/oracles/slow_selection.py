"""Lossy all-reduces on plain Python dictionaries from index to value: slow, and written without the code they judge.

Every function returns (result, residuals, numbers): what all ranks end with, what each rank cut away after it had
selected, and how many elements each rank sent to others.
"""


def largest(elements, k):
    """The k of largest magnitude, of equals those of lower index."""
    order = sorted(elements, key=lambda i: (-abs(elements[i]), i))
    return {i: elements[i] for i in order[:k]}


def selected(gradient, k):
    """What a rank starts with: its k largest, without zeros."""
    return largest({i: x for i, x in enumerate(gradient) if x != 0}, k)


def added(a, b):
    """The sum of two lists, `a` on the left."""
    return {i: a[i] + b[i] if i in a and i in b else a.get(i, b.get(i)) for i in a.keys() | b.keys()}


def rest(whole, kept):
    """What is in one and not in the other."""
    return {i: x for i, x in whole.items() if i not in kept}


def slow_topk_a(lists):
    total = lists[0]
    for one in lists[1:]:
        total = added(total, one)
    return total, [{} for _ in lists]


def slow_gtop_k(lists, k):
    held, residuals, sent = list(lists), [{} for _ in lists], [0] * len(lists)
    distance = 1
    while distance < len(lists):
        distance *= 2
    while distance > 1:
        distance //= 2
        for receiver in range(distance):
            sender = receiver + distance
            if sender < len(held):
                sent[sender] += len(held[sender])
                whole = added(held[receiver], held[sender])
                held[receiver] = largest(whole, k)
                residuals[receiver] = added(residuals[receiver], rest(whole, held[receiver]))
        del held[distance:]
    return held[0], residuals, sent


def mean_bounds(lists, n, p):
    """Where the ranks' lists split evenly, on average."""
    cuts = [[sorted(one)[c * len(one) // p] for c in range(1, p)] for one in lists if one] or [[0] * (p - 1)]
    return [0, *(round(sum(cut) / len(cuts)) for cut in zip(*cuts, strict=True)), n]


def slow_ok_topk(lists, bounds, cut):
    """`cut` is what an owner keeps: from its range and the sum to what survives."""
    p = len(lists)
    total, residuals, sent = {}, [{} for _ in lists], [0] * p
    for owner in range(p):
        mine = range(bounds[owner], bounds[owner + 1])
        parts = [{i: x for i, x in one.items() if i in mine} for one in lists]
        whole = parts[owner]
        for r in range(p):
            if r != owner:
                sent[r] += len(parts[r])
                whole = added(whole, parts[r])
        kept = cut(owner, whole)
        residuals[owner] = rest(whole, kept)
        total |= kept
    return total, residuals, sent


def slow_hitopk(gradients, groups, k):
    """Sums of equal ranges inside groups, the share of k of each, and their sum over the groups in order."""
    n, size = len(gradients[0]), len(groups[0])
    total, residuals = {}, [{} for _ in gradients]
    for place in range(size):
        shard = range(place * n // size, (place + 1) * n // size)
        lists = []
        for group in groups:
            whole = {}
            for j in range(size):  # the ring that ends at the owner starts with the rank behind it
                member = gradients[group[(place + 1 + j) % size]]
                whole = added({i: member[i] for i in shard}, whole)
            kept = largest(whole, -(-k // size))
            residuals[group[place]] = rest(whole, kept)
            lists.append(kept)
        total |= slow_topk_a(lists)[0]
    return total, residuals
