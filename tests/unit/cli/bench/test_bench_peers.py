"""`worldroom bench peers`: the stamp in the picture, the reckoning, and one second of aiortc as it is."""

import io
import json
import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rich.console import Console
from worldroom.cli.bench.peers import environment
from worldroom.cli.bench.peers.command import table
from worldroom.cli.bench.peers.measure import PeerSeen, PeersReport, PeersSpec, each_more_ms, reckoned
from worldroom.cli.bench.peers.picture import MovingPicture, PictureSpec, age_us, now_us
from worldroom.clients.bench.server import command
from worldroom.clients.python.markers import read_luma


def test_a_picture_says_when_it_was_made_and_moves() -> None:
    picture = MovingPicture(PictureSpec(scale=4, fps=30, kbps=1000))
    before = now_us()
    first, second = picture.next(), picture.next()
    assert first.shape == (384, 640, 3)
    marker = read_luma(first[:, :, 0])
    assert marker is not None
    after = now_us()
    assert 0 <= age_us(marker.chunk, marker.input_seq, after) <= after - before
    assert not np.array_equal(first[200:], second[200:])


def test_the_stamp_holds_beyond_its_48_bits() -> None:
    made = 2**48 - 10
    assert age_us(made >> 24, made % 2**24, 2**48 + 5) == 15


def test_a_cell_reckons_what_one_viewer_gets_and_the_sender_spends_on_it() -> None:
    cell = reckoned(2, [5.0, 7.0] * 60, [40.0] * 60, octets=500_000, took=2.0, cpu_s=0.3)
    assert (cell.fps, cell.kbps, cell.cpu_percent, cell.cpu_ms) == (30.0, 1000.0, 15.0, 5.0)
    assert (cell.age_ms.p50, cell.age_ms.count, cell.plain_ms.p95) == (7.0, 120, 40.0)


def test_a_further_viewer_costs_the_slope_a_frame_even_where_frames_are_lost() -> None:
    """With eight viewers half the frames came, for the same CPU a second."""
    one = reckoned(1, [5.0] * 30, [], octets=0, took=1.0, cpu_s=0.3)
    eight = reckoned(8, [5.0] * 15 * 8, [], octets=0, took=1.0, cpu_s=0.3 * 8 / 2)
    assert each_more_ms([one, eight]) == pytest.approx(10.0)
    assert each_more_ms([one]) == 0.0


def test_a_peer_that_is_not_there_stands_in_the_table_with_its_reason() -> None:
    shown = io.StringIO()
    report = PeersReport(PeersSpec(), 0.5, (PeerSeen("fastrtc", missing="no index"),))
    Console(file=shown, width=140).print(table(report))
    assert "fastrtc" in shown.getvalue() and "no index" in shown.getvalue()


def test_an_environment_that_pip_cannot_fill_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*said: str) -> None:
        raise subprocess.CalledProcessError(1, said)

    monkeypatch.setattr(environment, "_run", refuse)
    with pytest.raises(environment.NotInstalled, match="cannot be installed"):
        environment.fastrtc_python(tmp_path)


def test_a_second_of_aiortc_and_of_us(tmp_path: Path) -> None:
    line = [command(), "bench", "peers", "--peer", "aiortc", "--peer", "ours", "--seconds", "1", "--viewers", "1"]
    done = subprocess.run(
        [*line, "--folder", str(tmp_path), "--json"], capture_output=True, check=True, text=True, timeout=60
    )
    report = msgspec.convert(json.loads(done.stdout), PeersReport)
    assert [(peer.name, peer.missing, len(peer.cells)) for peer in report.peers] == [("aiortc", "", 1), ("ours", "", 1)]
    for peer in report.peers:
        cell = peer.cells[0]
        assert cell.age_ms.count > 0 and cell.plain_ms.count > 0 and cell.cpu_percent > 0
        assert 0 < cell.age_ms.min <= cell.plain_ms.max
