"""The data card of an export: what is in it, where it is from, what was taken out. A README that a hub shows."""

from collections import Counter

from .manifest import ExportManifest

CONFIGS = {
    "lerobot": "configs:\n- config_name: default\n  data_files: data/*/*.parquet\n",
    "parquet": "configs:\n- config_name: default\n  data_files: data/*/*.parquet\n",
    "pairs": "configs:\n- config_name: default\n  data_files: pairs/*/*.parquet\n",
    "webdataset": "",
}
ROWS = {"lerobot": "frames", "parquet": "chunks", "pairs": "pairs", "webdataset": "frames"}


def data_card(record: ExportManifest, licence: str) -> str:
    """README.md."""
    sessions = record.sessions.values()
    cards = Counter(each.card for each in sessions)
    weights = Counter(f"{each.card} {each.weights}" for each in sessions)
    hours = sum(each.seconds for each in sessions) / 3600
    lines = [
        "---",
        f"tags: [worldroom, world-model, {record.format}]",
        f"{CONFIGS[record.format]}---".strip(),
        "",
        "# Sessions of learned worlds",
        "",
        f"Exported by Worldroom as `{record.format}`. Every session is an exact record: its chunks can be made",
        "again from card, weights, seed and the actions in it.",
        "",
        "| | |",
        "|---|---|",
        f"| sessions | {len(record.sessions)} |",
        f"| {ROWS[record.format]} | {record.rows} |",
        f"| hours | {hours:.2f} |",
        f"| choices among futures | {sum(each.pairs for each in sessions)} |",
        f"| left out | {len(record.skipped)} ({_reasons(record)}) |",
        f"| beginning not kept any more | {sum(not each.complete for each in sessions)} |",
        f"| sessions with the consent of everybody who acted | {sum(each.consented for each in sessions)} |",
        f"| prompts redacted | {sum(each.redacted for each in sessions)} |",
        f"| licence | {licence} |",
        f"| digest | `{record.digest}` |",
        "",
        "## Worlds",
        "",
        *(f"- `{card}`: {count} sessions" for card, count in sorted(cards.items())),
        "",
        "## Weights",
        "",
        *(f"- `{name}`: {count} sessions" for name, count in sorted(weights.items())),
        "",
        "Sessions, their digests and every file's sha256 are in `manifest.json`.",
        "",
    ]
    return "\n".join(lines)


def _reasons(record: ExportManifest) -> str:
    counted = Counter(record.skipped.values())
    return ", ".join(f"{count} {why}" for why, count in sorted(counted.items())) or "none"
