"""One room's stream: each rendition of a frame is packetized once, and every viewer gets the one that suits it.

    Frame, Rendered -> Packed, once -> each viewer's own sender, so that a slow one delays nobody
    reports of viewers, once a second -> the rung of each -> the rate of each rung's encoder

Knows viewers only by their `Subscription`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...engine.api import Frame, Rendered, Rendition
from .bitrate import LinkRate, RungChoice, ViewerReport, full_kbps, low_kbps
from .packets import payloads_of, vp8_payloads_of

FULL = (Rendition.H264, Rendition.VP8)
LOW_OF = {Rendition.H264: Rendition.H264_LOW, Rendition.VP8: Rendition.VP8_LOW}


@dataclass(frozen=True, slots=True)
class BitrateRange:
    """Bounds of the encoder's target in kbit/s."""

    floor: int
    ceiling: int


@dataclass(frozen=True, slots=True)
class Packed:
    """A frame in one rendition, ready for every sender."""

    frame: Frame
    payloads: tuple[bytes, ...]


class Subscription:
    """One viewer's part: the rendition it gets, and the one it gets from that one's next key frame on.

    `report` is asked once a second, `drives` whether the viewer drives, `want_key` asks for a key frame of `wanted`.
    Who drives gets the full rung, whose rate is theirs. `rungs` False: so does this viewer, whatever its network takes.
    """

    def __init__(
        self,
        full: Rendition,
        ceiling: int,
        report: Callable[[], ViewerReport],
        drives: Callable[[], bool],
        want_key: Callable[[], None],
        rungs: bool = True,
    ) -> None:
        self._rungs = rungs
        self.full = self.current = self.wanted = full
        self.report, self.drives, self.want_key = report, drives, want_key
        self.link, self.rung = LinkRate(ceiling), RungChoice()

    def takes(self, rendition: Rendition, key: bool) -> bool:
        """Whether a frame of that rendition is for this viewer."""
        if rendition is not self.current and rendition is self.wanted and key:
            self.current = rendition
        return rendition is self.current

    def settle(self, now: float, full_kbps: int) -> None:
        self.link.learn(self.report())
        may_halve = self._rungs and not self.drives()
        low = may_halve and self.rung.decide(now, self.link.kbps, full_kbps)
        wanted = LOW_OF[self.full] if low else self.full
        if wanted is not self.wanted:
            self.wanted = wanted
            self.want_key()


class Fanout:
    """See the module docstring. `set_bitrate(session, rendition, kbps)` reaches the encoders."""

    def __init__(self, bitrate: BitrateRange, set_bitrate: Callable[[str, Rendition, int], None]) -> None:
        self.bitrate = bitrate
        self._set_bitrate = set_bitrate
        self._viewers: set[Subscription] = set()
        self._session = ""
        self._packed: dict[Rendition, Packed] = {}
        self._octets: dict[Rendition, int] = {}
        self._counted: dict[Rendition, Frame] = {}
        self._rates: dict[Rendition, int] = {}
        """What encoders were told."""
        self.sent_kbps = 0

    @property
    def kbps(self) -> int:
        """Target of the rendition that is always made."""
        return self._rate(Rendition.H264)

    @property
    def rates(self) -> dict[Rendition, int]:
        """Target of each rendition that is made."""
        return {Rendition.H264: self.kbps, **self._rates}

    def watched(self) -> dict[Rendition, int]:
        """How many viewers get each rendition."""
        return {each: sum(viewer.current is each for viewer in self._viewers) for each in self.rates}

    def join(self, viewer: Subscription) -> None:
        self._viewers.add(viewer)

    def leave(self, viewer: Subscription) -> None:
        self._viewers.discard(viewer)

    def frame(self, frame: Frame) -> Packed:
        """What its senders get; made on the first call for it."""
        self.pass_on(frame)
        return self._packing(Rendition.H264, frame)

    def pass_on(self, frame: Frame) -> None:
        """It leaves as it is, for somebody who packs it: it counts, once."""
        if self._session != frame.session:
            self._session = frame.session
            self._tell(self._rates)
        self._count(Rendition.H264, frame)

    def rendered(self, rendered: Rendered) -> Packed:
        return self._packing(rendered.rendition, rendered.frame)

    def settle_bitrate(self, now: float, seconds: float) -> None:
        """Once every `seconds`: choose each viewer's rung and move the rates by what they reported."""
        self.sent_kbps = int(self._octets.pop(Rendition.H264, 0) * 8 / 1000 / seconds)
        self._octets.clear()
        for viewer in self._viewers:
            viewer.settle(now, self._rate(viewer.full))
        if self._viewers and self._session:
            before, self._rates = self._rates, self._targets()
            # What is made on demand is asked for again each time, or it ends.
            changed = {r: kbps for r, kbps in self._rates.items() if r is not Rendition.H264 or kbps != before.get(r)}
            self._tell(changed)

    def overfull(self, viewer: Subscription, kbps: int) -> None:
        """A viewer's path takes no more: what that changes is told at once."""
        viewer.link.limit(kbps)
        if self._session:
            before, self._rates = self._rates, self._targets()
            self._tell({r: target for r, target in self._rates.items() if target != before.get(r)})

    def _tell(self, rates: dict[Rendition, int]) -> None:
        for rendition, kbps in rates.items():
            self._set_bitrate(self._session, rendition, kbps)

    def _targets(self) -> dict[Rendition, int]:
        targets = {Rendition.H264: self.kbps}
        for full in FULL:
            rates = [v.link.kbps for v in self._of(full) if not v.drives()]
            driver = min((v.link.kbps for v in self._of(full) if v.drives()), default=None)
            if rates or driver is not None:
                floor, ceiling = self.bitrate.floor, self.bitrate.ceiling
                targets[full] = full_kbps(self._rate(full), driver, rates, floor, ceiling)
            if lows := [v.link.kbps for v in self._of(LOW_OF[full])]:
                targets[LOW_OF[full]] = low_kbps(lows, self.bitrate.ceiling)
        return targets

    def _of(self, rendition: Rendition) -> Iterable[Subscription]:
        """Who gets it or waits for it."""
        return (viewer for viewer in self._viewers if rendition in (viewer.current, viewer.wanted))

    def _rate(self, rendition: Rendition) -> int:
        return self._rates.get(rendition, self.bitrate.ceiling)

    def _packing(self, rendition: Rendition, frame: Frame) -> Packed:
        made = self._packed.get(rendition)
        if made is None or made.frame is not frame:
            vp8 = rendition in (Rendition.VP8, Rendition.VP8_LOW)
            made = Packed(frame, (vp8_payloads_of if vp8 else payloads_of)(frame.data))
            self._packed[rendition] = made
            self._count(rendition, frame)
        return made

    def _count(self, rendition: Rendition, frame: Frame) -> None:
        if self._counted.get(rendition) is not frame:
            self._counted[rendition] = frame
            self._octets[rendition] = self._octets.get(rendition, 0) + len(frame.data)
