"""/metrics: what edge, rooms and engine count and what the process uses. Keeps no numbers of its own."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ...engine.api import Capacity, EngineClient
from ...sessions.counters import GAUGES
from ...sessions.rooms.rooms import Rooms
from ..access.rates import Rates
from ..edge import Edge
from ..livekit.spec import LiveKitCounts

CONTENT_TYPE = CONTENT_TYPE_LATEST

ABOUT_EDGE = {
    "viewers": "connections answered",
    "frames": "frames sent, counted once per viewer",
    "packets": "RTP packets sent",
    "bytes": "RTP payload bytes sent",
    "frames_skipped": "frames a viewer was passed over for (waiting for a key frame, full socket)",
    "plis": "picture loss indications received",
    "nacks": "packets reported lost",
    "retransmitted": "packets sent again",
    "overfull": "times that a viewer's path was found overfull by transport-wide feedback",
    "malformed": "messages that could not be read",
    "messages_dropped": "control messages that no open channel could take",
    "receipts_dropped": "receipts dropped for a full channel",
    "keys_requested": "key frames asked of encoders, which answer several at once",
}


class EdgeCollector(Collector):
    """See the module docstring."""

    def __init__(
        self, edge: Edge, rooms: Rooms, door: EngineClient, rates: Rates, livekit: LiveKitCounts | None
    ) -> None:
        self._rates = rates
        self._livekit = livekit
        self._edge = edge
        self._rooms = rooms
        self._door = door

    def collect(self) -> Iterator[Metric]:
        yield from self._of_edge()
        yield from self._of_rooms()
        yield self._of_rates()
        if self._livekit is not None:
            yield from _of_livekit(self._livekit)
        for capacity in self._door.capacity():
            yield from _of_card(capacity)

    def _of_edge(self) -> Iterator[Metric]:
        streams = self._edge.streams()
        yield GaugeMetricFamily("worldroom_viewers", "viewers connected now", value=len(self._edge.viewers))
        rate = "worldroom_bitrate_{}_bits_per_second"
        target = GaugeMetricFamily(rate.format("target"), "encoder target", labels=("room",))
        sent = GaugeMetricFamily(rate.format("sent"), "video encoded in the last second", labels=("room",))
        watching = GaugeMetricFamily(
            "worldroom_rendition_viewers", "viewers of each rendition that is encoded", labels=("room", "rendition")
        )
        for room, fanout in streams.items():
            target.add_metric((room,), fanout.kbps * 1000)
            sent.add_metric((room,), fanout.sent_kbps * 1000)
            for rendition, viewers in fanout.watched().items():
                watching.add_metric((room, rendition), viewers)
        yield target
        yield sent
        yield watching
        delays = self._edge.delays
        yield HistogramMetricFamily(
            "worldroom_input_to_packet_seconds",
            "from a driver's input to the first packet of the first frame that contains it",
            buckets=delays.cumulated(),
            sum_value=delays.total,
        )
        yield GaugeMetricFamily("worldroom_edge_tasks", "tasks on the edge's loop", value=len(asyncio.all_tasks()))
        for name, total in asdict(self._edge.totals()).items():
            yield CounterMetricFamily(f"worldroom_edge_{name}", ABOUT_EDGE[name], value=total)

    def _of_rates(self) -> Metric:
        refused = CounterMetricFamily(
            "worldroom_edge_refused", "requests refused at the door, by why", labels=("code",)
        )
        for code, count in sorted(self._rates.refused.items()):
            refused.add_metric((code,), count)
        return refused

    def _of_rooms(self) -> Iterator[Metric]:
        for name, count in asdict(self._rooms.counters()).items():
            about = name.replace("_", " ")
            if name in GAUGES:
                yield GaugeMetricFamily(f"worldroom_{name}", f"{about} now", value=count)
            else:
                yield CounterMetricFamily(f"worldroom_rooms_{name}", f"{about} in all rooms", value=count)


def _of_livekit(counts: LiveKitCounts) -> Iterator[Metric]:
    yield GaugeMetricFamily("worldroom_livekit_rooms", "rooms joined in LiveKit now", value=counts.rooms)
    yield GaugeMetricFamily("worldroom_livekit_people", "people in them now", value=counts.people)
    yield CounterMetricFamily("worldroom_livekit_connects", "connections made to LiveKit", value=counts.connects)
    yield CounterMetricFamily("worldroom_livekit_malformed", "messages that could not be read", value=counts.malformed)
    yield CounterMetricFamily("worldroom_livekit_dropped", "messages that could not be sent", value=counts.dropped)


def _of_card(capacity: Capacity) -> Iterator[Metric]:
    labels, at = ("card", "device"), (capacity.card, capacity.device)
    gauges: tuple[tuple[str, str, float], ...] = (
        ("sessions", "sessions that were let in", capacity.sessions),
        ("sessions_asleep", "of them without a slot until somebody comes back", capacity.asleep),
        ("sessions_max", "slots", capacity.sessions_max),
        ("compute_share_used", "reserved share of the device", capacity.share_used),
        ("step_price_seconds", "predicted device time of one chunk", capacity.price_us / 1e6),
        ("pool_bytes_used", "cache bytes in use", capacity.pool_bytes_used),
        ("device_bytes", "memory of the device that counts", capacity.device_bytes),
        ("on_device", "whether the card is on the device, and not waiting for its turn", capacity.on_device),
        ("queue_depth", "steps waiting for the device", capacity.queue_depth),
        ("waiting", "rooms in line for the device", capacity.waiting),
        ("worker_starts_failed", "starts of a spare worker that failed in a row", capacity.starts_failed),
        ("feature_bytes_used", "bytes of prompt embeddings kept", capacity.feature_bytes_used),
    )
    counters: tuple[tuple[str, str, int], ...] = (
        ("chunks", "chunks committed", capacity.chunks_done),
        ("chunks_late", "chunks later than the playout clock absorbs", capacity.chunks_late),
        ("chunks_cancelled", "chunks cancelled", capacity.chunks_cancelled),
        ("raw_frames_dropped", "raw frames dropped before the encoder", capacity.frames_dropped),
        (
            "frames_superseded",
            "frames of worlds that were redirected before they were shown",
            capacity.frames_superseded,
        ),
        ("degraded", "sessions let in with fewer steps than the default", capacity.degraded),
        ("pool_inspections", "rounds through all pools that found them sound", capacity.inspections),
        ("features_evicted", "prompt embeddings dropped to make room", capacity.features_evicted),
    )
    for name, about, gauge in gauges:
        family = GaugeMetricFamily(f"worldroom_{name}", about, labels=labels)
        family.add_metric(at, gauge)
        yield family
    used = GaugeMetricFamily("worldroom_memory_bytes", "bytes of a pool that are in use", labels=(*labels, "pool"))
    limit = GaugeMetricFamily("worldroom_memory_limit_bytes", "bytes that a pool may have", labels=(*labels, "pool"))
    for pool in capacity.pools:
        used.add_metric((*at, pool.name), pool.used)
        limit.add_metric((*at, pool.name), pool.limit)
    yield used
    yield limit
    for name, about, count in counters:
        counter = CounterMetricFamily(f"worldroom_{name}", about, labels=labels)
        counter.add_metric(at, count)
        yield counter


def exposition(
    edge: Edge, rooms: Rooms, door: EngineClient, rates: Rates, livekit: LiveKitCounts | None = None
) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(EdgeCollector(edge, rooms, door, rates, livekit))
    return generate_latest(registry)
