"""Memory by name: what each pool holds and may hold. The sum of a device's pools is no more than the device.

of a card    weights/transformer, .. (one line a component), kv (ring entries of all slots), decoder (its state between
             chunks), carry (the rest of a session); what is away from the device holds nothing of it
of all       prompts (embeddings), adapters; in the machine's memory: worlds that are written down, weights away
"""

from collections.abc import Iterator

from .api import PoolBytes
from .card import CardRuntime
from .services import Services
from .weights.turns import CardTurn


def pools_of(served: CardRuntime, turn: CardTurn) -> tuple[PoolBytes, ...]:
    """Those of one card; slots are allocated when it is loaded, and used while a session is in them."""
    pool, footprint = served.pool, served.loaded.footprint
    beside = pool.spec.carry_bytes
    decoder = 0 if footprint is None else min(beside, footprint.decoder_bytes)
    each = (("kv", pool.spec.bytes_per_session - beside), ("decoder", decoder), ("carry", beside - decoder))
    return (
        *(PoolBytes(name, size, size) for name, size in _weights(turn)),
        *(PoolBytes(name, size * pool.taken, size * pool.slots) for name, size in each),
    )


def shared_pools(services: Services) -> tuple[PoolBytes, ...]:
    spec, store, away = services.spec, services.store, services.weights.away
    return (
        PoolBytes("prompts", services.features.bytes_used, spec.feature_bytes_max),
        PoolBytes("adapters", services.adapters.bytes_used, spec.adapter_bytes_max),
        PoolBytes("worlds", 0 if store is None else store.bytes_used[0], spec.worlds_memory, host=True),
        PoolBytes("weights away", away.bytes_used, away.bytes_max, host=True),
    )


def _weights(turn: CardTurn) -> Iterator[tuple[str, int]]:
    """Name and bytes of each component that is on the device."""
    if turn.fixed or not turn.components:
        yield "weights", turn.fixed
    yield from ((f"weights/{name}", size if name in turn.there else 0) for name, size in turn.components.items())
