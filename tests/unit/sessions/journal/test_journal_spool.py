"""The spool file: entries come out in order, once, and a torn tail harms nobody."""

from pathlib import Path

import pytest
from worldroom.sessions.journal.spool import Spool, SpoolTaken
from worldroom.sessions.journal.store import StoredEntry


def entry(number: int) -> StoredEntry:
    return StoredEntry(session="s", number=number, at=1.5, body=b'{"type":"closed"}' * number)


def test_entries_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "journal.spool")
    spool.append([entry(1), entry(2)])
    spool.append([entry(3)])
    first, offset = spool.peek(2)
    assert first == [entry(1), entry(2)]
    spool.drain_to(offset)
    assert spool.peek(2)[0] == [entry(3)]


def test_a_drained_spool_takes_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal.spool"
    spool = Spool(path)
    spool.append([entry(1)])
    spool.drain_to(spool.peek(10)[1])
    assert spool.empty and path.stat().st_size == 0


@pytest.mark.parametrize("torn", [1, 7, 9, 20])
def test_a_torn_last_record_is_cut_off_at_the_next_start(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "journal.spool"
    spool = Spool(path)
    spool.append([entry(1)])
    whole = path.stat().st_size
    spool.append([entry(2)])
    spool.close()
    with open(path, "r+b") as file:
        file.truncate(whole + torn)
    again = Spool(path)
    assert again.peek(10)[0] == [entry(1)]
    again.append([entry(3)])
    assert again.peek(10)[0] == [entry(1), entry(3)]


def test_two_servers_never_share_a_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "journal.spool")
    with pytest.raises(SpoolTaken, match="another Worldroom server spools to"):
        Spool(tmp_path / "journal.spool")
    spool.close()
    Spool(tmp_path / "journal.spool").close()
