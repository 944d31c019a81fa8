"""`worldroom bench fork`: a world that plays becomes several; how soon each is seen, and what it costs in memory."""

import asyncio
from typing import Annotated

import msgspec
import typer

from ...clients.python.latency import LatencySpread, spread
from ...clock import SystemClock
from ...engine import api
from ...engine.engine import Engine
from ...engine.spec import EngineSpec
from ...models import catalog
from ...models.contract.loop import StepKind
from ..output import JsonFlag, print_object, report_table

PLAYED = 48


class ForkReport(msgspec.Struct, frozen=True):
    """`first_ms`: from asking until every future's first chunk is made. `chunks`: so many the leading one had made by
    then, at most. `bytes_forked`: of cache, as soon as they are there; `bytes_later`: when nothing is shared any more.
    `copies`: steps that copied committed entries.
    """

    card: str
    futures: int
    rounds: int
    first_ms: LatencySpread
    chunks: int
    bytes_forked: int
    bytes_later: int
    copies: int


class World:
    """Whoever steers one world: straight on, as soon as it is asked."""

    def __init__(self, engine: Engine, session: str, epoch: int, key: str) -> None:
        self._engine, self._session, self._epoch, self.key = engine, session, epoch, key
        self.done, self._changed, self._due = 0, asyncio.Event(), -1

    async def made(self, count: int) -> None:
        """Wait until so many chunks are."""
        while self.done < count:
            self._changed.clear()
            await self._changed.wait()

    def hear(self, event: api.Event) -> None:
        match event:
            case api.PromptEncoded():
                self.key = event.key
                self._begin()
            case api.ChunkDue():
                self._due = event.chunk
                self._begin()
            case api.ChunkDone():
                self.done += 1
                self._changed.set()
            case _:
                pass

    def _begin(self) -> None:
        if self.key and self._due >= 0:
            controls = tuple(0.0 for _ in self._engine.cards()[0].controls)
            mix = (api.PromptShare(self.key, 1.0),)
            conditions = api.Conditions(self._epoch, controls, (0.0, 0.0), mix, 1, 0)
            self._engine.post(api.Begin(self._session, self._due, conditions))
            self._due = -1


def bench_fork(
    card: Annotated[str, typer.Option(help="The world.")] = "drive",
    futures: Annotated[int, typer.Option(min=2, max=4, help="How many there are afterwards.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Forks that are measured.")] = 8,
    as_json: JsonFlag = False,
) -> None:
    """Fork a world that plays, several times."""
    report = asyncio.run(measure(card, futures, rounds))
    if as_json:
        print_object(report)
    else:
        report_table(f"{card}: forks", report)


async def measure(card: str, futures: int, rounds: int) -> ForkReport:
    engine = Engine((catalog.load(card),), SystemClock(), EngineSpec(slots=futures, share_cap=1.0))
    await engine.start()
    leads = World(engine, "leads", 0, "")
    await engine.open(api.Open("leads", card, 1, api.LatencyClass.BACKGROUND), leads.hear)
    engine.post(api.EncodePrompt("leads", 1, next(iter(engine.cards()[0].suggestions), "")))
    forks = [await _fork(engine, leads, turn, futures) for turn in range(rounds)]
    await engine.close()
    ms, chunks, forked, later, copies = zip(*forks, strict=True)
    return ForkReport(card, futures, rounds, spread([*ms]), max(chunks), max(forked), max(later), sum(copies))


async def _fork(engine: Engine, leads: World, turn: int, futures: int) -> tuple[float, int, int, int, int]:
    """One fork, until nothing is shared any more; then the leading world is alone again."""
    (runtime,), clock = engine.runtimes.values(), SystemClock()
    pool = runtime.pool
    await leads.made(leads.done + PLAYED)
    worlds = {f"{turn}-{place}": World(engine, f"{turn}-{place}", place, leads.key) for place in range(1, futures)}
    branches = tuple(api.Branch(name, turn * futures + epoch, epoch) for epoch, name in enumerate(worlds, 1))
    used, asked, before, copies = pool.bytes_used, clock.now(), leads.done, _copies(engine)
    there: list[int] = []
    refused = await engine.fork(
        api.ForkSession("leads", branches),
        lambda event: worlds[event.session].hear(event),
        lambda _: there.append(pool.bytes_used - used),
    )
    if refused is not None:
        raise RuntimeError(refused.detail)
    await asyncio.gather(*(world.made(1) for world in worlds.values()))
    ms, chunks = (clock.now() - asked) * 1000, leads.done - before
    await asyncio.gather(*(world.made(pool.spec.window + 1) for world in worlds.values()))
    later = pool.bytes_used - used
    for name in worlds:
        engine.post(api.Close(name))
    return ms, chunks, there[0], later, _copies(engine) - copies


def _copies(engine: Engine) -> int:
    return sum(step.kind == StepKind.CACHE_IO for step in engine.steps())
