"""How many servers a collective has where nobody said."""

from commsim.prediction.build import prepare


def check_servers(name, key, star):
    """Check that servers sit on all hosts of a star of 16 that are free."""
    assert prepare(name, star, n_ranks=8).parameters[key] == 8
    assert prepare(name, star, n_ranks=12).parameters[key] == 4
    joined = f"{name}{',' if ':' in name else ':'}"
    assert prepare(f"{joined}{key}=2", star, n_ranks=8).parameters[key] == 2
    assert prepare(f"{joined}colocated=true", star, n_ranks=8).schedule.n_helpers == 0
    assert prepare(name, star).schedule.n_helpers == 1  # as many ranks as there are hosts but one
