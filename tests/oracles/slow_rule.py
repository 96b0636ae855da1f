"""The rule of aggregation in words and sets, from the reference's description and nothing else. Knows no kernel."""

from dataclasses import dataclass, field


@dataclass
class SlowSlot:
    """A slot in one version."""

    seen: set[int] = field(default_factory=set)
    counter: int = 0
    complete: bool = False  # whether children can be answered


class SlowSwitch:
    """Reserved slots in two versions; `has_parent` for a switch that is not the root of its tree."""

    def __init__(self, n_slots: int, fan_in: int, has_parent: bool) -> None:
        self.slots = [(SlowSlot(), SlowSlot()) for _ in range(n_slots)]
        self.fan_in, self.has_parent = fan_in, has_parent

    def contribute(self, slot: int, version: int, child: int) -> set[str]:
        here, shadow = self.slots[slot][version], self.slots[slot][1 - version]
        duplicate, first = child in here.seen, not here.seen
        here.seen.add(child)
        shadow.seen.discard(child)
        if duplicate:
            if here.complete:
                return {"duplicate", "read", "sender"}
            if self.has_parent and here.counter == 0:
                return {"duplicate", "read", "up"}
            return {"duplicate"}
        here.counter = self.fan_in - 1 if here.counter == 0 else here.counter - 1
        here.complete = here.counter == 0 and not self.has_parent
        value = {"overwrite"} if first else {"add"}
        if here.counter:
            return value
        return value | {"read", "up" if self.has_parent else "all"}

    def take_result(self, slot: int, version: int) -> set[str]:
        self.slots[slot][version].complete = True
        return {"overwrite", "read", "all"}


class SlowShared:
    """Slots that belong to whoever finds them free, as in ATP."""

    def __init__(self, n_slots: int, everyone: set[int]) -> None:
        self.owner: list[int | None] = [None] * n_slots
        self.workers: list[set[int]] = [set() for _ in range(n_slots)]
        self.everyone = everyone

    def claim(self, slot: int, key: int, workers: set[int], resent: bool) -> set[str]:
        if resent and self.owner[slot] != key:
            return {"up"}
        if self.owner[slot] not in (None, key):
            return {"up", "collision"}
        if self.owner[slot] is None:
            self.owner[slot], self.workers[slot] = key, set()
        counted = self.workers[slot]
        if counted & workers and not workers <= counted:
            return {"up"}
        what = {"duplicate"} if workers <= counted else {"add"} if counted else {"overwrite"}
        self.workers[slot] = counted | workers
        if resent:
            self.owner[slot], self.workers[slot] = None, set()
            return what | {"read", "up", "free"}
        return what | {"read", "up"} if self.workers[slot] == self.everyone else what

    def release(self, slot: int, key: int) -> set[str]:
        if self.owner[slot] != key:
            return {"all"}
        self.owner[slot], self.workers[slot] = None, set()
        return {"all", "free"}
