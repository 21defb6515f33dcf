"""The built site in a browser: every page loads without a word on the console, from this site alone, and links lead somewhere.

`pytest -m site` builds the site first, or takes the one that the environment variable SEMIRING_SITE names. Where it names one, as in
`.ci/run`, a browser has to be there too: nothing is skipped.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag

import pytest

pytestmark = [pytest.mark.exhaustive, pytest.mark.site]

ROOT = Path(__file__).parents[1]
WIDTHS = (1400, 400)
"""Of a window on a desk and on a telephone."""
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
LOOK = """
const ours = address => address.startsWith(location.origin) || address.startsWith("data:");
return {
    links: [...document.querySelectorAll("a[href]")].map(link => link.href).filter(ours),
    anchors: [...document.querySelectorAll("[id]")].map(element => element.id),
    elsewhere: performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !ours(name)),
    broken: [...document.images].filter(image => image.complete && !image.naturalWidth && image.loading != "lazy").map(image => image.src),
};
"""
CUT_OFF = """
return [...document.querySelectorAll(arguments[0])].filter(box => box.scrollWidth > box.clientWidth).map(box => box.innerText.slice(0, 80));
"""


class Page(NamedTuple):
    """What a browser found on a page."""

    links: list[str]
    anchors: list[str]
    elsewhere: list[str]
    broken: list[str]
    too_wide: list[int]
    cut_off: list[str]
    console: list[str]


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that prints nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Server(ThreadingHTTPServer):
    """One that does not mind a browser which goes on to the next page while this one is still on its way."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing."""


def missing() -> list[str]:
    """What is not there of all that these tests need."""
    programs = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    packages = [name for name in ("selenium", "sphinx", "furo", "myst_nb", "sphinx_design") if importlib.util.find_spec(name) is None]
    return programs + packages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    named = os.environ.get("SEMIRING_SITE")
    if absent := missing():
        said = f"these are not installed: {', '.join(absent)}"
        pytest.fail(said) if named else pytest.skip(said)
    if named:
        return Path(named)
    import fcntl  # Windows, where this file is collected too, has no such module

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers: the first builds, the others wait for it
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site" / "index.html").exists():
            subprocess.run([sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "docs", shared / "site"], cwd=ROOT, check=True)
    return shared / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""
    with Server(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, address: str) -> Iterator[Any]:
    """Chromium without a window, which looks nothing up and keeps nothing."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(browser: Any, address: str) -> dict[str, Page]:
    """Every page that links lead to from the first one, by its address."""
    found: dict[str, Page] = {}
    waiting = [f"{address}index.html", f"{address}search.html"]  # to the second a form leads
    while waiting:
        page = waiting.pop()
        if page not in found:
            found[page] = visit(browser, page)
            waiting += sorted({urldefrag(link).url for link in found[page].links if is_page(link)} - set(found))
    return found


def is_page(link: str) -> bool:
    """Whether a link leads to a page of HTML, and to no file to keep."""
    return urldefrag(link).url.endswith((".html", "/"))


def visit(browser: Any, page: str) -> Page:
    """A page, wide and narrow."""
    too_wide, cut_off = [], []
    for width in WIDTHS:
        window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
        if width == WIDTHS[0]:
            browser.get(page)
            cut_off = browser.execute_script(CUT_OFF, ".highlight pre")
        if browser.execute_script("return document.documentElement.scrollWidth > innerWidth"):
            too_wide.append(width)
    looked = browser.execute_script(LOOK)
    return Page(**looked, too_wide=too_wide, cut_off=cut_off, console=[entry["message"] for entry in browser.get_log("browser")])


def findings(pages: dict[str, Page], field: str) -> dict[str, Any]:
    """The pages on which a field says something."""
    return {page: said for page, seen in pages.items() if (said := getattr(seen, field))}


def test_the_console_is_silent(pages: dict[str, Page]) -> None:
    assert not findings(pages, "console")


def test_nothing_comes_from_elsewhere(pages: dict[str, Page]) -> None:
    assert not findings(pages, "elsewhere")


def test_every_picture_is_there(pages: dict[str, Page]) -> None:
    assert not findings(pages, "broken")


def test_no_page_is_wider_than_its_window(pages: dict[str, Page]) -> None:
    assert not findings(pages, "too_wide")


def test_no_code_is_cut_off(pages: dict[str, Page]) -> None:
    assert not findings(pages, "cut_off")


def test_the_table_of_questions_fits_a_telephone(browser: Any, address: str) -> None:
    window = {"width": WIDTHS[-1], "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    browser.get(f"{address}questions.html")
    assert not browser.execute_script(CUT_OFF, ".table-wrapper")


def test_links_lead_to_a_place(pages: dict[str, Page], address: str) -> None:
    from urllib.request import urlopen

    dead = []
    for page, seen in pages.items():
        for link in sorted(set(seen.links)):
            target, place = urldefrag(link)
            if is_page(link):
                if place and unquote(place) not in pages[target].anchors:
                    dead.append((page, link))
            else:
                urlopen(target).close()  # raises where there is no such file
    assert not dead


def test_every_page_is_linked(pages: dict[str, Page], address: str, site: Path) -> None:
    built = {page.relative_to(site).as_posix() for page in site.rglob("*.html") if not page.relative_to(site).parts[0].startswith("_")}
    assert built == {page.removeprefix(address) for page in pages}


def test_what_is_copied_are_the_lines_that_were_typed(browser: Any, address: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}index.html")
    browser.execute_script("addEventListener('copy', event => window.copied = event.target.value)")
    button = WebDriverWait(browser, 10).until(lambda page: page.find_element("css selector", "button.copybtn"))
    ActionChains(browser).move_to_element(button).click().perform()
    copied = browser.execute_script("return window.copied")
    assert copied.startswith("import semiring as sr\n")
    assert copied.endswith('paths.path("Basel", "Chur")')
    assert ">>>" not in copied
