"""One session's prompt features: encodes texts through the scheduler and holds on to the keys its worlds may mix.

A text is looked up by content first, so equal prompts of all sessions are encoded once, even when they come together.
Texts are never logged.
"""

import asyncio
from collections import deque

from ...models.contract.conditions import BadPrompt, PromptMeaning
from ...models.contract.version import UnknownContract
from ...models.shared import serial
from .. import api
from ..caches import snapshot
from ..caches.slab_pool import PoolFull
from ..cancel import Superseded
from ..device.device import size_of
from .context import SessionContext

KEYS_MAX = 32
WAITING_MAX = 8
WITHIN = 0.1
"""Seconds in which a prompt should be encoded: urgent for a person, idle work between two chunks."""


class Prompts:
    """Holds the last 32 features of a session; older ones may be forgotten and must then be encoded again."""

    def __init__(self, context: SessionContext) -> None:
        self._context, self._served, self._services = context, context.world.served, context.services
        self._session, self._emit = context.session, context.emit
        self._keys: deque[str] = deque()
        self._waiting: set[asyncio.Task[None]] = set()

    def encode(self, command: api.EncodePrompt) -> None:
        key = self._served.prompt_key(command.text)
        meaning = self._meaning(command.text)
        if meaning is not None and not meaning.understood:
            self._refuse("not_understood", _nothing(meaning), command.version)
        elif self._retain(key):
            self._tell(command, key, meaning)
        elif len(self._waiting) >= WAITING_MAX:
            self._refuse("busy", f"{WAITING_MAX} prompts are waiting already", command.version)
        else:
            task = asyncio.get_running_loop().create_task(self._compute(command, key))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    def hold(self, command: api.HoldPrompt) -> None:
        """Hold an embedding that was made before."""
        try:
            self.learn_embedding(command.key, command.embedding)
        except PoolFull as problem:
            self._fault("features_full", str(problem), command.version)
        except (serial.SerialError, UnknownContract) as problem:
            self._refuse("bad_prompt", str(problem), command.version)
        else:
            self._emit(api.PromptEncoded(self._session, command.version, command.key))

    def learn_embedding(self, key: str, embedding: bytes) -> None:
        """As `learn`, for a prompt of which only that is left."""
        self.put(key, snapshot.value_in(embedding))

    async def learn(self, text: str) -> None:
        """Hold a prompt without telling anybody; raises what encoding raises."""
        await self._encoded(self._served.prompt_key(text), text)

    def features(self) -> tuple[tuple[str, object], ...]:
        """Keys and features, oldest first."""
        return tuple((key, self._services.features.get(key)) for key in self._keys)

    def put(self, key: str, feature: object) -> None:
        """Hold a feature that was computed here or elsewhere; raises `PoolFull`."""
        if not self._retain(key):
            self._services.features.put(key, feature, size_of(feature))
            self._keys.append(key)
            self._trim()

    def hold_those_of(self, prompts: "Prompts") -> None:
        """Hold what another session of this engine holds."""
        for key in prompts._keys:
            self._retain(key)

    async def close(self) -> None:
        if self._waiting:
            await asyncio.wait(self._waiting)
        for key in self._keys:
            self._services.features.release(key)
        self._keys.clear()

    def _tell(self, command: api.EncodePrompt, key: str, meaning: PromptMeaning | None) -> None:
        """The text is encoded, and this session holds its feature."""
        embedding = b""
        if command.tell:
            kept = snapshot.feature_bytes(((key, self._services.features.get(key)),))
            embedding = kept[0][1] if kept else b""
        self._emit(api.PromptEncoded(self._session, command.version, key, meaning, embedding))

    async def _compute(self, command: api.EncodePrompt, key: str) -> None:
        try:
            await self._encoded(key, command.text)
        except Superseded:
            return
        except PoolFull as problem:
            self._fault("features_full", str(problem), command.version)
        except BadPrompt as problem:
            self._refuse("bad_prompt", str(problem), command.version)
        except Exception as problem:
            self._fault("prompt_failed", type(problem).__name__, command.version)
        else:
            self._tell(command, key, self._meaning(command.text))

    async def _encoded(self, key: str, text: str) -> None:
        """Hold the feature of a text. While another session encodes the same one, wait for that."""
        encoding = self._services.encoding
        while not self._retain(key):
            if (other := encoding.get(key)) is not None:
                await other.wait()
                self._context.scope.check()
                continue
            done = encoding[key] = asyncio.Event()
            try:
                self.put(key, await self._run(text))
            finally:
                del encoding[key]
                done.set()

    async def _run(self, text: str) -> object:
        services, step = self._services, self._served.prompt_step()
        if (components := self._served.loaded.components) is not None:
            await services.weights.until_there(self._served, components.prompts, self._context.scope)
        now, price = services.clock.now(), services.costs.price(step, 1)
        ran = await services.dispatcher.run(
            self._served.loaded,
            step,
            text,
            self._context.scope,
            session=self._session,
            latest_start=now + WITHIN - price,
            deadline=now + WITHIN,
            remaining=price,
        )
        feature: object = ran.result
        return feature

    def _retain(self, key: str) -> bool:
        """True when the feature is there; this session then holds it, once, as its most recent one."""
        if key in self._keys:
            self._keys.remove(key)
            self._keys.append(key)
            return True
        if not self._services.features.retain(key):
            return False
        self._keys.append(key)
        self._trim()
        return True

    def _trim(self) -> None:
        while len(self._keys) > KEYS_MAX:
            self._services.features.release(self._keys.popleft())

    def _meaning(self, text: str) -> PromptMeaning | None:
        meaning = self._served.loaded.meaning
        return None if meaning is None else meaning(text)

    def _fault(self, code: str, detail: str, version: int) -> None:
        self._context.counters.faults += 1
        self._refuse(code, detail, version)

    def _refuse(self, code: str, detail: str, version: int) -> None:
        """The prompt never takes effect, through no failure of the engine's."""
        self._emit(api.Fault(self._session, code, detail, fatal=False, prompt_version=version))


def _nothing(meaning: PromptMeaning) -> str:
    """Why a prompt changes nothing, for who wrote it."""
    words = ", ".join(meaning.missed[:8])
    return f"this world knows none of these words: {words}" if words else "none of these words changes this world"
