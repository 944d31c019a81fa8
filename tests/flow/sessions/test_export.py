"""Exports: what was journaled and filmed is what the tools people train with read."""

import json
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import av
import pytest
from worldroom.sessions.export.episodes import Episode, episodes
from worldroom.sessions.export.exporter import ExportFormat, ExportReport, ExportSpec, export
from worldroom.sessions.export.manifest import ManifestMismatch
from worldroom.sessions.journal import events
from worldroom.sessions.messages import Role
from worldroom.tests.journaled_sessions import Shelf, happened
from worldroom.tests.unit.test_film import encoded

pytest.importorskip("pyarrow")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "data")


async def exported(shelf: Shelf, kind: ExportFormat, out: Path, *names: str, consented: bool = False) -> ExportReport:
    found = episodes(shelf.history, shelf.recordings, list(names))
    return await export(found, ExportSpec(kind, out, ("go", "left"), "CC0", consented))


def chosen(kept: int, verdict: events.Verdict = events.Verdict.CHOSEN) -> events.PreferenceChosen:
    branches = tuple(
        events.BranchRecord(branch, 7, 4, (f"{branch}a", f"{branch}b"), 2, ((1.0, 0.0), (0.0, 0.0)))
        for branch in (2, 1)
    )
    return events.PreferenceChosen("ann", 4, "ctx", "w0", branches, kept, verdict, 3.5)


async def test_chunks_load_in_pyarrow_and_datasets(shelf: Shelf, tmp_path: Path) -> None:
    import datasets
    import pyarrow.parquet as pq

    await shelf.write("one", happened(5, liked=(3,)))
    await shelf.write("two", happened(3))
    report = await exported(shelf, ExportFormat.PARQUET, tmp_path / "out", "one", "two")
    assert (report.sessions, report.new, report.rows) == (2, 2, 8)
    (file,) = [path for path in (tmp_path / "out").rglob("*.parquet") if pq.read_table(path).num_rows == 5]
    rows = pq.read_table(file).to_pylist()
    assert [row["prompt"] for row in rows] == ["a town"] * 2 + ["a town by night"] * 3
    assert [row["reward"] for row in rows] == [0, 0, 0, 1, 0]
    assert rows[1]["action"] == [1.0, 0.0] and rows[1]["digest"] == f"{1:032x}" and rows[1]["seed"] == 7
    loaded = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "out" / "data" / "*" / "*.parquet"), cache_dir=str(tmp_path / "cache")
    )["train"]
    assert len(loaded) == 8 and set(loaded["session"]) == {"one", "two"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| sessions | 2 |" in card and "| licence | CC0 |" in card and "`toy`: 2 sessions" in card


async def test_an_export_goes_on_and_is_named_by_what_is_in_it(shelf: Shelf, tmp_path: Path) -> None:
    await shelf.write("one", happened(5))
    await shelf.write("two", happened(3))
    out = tmp_path / "out"

    async def stopped() -> AsyncIterator[Episode]:
        async for episode in episodes(shelf.history, shelf.recordings, ["one", "two"]):
            if episode.session == "two":
                raise KeyboardInterrupt
            yield episode

    with pytest.raises(KeyboardInterrupt):
        await export(stopped(), ExportSpec(ExportFormat.PARQUET, out))
    assert (await exported(shelf, ExportFormat.PARQUET, out, "one", "two")).new == 1
    again = await exported(shelf, ExportFormat.PARQUET, out, "one", "two")
    fresh = await exported(shelf, ExportFormat.PARQUET, tmp_path / "fresh", "one", "two")
    assert again.new == 0 and again.digest == fresh.digest
    next((out / "data").rglob("*.parquet")).write_bytes(b"torn")
    assert (await exported(shelf, ExportFormat.PARQUET, out, "one", "two")).digest == fresh.digest
    with pytest.raises(ManifestMismatch, match="holds an export as parquet"):
        await exported(shelf, ExportFormat.PAIRS, out, "one")


async def test_choices_become_pairs(shelf: Shelf, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    await shelf.write("one", [*happened(5)[:-1], chosen(1), chosen(2, events.Verdict.TIE)])
    await shelf.write("two", happened(3))
    report = await exported(shelf, ExportFormat.PAIRS, tmp_path / "out", "one", "two")
    assert (report.sessions, report.rows, report.skipped) == (1, 2, 1)
    first, second = pq.read_table(next((tmp_path / "out").rglob("*.parquet"))).to_pylist()
    assert (first["branch_chosen"], first["branch_rejected"], first["verdict"]) == (1, 2, "chosen")
    assert (first["latents_chosen"], first["latents_rejected"]) == (["1a", "1b"], ["2a", "2b"])
    assert (first["shown_chosen"], first["shown_rejected"]) == (1, 0)
    assert (first["context"], first["seconds"], second["verdict"]) == ("ctx", 3.5, "tie")


async def test_films_load_in_webdataset(shelf: Shelf, tmp_path: Path) -> None:
    import webdataset

    await shelf.write("one", happened(30, turn=10))
    await shelf.film("one", encoded(30), turn=10)
    await shelf.write("bare", happened(3))
    report = await exported(shelf, ExportFormat.WEBDATASET, tmp_path / "out", "one", "bare")
    assert (report.sessions, report.rows, report.skipped) == (1, 30, 1)
    (shard,) = (tmp_path / "out").rglob("*.tar")
    with tarfile.open(shard) as tar:
        assert len(tar.getnames()) == 3
    (sample,) = list(webdataset.WebDataset(str(shard), shardshuffle=False))
    about = json.loads(sample["json"])
    assert (about["card"], about["fps"], about["prompts"]["2"]) == ("toy", 24, "a town by night")
    assert [json.loads(line)["chunk"] for line in sample["frames.jsonl"].splitlines()] == list(range(30))
    film = tmp_path / "film.mp4"
    film.write_bytes(sample["mp4"])
    with av.open(str(film)) as opened:
        assert sum(1 for _ in opened.decode(video=0)) == 30


async def test_films_have_lerobots_layout(shelf: Shelf, tmp_path: Path) -> None:
    """As its loader of v3.0 reads it: info, tasks by index, episodes, frames, a video on an exact grid."""
    import datasets
    import pandas as pd

    for name, count in (("one", 30), ("two", 20)):
        await shelf.write(name, happened(count, turn=10, liked=(12,)))
        await shelf.film(name, encoded(count), turn=10)
    out = tmp_path / "out"
    report = await exported(shelf, ExportFormat.LEROBOT, out, "one")
    assert (await exported(shelf, ExportFormat.LEROBOT, out, "one", "two")).new == 1 and report.rows == 30
    info = json.loads((out / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_episodes"], info["total_frames"], info["fps"]) == ("v3.0", 2, 50, 24)
    assert info["features"]["action"] == {"dtype": "float32", "shape": [2], "names": ["go", "left"]}
    tasks = pd.read_parquet(out / "meta/tasks.parquet")
    assert list(tasks.index) == ["a town", "a town by night"] and list(tasks["task_index"]) == [0, 1]
    episodes_ = datasets.Dataset.from_parquet(
        [str(path) for path in sorted((out / "meta/episodes").glob("*/*.parquet"))], cache_dir=str(tmp_path / "c1")
    )
    assert episodes_["dataset_from_index"][:] == [0, 30] and episodes_["dataset_to_index"][:] == [30, 50]
    key = "observation.images.main"
    features = datasets.Features(
        {
            name: datasets.Sequence(datasets.Value(kind["dtype"]), length=kind["shape"][0])
            if kind["shape"] != [1]
            else datasets.Value(kind["dtype"])
            for name, kind in info["features"].items()
            if kind["dtype"] != "video"
        }
    )
    frames = datasets.Dataset.from_parquet(
        [str(path) for path in sorted((out / "data").glob("*/*.parquet"))],
        features=features,
        cache_dir=str(tmp_path / "c2"),
    )
    assert frames["index"][:] == list(range(50)) and frames["episode_index"][:] == [0] * 30 + [1] * 20
    assert frames["task_index"][8:12] == [0, 0, 1, 1] and frames["next.reward"][12] == 1.0
    assert frames["timestamp"][29] == pytest.approx(29 / 24, abs=1e-4)
    for place, count in ((0, 30), (1, 20)):
        path = info["video_path"].format(video_key=key, chunk_index=0, file_index=place)
        with av.open(str(out / path)) as film:
            times = [frame.time for frame in film.decode(video=0)]
        assert times == pytest.approx([number / 24 for number in range(count)], abs=1e-4)
    stats = json.loads((out / "meta/stats.json").read_text())["action"]
    assert (stats["mean"], stats["max"], stats["count"]) == ([0.5, 0.0], [1.0, 0.0], [50])


async def test_lerobot_gets_films_whose_pictures_keep_their_size(shelf: Shelf, tmp_path: Path) -> None:
    changing = [*encoded(6), *encoded(6, 160, 96)]
    for name, films in (("one", [changing]), ("two", [changing, encoded(9)])):
        await shelf.write(name, happened(12, turn=10))
        for frames in films:
            await shelf.film(name, frames, turn=10)
    report = await exported(shelf, ExportFormat.LEROBOT, tmp_path / "out", "one", "two")
    info = json.loads((tmp_path / "out" / "meta/info.json").read_text())
    assert (report.rows, info["total_episodes"], info["total_frames"]) == (9, 1, 9)
    assert info["features"]["observation.images.main"]["shape"] == [192, 320, 3]


async def test_a_session_that_lost_its_beginning_is_left_out_of_what_needs_it(shelf: Shelf, tmp_path: Path) -> None:
    await shelf.write("one", happened(5))
    index = shelf.archive.index("one")
    assert index is not None
    shelf.archive.cut(index, index.last)
    assert (await exported(shelf, ExportFormat.PARQUET, tmp_path / "out", "one")).sessions == 0


async def test_without_consent_of_all_who_acted_a_session_is_left_out(shelf: Shelf, tmp_path: Path) -> None:
    for name, consent in (("yes", True), ("no", False)):
        joined = events.Joined("ann", Role.DRIVER, False, True), events.Joined("ann", Role.DRIVER, True, consent)
        watched = events.Joined("bob", Role.SPECTATOR, False)
        await shelf.write(name, [happened(3)[0], *joined, watched, *happened(3, liked=(1,))[1:]])
    out = tmp_path / "out"
    report = await exported(shelf, ExportFormat.PARQUET, out, "yes", "no", consented=True)
    assert (report.sessions, report.skipped) == (1, 1), "the last answer counts, and only of who acted"
    assert "| left out | 1 (1 without consent) |" in (out / "README.md").read_text()
    everything = tmp_path / "everything"
    assert (await exported(shelf, ExportFormat.PARQUET, everything, "yes", "no")).sessions == 2
    assert "| sessions with the consent of everybody who acted | 1 |" in (everything / "README.md").read_text()
    with pytest.raises(ManifestMismatch, match="1 sessions without consent"):
        await exported(shelf, ExportFormat.PARQUET, everything, "yes", consented=True)
