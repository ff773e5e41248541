"""A model as modeling_*.py and configuration_*.py for transformers."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from torch import nn

from specs.model import Model
from zoo.components.attention import Projections
from zoo.components.block import Block, NormedResidual, Parallel, PostNorm, PreNorm, ReorderedNorm, Sandwich
from zoo.components.disentangled import Disentangled
from zoo.components.linear import Linear
from zoo.components.mixer import Mixer
from zoo.components.norm import NoNorm
from zoo.components.pooling import TokenSequence
from zoo.components.position import Alibi, Learned, Position, RelativeBias, Rope, Sinusoidal
from zoo.functional import attention, attention_bias, positions_from, token_positions
from zoo.models.stack import Stack
from zoo.precision import in_dtype
from zoo.remote_code import template
from zoo.remote_code.collected import IMPORTED, Collected, RemoteCodeError
from zoo.remote_code.modules import INDENT, Modules, mark_compared, overrides
from zoo.remote_code.plans import pipeline_plan, tensor_plan
from zoo.remote_code.products import EXPERT_PRODUCT
from zoo.weights.ties import tied_names

_KINDS = (PreNorm, PostNorm, Parallel, ReorderedNorm, Sandwich, NormedResidual,
          Position, Learned, Sinusoidal, Rope, Alibi, RelativeBias, Disentangled)  # fmt: skip
"""The kinds of blocks and positions that generated code has."""

_EXTRA = ("per_layer_embedding", "altup", "low_rank_residual", "output_scale")
"""Parts of blocks that generated code lacks."""

HEADS: dict[str, tuple[str, str, str, str]] = {
    "masked_language_modeling": (
        "ForMaskedLM",
        "AutoModelForMaskedLM",
        "MaskedLMOutput",
        "Scores of masked tokens.",
    ),
    "classification": (
        "ForSequenceClassification",
        "AutoModelForSequenceClassification",
        "SequenceClassifierOutput",
        "Scores of classes for the whole sequence.",
    ),
    "token_classification": (
        "ForTokenClassification",
        "AutoModelForTokenClassification",
        "TokenClassifierOutput",
        "Scores of classes for each token.",
    ),
    "question_answering": (
        "ForQuestionAnswering",
        "AutoModelForQuestionAnswering",
        "QuestionAnsweringModelOutput",
        "Scores of the start and end of an answer.",
    ),
}
"""By the kind of a head: the suffix of its class, the class of transformers that loads it, its output, and what it gives."""


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
        self.prefix = (
            "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", spec.name)) or "Zoo"
        )
        if not self.prefix[0].isalpha():
            self.prefix = f"Zoo{self.prefix}"
        self.module_name = re.sub(r"[^a-z0-9]+", "_", spec.name.lower()).strip("_")
        self.collected = Collected()
        self.modules = Modules(self.collected)
        self.stack_name = "decoder" if spec.architecture == "decoder" else "encoder"

    def generate(self) -> RemoteCode:
        self._check()
        mark_compared(self.model)
        self.modules.token = self.model.embedding.token
        stack: Stack = getattr(self.model, self.stack_name)
        self.modules.causal = stack.causal
        for each, name in ((attention, "attention"), (attention_bias, "attention_bias"), (token_positions, "token_positions"),
                           (positions_from, "positions_from"), (in_dtype, "in_dtype")):  # fmt: skip
            self.collected.reference(each, name, set())
        embedding = self._embedding()
        stack_class = self._stack(stack)
        classes = [stack_class, self._pretrained(stack), self._body(embedding)]
        head, class_name, auto, names = self._head()
        classes += [head] if head else []
        imports = self._imports()
        parts = [EXPERT_PRODUCT] if "expert_product(" in self.collected.source() else []
        source = "\n\n\n".join([*parts, self.collected.source(), template.CONTEXT.strip(), template.VISIBLE.strip(),
                                *(each.strip() for each in classes)])  # fmt: skip
        title = f"{self.spec.name}{f': {self.spec.summary}' if self.spec.summary else ''}"
        header = template.HEADER.format(title=title.replace("\\", "").replace('"', "'"), version=self.version)
        config = self._config(stack, class_name, auto)
        return RemoteCode(
            {
                f"modeling_{self.module_name}.py": f"{header}\n{imports}\n\n{source}\n",
                f"configuration_{self.module_name}.py": f"{header}{self._configuration(config)}",
            },
            config,
            names,
            self._copies(names),
        )

    def _copies(self, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
        buffers = {name for name, _ in self.model.named_buffers(remove_duplicate=False)}
        found: dict[str, tuple[str, ...]] = {}
        for name, first in tied_names(self.model).items():
            if name in buffers and not _is_alias(self.model, name):
                found[first] = (*found.get(first, ()), names[name])
        return found

    def _check(self) -> None:
        spec = self.spec
        if spec.architecture not in ("decoder", "encoder"):
            raise RemoteCodeError(
                f"{spec.name}: architecture {spec.architecture} cannot be written as remote code\n"
                "  Use a decoder or an encoder of text, or a family that can express the spec."
            )
        if self.model.embedding.token is None:
            raise RemoteCodeError(
                f"{spec.name}: remote code reads tokens, and the model reads {spec.embedding.kind}"
            )
        known = {"language_modeling": "decoder", "none": ""}
        if spec.head.kind not in HEADS and spec.architecture not in (
            known.get(spec.head.kind),
            known.get(spec.head.kind) == "" and spec.architecture,
        ):
            raise RemoteCodeError(
                f"{spec.name}: head {spec.head.kind} cannot be written as remote code\n"
                f"  Use language_modeling in a decoder, {', '.join(HEADS)} or none."
            )
        stack: Stack = getattr(self.model, self.stack_name)
        if stack.streams is not None:
            raise RemoteCodeError(f"{spec.name}: altup cannot be written as remote code\n  Remove it.")
        self._check_kinds()
        for layer, block in enumerate(stack.blocks):
            for mixer in block.modules():
                if isinstance(mixer, Mixer):
                    self._check_mixer(mixer, layer)
            extra = [each for each in _EXTRA if getattr(block, each, None) is not None]
            summed = getattr(block.attention, "summaries", None) is not None
            limited = any(getattr(block.attention, each, None) for each in ("patch_window", "chunk"))
            if extra or summed or limited or stack.sources[layer] is not None:
                what = (
                    extra[0]
                    if extra
                    else "block_summaries"
                    if summed
                    else "attention to the keys of another layer, or within chunks or windows of patches,"
                )
                raise RemoteCodeError(
                    f"{spec.name}: {what} in layer {layer} cannot be written as remote code\n  Remove it, or use a family that has it."
                )
            if block.attention is None:
                raise RemoteCodeError(
                    f"{spec.name}: layer {layer} has no attention, which remote code requires"
                )

    def _check_kinds(self) -> None:
        """Refuse the kinds of blocks and positions that call each other in ways of their own."""
        for module in self.model.modules():
            own = isinstance(module, Block | Position) and type(module) not in _KINDS
            if own or isinstance(module, nn.BatchNorm1d):
                kind = getattr(module, "component_kind", type(module).__name__)
                raise RemoteCodeError(
                    f"{self.spec.name}: {kind} cannot be written as remote code\n  Use another kind, or a family that has it."
                )

    def _check_mixer(self, mixer: Mixer, layer: int) -> None:
        if not all(tensor.grows for tensor in mixer.state):
            raise RemoteCodeError(
                f"{self.spec.name}: {mixer.component_kind} in layer {layer} cannot be written as remote code, because the caches of "
                "transformers hold keys and values alone\n  Use attention, or a family that has this mixer."
            )

    # The classes

    def _embedding(self) -> str:
        made = self.modules.constructed(self.model.embedding)
        name = made.partition("(")[0]
        text = self.collected.definitions[name]
        self.collected.definitions[name] = text.replace(
            "self.token(input_ids)", "(input_ids if input_ids.is_floating_point() else self.token(input_ids))"
        )
        return made

    def _stack(self, stack: Stack) -> str:
        init = []
        if not _is_plain(stack.position) or any(
            getattr(each, "position", None) is None for each in stack.attentions.values()
        ):
            init.append(f"self.position = {self.modules.constructed(stack.position)}")
        blocks = [self.modules.constructed(block) for block in stack.blocks]
        runs = [(text, len(list(group))) for text, group in groupby(blocks)]
        listed = ", ".join(
            text if count == 1 else f"*({text} for _ in range({count}))" for text, count in runs
        )
        init.append(f"self.blocks = nn.ModuleList([{listed}])")
        if _norms(stack.final_norm):
            init.append(f"self.final_norm = {self.modules.constructed(stack.final_norm)}")
        if stack.layer_sum is not None:
            init.append(f"self.layer_sum = {self.modules.constructed(stack.layer_sum)}")
        views: list[tuple[Any, str]] = []
        for layer, mixer in stack.attentions.items():
            own = getattr(mixer, "position", None)
            path = "self.position" if own is None else f"self.blocks[{layer}].attention.position"
            key = stack.view(mixer)
            if key not in [each[0] for each in views]:
                views.append((key, f"({path}, {key.window}, {layer})"))
        result = "self.final_norm(x)" if _norms(stack.final_norm) else "x"
        kept = stack.layer_sum is not None
        positions = stack.positions
        return template.STACK.format(
            title=self.stack_name.capitalize(),
            doc=", then a norm" if _norms(stack.final_norm) else "",
            init=textwrap.indent("\n".join(init), 2 * INDENT),
            cross="",
            encoded="",
            item="block",
            items="self.blocks",
            before=f"{2 * INDENT}outputs = []\n" if kept else "",
            keep=f"{3 * INDENT}outputs.append(x)\n" if kept else "",
            result=f"self.layer_sum([*outputs, {result}])" if kept else result,
            views=f"({', '.join(text for _, text in views)},)",
            added=_added(positions),
            gate=_gate(positions),
            compare=_compare(positions),
            causal=stack.causal,
            position="self.position"
            if any("self.position" in line.partition(" =")[0] for line in init)
            else "None",
        )

    def _pretrained(self, stack: Stack) -> str:
        mixers = [*stack.attentions.values()]
        plain = all(
            getattr(each, "softcap", None) is None and getattr(each, "sinks", None) is None for each in mixers
        )
        return template.PRETRAINED.format(
            prefix=self.prefix,
            name=self.spec.name,
            blocks=sorted({self.modules.constructed(block).partition("(")[0] for block in stack.blocks}),
            sdpa=plain,
            backend=self.masks_for_itself(stack),
        )

    @staticmethod
    def masks_for_itself(stack: Stack) -> bool:
        """Whether other implementations of attention can take the place of the components': no scores but products."""
        adds = any(overrides(each, "bias") or overrides(each, "distances") for each in stack.positions)
        sinks = any(getattr(each, "sinks", None) is not None for each in stack.attentions.values())
        return not adds and not sinks

    def _body(self, embedding: str) -> str:
        text = template.DECODER_MODEL if self.spec.architecture == "decoder" else template.ENCODER_MODEL
        ties = {name: first for name, first in self._ties().items() if not name.startswith("head.")}
        types = (
            ", token_type_ids"
            if "token_type_ids" in self.collected.definitions[embedding.partition("(")[0]]
            else ""
        )
        return text.format(
            prefix=self.prefix,
            name=self.spec.name,
            embedding=embedding,
            stack=self.stack_name.capitalize(),
            ties=ties,
            types=types,
        )

    def _ties(self) -> dict[str, str]:
        """The names of tied parameters, each with the name of the parameter that it is."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return {
            name: first
            for name, first in tied_names(self.model).items()
            if name in parameters and not _is_alias(self.model, name)
        }

    def _head(self) -> tuple[str, str, str, dict[str, str]]:
        """The class with the head, its name, the class of transformers that loads it, and the stored names of parameters."""
        head, kind = self.model.head, self.spec.head.kind
        ours = [name for name, _ in self.model.named_parameters(remove_duplicate=False)]
        ours += [name for name, _ in self.model.named_buffers(remove_duplicate=False)]
        if kind == "none":
            return "", f"{self.prefix}Model", "AutoModel", {name: name for name in ours}
        children = [name for name, child in head.named_children() if [*child.parameters()]]
        simple = children in (["vocabulary"], ["labels"], ["span"]) and not [*head.buffers(recurse=False)]
        made = self.modules.constructed(head)
        place, output = "head", "head.vocabulary"
        methods = ""
        if simple:
            (child,) = children
            place = "lm_head" if child == "vocabulary" else "score" if child == "labels" else child
            output = place
            methods = self._inlined_head(head, child, place)
            made = self._linear(getattr(head, child))
        names = {}
        for name in ours:
            stored = f"model.{name}"
            if name.startswith("head."):
                stored = name.replace(f"head.{children[0]}.", f"{place}.") if simple else name
            names[name] = stored
        ties = {names[name]: names[first] for name, first in self._ties().items() if name.startswith("head.")}
        scored = "self.scores" if simple else "self.head"
        assigned = f"{2 * INDENT}self.{place} = {made}"
        if kind == "language_modeling":
            text = template.CAUSAL_HEAD.format(
                prefix=self.prefix, ties=ties, head=assigned, output=output, scores=scored, methods=methods
            )
            return text, f"{self.prefix}ForCausalLM", "AutoModelForCausalLM", names
        suffix, auto, result, doc = HEADS[kind]
        self.collected.reference(TokenSequence, "TokenSequence", set())
        text = template.HEAD.format(
            prefix=self.prefix,
            suffix=suffix,
            doc=doc,
            ties=ties,
            head=assigned,
            output=template.OUTPUT_EMBEDDINGS.format(output=output)
            if kind == "masked_language_modeling"
            else "",
            outputs_doc="",
            scores=scored,
            result=result,
            methods=methods,
        )
        return text, f"{self.prefix}{suffix}", auto, names

    def _linear(self, layer: Linear) -> str:
        made = self.modules.constructed(layer)
        rows = f", {layer.out_features}, bias"
        return (
            made.replace(rows, ", config.vocab_size, bias")
            if layer.out_features == self.spec.vocab_size
            else made
        )

    def _inlined_head(self, head: nn.Module, child: str, place: str) -> str:
        """The forward of a head with one layer, as a method of the class that has the layer."""
        name = self.modules.written(head)
        text = self.collected.definitions.pop(name)
        methods = text[text.index(f"{INDENT}def forward(") :].replace(f"self.{child}", f"self.{place}")
        dropped = re.sub(r"self\.dropout\b", "self.head_dropout", methods)
        return "\n" + dropped.replace("def forward(", "def scores(", 1).rstrip() + "\n"

    # Files

    def _imports(self) -> str:
        named = {"torch", "F", "nn", "Tensor", "dataclass", *self.collected.imports}
        lines = sorted({IMPORTED[name] for name in named}, key=lambda line: (line.startswith("from"), line))
        outputs = ["BaseModelOutput", "BaseModelOutputWithPast", "CausalLMOutputWithPast", "MaskedLMOutput",
                   "QuestionAnsweringModelOutput", "SequenceClassifierOutput", "TokenClassifierOutput"]  # fmt: skip
        used = set(outputs)
        return "\n".join(
            [
                *lines,
                "from transformers import DynamicCache, GenerationMixin, PreTrainedModel",
                f"from transformers.modeling_outputs import {', '.join(sorted(used))}",
                "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS",
                "from transformers.utils.generic import can_return_tuple",
                "",
                f"from .configuration_{self.module_name} import {self.prefix}Config",
            ]
        )

    def _config(self, stack: Stack, class_name: str, auto: str) -> dict[str, Any]:
        spec = self.spec
        shapes = [each for each in stack.attentions.values() if isinstance(each, Projections)]
        first = shapes[0] if shapes else None
        any_attention: Any = next(iter(stack.attentions.values()))
        heads: int = any_attention.heads
        windows = {getattr(each, "window", None) for each in stack.attentions.values()}
        caps = {getattr(each, "softcap", None) for each in stack.attentions.values()}
        config: dict[str, Any] = {
            "vocab_size": spec.vocab_size,
            "hidden_size": spec.output_width,
            "num_hidden_layers": len(stack.blocks),
            "num_attention_heads": heads,
            "num_key_value_heads": heads if first is None else first.key_value_heads,
            "head_dim": spec.output_width // heads if first is None else first.width,
            "max_position_embeddings": spec.context_length_of(getattr(spec, self.stack_name)) or 2**20,
            "initializer_range": 0.02,
            "tie_word_embeddings": bool(self._ties()),
        }
        if spec.architecture == "decoder":
            config |= {"use_cache": True}
        if len(windows - {None}) == 1 and 1 not in windows and stack.causal:  # caches keep a token at least
            config["sliding_window"] = next(iter(windows - {None}))
            config["layer_types"] = [
                "full_attention" if getattr(each, "window", None) is None else "sliding_attention"
                for each in stack.attentions.values()
            ]
        if caps != {None} and len(caps) == 1:
            config["attn_logit_softcapping"] = next(iter(caps))
        place = f"modeling_{self.module_name}"
        autos = {
            "AutoConfig": f"configuration_{self.module_name}.{self.prefix}Config",
            "AutoModel": f"{place}.{self.prefix}Model",
            auto: f"{place}.{class_name}",
        }
        labels = getattr(spec.head, "labels", None)
        if labels is not None:
            config["num_labels"] = labels
        return {"model_type": "zoo", "architectures": [class_name], "auto_map": autos, **config}

    def _configuration(self, config: dict[str, Any]) -> str:
        stack: Stack = getattr(self.model, self.stack_name)
        skipped = ("model_type", "architectures", "auto_map", "num_labels", "layer_types")
        kinds = {int: "int", float: "float", bool: "bool"}
        fields = [
            f"{INDENT}{name}: {kinds[type(value)]} = {value!r}"
            for name, value in config.items()
            if name not in skipped
        ]
        if "layer_types" in config:
            fields.append(f"{INDENT}layer_types: list[str] | None = None")
        return template.CONFIGURATION.format(
            prefix=self.prefix,
            name=self.spec.name,
            tp_plan=_mapping(tensor_plan(stack, self.stack_name)),
            pp_plan=_mapping(pipeline_plan(stack, self.stack_name)),
            fields="\n".join(fields),
        )


def _is_alias(model: nn.Module, name: str) -> bool:
    """Whether a name leads through the second name of a module in its own parent, which generated classes do not have."""
    module: nn.Module = model
    for part in name.split(".")[:-1]:
        child = module.get_submodule(part)
        if not isinstance(module, nn.ModuleList):
            first = next(each for each, found in module._modules.items() if found is child)
            if first != part:
                return True
        module = child
    return False


def _mapping(values: dict[str, Any]) -> str:
    lines = "".join(f"{2 * INDENT}{name!r}: {value!r},\n" for name, value in values.items())
    return f"{{\n{lines}{INDENT}}}" if values else "{}"


def _norms(norm: nn.Module) -> bool:
    return not isinstance(norm, nn.Identity) and not isinstance(norm, NoNorm)


def _is_plain(position: Position) -> bool:
    return type(position) is Position


def _added(positions: list[Position]) -> str:
    """The expression of what a position adds to the scores."""
    able = [overrides(each, "bias") for each in positions]
    if all(able):
        return "position.bias(queries, keys, like)"
    return (
        'position.bias(queries, keys, like) if hasattr(position, "bias") else None' if any(able) else "None"
    )


def _gate(positions: list[Position]) -> str:
    if not any(each.gated for each in positions):
        return ""
    return f'{3 * INDENT}if getattr(position, "gated", False):\n{4 * INDENT}gated[position.name], added = added, None\n'


def _compare(positions: list[Position]) -> str:
    if not any(overrides(each, "distances") for each in positions):
        return ""
    return (
        f'{3 * INDENT}if hasattr(position, "distances"):\n'
        f"{4 * INDENT}distances[position.name] = position.distances(queries, keys, like)\n"
    )
