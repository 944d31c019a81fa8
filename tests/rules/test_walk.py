"""How far a chunk has to walk through the engine: counted, so that it does not grow unseen. `pytest -s` prints it."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import worldroom.engine
from worldroom.engine import api
from worldroom.simulation.virtual_time import run
from worldroom.tests.fake_engine import Person, started

ENGINE = Path(next(iter(worldroom.engine.__path__))).resolve()
FILES, FUNCTIONS, CALLS = 22, 86, 47
"""At most so many. At 71ccb5f they were 23, 91 and 64, before chunks could be previewed and written down under way."""


class Walk:
    """Every function of the engine that is entered, and every call from one of its files to another."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.calls: set[tuple[str, str, str, str]] = set()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @contextmanager
    def recorded(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or (file := _file(frame.f_code)) is None or frame.f_code.co_name.startswith("<"):
            return
        self.functions.add((file, frame.f_code.co_qualname))
        caller = frame.f_back.f_code if frame.f_back is not None else None
        if caller is not None and (there := _file(caller)) not in (None, file):
            self.calls.add((str(there), caller.co_qualname, file, frame.f_code.co_qualname))


def _file(code: CodeType) -> str | None:
    path = Path(code.co_filename).resolve()
    return str(path.relative_to(ENGINE)) if path.is_relative_to(ENGINE) else None


def test_from_chunk_due_to_chunk_done_a_chunk_enters_few_files_and_functions() -> None:
    walk = Walk()

    async def scene() -> None:
        engine, _ = await started()
        person = Person(engine, "a")
        recording = walk.recorded()

        def hear(event: api.Event) -> None:
            if isinstance(event, api.ChunkDue) and event.chunk == 30:
                recording.__enter__()
            if isinstance(event, api.ChunkDone) and event.chunk == 30:
                recording.__exit__(None, None, None)
            person.hear(event)

        await engine.open(api.Open("a", "toy", seed=1), hear)
        engine.post(api.EncodePrompt("a", 1, person.prompt))
        await asyncio.sleep(3)
        assert len(person.done) > 31
        engine.post(api.Close("a"))
        await asyncio.sleep(1)
        await engine.close()

    run(scene())
    print(f"\n{len(walk.files)} files, {len(walk.functions)} functions, {len(walk.calls)} calls from file to file")
    assert ("session/session.py", "EngineSession._begin") in walk.functions, "the walk was recorded"
    assert len(walk.files) <= FILES
    assert len(walk.functions) <= FUNCTIONS
    assert len(walk.calls) <= CALLS
