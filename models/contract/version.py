"""The contract's version: which states, carries and step names a program can read.

Snapshots and journals name it. What names a version that this program does not know is refused, never guessed at.
"""

from ... import __version__

SOFTWARE = __version__
"""Version of this program: another one may make other bits of the same world."""

CONTRACT_VERSION = 2
"""2: several loops a card; a step is known by (card, loop, kind)."""

JOURNALS_SINCE = 1
"""The oldest journals that can be replayed: those that name no version are of the first."""


class UnknownContract(ValueError):
    """Something was written under a version of the contract that this program cannot read."""

    def __init__(self, what: str, version: int, since: int) -> None:
        known = str(CONTRACT_VERSION) if since == CONTRACT_VERSION else f"{since} to {CONTRACT_VERSION}"
        super().__init__(f"{what} has contract version {version}, this program reads {known}")
        self.version = version


def check_contract(what: str, version: int, since: int = CONTRACT_VERSION) -> None:
    """Raise `UnknownContract` unless `version` is one of `since` to now; `what` names the thing in the message."""
    if not since <= version <= CONTRACT_VERSION:
        raise UnknownContract(what, version, since)
