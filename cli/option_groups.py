"""Options that belong together, as a dataclass: a command takes the whole and the command line shows each.

@takes(AccessOptions)
def serve(access: AccessOptions, port: PortOption = 8080) -> None: ...
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints


def takes(*groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace parameters annotated with a dataclass of `groups` by its fields, which carry `typer.Option`s."""

    def of(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own, spread, parts = inspect.signature(command).parameters.values(), [], {}
        for parameter in own:
            group = hints[parameter.name]
            if group not in groups:
                spread.append(parameter.replace(annotation=group))
                continue
            fields = dataclasses.fields(group)
            kinds = get_type_hints(group, include_extras=True)
            parts[parameter.name] = group, [field.name for field in fields]
            spread += [
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kinds[field.name]
                )
                for field in fields
            ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            for name, (group, fields) in parts.items():
                given[name] = group(**{field: given.pop(field) for field in fields})
            command(**given)

        shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in spread]
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # typer reads it
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        del run.__wrapped__  # else typer would read the command's own
        return run

    return of
