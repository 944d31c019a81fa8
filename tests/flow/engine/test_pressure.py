"""Any sequence of opening, steering, redirecting, pausing and closing leaves nothing behind: hypothesis looks for one
that does. Virtual time, the toy on a fake device; the long form is a thousand sequences.
"""

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from worldroom.engine import api
from worldroom.engine.caches.store import SnapshotFolder
from worldroom.engine.device.batch import Batch
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.spec import EngineSpec
from worldroom.models.contract.loop import StepKind
from worldroom.simulation.virtual_time import VirtualLoop
from worldroom.tests.fake_engine import Person, started

SLOTS = 3
names = st.sampled_from("abcde")


class Pressure(RuleBasedStateMachine):
    """One engine, five people who come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.threads = threading.active_count()
        self.folder = Path(tempfile.mkdtemp())
        self.store = SnapshotFolder(self.folder)
        self.people: dict[str, Person] = {}
        self.opening: set[asyncio.Task[Any]] = set()
        self.play(self._start())

    async def _start(self) -> None:
        spec = EngineSpec(slots=SLOTS, checkpoint_chunks=3, max_rows=2)
        self.engine, self.device = await started(spec=spec, store=self.store)
        self.tasks = len(asyncio.all_tasks())

    def play(self, scene: Coroutine[Any, Any, Any]) -> Any:
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(scene)

    @rule(name=names, latency_class=st.sampled_from(list(api.LatencyClass)), waits=st.booleans())
    def open(self, name: str, latency_class: api.LatencyClass, waits: bool) -> None:
        async def scene() -> None:
            person = self.people.setdefault(name, Person(self.engine, name))
            person.due, person.key, person.epoch = None, "", 0
            task = asyncio.create_task(person.open(latency_class=latency_class))
            self.opening.add(task)
            if waits:
                await task

        self.play(scene())

    @precondition(lambda self: self.people)
    @rule(name=names, milliseconds=st.integers(0, 300))
    def steer(self, name: str, milliseconds: int) -> None:
        """Time passes; a step may be on the device when the next rule comes."""

        async def scene() -> None:
            if name in self.people:
                self.people[name].answers = not self.people[name].answers or milliseconds > 30
                self.people[name].answer()
            await asyncio.sleep(milliseconds / 1000)

        self.play(scene())

    @rule(name=names, restart=st.booleans(), seed=st.integers(0, 9))
    def redirect(self, name: str, restart: bool, seed: int) -> None:
        if name in self.people:
            self.play(self._post_all([]))
            self.people[name].epoch += 1
            self.play(self._post_all([api.Supersede(name, self.people[name].epoch, restart, seed)]))

    @rule(
        name=names,
        kinds=st.lists(st.sampled_from([api.Close, api.Pause, api.Resume, api.RequestKey]), min_size=1, max_size=4),
    )
    def command(self, name: str, kinds: list[Any]) -> None:
        self.play(self._post_all([kind(name) for kind in kinds]))

    @rule(name=names, version=st.integers(1, 50))
    def prompt(self, name: str, version: int) -> None:
        self.play(self._post_all([api.EncodePrompt(name, version, f"words {version % 7}")]))

    @rule(name=names)
    def take_over(self, name: str) -> None:
        """A session that lived elsewhere comes in, from its snapshot if there is one."""

        async def scene() -> None:
            person = self.people.setdefault(name, Person(self.engine, name))
            past = ResumeState(api.Open(name, "toy", seed=1), texts=("a calm blue sea",))
            await self.engine.restore(past, None, person.hear)

        self.play(scene())

    @rule(kind=st.sampled_from([StepKind.DENOISE, StepKind.COMMIT, StepKind.DECODE, StepKind.CACHE_IO]))
    def break_one_step(self, kind: StepKind) -> None:
        def fail(batch: Batch) -> None:
            if batch.kind is kind:
                self.device.fail = lambda batch: None
                raise RuntimeError("one bad step")

        self.device.fail = fail

    @invariant()
    def the_books_are_right(self) -> None:
        self.engine.check_integrity()
        assert self.engine.runtimes["toy"].pool.taken <= SLOTS

    async def _post_all(self, commands: list[api.Command]) -> None:
        for command in commands:
            self.engine.post(command)
        await asyncio.sleep(0)

    async def _end(self) -> None:
        if self.opening:
            await asyncio.wait(self.opening)
        for name in "abcde":
            self.engine.post(api.Close(name))
        await asyncio.sleep(2)
        capacity = self.engine.capacity()[0]
        assert (capacity.sessions, capacity.pool_bytes_used, capacity.queue_depth) == (0, 0, 0)
        assert self.engine.services.features.in_use == 0
        assert self.engine.closing == 0
        assert len(asyncio.all_tasks()) == self.tasks
        assert os.listdir(self.folder) == []
        await self.engine.close()
        assert len(asyncio.all_tasks()) == 1

    def teardown(self) -> None:
        try:
            self.play(self._end())
            assert threading.active_count() == self.threads
        finally:
            self.loop.close()
            shutil.rmtree(self.folder)


def sequences(count: int, steps: int) -> None:
    form = settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Pressure, settings=form)


def test_some_sequences_leave_nothing_behind() -> None:
    sequences(8, 12)


@pytest.mark.slow
def test_a_thousand_sequences_leave_nothing_behind() -> None:
    sequences(1000, 40)
