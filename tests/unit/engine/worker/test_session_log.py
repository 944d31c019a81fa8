"""What the edge remembers of a session leads a new worker to where the old one was."""

import msgspec
import pytest
from worldroom.engine import api
from worldroom.engine.session.resume_state import ResumeState
from worldroom.engine.worker import suspended
from worldroom.engine.worker.session_log import SessionLog

TIMINGS = api.Timings(0, 0, 0, 0)


def begin(chunk: int, epoch: int = 0) -> api.Begin:
    return api.Begin("a", chunk, api.Conditions(epoch, (0.0,), (0.0, 0.0), (), 1, chunk))


def done(chunk: int, epoch: int = 0) -> api.ChunkDone:
    return api.ChunkDone("a", chunk, epoch, f"digest {chunk}", 0, TIMINGS)


def held() -> SessionLog:
    return SessionLog(api.Open("a", "toy", 1), lambda event: None, 0.0)


def drive(session: SessionLog, *chunks: int, epoch: int = 0) -> None:
    for chunk in chunks:
        session.sent(begin(chunk, epoch))
        session.heard(done(chunk, epoch), 0.0)


def test_the_past_is_what_was_done_since_the_last_checkpoint() -> None:
    session = held()
    drive(session, 0, 1, 2, 3)
    session.checkpointed(2, 0)
    past = session.resume_state()
    assert past.history == (begin(2), begin(3))
    assert past.progress.chunk == 4


def test_a_restart_stands_before_the_first_chunk_of_its_epoch() -> None:
    session = held()
    restart = api.Supersede("a", 1, restart=True, seed=9)
    session.sent(begin(0))
    session.sent(restart)
    session.heard(done(0), 0.0)  # it was done before the restart reached the worker
    drive(session, 1, epoch=1)
    assert session.resume_state().history == (begin(0), restart, begin(1, 1))
    session.checkpointed(2, 1)
    assert session.resume_state().history == ()


def test_a_restart_that_no_chunk_has_seen_is_the_end_of_the_past() -> None:
    session = held()
    drive(session, 0)
    restart = api.Supersede("a", 1, restart=True, seed=9)
    session.sent(restart)
    assert session.resume_state().history == (begin(0), restart)
    assert session.resume_state().progress.epoch == 1


def test_only_the_newest_opening_is_kept() -> None:
    """Worlds that were restarted since are passed through without their pictures, which may be large."""
    session = held()
    frames = api.FirstFrames(1, 2, 3, b"packed")
    restarts = [api.Supersede("a", epoch, restart=True, seed=9, first_frames=frames) for epoch in (1, 2, 3)]
    session.sent(restarts[0])
    drive(session, 0, epoch=1)
    session.sent(restarts[1])
    session.sent(restarts[2])
    past = session.resume_state().history
    assert [step.first_frames for step in past if isinstance(step, api.Supersede)] == [None, None, frames]
    assert [step.seed for step in past if isinstance(step, api.Supersede)] == [9, 9, 9]


def test_the_chunk_in_flight_is_cancelled_and_begins_again() -> None:
    session = held()
    drive(session, 0)
    session.sent(begin(1))
    assert session.worker_ended() == (api.ChunkCancelled("a", 1, 0),)
    assert session.worker_ended() == ()
    drive(session, 1)
    assert not session.lost
    assert session.resume_state().progress.chunk == 2


def test_prompts_that_were_encoded_are_learnt_and_others_are_asked_again() -> None:
    session = held()
    session.sent(api.EncodePrompt("a", 1, "a calm sea"))
    session.sent(api.EncodePrompt("a", 2, "a storm"))
    session.heard(api.PromptEncoded("a", 1, "k"), 0.0)
    assert session.resume_state().texts == ("a calm sea",)
    assert session.unanswered() == (api.EncodePrompt("a", 2, "a storm"),)
    session.sent(api.HoldPrompt("a", 3, "k3", b"an embedding"))
    assert session.unanswered()[1:] == (api.HoldPrompt("a", 3, "k3", b"an embedding"),)
    session.heard(api.PromptEncoded("a", 3, "k3"), 0.0)
    assert session.resume_state().embeddings == (("k3", b"an embedding"),)


def test_without_checkpoints_a_long_past_is_given_up() -> None:
    session = held()
    drive(session, *range(4096))
    assert not session.lost
    drive(session, 4096)
    assert session.lost


def test_what_was_put_aside_goes_on_under_another_edge() -> None:
    past = ResumeState(
        api.Open("a", "toy", seed=3),
        (),
        ("day",),
        progress=api.Progress(chunk=7, epoch=1, paused=True, kbps=900, frame=9, pts=4500),
    )
    kept = suspended.loads(suspended.dumps(suspended.SuspendedSession(past, b"snapshot", "a")))
    assert kept == suspended.SuspendedSession(past, b"snapshot", "a")
    held = SessionLog.resumed(kept.resume_state, [].append, now=5.0)
    assert held.opened
    assert held.resume_state() == msgspec.structs.replace(past, at=5.0)
    with pytest.raises(ValueError, match="cannot be read"):
        suspended.loads(b"\x01")


def test_a_chunk_without_pictures_and_the_one_that_went_ahead_of_them_both_begin_again() -> None:
    session = held()
    drive(session, 0)
    session.sent(begin(1))
    session.sent(begin(2))
    assert session.worker_ended() == (api.ChunkCancelled("a", 1, 0), api.ChunkCancelled("a", 2, 0))
    assert session.resume_state().progress.chunk == 1
    session.sent(begin(1))
    session.sent(begin(2))
    session.heard(done(1), 0.0)
    assert session.worker_ended() == (api.ChunkCancelled("a", 2, 0),)
    assert session.resume_state().history == (begin(0), begin(1))
