"""Periodic jobs on shared links written to be read: exact fractions, one generator per job, no speed at all.

Knows nothing of the kernel: links that nobody can fill are kept, phases that wrap round are cut by the caller's rule
that traffic repeats, and what every link carries is checked after every step.
"""

from fractions import Fraction

from slow_sharing import Flow, max_min_rates


def run_slowly(jobs, use, capacity, *, shifts, iterations, weights, priorities, adjust=None, factors=None):
    """Times of iterations and communication, what links carried, contention, and when jobs began to wait.

    Jobs are ``(period, [(offset, duration, rate, overlap), ...])`` of fractions; `use` maps, per job, links
    to how many times its rate they carry, `capacity` links to fractions.
    """
    runs = [_Run(job, shifts[j], adjust, factors[j] if factors else [Fraction(1)]) for j, job in enumerate(jobs)]
    carried, contended = dict.fromkeys(capacity, Fraction(0)), dict.fromkeys(capacity, Fraction(0))
    excess, held_back = dict.fromkeys(capacity, Fraction(0)), [Fraction(0)] * len(jobs)
    now = Fraction(0)
    while any(len(run.iteration_times) < iterations for run in runs):
        sending = [j for j, run in enumerate(runs) if run.rate]
        flows = [
            Flow(
                {("own", j): Fraction(1)} | {k: share for k, share in use[j].items() if share},
                weights[j],
                priorities[j],
            )
            for j in sending
        ]
        rates = dict.fromkeys(range(len(jobs)), Fraction(0))
        rates |= zip(sending, max_min_rates(flows, capacity | {("own", j): runs[j].rate for j in sending}), strict=True)
        ends = [run.until if not run.rate else now + run.left / rates[j] for j, run in enumerate(runs)
                if not run.rate or rates[j]]  # fmt: skip
        lasted = min(ends) - now
        now += lasted
        for k in capacity:
            load = sum(rates[j] * use[j].get(k, 0) for j in sending)
            asked = sum(runs[j].rate * use[j].get(k, 0) for j in sending)
            assert load <= capacity[k]
            carried[k] += load * lasted
            contended[k] += lasted if asked > capacity[k] else 0
            excess[k] += max(asked - capacity[k], 0) * lasted
        for j in sending:
            held_back[j] += lasted if rates[j] < runs[j].rate else 0
            runs[j].left -= rates[j] * lasted
        for run in runs:
            while run.left == 0 if run.rate else run.until == now:
                run.advance(now)
    return {
        "time": now,
        "iteration_times": [run.iteration_times[:iterations] for run in runs],
        "communication_times": [run.communication_times[:iterations] for run in runs],
        "link_bytes": carried,
        "contended_time": contended,
        "excess": excess,
        "job_contended_time": held_back,
        "adjusted_at": [run.adjusted_at for run in runs],
    }


class _Run:
    """One job: it computes until some time, or has bytes left that it sends at most at some rate."""

    def __init__(self, job, shift, adjust, factors):
        self._period, self._phases = job
        self._shift, self._adjust, self._factors = shift, adjust, factors
        self.iteration_times, self.communication_times, self.adjusted_at = [], [], []
        self.rate, self.left = Fraction(0), Fraction(0)
        self._steps = self._story()
        self.until = next(self._steps)

    def advance(self, now):
        self._now = now
        self.until = self._steps.send(now)

    def _story(self):
        """Yield the time until which the job computes, or None while it sends."""
        last_end = self._phases[-1][0] + self._phases[-1][1] if self._phases else 0
        beyond = max(last_end - self._period, 0)
        start = yield self._shift
        while True:
            factor = self._factors[len(self.iteration_times) % len(self._factors)]
            now, end, communicated = start, beyond, Fraction(0)
            pieces = []
            if beyond:
                offset, _, rate, overlap = self._phases[-1]
                pieces.append((Fraction(0), beyond, rate, max(overlap - (self._period - offset), 0)))
            for offset, duration, rate, overlap in self._phases:
                inside = min(offset + duration, self._period) - offset
                pieces.append((offset, inside, rate, overlap if inside == duration else min(overlap, inside)))
            end = Fraction(0)
            for n, (offset, duration, rate, overlap) in enumerate(pieces):
                if offset > end:
                    now = yield now + (offset - end) * factor
                if self._adjust is not None and n == (1 if beyond else 0):
                    late = (now - self._shift - offset) % self._period
                    if self._adjust < late / self._period < 1 - self._adjust:
                        self.adjusted_at.append(now)
                        now = yield now + self._period - late
                self.rate, self.left = rate, rate * duration
                began = now
                now = yield None
                communicated += now - began
                self.rate = Fraction(0)
                if began + overlap * factor > now:
                    now = yield began + overlap * factor
                end = offset + max(duration, overlap)
            if end < self._period:
                now = yield now + (self._period - end) * factor
            self.iteration_times.append(now - start)
            self.communication_times.append(communicated)
            start = now
