"""Floors of what machines should reach, and what watching a running job costs."""
