"""One server with the toy world and one Chromium for all browser tests; every test has rooms and pages of its own."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, TimeoutError
from worldroom.clients.bench.browser import BrowserMissing, chromium
from worldroom.clients.bench.server import serving

PATIENCE_MS = 45_000
BUSY = "503 (Service Unavailable)"


@dataclass
class Visitor:
    """Somebody with a browser of their own: a page and what its console complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, address: str) -> "Visitor":
        self.page.goto(address)
        return self

    def until(self, condition: str) -> None:
        """Wait until a JavaScript expression about the page is true."""
        try:
            self.page.wait_for_function(condition, timeout=PATIENCE_MS)
        except TimeoutError as late:
            state = self.page.evaluate("[JSON.stringify(document.body.dataset), document.body.innerText]")
            raise AssertionError(f"never true: {condition}\n{state}\n{self.complaints}") from late

    def until_playing(self) -> "Visitor":
        self.until("document.body.dataset.phase === 'live' && worldroom.world.onScreen !== null")
        return self

    def world(self, field: str) -> object:
        """A field of what the page knows, e.g. `welcome.session`."""
        return self.page.evaluate(f"worldroom.world.{field}")

    def number(self, expression: str) -> float:
        return float(self.page.evaluate(expression))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    # Twelve frames per second: the server, Chromium and whatever else runs share the machine.
    with serving("toy", "--option", "fps=12", "--slots", "8", "--lease", "8") as address:
        yield address


@pytest.fixture(scope="module")
def drive() -> Iterator[str]:
    """`drive` with a place for one."""
    with serving("drive", "--slots", "1", "--lease", "1") as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with chromium() as running:
            yield running
    except BrowserMissing as missing:
        pytest.skip(str(missing))


_rooms = itertools.count(1)


@pytest.fixture
def room(server: str) -> str:
    """The address of a room that nobody has been in."""
    return f"{server}/r/test-{next(_rooms)}"


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors; options as of `Browser.new_context`. Their browsers are closed after the test."""
    contexts: list[BrowserContext] = []

    def make(**options: object) -> Visitor:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))  # type: ignore[arg-type]
        contexts.append(context)
        return watched(context.new_page())

    yield make
    for context in contexts:
        context.close()


def watched(page: Page) -> Visitor:
    """A visitor whose complaints are the page's errors and warnings; not a busy server that refuses for a while."""
    visitor = Visitor(page)

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and BUSY not in message.text:
            visitor.complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    return visitor


def pretend_controls(controls: list[tuple[str, list[str]]], pointer: bool = False) -> str:
    """A script by which the page believes that the card has these controls; the server keeps its own."""
    views = [{"name": name, "keys": keys} for name, keys in controls]
    return f"""
    const parse = JSON.parse;
    JSON.parse = (...args) => {{
      const value = parse(...args);
      if (value?.type === 'welcome') Object.assign(value, {{ controls: {views!r}, pointer: {str(pointer).lower()} }});
      return value;
    }};
    """
