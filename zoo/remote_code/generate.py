"""A model as modeling_*.py and configuration_*.py for transformers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.model import Model
from zoo.functional import (
    attention,
    attention_bias,
    positions_from,
    token_alignment,
    token_positions,
)
from zoo.models.stack import Stack
from zoo.precision import in_dtype
from zoo.remote_code import model_template, template
from zoo.remote_code.collected import IMPORTED, Collected
from zoo.remote_code.configs import config_of, configuration_class
from zoo.remote_code.heads import head_class
from zoo.remote_code.modules import Modules, mark_compared, overrides
from zoo.remote_code.products import EXPERT_PRODUCT
from zoo.remote_code.refusals import check
from zoo.remote_code.stacks import cached_windows, carries_state, stack_class
from zoo.remote_code.state_template import COUNTED, STATE_CACHE, STATE_CONTEXT
from zoo.weights.ties import tied_names


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

    def generate(self) -> RemoteCode:
        check(self.model, self.spec)
        mark_compared(self.model)
        self.modules.token = self.model.embedding.token
        stack: Stack = getattr(self.model, self.spec.architecture)
        self.modules.causal = stack.causal
        for each, name in ((attention, "attention"), (attention_bias, "attention_bias"), (token_positions, "token_positions"),
                           (positions_from, "positions_from"), (in_dtype, "in_dtype")):  # fmt: skip
            self.collected.reference(each, name, set())
        stateful = carries_state(stack)
        if stateful:
            self.collected.imports |= {"field"}
            self.collected.reference(token_alignment, "token_alignment", set())
        embedding = self._embedding()
        body = stack_class(stack, self.spec.architecture, self.modules)
        classes = [body, self._pretrained(stack), self._model(embedding)]
        head = head_class(self.model, self.spec, self.prefix, self.modules, self._ties())
        classes += [head.text] if head.text else []
        imports = self._imports(stateful=stateful)
        parts = [EXPERT_PRODUCT] if "expert_product(" in self.collected.source() else []
        shared = (
            [template.CONTEXT, STATE_CONTEXT, STATE_CACHE.format(windows=cached_windows(stack))]
            if stateful
            else [template.CONTEXT]
        )
        source = "\n\n\n".join([*parts, self.collected.source(), *(each.strip() for each in (*shared, template.VISIBLE, *classes))])  # fmt: skip
        title = f"{self.spec.name}{f': {self.spec.summary}' if self.spec.summary else ''}"
        header = template.HEADER.format(title=title.replace("\\", "").replace('"', "'"), version=self.version)
        config = config_of(self.spec, stack, self.module_name, self.prefix, head, tied=bool(self._ties()))
        return RemoteCode(
            {
                f"modeling_{self.module_name}.py": f"{header}\n{imports}\n\n{source}\n",
                f"configuration_{self.module_name}.py": f"{header}{configuration_class(self.spec, stack, self.prefix, config)}",
            },
            config,
            head.names,
            self._copies(head.names),
        )

    def _copies(self, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
        buffers = {name for name, _ in self.model.named_buffers(remove_duplicate=False)}
        found: dict[str, tuple[str, ...]] = {}
        for name, first in tied_names(self.model).items():
            if name in buffers and not _is_alias(self.model, name):
                found[first] = (*found.get(first, ()), names[name])
        return found

    # The classes

    def _embedding(self) -> str:
        made = self.modules.constructed(self.model.embedding)
        name = made.partition("(")[0]
        text = self.collected.definitions[name]
        self.collected.definitions[name] = text.replace(
            "self.token(input_ids)", "(input_ids if input_ids.is_floating_point() else self.token(input_ids))"
        )
        return made

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
        return not adds and not sinks and not carries_state(stack)

    def _model(self, embedding: str) -> str:
        text = (
            model_template.DECODER_MODEL
            if self.spec.architecture == "decoder"
            else model_template.ENCODER_MODEL
        )
        ties = {name: first for name, first in self._ties().items() if not name.startswith("head.")}
        stateful = carries_state(getattr(self.model, self.spec.architecture))
        types = (
            ", token_type_ids"
            if "token_type_ids" in self.collected.definitions[embedding.partition("(")[0]]
            else ""
        )
        return text.format(
            prefix=self.prefix,
            name=self.spec.name,
            embedding=embedding,
            stack=self.spec.architecture.capitalize(),
            ties=ties,
            types=types,
            cache="StateCache()" if stateful else "DynamicCache(config=self.config)",
            counted=COUNTED if stateful else "",
        )

    def _ties(self) -> dict[str, str]:
        """The names of tied parameters, each with the name of the parameter that it is."""
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        return {
            name: first
            for name, first in tied_names(self.model).items()
            if name in parameters and not _is_alias(self.model, name)
        }

    def _imports(self, *, stateful: bool) -> str:
        named = {"torch", "F", "nn", "Tensor", "dataclass", *self.collected.imports}
        lines = sorted({IMPORTED[name] for name in named}, key=lambda line: (line.startswith("from"), line))
        outputs = ["BaseModelOutput", "BaseModelOutputWithPast", "CausalLMOutputWithPast", "MaskedLMOutput",
                   "QuestionAnsweringModelOutput", "SequenceClassifierOutput", "TokenClassifierOutput"]  # fmt: skip
        used = set(outputs)
        return "\n".join(
            [
                *lines,
                f"from transformers import {'Cache' if stateful else 'DynamicCache'}, GenerationMixin, PreTrainedModel",
                *(
                    ["from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer"]
                    if stateful
                    else []
                ),
                f"from transformers.modeling_outputs import {', '.join(sorted(used))}",
                "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS",
                "from transformers.utils.generic import can_return_tuple",
                "",
                f"from .configuration_{self.module_name} import {self.prefix}Config",
            ]
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
