"""What can be seen of an engine at its door: cards, capacity, sessions, steps. Asked for, never sent by itself."""

from ...models.contract.first_frames import FirstFramesSize
from .message import LatencyClass, Message

ASLEEP = "suspended"
"""The state of a session that holds no slot, or is on its way out of it or back."""


class ControlInfo(Message, frozen=True):
    name: str
    keys: tuple[str, ...]
    analog: bool = False


class CardInfo(Message, frozen=True):
    """A card as the edge may know it. width and height are what viewers see (already scaled).
    `first_frames`: what a world may start from, None = words alone. `recache`: a prompt may rebuild what it remembers.
    `about`: one sentence for people. `pointer`: it takes motion. `prompt_chars`: code points that a prompt may have.
    `takes` and `gives`: what goes into a session and comes out of it (text, controls, first_frames; packets).
    `previews`: it shows parts of a chunk before that is done. `adapters`: names of those that its worlds may have.
    `prompts_max`: texts that one prompt may mix.
    `players`: so many have these controls, each their own. `tolerance`: of a chunk that is made again, 0 = it has the
    same bits.
    """

    name: str
    version: str
    title: str
    width: int
    height: int
    fps: int
    frames_per_chunk: int
    controls: tuple[ControlInfo, ...]
    suggestions: tuple[str, ...]
    price_us: int
    bytes_per_session: int
    first_frames: FirstFramesSize | None = None
    recache: bool = False
    about: str = ""
    pointer: bool = False
    prompt_chars: int = 500
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    previews: bool = False
    adapters: tuple[str, ...] = ()
    prompts_max: int = 4
    players: int = 1
    tolerance: float = 0.0


class PoolBytes(Message, frozen=True):
    """One pool of memory, by name. `host`: it lies in the machine's memory, whatever the device is."""

    name: str
    used: int
    limit: int
    host: bool = False


class Capacity(Message, frozen=True):
    """What the device holds now of one card, for /v1/capacity. Shares are of one device, 0..1.

    `device`: its name on this server; `device_model`: what it is; `device_bytes`: all of its memory that counts.
    `price_us`: device time of a chunk that lasts `chunk_us`. `pools`: of this card; what all cards of a device share is
    told with the first of them. `on_device`: its weights are there; else it waits for its turn, which comes when nobody
    is in the worlds of the cards `in_the_way`.
    `sessions`: all that were let in, `asleep` of them without a slot. `waiting`: who stands in the device's line.
    `starts_failed`: of a spare worker, since one that succeeded.
    `degraded`: sessions that were let in with fewer steps than the default.
    `inspections`: rounds through all pools that found them sound. `feature*`: prompt embeddings kept, of all cards.
    """

    card: str
    device: str
    sessions: int
    sessions_max: int
    share_used: float
    share_max: float
    price_us: int
    bytes_per_session: int
    pool_bytes: int
    pool_bytes_used: int
    queue_depth: int
    chunks_done: int
    chunks_late: int
    chunks_cancelled: int
    frames_dropped: int
    frames_superseded: int = 0
    faults: int = 0
    waiting: int = 0
    degraded: int = 0
    inspections: int = 0
    feature_bytes_used: int = 0
    features_evicted: int = 0
    asleep: int = 0
    starts_failed: int = 0
    device_model: str = ""
    device_bytes: int = 0
    chunk_us: int = 0
    pools: tuple[PoolBytes, ...] = ()
    on_device: bool = True
    in_the_way: tuple[str, ...] = ()

    def share(self, price_us: int) -> float:
        """Of the device's time that a session takes whose chunks have that price."""
        return price_us / self.chunk_us if self.chunk_us else 0.0


class BatchRan(Message, frozen=True):
    """One batch that ran on a device: who was in it, when the first of them queued, what it was priced at.

    `loop`: of the card, '' = a step of no loop.
    """

    device: str
    card: str
    loop: str
    kind: str
    sessions: tuple[str, ...]
    queued: float
    started: float
    seconds: float
    price: float


class SessionInfo(Message, frozen=True):
    """One session as it stands. price and measured: device time of a chunk, predicted and of the last one.

    `device`: its name on this server, as capacity has it.
    `late`: chunks that were later than the playout clock absorbs; `late_us`: how late the last one was.
    """

    session: str
    card: str
    latency_class: LatencyClass
    state: str
    frames: int
    chunks: int
    late: int
    late_us: int
    price_us: int
    measured_us: int
    wait_us: int
    device: str = ""

    @property
    def asleep(self) -> bool:
        return self.state == ASLEEP


class Progress(Message, frozen=True):
    """How far a session is: with its snapshot and history, all that is needed to go on elsewhere.

    `epoch`, `paused` and `kbps` (0: what the engine starts with) are what was asked of it. `chunk` and `frame` are the
    next to be made and shown; the last frame had `pts`.
    """

    epoch: int = 0
    chunk: int = 0
    paused: bool = False
    kbps: int = 0
    frame: int = 0
    pts: int = 0
