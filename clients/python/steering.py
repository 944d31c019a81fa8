"""What is asked of a world: each message is answered once it is journaled, and again once it took effect."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ...rtc import wire
from ...rtc.wire import Transition
from .answers import Answers
from .signalling import NoServer


class Steering(ABC):
    """Of one participant. Each steer's result is its id, for `applied`; it raises `RoomRefused` or `NoServer`."""

    def __init__(self) -> None:
        self._answers = Answers()

    @abstractmethod
    def _send(self, message: wire.ClientMessage) -> bool:
        """Whether it left."""

    async def prompt(
        self,
        text: str,
        transition: Transition = Transition.BLEND,
        seconds: float = 0.5,
        *,
        weight: float = 1.0,
        others: Mapping[str, float] | None = None,
        at: int | None = None,
        over: int | None = None,
    ) -> int:
        """Change the world by words; the id for `applied`. Raises `RoomRefused`, which says what is wrong with them.

        `others`: texts and weights of a mix, beside this one with `weight`. `at`: the chunk to begin at. `over`: chunks
        instead of `seconds`.
        """
        texts = tuple(wire.WeighedText(each, share) for each, share in (others or {}).items())
        return await self._steer(lambda id: wire.Prompt(id, text, transition, seconds, weight, texts, at, over))

    async def adapt(self, *stack: str | tuple[str, float]) -> int:
        """Put adapters beside the world's weights, by name or (name, scale); none takes them away."""
        made = tuple(wire.AdapterChoice(one) if isinstance(one, str) else wire.AdapterChoice(*one) for one in stack)
        return await self._steer(lambda id: wire.Adapt(id, made))

    async def reset(self, seed: int | None = None) -> int:
        return await self._steer(lambda id: wire.ResetWorld(id, seed))

    async def rewind(self, seconds: float) -> int:
        """Back by so many seconds, and on from there in another future; then `choose`."""
        return await self._steer(lambda id: wire.Rewind(id, seconds))

    async def regenerate(self) -> int:
        """Another take of what plays under the present words; then `choose`."""
        return await self._steer(wire.Regenerate)

    async def fork(self, *others: wire.Way) -> int:
        """On in several futures, side by side: as it is, and in `others` (none: one by chance); then `choose`."""
        return await self._steer(lambda id: wire.Fork(id, others or (wire.Way(),)))

    async def seek(self, chunk: int) -> int:
        """In a replay: on from that chunk."""
        return await self._steer(lambda id: wire.Seek(id, chunk))

    async def choose(self, keep: wire.Keep, place: int | None = None) -> int:
        """After a `rewind`: which of the two futures goes on. After a `fork`: that in `place`, from 0."""
        return await self._steer(lambda id: wire.Choose(id, keep, place))

    async def like(self, chunk: int, value: int) -> int:
        return await self._steer(lambda id: wire.Feedback(id, chunk, value))

    async def applied(self, id: int) -> int:
        """The chunk at which a steer took effect; raises `RoomRefused` or `NoServer` when it never does."""
        return await self._answers.applied(id)

    async def _steer(self, message: Callable[[int], wire.ClientMessage]) -> int:
        id = self._answers.expect()
        if not self._send(message(id)):
            raise NoServer("the room is not connected")
        await self._answers.accepted(id)
        return id
