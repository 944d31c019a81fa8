"""The tiny worlds of every family behind the engine, in virtual time: right frames a chunk, and evenly paced."""

from collections import Counter
from itertools import pairwise

import pytest
from worldroom.engine import api
from worldroom.engine.device.batch import Batch
from worldroom.models import catalog
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started, until

LIVE = {
    "wan-tiny-random": (9, 12),
    "matrix-game-tiny-random": (9, 12),
    "anyflow-tiny-random": (1, 12),
    "waypoint-tiny-random": (1, 1),
}


def test_every_tiny_card_that_plays_live_is_here() -> None:
    assert sorted(LIVE) == sorted(
        name for name in catalog.random_weights() if catalog.card(name).loops[0].name == "chunk_rollout"
    )


@pytest.mark.parametrize(("card", "frames"), LIVE.items())
def test_frames_leave_evenly_although_a_chunk_is_made_at_once(card: str, frames: tuple[int, int]) -> None:
    if card.startswith("anyflow"):
        pytest.importorskip("diffusers")
    loaded = catalog.load(card)
    share = loaded.card.frame.per_chunk / loaded.card.frame.fps / 12

    def cost(batch: Batch) -> float:
        return 0.0 if batch.kind in (StepKind.PROMPT_ENCODE, StepKind.CACHE_IO) else share

    async def main() -> None:
        engine, _ = await started(cost, cards=(loaded,))
        controls = len(loaded.card.controls)
        person = Person(engine, "a", loaded.card.suggestions[0], lambda chunk: (float(chunk % 2),) * controls)
        assert isinstance(await person.open(card), api.Opened)
        await until(lambda: len({f.chunk for _, f in person.frames}) >= 6, within=20)
        counts = Counter(frame.chunk for _, frame in person.frames)
        assert (counts[0], *(counts[n] for n in range(1, 5))) == (frames[0], *[frames[1]] * 4)
        interval = 1 / loaded.card.frame.fps
        shown = [(at, frame.pts) for at, frame in person.frames if frame.chunk >= 1]
        off = [abs((b - a) / interval - 1) for (a, _), (b, _) in pairwise(shown)]
        assert max(off) < 0.05
        assert {q - p for (_, p), (_, q) in pairwise(shown)} == {90_000 // loaded.card.frame.fps}
        assert not person.faults and not person.cancelled
        await engine.close()

    run(main())
