"""A worked exchange as data: what a client in another language sends and gets, to test its reading and writing with.

docs/game_client_vectors.json is made from this, and each text in it is read by the server's own decoder in a test.
"""

import msgspec

from .. import wire
from ..wire import Channel

CONTROLS = (wire.ControlView("throttle", ("ArrowUp", "KeyW")), wire.ControlView("left", ("ArrowLeft", "KeyA")))


class Vector(msgspec.Struct, frozen=True):
    """One message on a data channel. `sent_by`: client or server. `why`: what it does in the exchange."""

    sent_by: str
    channel: str
    why: str
    text: str


def exchange() -> tuple[Vector, ...]:
    """Join, hold a key for two messages, see it arrive, change the world, ask for the wheel, leave."""
    welcome = wire.Welcome(
        room="blue-otter-12",
        session="9f3c21aa04b17d55",
        participant="4be1c09a",
        card="toy",
        title="Toy",
        role=wire.Role.DRIVER,
        width=320,
        height=192,
        fps=24,
        controls=CONTROLS,
        suggestions=("a calm blue sea",),
        prompt="a calm blue sea",
        state=wire.WorldState.RUNNING,
        epoch=0,
        chunk=0,
        resumed=False,
    )
    people = (wire.Person("4be1c09a", "Otter"), wire.Person("77d0e2f1", "Lynx"))
    down, up = wire.KeyEdge(1, "ArrowUp", True), wire.KeyEdge(2, "ArrowUp", False)
    pressed = wire.Input(1, ("ArrowUp",), (down,), sent_ms=5.0)
    receipt = wire.Receipt(100, 100, 0, 2_882_400_000, 1, 1, (1.0, 0.0), 4100, 300, 9000, 2100, 900, 1200)
    said: list[tuple[str, Channel, str, wire.ClientMessage | wire.ServerMessage]] = [
        ("server", Channel.CONTROL, "the first message: what this world is and who you are in it", welcome),
        ("server", Channel.CONTROL, "who is here; the other one asks for the wheel",
         wire.Participants("4be1c09a", wire.Role.DRIVER, 1, people, ("77d0e2f1",))),
        ("client", Channel.INPUT, "a key goes down: the state and the edge", pressed),
        ("client", Channel.INPUT, "repeated 40 ms later against loss", msgspec.structs.replace(pressed, sent_ms=45.0)),
        ("client", Channel.INPUT, "the key goes up", wire.Input(2, (), (down, up), sent_ms=125.0)),
        ("server", Channel.RECEIPTS, "the frame with this RTP timestamp contains input 1", receipt),
        ("client", Channel.CONTROL, "it was shown 61 ms after it was pressed", wire.Shown(((100, 66.0),))),
        ("client", Channel.CONTROL, "another world, blended in over half a second", wire.Prompt(3, "a snowy night")),
        ("server", Channel.CONTROL, "it is journaled", wire.Accepted(3)),
        ("server", Channel.CONTROL, "it takes effect at this chunk", wire.Applied(3, 131)),
        ("client", Channel.CONTROL, "not that one", wire.RefuseWheel(4, "77d0e2f1")),
        ("client", Channel.CONTROL, "every second, or the connection is taken for dead", wire.Ping(5, 1000.0)),
        ("server", Channel.CONTROL, "the same numbers come back", wire.Pong(5, 1000.0)),
        ("server", Channel.CONTROL, "a refused act, with the id it answers", wire.Problem("too_fast", "slow down", 6)),
        ("client", Channel.CONTROL, "the seat and the wheel are given up", wire.Leave(7)),
    ]  # fmt: skip
    return tuple(Vector(by, channel.value, why, wire.encode(message)) for by, channel, why, message in said)


def vectors_json() -> str:
    return msgspec.json.format(msgspec.json.encode({"channels": exchange()}), indent=1).decode() + "\n"
