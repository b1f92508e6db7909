"""How the site is built: ``make docs``.

Sphinx, because the API reference comes from numpydoc docstrings and the gallery from scripts that
are run (sphinx-gallery); both are at home there.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

import sourcewise

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "sourcewise"
author = "the sourcewise developers"
copyright = "2026, the sourcewise developers"
version = release = sourcewise.__version__

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "**/GALLERY_HEADER.rst", "sg_execution_times.rst"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache", "misc.highlighting_failure"]

autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "sourcewise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Pages without pages below them have nothing to show there.
html_sidebars = {"*": []}
html_copy_source = False
html_context = {"default_mode": "auto"}
html_show_sphinx = False
html_theme_options = {
    "show_prev_next": False,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 5,
}

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# A script of which something is missing ends with exit code 77, as a program. Here it would end the
# making of the site: it is shown, but not run.
ROOT = Path(__file__).parent.parent
# The scripts cannot find this folder by themselves here: they have no ``__file__``.
os.environ.setdefault("SOURCEWISE_DATA", str(ROOT.parent / "shared" / "data"))
CIFAR = Path(os.environ["SOURCEWISE_DATA"], "cifar10")
NEEDS = {
    "plot_09_pictures": ["torch", "efficientnet_lite_pytorch", CIFAR / "cifar10_test_jpeg.npz"],
    "plot_10_fine_tuning": ["torch", "efficientnet_lite_pytorch", CIFAR / "cifar10_test_jpeg.npz"],
    "plot_12_dask": ["dask", "distributed", "pyarrow"],
    "plot_13_flower": ["flwr", "pyarrow"],
    "plot_14_torch": ["torch"],
}


def _is_here(need: str | Path) -> bool:
    return need.is_file() if isinstance(need, Path) else find_spec(need) is not None


RUN = [
    script.stem
    for script in sorted(ROOT.glob("examples/plot_*.py"))
    if all(map(_is_here, NEEDS.get(script.stem, [])))
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"[\\/]({'|'.join(RUN)})\.py$",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": (),
    "min_reported_time": 1e9,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
}

# What scikit-learn writes for every estimator points to its own site.
THEIRS = r"get_metadata_routing|set_output|set_\w+_request"


def _skip(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool:
    return skip or re.fullmatch(THEIRS, name) is not None


def setup(app: Sphinx) -> None:
    """Leave out what is not ours."""
    app.connect("autodoc-skip-member", _skip)
