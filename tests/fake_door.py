"""An engine's door without an engine: worlds that beat in (virtual) time, and a screen that keeps what it is shown."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from worldroom.engine import api
from worldroom.sessions.audience import FrameInput
from worldroom.sessions.messages import ServerMessage

CARD = api.CardInfo(
    name="toy",
    version="1",
    title="Toy",
    width=320,
    height=192,
    fps=25,
    frames_per_chunk=1,
    controls=(
        api.ControlInfo(name="throttle", keys=("KeyW", "ArrowUp")),
        api.ControlInfo(name="left", keys=("KeyA", "ArrowLeft")),
    ),
    suggestions=("a sunny day", "a snowy night"),
    price_us=10_000,
    bytes_per_session=1000,
    adapters=("film", "snow"),
)
TIMINGS = api.Timings(wait_us=1, step_us=2, decode_us=3, encode_us=4)
BEAT = 0.04  # one chunk of one frame at 25 fps
STEP = 0.01


@dataclass(slots=True)
class FakeWorld:
    """One session. A chunk falls due every BEAT, takes STEP, and its frame is shown at the end of the beat."""

    name: str
    seed: int
    events: Callable[[api.Event], None]
    epoch: int = 0
    chunk: int = 0
    carry: str = ""
    running: asyncio.Event = field(default_factory=asyncio.Event)
    begin: "asyncio.Future[api.Begin] | None" = None
    task: "asyncio.Task[None] | None" = None

    async def live(self) -> None:
        self.running.set()
        await self.paused()

    async def paused(self) -> None:
        """`live` for a world that waits for Resume."""
        frame = 0
        while True:
            await self.running.wait()
            epoch, chunk = self.epoch, self.chunk
            self.begin = asyncio.get_running_loop().create_future()
            now = asyncio.get_running_loop().time
            self.events(api.ChunkDue(session=self.name, chunk=chunk, deadline=now() + BEAT))
            conditions = (await self.begin).conditions
            begun = now()
            await asyncio.sleep(STEP)
            if self.epoch != epoch:
                self.events(api.ChunkCancelled(session=self.name, chunk=chunk, epoch=epoch))
                continue
            self.carry = hashlib.sha256(
                msgspec.json.encode((self.seed, chunk, self.carry, conditions.controls, conditions.prompts))
            ).hexdigest()[:16]
            self.chunk += 1
            done = api.ChunkDone(self.name, chunk, epoch, self.carry, 0, TIMINGS)
            self.events(done)
            await asyncio.sleep(BEAT - STEP)
            frame += 1
            self.events(self._frame(frame, chunk, conditions, begun))

    def restart(self, epoch: int, seed: int) -> None:
        self.epoch, self.seed, self.chunk, self.carry = epoch, seed, 0, ""

    def _frame(self, number: int, chunk: int, conditions: api.Conditions, begun: float) -> api.Frame:
        return api.Frame(
            session=self.name,
            frame=number,
            chunk=chunk,
            epoch=conditions.epoch,
            pts=number * 3600,
            key=False,
            data=b"\0\0\0\1",
            input_seq=conditions.input_seq,
            prompt_version=conditions.prompt_version,
            controls=conditions.pressed,
            begun=begun,
            timings=TIMINGS,
        )


class FakeDoor:
    """`slots` worlds at most; opening takes `opening_s`; prompts that contain '???' cannot be encoded."""

    def __init__(self, slots: int = 2, opening_s: float = 0.1, encode_s: float = 0.005) -> None:
        self.slots = slots
        self.opening_s = opening_s
        self.encode_s = encode_s
        self.worlds: dict[str, FakeWorld] = {}
        self.posted: list[api.Command] = []

    async def open(self, command: api.Open, events: Callable[[api.Event], None]) -> api.Opened | api.Refused:
        await asyncio.sleep(self.opening_s)
        if len(self.worlds) >= self.slots:
            detail = f"{self.slots} of {self.slots} slots are taken"
            return api.Refused(command.session, api.RefusalReason.NO_SLOT, detail, 1, 2.0)
        world = self.worlds[command.session] = FakeWorld(command.session, command.seed, events)
        world.task = asyncio.get_running_loop().create_task(world.live())
        return api.Opened(command.session, CARD, weights="w0", steps=2, precision="int")

    def post(self, command: api.Command) -> None:
        self.posted.append(command)
        world = self.worlds.get(command.session)
        if world is None:
            return
        match command:
            case api.Begin():
                assert world.begin is not None and command.chunk == world.chunk
                world.begin.set_result(command)
            case api.Pause():
                world.running.clear()
            case api.Resume():
                world.running.set()
            case api.Supersede():
                world.restart(command.epoch, command.seed)
            case api.EncodePrompt():
                if self.encode_s == 0.0:
                    self._encoded(world, command)  # known: answered within the call
                else:
                    asyncio.get_running_loop().call_later(self.encode_s, self._encoded, world, command)
            case api.SetAdapters():
                asyncio.get_running_loop().call_later(self.encode_s, self._adapted, world, command)
            case api.Close():
                assert world.task is not None
                world.task.cancel()
                del self.worlds[command.session]
            case _:
                pass

    def cards(self) -> tuple[api.CardInfo, ...]:
        return (CARD,)

    def capacity(self) -> tuple[api.Capacity, ...]:
        return ()

    @property
    def ready(self) -> bool:
        return True

    async def close(self) -> None:
        for name in list(self.worlds):
            self.post(api.Close(session=name))

    def of(self, kind: Any) -> list[api.Command]:
        return [command for command in self.posted if isinstance(command, kind)]

    def _adapted(self, world: FakeWorld, command: api.SetAdapters) -> None:
        """A stack that is stronger than 3 in all is refused."""
        if sum(abs(ask.scale) for ask in command.stack) > 3:
            world.events(api.Fault(world.name, "no_compute", "too strong", False, adapters_version=command.version))
            return
        shares = tuple(api.AdapterShare(f"key of {ask.name}", ask.scale) for ask in command.stack)
        world.events(api.AdaptersReady(world.name, command.version, shares, 4 * len(shares), 1000))

    def _encoded(self, world: FakeWorld, command: api.EncodePrompt) -> None:
        if "???" in command.text:
            fault = api.Fault(world.name, "prompt", "no words in it", fatal=False, prompt_version=command.version)
            world.events(fault)
        else:
            world.events(api.PromptEncoded(world.name, command.version, f"key:{command.text}"))


@dataclass(slots=True)
class Screen:
    """A sink that keeps everything."""

    messages: list[ServerMessage] = field(default_factory=list)
    frames: list[api.Frame] = field(default_factory=list)
    given: list[FrameInput] = field(default_factory=list)
    renditions: list[api.Rendered] = field(default_factory=list)

    def send(self, message: ServerMessage) -> None:
        self.messages.append(message)

    def frame(self, frame: api.Frame, given: FrameInput) -> None:
        self.frames.append(frame)
        self.given.append(given)

    def rendered(self, rendered: api.Rendered, given: FrameInput) -> None:
        self.renditions.append(rendered)
