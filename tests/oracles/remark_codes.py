"""Which remarks were made, by their codes."""


def codes(said):
    """Return the codes of remarks."""
    return {one.code for one in said}
