"""Made-up people. python -m worldroom.simulation.duty_cycle [SECONDS SEED [EVERY PATIENCE]] writes `duty_cycle.json`.

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

from ..engine.api import LatencyClass
from .trace import DUTY_CYCLE, Act, Moment, Trace, Visit

CLASSES = (LatencyClass.INTERACTIVE,) * 7 + (LatencyClass.STREAM,) * 2 + (LatencyClass.BACKGROUND,)
SECONDS, EVERY = 300.0, 12.0


def duty_cycle(seconds: float, seed: int, every: float = EVERY, patience: float = 0.0) -> Trace:
    """The same arguments give the same trace. `every`: seconds between two arrivals, on average."""
    dice = random.Random(seed)
    visits: list[Visit] = []
    at = 0.0
    while (at := at + dice.expovariate(1 / every)) < seconds - 10:
        leaves = min(seconds, at + max(10.0, dice.lognormvariate(4.1, 0.6)))
        latency_class = dice.choice(CLASSES)
        moments = _moments(dice, at, leaves) if latency_class is LatencyClass.INTERACTIVE else ()
        visits.append(Visit(f"s{len(visits)}", latency_class, round(at, 3), round(leaves, 3), moments, patience))
    told = f" {every:g} {patience:g}" if (every, patience) != (EVERY, 0.0) else ""
    return Trace(f"python -m worldroom.simulation.duty_cycle {seconds:g} {seed}{told}", seconds, tuple(visits))


def crowd(people: int, seconds: float, seed: int) -> Trace:
    """So many interactive people within the first seconds, who stay to the end: how many will the device hold?"""
    dice = random.Random(seed)
    visits = []
    for number in range(people):
        at = dice.uniform(0.0, min(10.0, seconds / 4))
        visits.append(Visit(f"s{number}", LatencyClass.INTERACTIVE, at, seconds, _moments(dice, at, seconds)))
    return Trace(f"a crowd of {people} for {seconds:g} s, seed {seed}", seconds, tuple(visits))


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


def several(count: int, every: float = EVERY) -> list[Trace]:
    """Traces of 300 s with seeds 1, 2, 3, ..; the first one of usual arrivals is that in the package."""
    return [duty_cycle(SECONDS, seed, every) for seed in range(1, count + 1)]


if __name__ == "__main__":
    seconds, seed, *more = (float(given) for given in sys.argv[1:] or (SECONDS, 1.0))
    DUTY_CYCLE.write_bytes(msgspec.json.encode(duty_cycle(seconds, int(seed), *more)) + b"\n")
