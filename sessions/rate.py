"""A rate limit: so many per second, so many at once. Pure: time is an argument."""


class Rate:
    """A bucket of `burst` tokens, refilled at `per_s`; one act takes one token."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def allows(self, now: float) -> bool:
        """Take a token if there is one; `now` in seconds."""
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
