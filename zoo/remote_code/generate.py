"""A model as modeling_*.py and configuration_*.py for transformers: the source of its components, and its sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.base.printable import printable
from specs.model.model import Model
from zoo.components.pooling import TokenSequence
from zoo.functional import attention, attention_bias
from zoo.remote_code import model_template, seq2seq_template, serving_template
from zoo.remote_code.attentions import Attentions, cached_windows, state_names
from zoo.remote_code.bindings import Key, RemoteCodeError
from zoo.remote_code.closure import Closure
from zoo.remote_code.configs import config_of, configuration_class
from zoo.remote_code.heads import class_of, stored_head
from zoo.remote_code.plans import pipeline_plan, tensor_plan
from zoo.remote_code.recording import attention_calls
from zoo.remote_code.render import Renderer, import_lines
from zoo.remote_code.tree import Expression, Tree, call, formatted
from zoo.weights.ties import tied_names

_INDENT = "    "
_OUTPUTS = ["BaseModelOutput", "BaseModelOutputWithPast", "BaseModelOutputWithPooling", "CausalLMOutput",
            "CausalLMOutputWithPast", "ImageClassifierOutput", "MaskedLMOutput", "ModelOutput", "QuestionAnsweringModelOutput",
            "Seq2SeqLMOutput", "Seq2SeqModelOutput", "SequenceClassifierOutput", "TokenClassifierOutput"]  # fmt: skip
_IMPORTS = [
    "from dataclasses import dataclass",
    "from dataclasses import replace",
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
    return _Generator(model, spec, version).generate()


class _Generator:
    def __init__(self, model: Any, spec: Model, version: str) -> None:
        self.model, self.spec, self.version = model, spec, version
        if spec.packs_images:
            raise RemoteCodeError(
                f"{spec.name}: images of any size cannot be written as remote code\n"
                "  Use images of one size, or a family that can express the spec."
            )
        self.prefix, self.module_name = _names_of(spec)
        first = spec.first_stack
        self.input = spec.embedding_of(first).input_name
        self.names_of_stacks = [name for name, _ in spec.stacks()]
        self.head = class_of(spec, self.input)
        self.attentions = Attentions.of(model, attention_calls(model, spec))
        name = "text" if spec.architecture == "dual-encoder" else self.names_of_stacks[-1]
        name = "decoder" if spec.architecture == "vision-language" else name
        self.stack_name, self.stack = name, getattr(model, name)
        self.own_cache = spec.decodes and any(n != ("key", "value") for n in state_names(self.stack))
        packages = {type(module).__module__.partition(".")[0] for module in model.modules()} - {"torch"}
        self.closure = Closure(frozenset({"zoo", "specs", *packages}))
        self.names: dict[Key, str] = {}

    def generate(self) -> RemoteCode:
        self._collect()
        renderer = Renderer(self.closure, _reserved())
        self.names = renderer.names
        tree, parts, head = self._tree()
        stored = {name: self._stored(name) for name in self._all_names()}
        ties = self._ties(tree)
        config = self._config(tied=bool(ties))
        classes = [*self._serving(), *self._classes(parts, head, ties, stored)]
        imports = import_lines(
            [*_IMPORTS, *renderer.imports.values(), *(e.statement for e in tree.imports.values())]
        )
        local = f"from .configuration_{self.module_name} import {self.prefix}Config"
        title = f"{self.spec.name}{f': {self.spec.summary}' if self.spec.summary else ''}"
        shown = printable(title, keep="\t\n").replace("\\", "").replace('"', "'")
        header = serving_template.HEADER.format(title=shown, version=self.version)
        body = "\n\n\n".join([renderer.text(), *(each.strip() for each in classes)])
        text = f"{header}\n{_used(imports, body)}\n\n{local}\n\n\n{body}\n"
        return RemoteCode(
            {
                f"modeling_{self.module_name}.py": text,
                f"configuration_{self.module_name}.py": header + self._configuration(config),
            },
            {"model_type": "zoo", **self._autos(), **config},
            stored,
            self._copies(tree, stored),
        )

    # What is copied

    def _collect(self) -> None:
        """Collect definitions until neither code nor values need more."""
        self.closure.attributes |= _CALLED
        for value in (attention, attention_bias, TokenSequence, type(self.model)):
            self.closure.add_value(value)
        for module in self.model.modules():
            if self.closure.resolver.copies(type(module).__module__):
                self.closure.add_value(type(module))
        before = -1
        while before != (before := self._size()):
            self.closure.complete()
            self._tree(name_of=lambda key: key.name)

    def _size(self) -> int:
        return sum(1 + len(each.used) for each in self.closure.definitions.values())

    def _tree(
        self, name_of: Callable[[Key], str] | None = None
    ) -> tuple[Tree, dict[str, Expression], Expression]:
        """The writer of modules, the parts of the base model, and its head."""
        name_of = name_of or self.names.__getitem__
        special: dict[int, Callable[[nn.Module], Expression]] = {}
        for table in self._tables():
            special[id(table)] = lambda t: call("TokenTable", "config.vocab_size", str(t.embedding_dim))
        if self.head is not None and (layer := stored_head(self.model.head).layer) is not None:
            place = stored_head(self.model.head).place
            special[id(getattr(self.model.head, layer))] = lambda m: call("Elsewhere", "self", f'"{place}"')
        stages = frozenset({f"{self.stack_name}.blocks"} if self._served else ())
        tree = Tree(
            self.model,
            self.closure,
            name_of,
            special=special,
            interfaces=self.attentions.interfaces(),
            stages=stages,
        )
        whole = self.spec.architecture == "dual-encoder"
        parts = tree.parts(self.model, without=("spec",) if whole else ("spec", "head"))
        if not whole:
            parts["head"] = call("LastHiddenState")
        return tree, parts, tree.module(self.model.head, "head") if not whole else ""

    def _tables(self) -> list[nn.Module]:
        """The tables of tokens."""
        embeddings = [self.model.get_submodule(path) for path in self._embeddings()]
        tables: list[Any] = [getattr(each, "token", None) for each in embeddings]
        return [each for each in tables if each is not None and each.num_embeddings == self.spec.vocab_size]

    def _embeddings(self) -> list[str]:
        names = [f"{name}_embedding" for name in self.names_of_stacks]
        return [name for name in ("embedding", *names) if hasattr(self.model, name)]

    @property
    def _served(self) -> bool:
        """Whether engines can have masks and caches of their own."""
        dispatched = all(
            any(
                issubclass(type(m), d.value) and d.is_module and any(p.calls for p in d.all_pieces())
                for d in self._modules()
            )
            for m in self.model.modules()
            if id(m) in self.attentions.calls
        )
        return dispatched and self.attentions.served(self.spec, self.stack)

    def _modules(self) -> list[Any]:
        return [each for each in self.closure.definitions.values() if each.is_module]

    # Names of weights

    def _all_names(self) -> list[str]:
        names = [name for name, _ in self.model.named_parameters(remove_duplicate=False)]
        return names + [name for name, _ in self.model.named_buffers(remove_duplicate=False)]

    def _stored(self, name: str) -> str:
        """The name of a weight in the file's classes."""
        if self.head is None:
            return name
        return stored_head(self.model.head).name(name) if name.startswith("head.") else f"model.{name}"

    def _ties(self, tree: Tree) -> dict[str, str]:
        """The names of tied parameters, each with the name of the parameter that it is."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return {
            name: first
            for name, first in tied_names(self.model).items()
            if name in parameters and name in tree.written
        }

    def _copies(self, tree: Tree, stored: dict[str, str]) -> dict[str, tuple[str, ...]]:
        buffers = {name for name, _ in self.model.named_buffers(remove_duplicate=False)}
        found: dict[str, tuple[str, ...]] = {}
        for name, first in tied_names(self.model).items():
            if name in buffers and name in tree.written:
                found[first] = (*found.get(first, ()), stored[name])
        return found

    # Config

    def _config(self, *, tied: bool) -> dict[str, Any]:
        return config_of(self.spec, self.stack, self.attentions, own_cache=self.own_cache, tied=tied)

    def _configuration(self, config: dict[str, Any]) -> str:
        cut: dict[str, str] = {}
        for name in self.names_of_stacks:
            cut |= tensor_plan(getattr(self.model, name), name, self.attentions)
        stages = pipeline_plan(self.stack, self.stack_name) if self._served else {}
        return configuration_class(self.spec, self.prefix, config, cut, stages)

    def _autos(self) -> dict[str, Any]:
        place = f"modeling_{self.module_name}"
        name = f"{self.prefix}{'Model' if self.head is None else self.head.suffix}"
        autos = {
            "AutoConfig": f"configuration_{self.module_name}.{self.prefix}Config",
            "AutoModel": f"{place}.{self.prefix}Model",
        }
        auto = "AutoModel" if self.head is None else self.head.auto
        return {"architectures": [name], "auto_map": autos | {auto: f"{place}.{name}"}}

    # Text

    def _serving(self) -> list[str]:
        """What the classes of transformers use."""
        names = {
            "attention": self._name(attention),
            "attention_bias": self._name(attention_bias),
        }
        parts = [serving_template.MAKING, serving_template.SERVING.format(**names)]
        if tables := self._tables():
            parts.append(serving_template.TOKENS.format(table=self._name(type(tables[0]))))
        if self.spec.decodes or self.spec.architecture == "encoder-decoder":
            states = formatted(_listed(state_names(self.stack)))
            windows = cached_windows(self.stack, self.attentions)
            parts.append(serving_template.CACHES.format(states=states, windows=windows))
        return parts

    def _name(self, value: Any) -> str:
        return self.names[self.closure.add_value(_unwrapped(value))]

    def _classes(
        self, parts: dict[str, Expression], head: Expression, ties: dict[str, str], stored: dict[str, str]
    ) -> list[str]:
        """The classes that transformers loads."""
        of_head = {
            stored[n]: stored[first] for n, first in ties.items() if n.startswith("head.") and self.head
        }
        of_model = {n: first for n, first in ties.items() if not n.startswith("head.") or self.head is None}
        served = self._served
        fields = self._fields() | {"parts": _filled("self", parts), "ties": of_model, "prepared": served}
        calls = self.attentions.calls.values()
        pretrained = serving_template.PRETRAINED.format(
            blocks=sorted(self._blocks()),
            sdpa=all(each.softcap is None and not each.has_sinks for each in calls),
            backend=served,
            **fields,
        )
        return [pretrained, self._model_template().format(**fields), *self._head(head, of_head, fields)]

    def _blocks(self) -> set[str]:
        """The names of the classes of layers, which no engine splits."""
        stacks = [getattr(self.model, name) for name in self.names_of_stacks]
        return {self._name(type(block)) for stack in stacks for block in stack.blocks}

    def _model_template(self) -> str:
        return {
            "decoder": model_template.DECODER_MODEL,
            "vision-language": model_template.DECODER_MODEL,
            "encoder": model_template.ENCODER_MODEL,
            "encoder-decoder": seq2seq_template.MODEL,
            "dual-encoder": model_template.DUAL_MODEL,
        }[self.spec.architecture]

    def _fields(self) -> dict[str, Any]:
        """What the templates are filled with."""
        seq2seq, images = (
            self.spec.architecture == "encoder-decoder",
            self.spec.architecture == "vision-language",
        )
        tokens = [
            path for path in self._embeddings() if getattr(self.model.get_submodule(path), "token", None)
        ]
        reads_tokens = self.input == "input_ids"
        embeds = "inputs_embeds" if reads_tokens else "None"
        plain_cache = "DynamicCache()" if seq2seq else "DynamicCache(config=self.config)"
        shared = {id(self.model.get_submodule(path).token) for path in tokens}
        set_to = [f"self.{path}.token = " for path in (tokens if len(shared) == 1 else tokens[:1])]
        return {
            "prefix": self.prefix,
            "name": self.spec.name,
            "base": self._name(type(self.model)),
            "main": self.input,
            "token": f"self.{tokens[0]}.token" if tokens else "None",
            "set_token": f"{''.join(set_to)}value" if tokens else "pass",
            "cache": "StateCache()" if self.own_cache else plain_cache,
            "embeds": "inputs_embeds=None, " if reads_tokens else "",
            "given_embeds": f"{embeds}, ",
            "pass_embeds": "inputs_embeds, " if reads_tokens else "",
            "or_embeds": ", or inputs_embeds: B T and the table's width" if reads_tokens else "",
            "inputs": f'one_of("{self.input} or inputs_embeds", {self.input}, inputs_embeds)'
            if reads_tokens
            else self.input,
            "image_inputs": f"\n{2 * _INDENT}pixel_values=None," if images else "",
            "images": model_template.IMAGES if images else "",
            "passed_images": ", pixel_values=pixel_values" if images else "",
            "stateful": serving_template.STATEFUL.lstrip("\n") if self.own_cache else "",
            "sequence": self._name(TokenSequence),
        }

    def _head(self, head: Expression, ties: dict[str, str], fields: dict[str, Any]) -> list[str]:
        """The class of the model with its head, if it has one."""
        if self.head is None:
            return []
        stored = stored_head(self.model.head)
        lines = []
        if stored.layer is not None:
            layer = getattr(self.model.head, stored.layer)
            rows = (
                "config.vocab_size" if layer.out_features == self.spec.vocab_size else str(layer.out_features)
            )
            bias = {} if layer.bias is not None else {"bias": "False"}
            made = call(self._name(type(layer)), str(layer.in_features), rows, **bias)  # type: ignore[arg-type]
            lines.append(formatted(made, 8, f"self.{stored.place} = "))
        lines += [formatted(head, 8, "self.head = "), f"{2 * _INDENT}connect(self, self.model.serving)"]
        if self.spec.head.kind == "language_modeling":
            seq2seq = self.spec.architecture == "encoder-decoder"
            template = seq2seq_template.HEAD if seq2seq else model_template.CAUSAL_HEAD
        else:
            template = model_template.DECODER_HEAD if self.spec.decodes else model_template.HEAD
        output = ""
        if self.spec.head.kind == "masked_language_modeling":
            output = model_template.OUTPUT_EMBEDDINGS.format(output=stored.output)
        if self.spec.head.kind == "language_modeling":
            output = stored.output
        text = template.format(
            **fields | {"ties": ties, "head": "\n".join(lines), "output": output},
            suffix=self.head.suffix,
            result=self.head.result,
            doc=self.head.doc,
        )
        return [text]


def _names_of(spec: Model) -> tuple[str, str]:
    """The prefix of the classes, and the name of the modules."""
    base, changed, _ = spec.name.partition("+")  # a preset, and what --set changed
    name = f"{base}-variant" if changed else base
    prefix = "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name)) or "Zoo"
    return (
        prefix if prefix[0].isalpha() else f"Zoo{prefix}",
        re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"),
    )


def _unwrapped(value: Any) -> Any:
    return getattr(value, "__wrapped__", value)


def _listed(items: list[tuple[str, ...]]) -> Expression:
    from zoo.remote_code.tree import Group

    if len(items) > 3 and len(set(items)) == 1:
        return f"[{items[0]!r}] * {len(items)}"
    return Group("[", tuple(map(repr, items)), "]")


def _filled(target: str, parts: dict[str, Expression]) -> str:
    return formatted(call("filled", target, **parts), 8)


def _reserved() -> set[str]:
    """The names that the templates bind."""
    texts = [
        serving_template.MAKING,
        serving_template.SERVING,
        serving_template.TOKENS,
        serving_template.CACHES,
    ]
    texts += [seq2seq_template.MODEL]
    found = {
        name for text in texts for name in re.findall(r"^(?:class |def )?(\w+)(?= =|\()", text, re.MULTILINE)
    }
    return found | {name for line in _IMPORTS for name in re.findall(r"\w+", line.rpartition("import ")[2])}


def _used(lines: list[str], body: str) -> str:
    """Imports of what the text names."""
    words = set(re.findall(r"\w+", body))
    kept = []
    for line in lines:
        begin, _, names = line.rpartition("import ")
        used = [
            each
            for each in names.split(", ")
            if each.rpartition(" as ")[2].strip().partition(".")[0] in words
        ]
        if used:
            kept.append(f"{begin}import {', '.join(used)}")
    return "\n".join(kept)
