"""Export as webdataset: a tar a session with its films, what each of their frames contains, and where all is from."""

import io
import tarfile
from pathlib import Path

import msgspec

from ...film import CLOCK
from .episodes import Episode, RecordedFilm
from .manifest import file_digest
from .slot import Slot


def write_shard(episode: Episode, folder: Path, slot: Slot) -> tuple[dict[str, str], int]:
    """Files by digest, and the number of frames; none for a session that was not filmed."""
    if not episode.films:
        return {}, 0
    name = f"shards/{episode.digest[:2]}/{episode.digest[:32]}.tar"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    frames = 0
    with tarfile.open(path, "w") as tar:
        for film in episode.films:
            key = f"{episode.digest[:24]}-{film.info.name}"
            _add(tar, f"{key}.json", msgspec.json.encode(_about(episode, film)))
            _add(tar, f"{key}.frames.jsonl", film.path.with_suffix(".jsonl").read_bytes())
            size = film.path.stat().st_size
            with open(film.path, "rb") as file:
                info = tarfile.TarInfo(f"{key}.mp4")
                info.size = size
                tar.addfile(info, file)
            frames += film.info.frames
    return {name: file_digest(path)}, frames


def _about(episode: Episode, film: RecordedFilm) -> dict[str, object]:
    opened = episode.opened
    return {
        "session": episode.session,
        "card": opened.card,
        "weights": opened.weights,
        "version": opened.version,
        "steps": opened.steps,
        "precision": opened.precision,
        "machine": opened.machine,
        "seeds": episode.seeds,
        "prompts": episode.prompts,
        "rewards": episode.rewards,
        "fps": film.info.fps,
        "frames": film.info.frames,
        "seconds": film.info.ticks / CLOCK,
        "chapters": film.info.chapters,
    }


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
