"""Export in LeRobot's layout v3.0: an episode a film, in files of its own.

    meta/info.json  stats.json  tasks.parquet  episodes/chunk-000/file-000.parquet
    data/chunk-000/file-000.parquet                          frames: action, prompt (task), reward, where it is from
    videos/observation.images.main/chunk-000/file-000.mp4    the film, its frames exactly 1/fps apart

The video is the film that was sent, packet for packet; only times are laid on the grid that the loader expects.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import msgspec

from ...film import CLOCK
from .episodes import Episode, RecordedFilm
from .manifest import ExportManifest, file_digest
from .slot import Slot

CODEBASE = "v3.0"
VIDEO = "observation.images.main"
FILES_A_CHUNK = 1000
BATCH = 8192


class EpisodeMeta(msgspec.Struct, frozen=True):
    """What an episode adds to the data set's own tables; kept beside its files until they are written."""

    tasks: tuple[str, ...]
    length: int
    fps: int
    width: int
    height: int
    action: int
    sums: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[float, ...]]
    session: str


def write_episodes(episode: Episode, folder: Path, slot: Slot) -> tuple[dict[str, str], int]:
    """The first film of a session whose pictures keep their size, as a data set's have one; files by digest, and the
    number of frames. None for a session without such a film.
    """
    place, film = slot.place, next((film for film in episode.films if not film.info.resized), None)
    if film is None:
        return {}, 0
    where = f"chunk-{place // FILES_A_CHUNK:03}/file-{place % FILES_A_CHUNK:03}"
    data, video = f"data/{where}.parquet", f"videos/{VIDEO}/{where}.mp4"
    about = f"meta/parts/{where}.json"
    for name in (data, video, about):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    length = _grid(film, folder / video)
    meta = _frames(episode, film, folder / data, slot, length)
    (folder / about).write_bytes(msgspec.json.encode(meta))
    return {name: file_digest(folder / name) for name in (data, video, about)}, meta.length


def finish(folder: Path, manifest: ExportManifest, controls: Sequence[str]) -> dict[str, str]:
    """Write the data set's own tables from its episodes; files by digest."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    metas = written_episodes(folder, manifest)
    if not metas:
        return {}
    tasks = tasks_of(metas)
    start, rows = 0, []
    for place, meta in enumerate(metas):
        rows.append(_episode_row(place, meta, start))
        start += meta.length
    named = pd.DataFrame({"task_index": list(tasks.values())}, index=list(tasks))  # the loader looks tasks up by index
    written = {
        "meta/episodes/chunk-000/file-000.parquet": pa.Table.from_pylist(rows),
        "meta/tasks.parquet": pa.Table.from_pandas(named),
    }
    for name, table in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)
    first = metas[0]
    names = list(controls) if len(controls) == first.action else [f"control_{n}" for n in range(first.action)]
    info = _info(first, len(metas), start, len(tasks), names)
    (folder / "meta/info.json").write_bytes(msgspec.json.format(msgspec.json.encode(info), indent=2))
    (folder / "meta/stats.json").write_bytes(msgspec.json.encode(_stats(metas)))
    names_written = [*written, "meta/info.json", "meta/stats.json"]
    return {name: file_digest(folder / name) for name in names_written}


def _grid(film: RecordedFilm, target: Path) -> int:
    """Copy the film with its frames 1/fps apart; how many there are."""
    count, step = 0, CLOCK // film.info.fps
    with av.open(str(film.path)) as source, av.open(str(target), "w", format="mp4") as copy:
        stream = copy.add_stream_from_template(source.streams.video[0])
        stream.time_base = Fraction(1, CLOCK)
        for packet in source.demux(source.streams.video[0]):
            if packet.size:
                packet.stream, packet.time_base = stream, Fraction(1, CLOCK)
                packet.pts = packet.dts = count * step
                packet.duration = step
                copy.mux(packet)
                count += 1
    return count


def _frames(episode: Episode, film: RecordedFilm, target: Path, slot: Slot, length: int) -> EpisodeMeta:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tasks: dict[str, int] = {}
    action = len(next(iter(film.notes())).controls)
    sums = _Sums(action)
    schema = _schema(action)
    count = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for batch in _batches(film, length):
            columns: dict[str, list[Any]] = {name: [] for name in schema.names}
            for note in batch:
                task = episode.prompt_of(note.prompt_version) or "drive"
                tasks[task] = 0
                values = (
                    list(note.controls),
                    episode.rewards.get(note.chunk, 0.0),
                    count == length - 1,
                    note.chunk,
                    note.epoch,
                    note.input_seq,
                    count / film.info.fps,
                    count,
                    slot.place,
                    slot.start + count,
                    slot.tasks.setdefault(task, len(slot.tasks)),
                )
                for column, value in zip(columns.values(), values, strict=True):
                    column.append(value)
                sums.add(note.controls)
                count += 1
            writer.write_table(pa.Table.from_pydict(columns, schema=schema))
    info = film.info
    return EpisodeMeta(tuple(tasks), count, info.fps, info.width, info.height, action, sums.values(), episode.session)


def _schema(action: int) -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("action", pa.list_(pa.float32(), action) if action > 1 else pa.list_(pa.float32())),
            ("next.reward", pa.float32()),
            ("next.done", pa.bool_()),
            ("world.chunk", pa.int64()),
            ("world.epoch", pa.int64()),
            ("world.input_seq", pa.int64()),
            ("timestamp", pa.float32()),
            ("frame_index", pa.int64()),
            ("episode_index", pa.int64()),
            ("index", pa.int64()),
            ("task_index", pa.int64()),
        ]
    )


def _batches(film: RecordedFilm, length: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for number, note in enumerate(film.notes()):
        if number >= length:
            break
        batch.append(note)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


class _Sums:
    """Least, greatest, sum and sum of squares of each control."""

    def __init__(self, width: int) -> None:
        self.low, self.high = [math.inf] * width, [-math.inf] * width
        self.sum, self.square = [0.0] * width, [0.0] * width

    def add(self, values: Sequence[float]) -> None:
        for index, value in enumerate(values):
            self.low[index], self.high[index] = min(self.low[index], value), max(self.high[index], value)
            self.sum[index] += value
            self.square[index] += value * value

    def values(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
        return tuple(self.low), tuple(self.high), tuple(self.sum), tuple(self.square)


def _episode_row(place: int, meta: EpisodeMeta, start: int) -> dict[str, Any]:
    chunk, file = place // FILES_A_CHUNK, place % FILES_A_CHUNK
    return {
        "episode_index": place,
        "tasks": list(meta.tasks),
        "length": meta.length,
        "data/chunk_index": chunk,
        "data/file_index": file,
        "dataset_from_index": start,
        "dataset_to_index": start + meta.length,
        f"videos/{VIDEO}/chunk_index": chunk,
        f"videos/{VIDEO}/file_index": file,
        f"videos/{VIDEO}/from_timestamp": 0.0,
        f"videos/{VIDEO}/to_timestamp": meta.length / meta.fps,
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
        "session": meta.session,
    }


def _info(first: EpisodeMeta, episodes: int, frames: int, tasks: int, names: list[str]) -> dict[str, Any]:
    def one(dtype: str) -> dict[str, Any]:
        return {"dtype": dtype, "shape": [1], "names": None}

    video = {
        "dtype": "video",
        "shape": [first.height, first.width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": first.height,
            "video.width": first.width,
            "video.codec": "h264",
            "video.pix_fmt": "yuv420p",
            "video.is_depth_map": False,
            "video.fps": first.fps,
            "video.channels": 3,
            "has_audio": False,
        },
    }
    return {
        "codebase_version": CODEBASE,
        "robot_type": None,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": FILES_A_CHUNK,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": first.fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
        "features": {
            VIDEO: video,
            "action": {"dtype": "float32", "shape": [first.action], "names": names},
            "next.reward": one("float32"),
            "next.done": one("bool"),
            "world.chunk": one("int64"),
            "world.epoch": one("int64"),
            "world.input_seq": one("int64"),
            "timestamp": one("float32"),
            "frame_index": one("int64"),
            "episode_index": one("int64"),
            "index": one("int64"),
            "task_index": one("int64"),
        },
    }


def _stats(metas: Sequence[EpisodeMeta]) -> dict[str, Any]:
    count = sum(meta.length for meta in metas)
    width = metas[0].action
    low = [min(meta.sums[0][i] for meta in metas) for i in range(width)]
    high = [max(meta.sums[1][i] for meta in metas) for i in range(width)]
    mean = [sum(meta.sums[2][i] for meta in metas) / count for i in range(width)]
    square = [sum(meta.sums[3][i] for meta in metas) / count for i in range(width)]
    std = [math.sqrt(max(0.0, q - m * m)) for q, m in zip(square, mean, strict=True)]
    return {"action": {"min": low, "max": high, "mean": mean, "std": std, "count": [count]}}


def written_episodes(folder: Path, manifest: ExportManifest) -> list[EpisodeMeta]:
    """In the order of their places."""
    done = sorted((each for each in manifest.sessions.values() if each.rows), key=lambda each: each.place)
    paths = [
        folder / f"meta/parts/chunk-{e.place // FILES_A_CHUNK:03}/file-{e.place % FILES_A_CHUNK:03}.json" for e in done
    ]
    return [msgspec.json.decode(path.read_bytes(), type=EpisodeMeta) for path in paths]


def tasks_of(metas: Sequence[EpisodeMeta]) -> dict[str, int]:
    tasks: dict[str, int] = {}
    for meta in metas:
        for task in meta.tasks:
            tasks.setdefault(task, len(tasks))
    return tasks
