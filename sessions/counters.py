"""What the sessions layer counts, for /metrics. Totals since the server started unless said otherwise."""

from dataclasses import dataclass, replace

GAUGES = frozenset(
    {"rooms", "participants", "journal_buffered", "journal_spool_bytes", "journal_away", "journal_hot_bytes"}
)
"""Fields that are of now; all others only grow."""

ASK_REFUSALS = frozenset({"not_understood", "bad_prompt", "busy", "bad_adapter", "no_compute"})


@dataclass(slots=True)
class RoomsCounters:
    """What is refused or dropped is counted by why. `chunks_late`: later than the playout clock absorbs.
    `journal_*`: see `JournalCounters`; `journal_away` is 0 or 1."""

    rooms: int = 0
    participants: int = 0
    sessions_opened: int = 0
    sessions_refused: int = 0
    sessions_closed: int = 0
    joins_refused: int = 0
    takeovers: int = 0
    inputs: int = 0
    inputs_dropped: int = 0
    messages_dropped: int = 0
    malformed: int = 0
    problems: int = 0
    prompts: int = 0
    prompts_refused: int = 0
    resets: int = 0
    feedback: int = 0
    uploads: int = 0
    uploads_refused: int = 0
    chunks_begun: int = 0
    chunks_done: int = 0
    chunks_late: int = 0
    chunks_cancelled: int = 0
    frames: int = 0
    frames_old_epoch: int = 0
    frames_shown: int = 0
    faults: int = 0
    journal_recorded: int = 0
    journal_written: int = 0
    journal_repeated: int = 0
    journal_spooled: int = 0
    journal_dropped: int = 0
    journal_outages: int = 0
    journal_disk_errors: int = 0
    journal_buffered: int = 0
    journal_spool_bytes: int = 0
    journal_away: int = 0
    journal_recovered: int = 0
    journal_archived: int = 0
    journal_cut: int = 0
    journal_archive_errors: int = 0
    journal_hot_bytes: int = 0
    latents_kept: int = 0
    latents_dropped: int = 0

    def take_fault(self, code: str) -> None:
        """A fault of the engine, or words or adapters that it takes back without having failed."""
        if code in ASK_REFUSALS:
            self.prompts_refused += 1
        else:
            self.faults += 1


@dataclass(slots=True)
class JournalCounters:
    """Entries. `written`: new in the store, drained ones too. `repeated`: sent again, it had them. `dropped`: lost.

    `recovered`: found in the ring of a process that was killed. `archived`, `cut`: see `Archiver`. `hot_bytes`: stored
    and not archived yet. `latents_*`: see `LatentsKeeper`.
    """

    recorded: int = 0
    written: int = 0
    repeated: int = 0
    spooled: int = 0
    dropped: int = 0
    buffered: int = 0
    spool_bytes: int = 0
    outages: int = 0
    disk_errors: int = 0
    recovered: int = 0
    archived: int = 0
    cut: int = 0
    archive_errors: int = 0
    hot_bytes: int = 0
    latents_kept: int = 0
    latents_dropped: int = 0
    away: bool = False


def with_journal(counters: RoomsCounters, journal: JournalCounters) -> RoomsCounters:
    """A copy that holds the journal's as well."""
    return replace(
        counters,
        journal_recorded=journal.recorded,
        journal_written=journal.written,
        journal_repeated=journal.repeated,
        journal_spooled=journal.spooled,
        journal_dropped=journal.dropped,
        journal_outages=journal.outages,
        journal_disk_errors=journal.disk_errors,
        journal_buffered=journal.buffered,
        journal_spool_bytes=journal.spool_bytes,
        journal_away=int(journal.away),
        journal_recovered=journal.recovered,
        journal_archived=journal.archived,
        journal_cut=journal.cut,
        journal_archive_errors=journal.archive_errors,
        journal_hot_bytes=journal.hot_bytes,
        latents_kept=journal.latents_kept,
        latents_dropped=journal.latents_dropped,
    )
