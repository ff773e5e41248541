"""How many default configurations of transformers import, and why the others are refused.

``python -m tests.zoo.configs.default_configs`` prints the counts; ``--types`` adds the model types of each outcome.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import warnings
from collections import defaultdict
from collections.abc import Iterator

from transformers import AutoConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

IMPORTS, NO_DEFAULT = "imports", "no default configuration"
OUTCOMES = {
    "specs cannot express": "a part is named",
    "must be a text model": "its text model alone may import",
    "is not a supported family": "the family is unknown",
}
"""A phrase of a refusal -> its outcome."""
FIELD = "a field is refused"


def outcome_of(model_type: str) -> tuple[str, str]:
    """Return the outcome of importing the default configuration of a model_type, and the refusal if there is one."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            data = json.loads(AutoConfig.for_model(model_type).to_json_string(use_diff=False))
    except Exception as error:  # what a class without defaults raises, of any type
        return NO_DEFAULT, f"{type(error).__name__}: {error}"
    data.setdefault("model_type", model_type)
    try:
        spec_of_config(Config(data, "config.json"), name="default")
    except ConfigError as error:
        refusal = str(error)
        return next((outcome for words, outcome in OUTCOMES.items() if words in refusal), FIELD), refusal
    return IMPORTS, ""


def outcomes() -> Iterator[tuple[str, str, str]]:
    """Yield each model_type of transformers with its outcome and its refusal."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    for model_type in sorted(CONFIG_MAPPING_NAMES):
        yield model_type, *outcome_of(model_type)


def main() -> None:
    """Print how many default configurations have each outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", action="store_true", help="list the model types and the refusals")
    listed = parser.parse_args().types
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for model_type, outcome, refusal in outcomes():
        found[outcome].append((model_type, refusal))
    for outcome, members in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(members):5}  {outcome}")
        for model_type, refusal in members if listed else ():
            print(f"       {model_type}  {' '.join(refusal.split())[:200]}")
    print(f"{sum(map(len, found.values())):5}  model types")


if __name__ == "__main__":
    main()
