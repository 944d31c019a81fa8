"""What all viewers of a server got and sent, summed up."""

from dataclasses import dataclass

from .viewer import Viewer


@dataclass(frozen=True, slots=True)
class EdgeTotals:
    """Sums over every viewer there was, for /metrics."""

    viewers: int = 0
    frames: int = 0
    packets: int = 0
    bytes: int = 0
    frames_skipped: int = 0
    plis: int = 0
    nacks: int = 0
    retransmitted: int = 0
    malformed: int = 0
    messages_dropped: int = 0
    receipts_dropped: int = 0
    keys_requested: int = 0
    overfull: int = 0


def plus(sums: EdgeTotals, viewer: Viewer) -> EdgeTotals:
    """With what this one viewer got and sent."""
    stream, counts = viewer.connection.sender.counts, viewer.counts
    return EdgeTotals(
        viewers=sums.viewers + 1,
        frames=sums.frames + stream.frames,
        packets=sums.packets + stream.packets,
        bytes=sums.bytes + stream.octets,
        frames_skipped=sums.frames_skipped + stream.skipped,
        plis=sums.plis + stream.plis,
        nacks=sums.nacks + stream.nacks,
        retransmitted=sums.retransmitted + stream.retransmitted,
        malformed=sums.malformed + counts.malformed,
        messages_dropped=sums.messages_dropped + counts.messages_dropped,
        receipts_dropped=sums.receipts_dropped + counts.receipts_dropped,
        keys_requested=sums.keys_requested + counts.keys_requested,
        overfull=sums.overfull + stream.overfull,
    )
