"""Puts the JSON Schema of the spec language into wheels, so that an installed ``zoo schema`` need not generate it."""

import json
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithSchema(build_py):
    """Copies the packages, and generates the schema of the built-in kinds beside them.

    An editable install has none, and generates it when it is asked for; nor has a wheel that is built where plugins are installed.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        sys.path.insert(0, str(ROOT))
        from specs.base.plugins import plugin_entries
        from specs.files.schema import json_schema
        from specs.files.stored_schema import STORED

        if not plugin_entries():
            path = Path(self.build_lib, STORED.relative_to(ROOT))
            path.write_text(json.dumps(json_schema(), ensure_ascii=False), "utf-8")


setup(cmdclass={"build_py": BuildWithSchema})
