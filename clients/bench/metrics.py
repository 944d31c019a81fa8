"""What a server says of itself at /metrics."""

from collections.abc import Mapping

import httpx

CPU_SECONDS = "process_cpu_seconds_total"


async def figures(http: httpx.AsyncClient) -> dict[str, float]:
    """Each by its name with its labels."""
    lines = (await http.get("/metrics")).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


def total(said: Mapping[str, float], wanted: str) -> float:
    """Of one name, whatever the labels."""
    return sum(value for name, value in said.items() if name.partition("{")[0] == wanted)
