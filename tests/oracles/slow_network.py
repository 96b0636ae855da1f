"""SwitchML on one slot, with a network whose packets are counted: losses, copies and repetitions are budgets.

The switch is `slow_rule`'s; nothing here knows a kernel, or that what was sent may come at any time.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from slow_rule import SlowSwitch


@dataclass(frozen=True)
class Scene:
    """A state: `up` and `down` are packets with their number, `sums` what each version holds."""

    switch: Any
    sums: tuple[tuple[tuple[int, int], ...], ...]
    awaits: tuple[int, ...]
    up: frozenset[tuple[tuple[int, int], int]]
    down: frozenset[tuple[tuple[int, int, Any], int]]
    losses: int
    copies: int
    repeats: int

    @property
    def projection(self) -> Any:
        """What workers and the switch know, whatever the workers' numbers are."""
        columns = []
        for w, awaited in enumerate(self.awaits):
            held = tuple(tuple(sorted(r for who, r in total if who == w)) for total in self.sums)
            columns.append((awaited, tuple(w in seen for seen, _, _ in self.switch), held))
        return tuple(sorted(columns)), tuple((counter, complete) for _, counter, complete in self.switch)


@dataclass
class SlowNetwork:
    """All scenes; `wrong` is whether a worker takes a wrong sum in one of them."""

    workers: int
    rounds: int
    in_order: bool
    losses: int = 1
    copies: int = 1
    repeats: int = 1
    wrong: bool = False
    scenes: set[Scene] = field(default_factory=set)

    def explore(self) -> "SlowNetwork":
        """Look at every scene."""
        rule = SlowSwitch(1, self.workers, has_parent=False)
        up = frozenset(((w, 0), 1) for w in range(self.workers))
        first = Scene(frozen(rule), ((), ()), (0,) * self.workers, up, frozenset(), self.losses, self.copies,
                      self.repeats)  # fmt: skip
        queue = deque([first])
        self.scenes.add(first)
        while queue:
            for scene in self._after(queue.popleft()):
                if scene not in self.scenes:
                    self.scenes.add(scene)
                    queue.append(scene)
        return self

    @property
    def projections(self) -> set[Any]:
        """What workers and the switch can know."""
        return {scene.projection for scene in self.scenes}

    def _after(self, s: Scene) -> Iterator[Scene]:
        for packet, _ in s.up:
            w, r = packet
            if self.in_order and any(who == w and other < r for (who, other), _ in s.up):
                continue
            yield self._contribute(replace(s, up=fewer(s.up, packet)), w, r)
            if s.copies:
                yield replace(self._contribute(s, w, r), copies=s.copies - 1)
            if s.losses:
                yield replace(s, up=fewer(s.up, packet), losses=s.losses - 1)
        for packet, _ in s.down:
            yield self._receive(replace(s, down=fewer(s.down, packet)), *packet)
        for w, r in enumerate(s.awaits):
            if s.repeats and r < self.rounds:
                yield replace(s, up=more(s.up, (w, r)), repeats=s.repeats - 1)

    def _contribute(self, s: Scene, w: int, r: int) -> Scene:
        rule, version = thawed(s.switch, self.workers), r % 2
        said, sums = rule.contribute(0, version, w), list(s.sums)
        if "overwrite" in said:
            sums[version] = ((w, r),)
        elif "add" in said:
            sums[version] = tuple(sorted((*sums[version], (w, r))))
        down = s.down
        for to in range(self.workers) if "all" in said else [w] if "sender" in said else []:
            down = more(down, (to, r, sums[version]))
        return replace(s, switch=frozen(rule), sums=tuple(sums), down=down)

    def _receive(self, s: Scene, w: int, r: int, total: Any) -> Scene:
        if s.awaits[w] != r:
            return s
        self.wrong |= total != tuple((who, r) for who in range(self.workers))
        awaits = (*s.awaits[:w], r + 1, *s.awaits[w + 1 :])
        return replace(s, awaits=awaits, up=more(s.up, (w, r + 1)) if r + 1 < self.rounds else s.up)


def frozen(rule: SlowSwitch) -> Any:
    return tuple((frozenset(slot.seen), slot.counter, slot.complete) for slot in rule.slots[0])


def thawed(state: Any, workers: int) -> SlowSwitch:
    rule = SlowSwitch(1, workers, has_parent=False)
    for slot, (seen, counter, complete) in zip(rule.slots[0], state, strict=True):
        slot.seen, slot.counter, slot.complete = set(seen), counter, complete
    return rule


def more(packets: Any, packet: Any) -> Any:
    n = dict(packets).get(packet, 0)
    return frozenset((packets - {(packet, n)}) | {(packet, n + 1)})


def fewer(packets: Any, packet: Any) -> Any:
    n = dict(packets)[packet]
    return frozenset((packets - {(packet, n)}) | ({(packet, n - 1)} if n > 1 else set()))
