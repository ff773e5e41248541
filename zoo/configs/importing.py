"""From a checkpoint's config to a spec."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from specs.document import Document
from specs.errors import SpecError
from specs.model import Model
from specs.named_blocks import with_named_blocks
from specs.suggest import did_you_mean
from specs.validation import validate
from zoo.configs.config import CONFIG, Config, ConfigError
from zoo.configs.families import family_of_config
from zoo.configs.family import ConfigFamily, Data
from zoo.configs.sentence import body_class, read_head, sentence_modules

Tell = Callable[[Sequence[str]], None]
"""Is given the names of the fields that an import passes over, as the reference has none of these names."""


def import_spec(
    path: Path,
    *,
    name: str | None = None,
    ignored: Collection[str] = (),
    strict: bool = False,
    tell: Tell = lambda names: None,
) -> Model:
    """The spec of a config.json, of a directory that has one, or of a GGUF file.

    A directory of sentence-transformers gives the body with the head that its modules are.  ``name`` is that of the spec
    (default: the directory's), ``ignored`` are fields not to be refused although they are not modelled.  Fields that the
    reference does not have are passed over and told, or refused where it is to be ``strict``.  Raises
    :class:`ConfigError`, which names the field, for what is not modelled or does not go together.
    """
    file = path / CONFIG if path.is_dir() else path
    if not file.is_file():
        remedy = "give a directory with a config.json, the config itself, or a GGUF file"
        raise ConfigError(f"there is no {file}\n  {remedy}")
    if file.suffix == ".gguf":
        from zoo.configs.gguf import config_of_gguf

        config = Config(config_of_gguf(file, ignored), str(file))
    else:
        config = Config.load(file, lambda: _stored(file.parent))
    modules = sentence_modules(path) if path.is_dir() else []
    head = functools.partial(read_head, modules) if modules else None
    name = name or _name(file)
    return spec_of_config(config, name=name, ignored=ignored, strict=strict, tell=tell, sentence_head=head)


def spec_of_config(
    config: Config,
    *,
    name: str,
    ignored: Collection[str] = (),
    strict: bool = False,
    tell: Tell = lambda names: None,
    sentence_head: Callable[[int], Data] | None = None,
) -> Model:
    """The spec of a config; ``sentence_head`` gives the head of a body of a certain width, in the place of the config's own.

    Raises as :func:`import_spec`.
    """
    _check_quantization(config)
    config.must("pruned_heads", {}, "layers that were pruned are not modelled")
    family = family_of_config(config)
    if sentence_head is None:
        data = family.spec(config, _class_name(config, family))
    else:
        config.ignore("architectures")  # whose class sentence-transformers does not load, but the body
        if (bare := body_class(family)) is None:
            config.refuse(
                "model_type", "has no class without a head that is modelled: modules cannot follow it"
            )
        data = family.read(config, bare)
        data["head"] = sentence_head(data["d_model"])
    if passed_over := config.finish(ignored, strict=strict):
        tell(passed_over)
    return validated({"name": name, **data}, config.where)


def _check_quantization(config: Config) -> None:
    """How weights are quantized is read with them; here it must only be a method that is."""
    stated = config.any("quantization_config")
    if stated is None:
        return
    from zoo.packed.formats import method_of
    from zoo.weights.source import WeightError

    try:
        method_of(stated, config.where)
    except WeightError as error:
        raise ConfigError(str(error)) from None


def validated(data: Data, where: str) -> Model:
    """A model of plain data; what breaks a rule of the language is told as the config's."""
    try:
        return validate(with_named_blocks(Document(_tidy(data), {}, {})))
    except SpecError as error:
        raise ConfigError(f"{where} describes a model that breaks a rule\n{error}") from None


def _stored(directory: Path) -> Collection[str]:
    """The names of the tensors beside a config, if there are any."""
    from zoo.packed.formats import unpacked_files
    from zoo.weights.files import TensorFiles
    from zoo.weights.source import WeightError

    try:
        return unpacked_files(TensorFiles.open(directory)).tensors
    except WeightError:  # which is told when the weights are asked for
        return ()


def _class_name(config: Config, family: ConfigFamily) -> str:
    """The class that a config is of: what it says, or the family's usual one."""
    named = config.any("architectures")
    if named is None or named == []:
        return next(iter(family.classes))
    if not isinstance(named, list) or not all(isinstance(item, str) for item in named):
        config.refuse("architectures", "must be a list of class names")
    known = next((item for item in named if item in family.classes), None)
    if known is None:
        config.refuse(
            "architectures", "has no class that is modelled", did_you_mean(named[0], family.classes)
        )
    return known


def _name(file: Path) -> str:
    """A name for a spec from where its config lies."""
    stem = file.resolve().parent.name if file.name == CONFIG else file.stem
    return re.sub(r"[^A-Za-z0-9._+=,@-]+", "-", stem).strip("-._+=,@")[:200] or "imported"


def _tidy(data: Data) -> Data:
    """Plain data without what is None."""
    return {
        key: _tidy(value) if isinstance(value, dict) else value
        for key, value in data.items()
        if value is not None
    }
