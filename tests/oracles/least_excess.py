"""The optimum of a link's score as an integer program, for small cases."""

import numpy as np


def least_excess(circle, part):
    """Solve for the rotations of one link's jobs by branch and cut.

    One binary variable says whether job j is rotated by k; one continuous variable per angle is at least the demand
    above the capacity, and their mean is minimised.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n, positions = circle.n_angles, circle.n_positions
    owner = np.repeat(np.arange(len(positions)), positions)
    turn = np.concatenate([np.arange(count) for count in positions])
    columns = circle.reach - turn[:, None] + np.arange(n)
    demand = (circle.demand[owner[:, None], columns] * part[owner][:, None]).T  # [n, n_turns]
    one_each = (owner == np.arange(len(positions))[:, None]).astype(np.float64)
    upper = np.where((owner == 0) & (turn > 0), 0.0, 1.0)  # the first job stays where it is
    found = milp(
        np.concatenate((np.zeros(len(turn)), np.full(n, 1 / n))),
        integrality=np.concatenate((np.ones(len(turn)), np.zeros(n))),
        bounds=Bounds(0.0, np.concatenate((upper, np.full(n, np.inf)))),
        constraints=[
            LinearConstraint(np.hstack((one_each, np.zeros((len(positions), n)))), 1.0, 1.0),
            LinearConstraint(np.hstack((demand, -np.eye(n))), -np.inf, 1.0),
        ],
        options={"mip_rel_gap": 0.0},
    )
    chosen = found.x[: len(turn)] > 0.5
    return float(found.fun), turn[chosen].astype(np.int64)
