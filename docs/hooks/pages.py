"""MkDocs hook: the files that live elsewhere in the repository."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
COPIED = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
MARKER = re.compile(r"-+8 *<")
TAG = re.compile(r"<[^>]*>")
FOREIGN = re.compile(
    r"""<(?:script|img|iframe)[^>]*\bsrc=["']?(?:https?:)?//|<link[^>]*rel=["']?stylesheet[^>]*//"""
)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the root of the repository, and the pictures of the gallery."""
    pictures = {f"gallery/{file.name}": file for file in sorted((ROOT / "gallery").iterdir())}
    for path, source in {**{page: ROOT / file for page, file in COPIED.items()}, **pictures}.items():
        files.append(File.generated(config, path, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn paths in the repository into paths in the site, for the gallery and for pages that are copied into ``docs``."""
    if page.file.src_uri in COPIED:
        return markdown.replace("](docs/", "](")
    return markdown.replace("../../gallery/", "../gallery/")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that loads a script, a font or a picture from elsewhere, or shows an include marker in place of code."""
    if found := FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri}: must load nothing from other hosts: {found[0]}")
    if found := MARKER.search(unescape(TAG.sub("", output))):
        raise PluginError(f"{page.file.src_uri}: shows an include marker: {found[0]}")
    return output
