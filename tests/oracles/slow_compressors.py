"""Compressors as loops over Python floats, written without the code that they judge: what a vector decodes to.

Floats are rounded to float32 where the wire carries float32.
"""

import numpy as np


def slow_top_k(vector, k):
    order = sorted(range(len(vector)), key=lambda i: (-abs(vector[i]), i))
    return [vector[i] if i in order[:k] else 0.0 for i in range(len(vector))]


def slow_threshold(vector, above):
    return [x if abs(x) > above else 0.0 for x in vector]


def slow_sign(vector):
    scale = float(np.float32(sum(abs(float(x)) for x in vector) / len(vector)))
    return [-scale if x < 0 else scale for x in vector]


def slow_one_bit(vector, columns):
    means = {}
    for c in range(columns):
        column = [float(x) for x in vector[c::columns]]
        for negative in (False, True):
            side = [x for x in column if (x < 0) == negative]
            means[c, negative] = float(np.float32(sum(side) / len(side))) if side else 0.0
    return [means[i % columns, x < 0] for i, x in enumerate(vector)]


def slow_dgc(gradients, momentum, clip, counts):
    """What one rank sends in each step, and what it has accumulated in the end; clip is its own norm, 0 for none."""
    n = len(gradients[0])
    velocity, accumulated, sent = [0.0] * n, [0.0] * n, []
    for gradient, k in zip(gradients, counts, strict=True):
        norm = sum(x * x for x in gradient) ** 0.5
        factor = clip / norm if clip and norm > clip else 1.0
        for i in range(n):
            velocity[i] = momentum * velocity[i] + factor * gradient[i]
            accumulated[i] += velocity[i]
        step = slow_top_k(accumulated, k)
        for i in range(n):
            if step[i]:
                accumulated[i] = velocity[i] = 0.0
        sent.append(step)
    return sent, accumulated


def slow_power_sgd(steps, rank, columns, start):
    """Sums that all ranks decode in each step, for matrices [steps][ranks][n]; and the ranks' residuals in the end.

    Gram-Schmidt in place of a library's factorisation: the product of the factors does not depend on the signs.
    """
    n_ranks, n = len(steps[0]), len(steps[0][0])
    residuals, totals = [np.zeros(n) for _ in range(n_ranks)], []
    for gradients in steps:
        wanted = [g + e for g, e in zip(gradients, residuals, strict=True)]
        matrices = [np.append(w, np.zeros(-n % columns)).reshape(-1, columns) for w in wanted]
        left = sum(matrix @ start for matrix in matrices)
        for j in range(rank):
            for i in range(j):
                left[:, j] -= (left[:, i] @ left[:, j]) * left[:, i]
            left[:, j] /= np.linalg.norm(left[:, j])
        rights = [matrix.T @ left for matrix in matrices]
        start = sum(rights)
        residuals = [w - (left @ r.T).ravel()[:n] for w, r in zip(wanted, rights, strict=True)]
        totals.append((left @ start.T).ravel()[:n])
    return totals, residuals
