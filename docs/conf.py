"""Configuration of Sphinx for this site: python -m sphinx --fail-on-warning docs build/site."""

from __future__ import annotations

import ast
import base64
import html
import io
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import semiring
from semiring.networkx_backend.info import get_info

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).parent
REPOSITORY = HERE.parent

project = "semiring"
author = "the semiring authors"
version = release = semiring.__version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton", "sphinx_design"]

# Single backticks in docstrings name Python objects; documented ones become links.
default_role = "py:obj"
add_module_names = False
autodoc_typehints = "none"  # the docstrings tell types, and shapes with them
autosummary_generate = True
templates_path = ["templates"]
numpydoc_show_class_members = False

html_math_renderer = "mathml"
nb_execution_mode = "off"  # shown as they are stored; the tests execute them
nb_code_prompt_show = "Show the code of this picture"
nb_code_prompt_hide = "Hide the code"
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"networkx_functions": ", ".join(f"`{name}`" for name in get_info()["functions"]), "version": version}
myst_heading_anchors = 3

# What is copied are the lines that were typed, without their prompts, and no output of a notebook.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = ":not(.output) > div.highlight > pre"

html_theme = "furo"
html_title = f"semiring {version}"
html_favicon = "static/icon.svg"
pygments_dark_style = "github-dark"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_domain_indices = html_use_index = False  # the reference is the index
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

# Sphinx reads one folder. What stands elsewhere in the repository is copied into it; git ignores the copies.
COPIED = {"notebooks": ["*.ipynb"], "benchmarks": ["*.md", "*.svg"]}
for folder, patterns in COPIED.items():
    shutil.rmtree(HERE / folder, ignore_errors=True)
    (HERE / folder).mkdir()
    for pattern in patterns:
        for file in (REPOSITORY / folder).glob(pattern):
            shutil.copy2(file, HERE / folder)

# The first picture of each notebook stands on its card in notebooks.md.
for file in (HERE / "notebooks").glob("*.ipynb"):
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    data = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    picture = next(each["image/png"] for each in data if "image/png" in each)
    file.with_suffix(".png").write_bytes(base64.b64decode("".join(picture)))


def _links_to_code(app: Sphinx, doctree: nodes.document) -> None:
    """Show links to files of the repository that are not pages of this site, such as code, as plain text."""
    page = Path(app.env.docname)
    folder = (REPOSITORY if page.parts[0] in COPIED else HERE) / page.parent
    for link in [*doctree.findall(pending_xref)]:
        # Parts of README.md and CONTRIBUTING.md are included in pages, with links as they stand at the root.
        there = (folder / link["reftarget"]).exists() or (REPOSITORY / link["reftarget"]).exists()
        if link["reftype"] == "myst" and link["refdomain"] != "doc" and there:
            link.replace_self(link.children)


def _semirings_in_their_own_words(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Describe a built-in semiring by the note in the catalogue and the recording."""
    if isinstance(obj, semiring.Semiring):
        said = ModuleAnalyzer.for_module("semiring.algebra.catalogue").find_attr_docs()["", name.rpartition(".")[2]]
        written = (", ".join(map(str, parts)) for parts in (obj.program.add, obj.program.mul))
        add, mul = (f"({text})" if obj.components > 1 else text for text in written)
        lines[:] = [*said, "", f"a ⊕ b = ``{add}``, a ⊗ b = ``{mul}``"]


def _names_of_defaults(app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any) -> Any:
    """Defaults that no literal can write are shown by their names; autodoc's own way to do so reads the source, and no signatures.

    Classes whose objects are made by functions show no parameters.
    """
    if what == "class" and "Parameters\n" not in (obj.__doc__ or ""):
        return "", returns
    for default, shown in ((np.float64, "numpy.float64"), (semiring.MIN_PLUS, "MIN_PLUS")):
        signature = signature and signature.replace(repr(default), shown)
    return signature, returns


def _without_fields(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """The fields of a named tuple stand among its attributes."""
    return True if str(getattr(obj, "__doc__", "")).startswith("Alias for field number") else None


def _links_to_pages(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Link names of pages in docstrings, such as "How it works, Accuracy", to the page."""
    folders = {"How-to": "howto", "How it works": "how-it-works", "Reference": "reference"}

    def linked(found: re.Match[str]) -> str:
        return f":doc:`{found[0]} </{folders[found[1]]}/{found[2].lower().replace(' ', '-')}>`"

    lines[:] = [re.sub(rf"\b({'|'.join(folders)}), ([A-Z][a-z]+(?: from SciPy)?)\b", linked, line) for line in lines]


def _formula(page: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Formulas are MathML, which browsers show without a script from elsewhere."""
    page.body.append(convert(node.astext().strip(), display="block" if node.tagname == "math_block" else "inline"))
    raise SkipNode


class Shown(SphinxDirective):
    """Python code, and below it what Jupyter would show of its last line. The code blocks of a page are one session."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the page."""
        session = self.env.temp_data.setdefault("session", {})
        *statements, last = ast.parse("\n".join(self.content)).body
        exec(compile(ast.Module(statements, []), self.env.docname, "exec"), session)
        shown = eval(compile(ast.unparse(last), self.env.docname, "eval"), session)
        text = "\n".join(self.content)
        picture = shown._repr_html_() if hasattr(shown, "_repr_html_") else _drawn(shown.figure, text)
        return [nodes.literal_block(text, text, language="python"), nodes.raw("", picture, format="html")]


def _drawn(figure: Any, text: str) -> str:
    """A figure of Matplotlib as an image of HTML."""
    svg = io.BytesIO()
    figure.savefig(svg, format="svg", bbox_inches="tight")
    data = base64.b64encode(svg.getvalue()).decode()
    return f'<p><img alt="What {html.escape(text.splitlines()[-1])} draws" src="data:image/svg+xml;base64,{data}"></p>'


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.add_directive("shown", Shown)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("doctree-read", _links_to_code)
    app.connect("autodoc-process-signature", _names_of_defaults)
    app.connect("autodoc-skip-member", _without_fields)
    app.connect("autodoc-process-docstring", _semirings_in_their_own_words, priority=900)  # after numpydoc
    app.connect("autodoc-process-docstring", _links_to_pages, priority=900)
