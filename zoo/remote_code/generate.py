"""A model as modeling_*.py and configuration_*.py for transformers: the source of its components, and its sizes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from torch import nn

from specs.base.printable import printable
from specs.base.roles import field_values
from specs.model.model import Model
from zoo.components.pooling import TokenSequence
from zoo.functional import attention, attention_bias
from zoo.remote_code.bindings import Key
from zoo.remote_code.classes import classes, serving
from zoo.remote_code.closure import Closure
from zoo.remote_code.configs import config_of, configuration_class
from zoo.remote_code.expressions import WIDTH, Expression, Group, call, formatted
from zoo.remote_code.plans import pipeline_plan, tensor_plan
from zoo.remote_code.render import Renderer, import_lines
from zoo.remote_code.source_template import render, template
from zoo.remote_code.subject import Subject
from zoo.remote_code.tree import Tree

_OUTPUTS = ["BaseModelOutput", "BaseModelOutputWithPast", "BaseModelOutputWithPooling", "CausalLMOutput",
            "CausalLMOutputWithPast", "ImageClassifierOutput", "MaskedLMOutput", "ModelOutput", "QuestionAnsweringModelOutput",
            "Seq2SeqLMOutput", "Seq2SeqModelOutput", "SequenceClassifierOutput", "TokenClassifierOutput"]  # fmt: skip
_IMPORTS = [
    "from dataclasses import dataclass, replace",
    "import torch",
    "import torch.nn.functional as F",
    "from torch import nn",
    "from transformers import Cache, DynamicCache, EncoderDecoderCache, GenerationMixin, PreTrainedModel",
    "from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer",
    f"from transformers.modeling_outputs import {', '.join(_OUTPUTS)}",
    "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS",
    "from transformers.utils.generic import can_return_tuple",
]
_CALLED = {"forward", "positions", "decode", "encoder_output", "keys_values", "vector"}
"""The methods of a model and of its parts that the classes of transformers call."""


_SHARED = ("making", "serving", "tokens", "caches", "pretrained", "seq2seq_model")
"""The templates whose definitions have names that do not depend on the model."""


@dataclass(frozen=True)
class RemoteCode:
    """The files of a model by name, the config without weights' dtype, and the stored name of every parameter."""

    files: dict[str, str]
    config: dict[str, Any]
    names: dict[str, str]
    copies: dict[str, tuple[str, ...]]
    """Further names under which buffers are stored that several layers share."""


def generate(model: nn.Module, spec: Model, version: str) -> RemoteCode:
    """Return the files for a model on the meta device. Raises :class:`RemoteCodeError` for what they cannot express."""
    subject = Subject(model, spec)
    closure = _closure(subject)
    renderer = Renderer(closure, _reserved())

    def name_of(value: Any) -> str:
        return renderer.names[closure.add_value(inspect.unwrap(value))]

    tree, parts, head = _tree(subject, closure, renderer.names.__getitem__)
    served = _dispatches(subject, tree) and subject.attentions.served(spec, subject.stack)
    ties = subject.ties(tree.written)
    texts = [*serving(subject, name_of), *classes(subject, name_of, parts, head, ties, served=served)]
    body = "\n\n\n".join([renderer.text(), *(text.strip() for text in texts)])
    imports = import_lines([*_IMPORTS, *renderer.imports.values(), *tree.imports.values()])
    local = f"from .configuration_{subject.file} import {subject.prefix}Config"
    config = config_of(spec, subject.stack, subject.attentions, own_cache=subject.own_cache, tied=bool(ties))
    cuts = [tensor_plan(stack, name, subject.attentions) for name, stack in subject.stacks.items()]
    stages = pipeline_plan(subject.stack, subject.main) if served else {}
    settings = configuration_class(
        spec, subject.prefix, config, {path: cut for plan in cuts for path, cut in plan.items()}, stages
    )
    header = _header(spec, version)
    return RemoteCode(
        {
            f"modeling_{subject.file}.py": f"{header}\n{_used(imports, body)}\n\n{local}\n\n\n{body}\n",
            f"configuration_{subject.file}.py": header + settings,
        },
        {"model_type": "zoo", **_loaded_by(subject), **config},
        subject.names,
        subject.copies(tree.written),
    )


def _spec_classes(part: Any) -> Iterator[type]:
    """The classes of a spec and of all parts in it."""
    if isinstance(part, BaseModel):
        yield type(part)
        for value in field_values(part).values():
            yield from _spec_classes(value)
    elif isinstance(part, tuple | list | dict):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _spec_classes(value)


def _closure(subject: Subject) -> Closure:
    """The definitions that the code, and the values of attributes, need."""
    modules = [type(module) for module in subject.model.modules()]
    classes = (*modules, *_spec_classes(subject.spec))
    packages = {kind.__module__.partition(".")[0] for kind in classes} - {"builtins", "torch"}
    closure = Closure(frozenset({"zoo", "specs", *packages}))
    closure.attributes |= _CALLED
    copied = [kind for kind in modules if closure.resolver.copies(kind.__module__)]
    values: list[Any] = [attention, attention_bias, TokenSequence, *copied]
    for value in values:
        closure.add_value(inspect.unwrap(value))
    before = -1
    while before != (before := closure.size):
        closure.complete()
        _tree(subject, closure, lambda key: key.name)
    return closure


def _tree(
    subject: Subject, closure: Closure, name_of: Callable[[Key], str]
) -> tuple[Tree, dict[str, Expression], Expression]:
    """The writer of modules, the parts of the model without its head, and the head."""
    special: dict[int, Expression] = {}
    for table in subject.tables.values():
        special[id(table)] = call("TokenTable", "config.vocab_size", str(table.embedding_dim))
    if subject.stored_head is not None and subject.stored_head.layer is not None:
        layer = subject.model.head.get_submodule(subject.stored_head.layer)
        special[id(layer)] = call("Elsewhere", "self", f'"{subject.stored_head.path}"')
    interfaces = subject.attentions.interfaces()
    tree = Tree(subject.model, closure, name_of, special, interfaces, f"{subject.main}.blocks")
    if subject.spec.architecture == "dual-encoder":
        return tree, tree.parts(subject.model, without=("spec",)), ""
    parts = tree.parts(subject.model, without=("spec", "head")) | {"head": call("LastHiddenState")}
    return tree, parts, tree.module(subject.model.head, "head")


def _dispatches(subject: Subject, tree: Tree) -> bool:
    """Whether all attentions go through the interface."""
    return {id(subject.model.get_submodule(path)) for path in tree.dispatching} >= {*subject.attentions.calls}


def _loaded_by(subject: Subject) -> dict[str, Any]:
    """The names of the classes in config.json."""
    file = f"modeling_{subject.file}"
    name = f"{subject.prefix}{'Model' if subject.head is None else subject.head.suffix}"
    classes = {
        "AutoConfig": f"configuration_{subject.file}.{subject.prefix}Config",
        "AutoModel": f"{file}.{subject.prefix}Model",
    }
    loaded = {"AutoModel" if subject.head is None else subject.head.auto: f"{file}.{name}"}
    return {"architectures": [name], "auto_map": classes | loaded}


def _header(spec: Model, version: str) -> str:
    title = f"{spec.name}{f': {spec.summary}' if spec.summary else ''}"
    shown = printable(title, keep="\t\n").replace("\\", "").replace('"', "'")
    return render("header", title=shown, version=version)


def _reserved() -> set[str]:
    """The names that the templates bind."""
    bound = r"^(?:class |def )?(\w+)(?= =|\()"
    names = {name for text in map(template, _SHARED) for name in re.findall(bound, text, re.MULTILINE)}
    return names | {name for line in _IMPORTS for name in re.findall(r"\w+", line.rpartition("import ")[2])}


def _used(lines: Iterable[str], body: str) -> str:
    """The imports of what a text names."""
    words, kept = set(re.findall(r"\w+", body)), []
    for line in lines:
        begin, _, names = line.rpartition("import ")
        used = [name for name in names.split(", ") if name.rpartition(" as ")[2].partition(".")[0] in words]
        if used:
            line = f"{begin}import {', '.join(used)}"
            kept.append(
                line if len(line) <= WIDTH else formatted(Group(f"{begin}import (", tuple(used), ")"))
            )
    return "\n".join(kept)
