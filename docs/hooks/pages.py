"""MkDocs hook: the pages that are generated from the code, and the files that live elsewhere in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from cli_page import cli_page
from guide_tables import layout_rows, target_rows
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from spec_page import spec_page

ROOT = Path(__file__).parents[2]
GENERATED = {"reference/spec.md": spec_page, "reference/cli.md": cli_page}
COPIED = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
FOREIGN = re.compile(
    r"""<(?:script|img|iframe)[^>]*\bsrc=["']?(?:https?:)?//|<link[^>]*rel=["']?stylesheet[^>]*//"""
)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, the pages at the root of the repository, and the pictures of the gallery."""
    for path, page in GENERATED.items():
        files.append(File.generated(config, path, content=page()))
    pictures = {f"gallery/{file.name}": file for file in sorted((ROOT / "gallery").iterdir())}
    for path, source in {**{page: ROOT / file for page, file in COPIED.items()}, **pictures}.items():
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill the tables of targets and layouts with the rows that they state themselves."""
    for mark, rows in {"<!-- targets -->": target_rows, "<!-- layouts -->": layout_rows}.items():
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(rows()))
    return markdown


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that loads a script, a font or a picture from elsewhere: the documentation works offline."""
    if found := FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri}: must load nothing from other hosts: {found[0]}")
    return output
