"""The committed pictures of the documentation are what their programs draw, and their colours can be read on white and on black."""

import re
from functools import partial
from pathlib import Path

import pytest

from docs.pictures import airports, questions, speed, thumbnails

STATIC = Path(__file__).parents[1] / "docs" / "static"
DRAWN = {
    **{f"questions/{name}.svg": partial(questions.picture, question) for name, question in questions.QUESTIONS.items()},
    **{f"thumbnails/{draw.__name__}.svg": partial(thumbnails.svg, draw()) for draw in thumbnails.PICTURES},
    **{f"speed/{speed.file(machine)}": partial(speed.picture, machine) for machine in speed.machines()},
    "icon.svg": partial(thumbnails.svg, thumbnails.icon(), 32, 32),
}


@pytest.mark.parametrize("name", DRAWN)
def test_it_is_drawn_by_its_program(name: str) -> None:
    assert (STATIC / name).read_text(encoding="utf-8") == DRAWN[name]()


def test_the_map_is_drawn_by_its_program() -> None:
    pytest.importorskip("bokeh_sampledata")
    pytest.importorskip("pandas")  # by which bokeh_sampledata reads the states
    assert airports.PICTURE.read_text(encoding="utf-8") == airports.picture()
    assert airports.PICTURE.stat().st_size < 150_000


def test_every_question_has_its_picture() -> None:
    page = (STATIC.parent / "questions.md").read_text(encoding="utf-8")
    assert set(re.findall(r"static/questions/(\w+)\.svg", page)) == set(questions.QUESTIONS)


def test_every_machine_has_a_tab() -> None:
    page = (STATIC.parent / "speed-over-time.md").read_text(encoding="utf-8")
    tabs = re.findall(r"\{tab-item\} (.+)\n!\[.+\]\(static/speed/(.+)\)", page)
    assert sorted(tabs) == sorted((machine, speed.file(machine)) for machine in speed.machines())
    assert {path.name for path in (STATIC / "speed").iterdir()} == {name for _, name in tabs}


@pytest.mark.parametrize("colour", sorted({*airports.ROUTES.values(), questions.GREY, questions.COLOUR, thumbnails.OTHER}))
def test_colours_are_seen_on_white_and_on_black(colour: str) -> None:
    """WCAG asks for a contrast of 3 : 1 of what is large or drawn; furo's dark is #131416."""
    for page in ("#ffffff", "#131416"):
        darker, lighter = sorted((luminance(colour), luminance(page)))
        assert (lighter + 0.05) / (darker + 0.05) >= 3


def luminance(colour: str) -> float:
    """The relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
