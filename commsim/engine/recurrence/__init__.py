"""The flow engine where no message shares a link: recurrences, no event queue."""
