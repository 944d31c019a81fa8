"""/metrics as Prometheus wants it, and every query of the dashboard answered by it."""

import re

import httpx
from prometheus_client.parser import text_string_to_metric_families
from worldroom.clients.python.room import join
from worldroom.tests.flow.rtc.conftest import Served
from worldroom.tests.rules.test_docker import queries

WORDS = {"rate", "sum", "by", "le", "histogram_quantile"}


async def exposed(served: Served) -> str:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False) as http:
        return (await http.get("/metrics")).text


async def test_every_query_of_the_dashboard_names_metrics_that_are_there(served: Served) -> None:
    async with join(served.url, loopback=True, decode=False):
        text = await exposed(served)
    names = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    families = {family.name for family in text_string_to_metric_families(text)}
    for query in queries():
        for name in set(re.findall(r"[a-z_]{4,}", re.sub(r"\[\w+\]|\{[^}]*\}", "", query))) - WORDS:
            assert name in names or name.removesuffix("_total") in families, (name, query)


async def test_names_say_their_unit_and_counters_end_in_total(served: Served) -> None:
    text = await exposed(served)
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        assert not re.search(r"_(ms|us|kbps|kb|mb|octets|percent)(_|$)", family.name), family.name
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples), family.name


async def test_a_drivers_input_is_counted_once_with_the_time_it_took(served: Served) -> None:
    async with join(served.url, loopback=True, decode=False) as room:
        assert room.welcome is not None
        room.press(room.welcome.controls[0].name)
        await served.frames_until(lambda: served.edge.delays.total > 0.0, 100)
        for _ in range(3):
            served.engine.step()
        text = await exposed(served)
    assert "worldroom_input_to_packet_seconds_count 1.0" in text
    assert 'worldroom_input_to_packet_seconds_bucket{le="+Inf"} 1.0' in text
