"""How many servers a collective has where nobody said."""

from commsim.prediction.build import prepare


def check_servers(name, key, star):
    """Check that servers sit on all hosts of a star of 16 that are free."""
    assert prepare(name, star, n_ranks=8).parameters[key] == 8
    assert prepare(name, star, n_ranks=12).parameters[key] == 4
    joined = f"{name}{',' if ':' in name else ':'}"
    assert prepare(f"{joined}{key}=2", star, n_ranks=8).parameters[key] == 2
    assert prepare(f"{joined}colocated=true", star, n_ranks=8).schedule.n_helpers == 0
    assert prepare(f"{joined}{key}=1", star).schedule.n_ranks == 15  # all hosts but the server's
    for every in (prepare(name, star), prepare(name, star, n_ranks=16)):  # no host is left for a server of its own
        assert (every.schedule.n_ranks, every.schedule.n_helpers, every.parameters["colocated"]) == (16, 0, True)
