"""The Python examples of the README, one session from the first to the last, say what Python answers."""

import doctest
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_examples() -> None:
    lines, inside = [], False
    for line in README.read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        if fence:
            inside = line == "```python"
        lines.append(line if inside and not fence else "")  # blank, so that a failure names README.md's own line

    session = doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, README.name, str(README), 0)
    output: list[str] = []
    result = doctest.DocTestRunner().run(session, out=output.append)
    assert result.attempted
    assert not result.failed, "".join(output)
