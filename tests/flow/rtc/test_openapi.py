"""Requests made from our own OpenAPI document: nothing fails, and every answer is one that the document has.

Short in `make test`; in full in `make slow`.
"""

from collections.abc import Iterator

import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from worldroom.clients.bench.server import serving
from worldroom.rtc.http.openapi import OPERATIONS, Operation
from worldroom.tests.flow.rtc.conftest import Served

load_all_checks()
HELD = [
    CHECKS.get_one(name)
    for name in (
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "unsupported_method",
    )
]
PAGES = {"/", "/library", "/play", "/r/{room}", "/openapi.json"}
UNLIMITED = (
    "--requests-per-s",
    "100000",
    "--requests-burst",
    "100000",
    "--offers-per-s",
    "1000",
    "--offers-burst",
    "9999",
)
ROOM_OF_LIVEKIT = "/v1/rooms/{room}/livekit"


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def as_text(_: schemathesis.SerializationContext, value: object) -> bytes:
    return str(value).encode("utf-8", "replace")


KINDS = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.fixture(scope="module")
def document() -> Iterator[schemathesis.BaseSchema]:
    with serving("toy", "--slots", "1", *UNLIMITED) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_every_route_of_the_application_is_in_the_document(served: Served) -> None:
    routes = {
        (method, route.path)
        for route in served.app.routes
        if isinstance(route, APIRoute) and route.path not in PAGES
        for method in route.methods
    }
    assert routes == {(each.method, each.path) for each in OPERATIONS if each.path != ROOM_OF_LIVEKIT}


@pytest.mark.parametrize("each", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
@pytest.mark.parametrize("examples", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_every_answer_is_one_that_the_document_has(
    document: schemathesis.BaseSchema, each: Operation, examples: int
) -> None:
    operation = document[each.path][each.method]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(case=one_of(*(operation.as_strategy(generation_mode=kind) for kind in KINDS)))
    def asked(case: schemathesis.Case) -> None:
        reply = case.call(timeout=60)
        assert reply.status_code < 500 or "retry-after" in reply.headers, reply.text
        case.validate_response(reply, checks=HELD)

    asked()
