"""Puts the JSON Schema of the spec language into wheels, so that an installed ``zoo schema`` need not generate it."""

import json
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithSchema(build_py):
    """Copies the packages, and generates the schema beside them; an editable install generates it when it is asked for."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            sys.path.insert(0, str(ROOT))
            from specs.files.schema import json_schema
            from specs.files.stored_schema import STORED

            path = Path(self.build_lib, STORED.relative_to(ROOT))
            path.write_text(json.dumps(json_schema(), ensure_ascii=False), "utf-8")


setup(cmdclass={"build_py": BuildWithSchema})
