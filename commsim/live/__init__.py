"""The switch that real workers talk to over UDP: its verbs; the switch itself is in switch_model."""

# Other extensions that this one imports.
NEEDS: tuple[str, ...] = ("switch_model",)
