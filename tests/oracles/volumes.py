"""What each participant of a schedule sends, counted one transfer at a time."""

import numpy as np

from commsim.core.schedule import Schedule


def volumes(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares of the vector that each participant sends and receives, and messages that it sends; none to itself."""
    sent, received, messages = (np.zeros(schedule.n_participants) for _ in range(3))
    for t in schedule.expand():
        if t["src"] != t["dst"]:
            sent[t["src"]] += t["count"] / schedule.n_chunks
            received[t["dst"]] += t["count"] / schedule.n_chunks
            messages[t["src"]] += 1
    return sent, received, messages
