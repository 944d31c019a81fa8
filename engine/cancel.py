"""Cancellation: a tree of scopes, server > session > chunk, that work looks at between two steps."""


class Superseded(Exception):
    """The work was cancelled; raised at a step boundary."""


class CancelScope:
    """One node of the tree: cancelled when it or anything above it is. `whole`: work that runs to its end once begun,
    so that it can only be cancelled from above.
    """

    __slots__ = ("_cancelled", "_parent", "whole")

    def __init__(self, parent: "CancelScope | None" = None) -> None:
        self._parent = parent
        self._cancelled = self.whole = False

    def cancel(self) -> None:
        self._cancelled = not self.whole

    @property
    def cancelled(self) -> bool:
        return self._cancelled or (self._parent is not None and self._parent.cancelled)

    def check(self) -> None:
        """Raise `Superseded` when cancelled."""
        if self.cancelled:
            raise Superseded
