"""What steers one chunk: the sampled input and the prompt mix.

Made by a session's inbox as late as possible, carried through the engine's door, read by a family's loop.
Knows no key names, no texts and no tensors: controls are indices into the card's list, prompts are embedding keys.
"""

import msgspec


class BadPrompt(ValueError):
    """A text that this card makes no world of; the message says why, for the person who wrote it."""


class PromptMeaning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which words of a prompt a world knows, and which it does not; filler is in neither."""

    understood: tuple[str, ...]
    missed: tuple[str, ...]


class PromptShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One prompt's share of the mix: `key` as `PromptEncoded` gave it; the weights of a mix sum to 1."""

    key: str
    weight: float


class AdapterShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of a world's low-rank adapters: `key` is the digest of its file, `scale` how strongly it acts."""

    key: str
    scale: float


class PlayerInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one more player of a card does, as `controls` and `pointer` of `Conditions` say it of the first."""

    controls: tuple[float, ...]
    pointer: tuple[float, float] = (0.0, 0.0)


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that steers one chunk.

    `controls`: one value in [0, 1] per control of the card, in the card's order (1 = held or tapped during the chunk).
    `pointer`: summed relative motion since the last chunk, in units of the picture's width and height.
    `input_seq`: the last client input sequence that is contained here (`caused_by` of the chunk's frames), 0 = none.
    `epoch`: the session's epoch; a chunk of an older epoch is never shown.
    `recache`: rebuild the committed cache under this prompt before the chunk (cards with a RECACHE step alone).
    `adapters`: what is added to the weights for this row, in this order.
    `others`: the second player and those after, of a card with several.
    """

    epoch: int
    controls: tuple[float, ...]
    pointer: tuple[float, float]
    prompts: tuple[PromptShare, ...]
    prompt_version: int
    input_seq: int
    recache: bool = False
    adapters: tuple[AdapterShare, ...] = ()
    others: tuple[PlayerInput, ...] = ()

    @property
    def pressed(self) -> tuple[float, ...]:
        """Of all players, one after another."""
        return sum((other.controls for other in self.others), self.controls)

    def steers_like(self, other: "Conditions") -> bool:
        """Whether a chunk under them has the same bits: who pressed when, and which version asked, is none of it."""
        return self._steering == other._steering

    @property
    def _steering(self) -> tuple[object, ...]:
        return self.epoch, self.controls, self.pointer, self.prompts, self.recache, self.adapters, self.others
