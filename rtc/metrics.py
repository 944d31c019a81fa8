"""/metrics: what the edge and the engine count, read at the moment of the scrape. Keeps no numbers of its own."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ..engine.api import Capacity, Door
from .edge import Edge

CONTENT_TYPE = CONTENT_TYPE_LATEST

EDGE_COUNTERS = {
    "viewers": "viewers_joined: connections answered since the start",
    "frames": "frames_sent: frames sent, counted once per viewer",
    "packets": "rtp_packets: RTP packets sent",
    "octets": "rtp_bytes: RTP payload bytes sent",
    "frames_skipped": "frames_skipped: frames a viewer was passed over for (waiting for a key frame, full socket)",
    "plis": "pli: picture loss indications received",
    "nacks": "nack: packets reported lost",
    "retransmitted": "retransmitted: packets sent again",
    "malformed": "malformed: messages that could not be read",
    "messages_dropped": "messages_dropped: control messages that no open channel could take",
    "receipts_dropped": "receipts_dropped: receipts dropped for a full channel",
    "keys_requested": "key_requests: key frames asked of encoders after coalescing",
}


class EdgeCollector(Collector):
    """See the module docstring."""

    def __init__(self, edge: Edge, door: Door) -> None:
        self._edge = edge
        self._door = door

    def collect(self) -> Iterator[Metric]:
        yield from self._of_edge()
        for capacity in self._door.capacity():
            yield from _of_card(capacity)

    def _of_edge(self) -> Iterator[Metric]:
        streams = self._edge.streams()
        yield GaugeMetricFamily("worldroom_viewers", "viewers connected now", value=self._edge.viewers)
        yield GaugeMetricFamily("worldroom_rooms", "rooms with viewers", value=len(streams))
        target = GaugeMetricFamily("worldroom_bitrate_target_kbps", "encoder target", labels=("room",))
        sent = GaugeMetricFamily("worldroom_bitrate_sent_kbps", "video encoded in the last second", labels=("room",))
        for room, fanout in streams.items():
            target.add_metric((room,), fanout.kbps)
            sent.add_metric((room,), fanout.sent_kbps)
        yield target
        yield sent
        totals = self._edge.totals()
        values = {
            "viewers": totals.viewers,
            "frames": totals.frames,
            "packets": totals.packets,
            "octets": totals.octets,
            "frames_skipped": totals.frames_skipped,
            "plis": totals.plis,
            "nacks": totals.nacks,
            "retransmitted": totals.retransmitted,
            "malformed": totals.malformed,
            "messages_dropped": totals.messages_dropped,
            "receipts_dropped": totals.receipts_dropped,
            "keys_requested": totals.keys_requested,
        }
        for field, text in EDGE_COUNTERS.items():
            name, _, about = text.partition(": ")
            yield CounterMetricFamily(f"worldroom_{name}", about, value=values[field])


def _of_card(capacity: Capacity) -> Iterator[Metric]:
    labels, at = ("card", "device"), (capacity.card, capacity.device)
    gauges: tuple[tuple[str, str, float], ...] = (
        ("sessions", "sessions that hold a slot", capacity.sessions),
        ("sessions_max", "slots", capacity.sessions_max),
        ("compute_share_used", "reserved share of the device", capacity.share_used),
        ("step_price_seconds", "predicted device time of one chunk", capacity.price_us / 1e6),
        ("pool_bytes_used", "cache bytes in use", capacity.pool_bytes_used),
        ("queue_depth", "steps waiting for the device", capacity.queue_depth),
    )
    counters: tuple[tuple[str, str, int], ...] = (
        ("chunks", "chunks committed", capacity.chunks_done),
        ("chunks_late", "chunks finished after their deadline", capacity.chunks_late),
        ("chunks_cancelled", "chunks cancelled", capacity.chunks_cancelled),
        ("raw_frames_dropped", "raw frames dropped before the encoder", capacity.frames_dropped),
    )
    for name, about, gauge in gauges:
        family = GaugeMetricFamily(f"worldroom_{name}", about, labels=labels)
        family.add_metric(at, gauge)
        yield family
    for name, about, count in counters:
        counter = CounterMetricFamily(f"worldroom_{name}", about, labels=labels)
        counter.add_metric(at, count)
        yield counter


def exposition(edge: Edge, door: Door) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EdgeCollector(edge, door))
    return generate_latest(registry)
