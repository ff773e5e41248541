"""The families there are, and which of them a checkpoint belongs to."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from specs.model import Model
from specs.suggest import did_you_mean
from zoo.checkpoints.albert import ALBERT
from zoo.checkpoints.bart import BART
from zoo.checkpoints.bert import BERT
from zoo.checkpoints.bloom import BLOOM
from zoo.checkpoints.clip import CLIP
from zoo.checkpoints.deepseek import DEEPSEEK
from zoo.checkpoints.distilbert import DISTILBERT
from zoo.checkpoints.electra import ELECTRA
from zoo.checkpoints.falcon import FALCON
from zoo.checkpoints.family import OWN, Family
from zoo.checkpoints.gemma import GEMMA, GEMMA2
from zoo.checkpoints.gguf import as_gguf
from zoo.checkpoints.gpt2 import GPT2
from zoo.checkpoints.gpt_neo import GPT_NEO
from zoo.checkpoints.gpt_neox import GPT_NEOX
from zoo.checkpoints.gpt_oss import GPT_OSS
from zoo.checkpoints.gptj import GPTJ
from zoo.checkpoints.llama import LLAMA, MISTRAL
from zoo.checkpoints.mixtral import MIXTRAL
from zoo.checkpoints.modernbert import MODERNBERT
from zoo.checkpoints.olmo2 import OLMO2
from zoo.checkpoints.openai_gpt import OPENAI_GPT
from zoo.checkpoints.opt import OPT
from zoo.checkpoints.phi import PHI
from zoo.checkpoints.phi3 import PHI3
from zoo.checkpoints.qwen_moe import QWEN2_MOE, QWEN3_MOE
from zoo.checkpoints.roberta import ROBERTA
from zoo.checkpoints.stablelm import STABLELM
from zoo.checkpoints.t5 import T5
from zoo.checkpoints.torch_nn import TORCH
from zoo.checkpoints.vit import VIT
from zoo.checkpoints.whisper import WHISPER
from zoo.json_values import read_object
from zoo.tensors import weight_tensors
from zoo.weights.files import TensorFiles
from zoo.weights.gguf import GgufTensor
from zoo.weights.gguf_header import model_type_of
from zoo.weights.source import WeightError

FAMILIES: tuple[Family, ...] = (
    OWN,
    BERT,
    BLOOM,
    FALCON,
    GPT2,
    GPT_NEO,
    GPT_NEOX,
    GPTJ,
    LLAMA,
    DEEPSEEK,
    GEMMA,
    GEMMA2,
    GPT_OSS,
    MISTRAL,
    MIXTRAL,
    OLMO2,
    OPENAI_GPT,
    OPT,
    PHI,
    PHI3,
    STABLELM,
    ALBERT,
    CLIP,
    DISTILBERT,
    ELECTRA,
    MODERNBERT,
    ROBERTA,
    QWEN2_MOE,
    QWEN3_MOE,
    T5,
    BART,
    TORCH,
    VIT,
    WHISPER,
)


def family_of(files: TensorFiles, model: nn.Module, spec: Model) -> Family:
    """The family of a checkpoint: a GGUF file or a directory's config.json says it, and otherwise the tensors' names do.

    Raises :class:`WeightError` where none does.
    """
    first = next(iter(files.tensors.values()), None)
    if isinstance(first, GgufTensor):
        family = _of_model_type(model_type_of(first.header), first.path)
        return as_gguf(family, first.header, spec)
    config = files.path / "config.json"
    if config.is_file():
        return _of_model_type(read_object(config, WeightError).get("model_type"), config)
    shapes = {name: tuple(tensor.shape) for name, tensor in weight_tensors(model)}

    def names_found(family: Family) -> float:
        plain = {family.plain(name) for name in files.tensors}
        table = family.table(spec, shapes)
        return sum(not plain.isdisjoint(names) for names in table.names()) / len(shapes)

    best = max(FAMILIES, key=names_found)  # the first of equals
    if names_found(best) < 0.5:
        seen = ", ".join(sorted(files.tensors)[:8]) or "no tensors"
        known = ", ".join(family.name for family in FAMILIES)
        raise WeightError(
            f"{files.path} has names of no family known ({known}) for this spec: it has {seen}, ..."
        )
    return best


def _of_model_type(model_type: object, where: Path) -> Family:
    known = _by_model_type()
    if not isinstance(model_type, str) or model_type not in known:
        remedy = did_you_mean(str(model_type), known)
        raise WeightError(
            f"{where}: model_type {model_type!r} is not one that weights can be read of: {remedy}"
        )
    return known[model_type]


def _by_model_type() -> dict[str, Family]:
    return {model_type: family for family in FAMILIES for model_type in family.model_types}


def family_of_model_type(model_type: str) -> Family:
    """The family of a model_type that has one."""
    return _by_model_type()[model_type]
