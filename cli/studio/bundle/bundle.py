"""Bundle the editor of the page: ``python cli/studio/bundle/bundle.py`` writes ``page/codemirror.js`` and its licences.

Needs npm and its registry; the page needs neither.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "page"

_OPTIONS = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none")


def main() -> None:
    """Install the packages of package.json in a temporary folder and bundle what entry.js names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("package.json", "entry.js"):
            shutil.copy(HERE / file, folder)
        install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(install, cwd=folder, check=True)
        esbuild = next((folder / "node_modules" / "@esbuild").glob("*/bin/esbuild*"))
        esbuild.chmod(0o755)
        bundle = PAGE / "codemirror.js"
        subprocess.run([esbuild, "entry.js", *_OPTIONS, f"--outfile={bundle}"], cwd=folder, check=True)
        _write_licences(folder / "node_modules", PAGE / "codemirror.LICENSE.txt")
    print(f"{bundle}: {bundle.stat().st_size:,} bytes", file=sys.stderr)


def _write_licences(modules: Path, path: Path) -> None:
    """Write the licence of every bundled package, each text once."""
    texts: dict[str, list[str]] = {}
    for file in sorted(modules.rglob("LICENSE")):
        package = str(file.parent.relative_to(modules))
        if "esbuild" not in package:
            texts.setdefault(file.read_text("utf-8").strip(), []).append(package)
    parts = [f"{', '.join(packages)}\n\n{text}\n" for text, packages in texts.items()]
    path.write_text("\n----\n\n".join(parts), "utf-8")


if __name__ == "__main__":
    main()
