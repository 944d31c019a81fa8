"""What all sessions of one engine share: clock, prices, the queue of the device, features and encoder threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from ..clock import Clock
from .caches.adapter_shelf import AdapterShelf
from .caches.feature_cache import FeatureCache
from .caches.store import SnapshotFolder
from .cancel import CancelScope
from .cost_store import CostStore
from .device.dispatch import Dispatcher
from .output.encode import H264Encoder
from .scheduling.costs import Costs
from .spec import EngineSpec
from .weights.residency import Residency


@dataclass(frozen=True, slots=True)
class Services:
    """`encoder` makes each session's encoder, on a thread of `encoders`; `rendition_encoders` give
    way to them. `scope` roots the cancellation tree.

    `store` keeps checkpoints, None = nobody wants any; `checkpointed(session, chunk, epoch)` hears of every one.
    `prices` stores what steps cost, None = every start measures. `adapters`: what worlds may have beside the weights.
    `weights`: whose are on the device. `encoding`: prompts on their way to be features, by key.
    """

    clock: Clock
    spec: EngineSpec
    costs: Costs
    dispatcher: Dispatcher
    features: FeatureCache
    encoder: type[H264Encoder]
    encoders: Executor
    rendition_encoders: Executor
    scope: CancelScope
    store: SnapshotFolder | None
    checkpointed: Callable[[str, int, int], None]
    prices: CostStore | None
    adapters: AdapterShelf
    weights: Residency
    encoding: dict[str, asyncio.Event] = field(default_factory=dict)

    def check_integrity(self) -> None:
        """Raise `slab_pool.PoolCorrupt` when what sessions share contradicts itself."""
        self.features.check_integrity()
        self.adapters.check_integrity()

    async def close(self) -> None:
        """End the threads of the encoders; nothing is encoded and no weights move any more."""
        await self.weights.close()
        for encoders in (self.encoders, self.rendition_encoders):
            await asyncio.get_running_loop().run_in_executor(None, encoders.shutdown)
