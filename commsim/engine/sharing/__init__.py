"""Max-min fair sharing among the slots of the flow engine: rates are found again only where something changes."""
