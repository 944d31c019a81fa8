"""Options that say what the engine may take of the device and of this machine."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ..engine.spec import EngineSpec
from ..engine.worker.devices import AUTO

MB = 1 << 20
DEFAULT = EngineSpec()


@dataclass(frozen=True)
class EngineOptions:
    """What a person who serves may set; the rest of an engine's figures are constants beside what they steer."""

    devices: Annotated[
        str,
        typer.Option(help="A worker for each: cuda:0,cuda:1,cpu; auto: all GPUs, else the CPU; sim:h200: simulated."),
    ] = AUTO
    workers: Annotated[int, typer.Option(min=1, max=16, help="Worker processes that share the CPU.")] = 1
    memory: Annotated[
        int | None,
        typer.Option(min=1, metavar="MB", help="Megabytes of a device to count with, where it is not to be asked."),
    ] = None
    share: Annotated[
        float, typer.Option(min=0.05, max=1.0, help="Part of the device that may be promised to sessions.")
    ] = DEFAULT.share_cap
    max_rows: Annotated[int, typer.Option(min=1, max=64, help="Sessions whose steps may run as one batch.")] = (
        DEFAULT.max_rows
    )
    background_after: Annotated[
        float, typer.Option(min=0.0, help="Seconds after which background work competes with everyone.")
    ] = DEFAULT.ageing
    kbps: Annotated[int, typer.Option(min=100, help="Video rate a session starts with.")] = DEFAULT.kbps
    kbps_max: Annotated[int, typer.Option(min=100, help="Video rate that no viewer exceeds.")] = DEFAULT.kbps_max
    encoder_threads: Annotated[int, typer.Option(min=1, max=64, help="Threads that make packets of frames.")] = (
        DEFAULT.encoder_threads
    )
    suspend_after: Annotated[
        float, typer.Option(min=0.0, help="Seconds after which a paused world gives its place on the device back.")
    ] = DEFAULT.suspend_after
    checkpoint_every: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two checkpoints of a world, against its worker's death.")
    ] = DEFAULT.checkpoint_seconds
    checkpoint_chunks: Annotated[
        int, typer.Option(min=1, help="Chunks after which a checkpoint is due in any case.")
    ] = DEFAULT.checkpoint_chunks
    worlds_memory: Annotated[
        int, typer.Option(min=0, metavar="MB", help="Megabytes of host memory for worlds that are written down.")
    ] = DEFAULT.worlds_memory // MB
    worlds_disk: Annotated[
        int, typer.Option(min=0, metavar="MB", help="Megabytes of disk for them: what memory does not hold, restarts.")
    ] = DEFAULT.worlds_disk // MB
    weights_memory: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="MB",
            help="Megabytes of host memory for weights that wait for their turn; else half of what is free.",
        ),
    ] = None
    patience: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds a step may take, or ten times its price, before its worker is ended."),
    ] = DEFAULT.patience
    adapters_memory: Annotated[
        int, typer.Option(min=1, metavar="MB", help="Megabytes of adapters that are attached at once.")
    ] = DEFAULT.adapter_bytes_max // MB
    fps: Annotated[
        int | None,
        typer.Option(min=1, help="Pictures a second at most; fewer than the card's make its world's clock go slower."),
    ] = None
    prompts_memory: Annotated[
        int, typer.Option(min=1, metavar="MB", help="Megabytes of prompt embeddings that are kept.")
    ] = DEFAULT.feature_bytes_max // MB

    def spec(self, slots: int) -> EngineSpec:
        """Raises ValueError where two options contradict each other."""
        return EngineSpec(
            slots=slots,
            memory=None if self.memory is None else self.memory * MB,
            share_cap=self.share,
            max_rows=self.max_rows,
            ageing=self.background_after,
            patience=self.patience,
            kbps=self.kbps,
            kbps_max=self.kbps_max,
            encoder_threads=self.encoder_threads,
            feature_bytes_max=self.prompts_memory * MB,
            adapter_bytes_max=self.adapters_memory * MB,
            suspend_after=self.suspend_after,
            checkpoint_seconds=self.checkpoint_every,
            checkpoint_chunks=self.checkpoint_chunks,
            worlds_memory=self.worlds_memory * MB,
            worlds_disk=self.worlds_disk * MB,
            fps=self.fps,
            weights_memory=None if self.weights_memory is None else self.weights_memory * MB,
        )
