"""What the door carries of adapters: a stack that is asked for, and one that is ready. Pure data."""

from ...models.contract.conditions import AdapterShare
from .message import Message


class AdapterAsk(Message, frozen=True):
    """One file of the server's adapters, without its ending, and how strongly it acts."""

    name: str
    scale: float = 1.0


class SetAdapters(Message, frozen=True):
    """Make a stack of adapters ready; answered by `AdaptersReady` or `Fault`. An empty one needs nothing."""

    session: str
    version: int
    stack: tuple[AdapterAsk, ...]


class AdaptersReady(Message, frozen=True):
    """The stack is beside the weights: conditions may name `shares`. `rank` and `bytes` of all of them together."""

    session: str
    version: int
    shares: tuple[AdapterShare, ...]
    rank: int
    bytes: int
