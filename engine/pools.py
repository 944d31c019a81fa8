"""Memory by name: what each pool holds and may hold. The sum of a device's pools is no more than the device.

of a card    weights, kv (ring entries of all slots), decoder (its state between chunks), carry (the rest of a session)
of all       prompts (embeddings), adapters; in the machine's memory: worlds that are written down
"""

from .api import PoolBytes
from .card import CardRuntime, bytes_of
from .services import Services


def pools_of(served: CardRuntime) -> tuple[PoolBytes, ...]:
    """Those of one card; slots are allocated when it is loaded, and used while a session is in them."""
    pool, footprint = served.pool, served.loaded.footprint
    beside, weights = pool.spec.carry_bytes, bytes_of(served.loaded).weights
    decoder = 0 if footprint is None else min(beside, footprint.decoder_bytes)
    each = (("kv", pool.spec.bytes_per_session - beside), ("decoder", decoder), ("carry", beside - decoder))
    return (
        PoolBytes("weights", weights, weights),
        *(PoolBytes(name, size * pool.taken, size * pool.slots) for name, size in each),
    )


def shared_pools(services: Services) -> tuple[PoolBytes, ...]:
    spec, store = services.spec, services.store
    return (
        PoolBytes("prompts", services.features.bytes_used, spec.feature_bytes_max),
        PoolBytes("adapters", services.adapters.bytes_used, spec.adapter_bytes_max),
        PoolBytes("worlds", 0 if store is None else store.bytes_used[0], spec.worlds_memory, host=True),
    )
