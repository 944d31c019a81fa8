"""Exports that are tables: chunks (`parquet`) and preferences (`pairs`), a file a session, named by what is in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .episodes import Episode
from .manifest import file_digest
from .slot import Slot

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_A_GROUP = 8192


def write_chunks(episode: Episode, folder: Path, slot: Slot) -> tuple[dict[str, str], int]:
    """One row a chunk; files by digest, and the number of rows."""
    columns: dict[str, list[Any]] = {name: [] for name in chunk_schema().names}
    opened = episode.opened
    for row in episode.chunks:
        values = (
            episode.session,
            opened.card,
            opened.weights,
            episode.seeds.get(row.epoch, opened.seed),
            row.chunk,
            row.epoch,
            row.branch,
            row.at - episode.at,
            row.prompt,
            list(row.action),
            list(row.pointer),
            row.reward,
            row.digest,
            row.late_us,
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return _written(columns, chunk_schema(), folder, "data", episode, len(episode.chunks))


def write_pairs(episode: Episode, folder: Path, slot: Slot) -> tuple[dict[str, str], int]:
    """One row a comparison of two futures: the one that was kept against each other one; ties say so."""
    columns: dict[str, list[Any]] = {name: [] for name in pair_schema().names}
    for at, choice in episode.pairs:
        branches = {branch.branch: (order, branch) for order, branch in enumerate(choice.branches)}
        kept = branches.get(choice.chosen)
        for number, (order, other) in branches.items():
            if kept is None or number == choice.chosen:
                continue
            values = (
                episode.session,
                episode.opened.card,
                choice.weights,
                choice.chunk,
                choice.context,
                episode.prompt_of(kept[1].prompt_version),
                episode.prompt_of(other.prompt_version),
                str(choice.verdict),
                list(kept[1].digests),
                list(other.digests),
                kept[1].seed,
                other.seed,
                choice.chosen,
                number,
                kept[0],
                order,
                msgspec.json.encode(kept[1].controls).decode(),
                msgspec.json.encode(other.controls).decode(),
                choice.seconds,
                choice.participant,
                at,
            )
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    rows = len(columns["session"])
    return _written(columns, pair_schema(), folder, "pairs", episode, rows) if rows else ({}, 0)


def chunk_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("session", pa.string()),
            ("card", pa.string()),
            ("weights", pa.string()),
            ("seed", pa.int64()),
            ("chunk", pa.int64()),
            ("epoch", pa.int32()),
            ("branch", pa.int32()),
            ("seconds", pa.float64()),
            ("prompt", pa.string()),
            ("action", pa.list_(pa.float32())),
            ("pointer", pa.list_(pa.float32())),
            ("reward", pa.float32()),
            ("digest", pa.string()),
            ("late_us", pa.int64()),
        ]
    )


def pair_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        [
            ("session", pa.string()),
            ("card", pa.string()),
            ("weights", pa.string()),
            ("chunk", pa.int64()),
            ("context", pa.string()),
            ("prompt_chosen", pa.string()),
            ("prompt_rejected", pa.string()),
            ("verdict", pa.string()),
            ("latents_chosen", pa.list_(pa.string())),
            ("latents_rejected", pa.list_(pa.string())),
            ("seed_chosen", pa.int64()),
            ("seed_rejected", pa.int64()),
            ("branch_chosen", pa.int32()),
            ("branch_rejected", pa.int32()),
            ("shown_chosen", pa.int32()),
            ("shown_rejected", pa.int32()),
            ("actions_chosen", pa.string()),
            ("actions_rejected", pa.string()),
            ("seconds", pa.float64()),
            ("participant", pa.string()),
            ("at", pa.float64()),
        ]
    )


def _written(
    columns: dict[str, list[Any]], schema: "pa.Schema", folder: Path, kind: str, episode: Episode, rows: int
) -> tuple[dict[str, str], int]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = f"{kind}/{episode.digest[:2]}/{episode.digest[:32]}.parquet"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        writer.write_table(pa.Table.from_pydict(columns, schema=schema), row_group_size=ROWS_A_GROUP)
    return {name: file_digest(path)}, rows


def tables_in(folder: Path, kind: str) -> Sequence[Path]:
    return sorted((folder / kind).glob("*/*.parquet"))
