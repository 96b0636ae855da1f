"""Times without an event queue: recurrences, where no messages or aggregated packets share links."""
