"""Writes `duty_cycle.json`: python -m worldroom.engine.duel.make_duty_cycle [SECONDS SEED]

    arrivals    Poisson, one session in 12 s on average; a stay is log-normal, median 60 s
    classes     7 of 10 interactive, 2 stream (a world that is watched), 1 background (a rollout)
    activity    bursts of keys (exponential, 6 s on average, a key every 0.25 s) and pauses between them (3 s);
                one pause in six is a rest of 5 to 20 s in which the world stands
    wishes      a new prompt every 25 s, a redirect of the world every 15 s, on average, never while resting

The figures are assumptions about how people play, written down so that anyone can change them.
"""

import random
import sys

import msgspec

from ..api import LatencyClass
from .duty import DEFAULT, Act, DutyCycle, Moment, Visit, load

CLASSES = (LatencyClass.INTERACTIVE,) * 7 + (LatencyClass.STREAM,) * 2 + (LatencyClass.BACKGROUND,)


def make(seconds: float, seed: int) -> DutyCycle:
    """The same arguments give the same trace."""
    dice = random.Random(seed)
    visits: list[Visit] = []
    at = 0.0
    while (at := at + dice.expovariate(1 / 12)) < seconds - 10:
        leaves = min(seconds, at + max(10.0, dice.lognormvariate(4.1, 0.6)))
        latency_class = dice.choice(CLASSES)
        moments = _moments(dice, at, leaves) if latency_class is LatencyClass.INTERACTIVE else ()
        visits.append(Visit(f"s{len(visits)}", latency_class, round(at, 3), round(leaves, 3), moments))
    command = f"python -m worldroom.engine.duel.make_duty_cycle {seconds:g} {seed}"
    return DutyCycle(command, seconds, tuple(visits))


def _moments(dice: random.Random, arrives: float, leaves: float) -> tuple[Moment, ...]:
    moments: list[tuple[float, Act]] = []
    rests: list[tuple[float, float]] = []
    at = arrives + dice.uniform(0.5, 2.0)
    while at < leaves:
        ends = at + dice.expovariate(1 / 6)
        while (at := at + dice.expovariate(4)) < ends:
            moments.append((at, Act.KEY))
        pause = dice.expovariate(1 / 3)
        if dice.random() < 1 / 6:
            pause = dice.uniform(5, 20)
            moments += [(at + 0.5, Act.REST), (at + pause - 0.2, Act.WAKE)]
            rests.append((at, at + pause))
        at += pause
    for act, every in ((Act.PROMPT, 25), (Act.REDIRECT, 15)):
        at = arrives + 1.0
        while (at := at + dice.expovariate(1 / every)) < leaves:
            if not any(start <= at <= end for start, end in rests):
                moments.append((at, act))
    return tuple(Moment(round(at, 3), act) for at, act in sorted(moments) if at < leaves)


def published(count: int) -> list[DutyCycle]:
    """The trace in the package, which is seed 1, and the next ones of its kind: seeds 2, 3, .."""
    first = load()
    return [first, *(make(first.seconds, seed) for seed in range(2, count + 1))]


if __name__ == "__main__":
    seconds, seed = (float(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else (300.0, 1)
    DEFAULT.write_bytes(msgspec.json.encode(make(seconds, seed)) + b"\n")
