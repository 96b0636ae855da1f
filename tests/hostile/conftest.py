import resource

from fuzzing import ATTACKS


def pytest_terminal_summary(terminalreporter):
    """Say how many attacks there were, by area, and what they took at most."""
    if ATTACKS:
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
        counts = ", ".join(f"{n:,} {area}" for area, n in ATTACKS.items())
        terminalreporter.write_line(f"attacks: {counts}; largest process {peak:,.0f} MB")
