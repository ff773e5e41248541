"""The fields that the reference implementation has for each family: ``python -m tests.parity.reference_fields`` writes them.

They are what a family's config class defines, and whatever else its modules read off a config.  A field that is neither
cannot change what the reference computes, and an import may pass over it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path

import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig

from tests.parity.families.neobert import NeoBERTConfig
from tests.parity.families.rwkv7 import RWKV7Config
from zoo.families.common.reference_fields import FILE
from zoo.families.registry import MODEL_TYPES

_READ = re.compile(r"""config\.([a-z]\w*)|(?:getattr|hasattr)\((?:\w+\.)*config,\s*["'](\w+)["']""")
_TAKEN = re.compile(r"""kwargs\.(?:pop|get)\(\s*["'](\w+)["']""")
_SHARED = ("modeling_utils", "modeling_rope_utils", "masking_utils", "modeling_layers", "activations", "pytorch_utils",
           "configuration_utils", "integrations/moe")  # fmt: skip


_OF_LOADING = frozenset(
    ["cache_dir", "force_download", "local_files_only", "proxies", "revision", "subfolder", "token", "gguf_file",
     "trust_remote_code", "return_unused_kwargs", "update", "_from_auto", "_from_pipeline", "_configuration_file",
     "commit_message", "create_pr", "repo_id", "tags", "variant", "state_dict", "key_mapping", "weights_only"]
)  # fmt: skip
"""Arguments of ``from_pretrained``, which no file has."""


@functools.cache
def shared_fields() -> set[str]:
    """The fields of every family."""
    place = Path(transformers.__file__).parent
    return _defined(PreTrainedConfig).union(*(_read_in(place / f"{name}.py") for name in _SHARED))


OF_CODE: dict[str, type[PreTrainedConfig]] = {"neobert": NeoBERTConfig, "rwkv7": RWKV7Config}
"""The configs of families whose reference is code that is published with a checkpoint."""


SAME = {"kimi_k2": "deepseek_v3"}
"""Families that use another family's published code."""


def config_class_of(model_type: str) -> type[PreTrainedConfig]:
    """The reference's config of a family."""
    found: type[PreTrainedConfig] = (
        OF_CODE.get(model_type) or CONFIG_MAPPING[SAME.get(model_type, model_type)]
    )
    return found


@functools.cache
def fields_of(model_type: str) -> set[str]:
    """The fields of a family, without the fields of every family."""
    config_class = config_class_of(model_type)
    if model_type in OF_CODE:
        return _defined(config_class) - shared_fields()
    package = Path(transformers.__file__).parent / "models" / config_class.__module__.split(".")[-2]
    modules = [
        path for kind in ("configuration", "modeling") for path in sorted(package.glob(f"{kind}_*.py"))
    ]
    found = _defined(config_class).union(*map(_read_in, modules))
    return found - shared_fields()


def _defined(config_class: type[PreTrainedConfig]) -> set[str]:
    names = {field.name for field in dataclasses.fields(config_class)}
    names |= set(config_class.attribute_map) | set(config_class.attribute_map.values())
    return names | {name for name, value in vars(config_class).items() if isinstance(value, property)}


def _read_in(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    found = {name for names in _READ.findall(text) for name in names if name}
    if path.name.startswith("configuration_"):
        found |= set(_TAKEN.findall(text))
    return {name for name in found if not callable(getattr(PreTrainedConfig, name, None))} - _OF_LOADING


def text_of_fields() -> str:
    """The text of the file that lists them, a line for each family."""
    by_family = {"": shared_fields()} | {
        model_type: fields_of(model_type) for model_type in sorted(MODEL_TYPES)
    }
    lines = [
        f"  {json.dumps(model_type)}: {json.dumps(sorted(names))}" for model_type, names in by_family.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text_of_fields(), encoding="utf-8")
