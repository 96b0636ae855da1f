"""Times without an event queue: recurrences, where messages or aggregated packets have their links to themselves."""
