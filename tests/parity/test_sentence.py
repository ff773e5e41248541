"""Directories of sentence-transformers: read as that library reads them, and written so that it reads them back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from torch import Tensor

from specs.base.errors import UserError
from specs.kinds.head import NoHead
from specs.model.model import Model
from tests.parity.minilm import SENTENCES, minilm_directory
from tests.parity.reference import assert_close, load, redraw
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.converting import convert
from zoo.checkpoints.open_weights import open_weights
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
RELATED = ("A man is playing a guitar on stage.", "Someone plays the guitar in front of an audience.")
UNRELATED = ("The stock market fell sharply today.", "My cat sleeps on the warm windowsill.")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer and width 12 with MiniLM's tokenizer, and a head that no sentence encoder uses."""
    directory = tmp_path_factory.mktemp("tiny")
    config = transformers.BertConfig(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = transformers.BertForMaskedLM(config).eval()
    redraw(model, 0)
    model.save_pretrained(directory)
    for name in TOKENIZER:
        shutil.copy(minilm_directory() / name, directory / name)
    return directory


Saved = Callable[..., tuple[Path, SentenceTransformer]]


@pytest.fixture
def saved(tiny: Path, tmp_path: Path) -> Saved:
    """A directory that sentence-transformers writes for the tiny body with some modules after it, and its model."""

    def save(*modules: Any) -> tuple[Path, SentenceTransformer]:
        model = SentenceTransformer(modules=[Transformer(str(tiny)), *modules], device="cpu").eval()
        for index, module in enumerate(modules):
            redraw(module, index)
        model.save(str(tmp_path / "saved"))
        return tmp_path / "saved", model

    return save


def embedded(model: ZooModel, directory: Path, sentences: Sequence[str] = SENTENCES) -> Tensor:
    """The vectors that our model gives sentences."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    batch = tokenizer(list(sentences), padding=True, return_tensors="pt")
    names = ("input_ids", "attention_mask", "token_type_ids")
    with torch.no_grad():
        return model(*(batch[name] for name in names)).sentence_embedding


def theirs(directory: Path, sentences: Sequence[str] = SENTENCES) -> Tensor:
    """The vectors that sentence-transformers gives sentences."""
    model = SentenceTransformer(str(directory), device="cpu")
    return model.encode(list(sentences), convert_to_tensor=True)


def test_minilm_gives_the_vectors_of_sentence_transformers() -> None:
    directory = minilm_directory()
    spec = import_spec(directory)
    assert spec.head.model_dump(exclude_defaults=True) == {
        "pooling": "mean",
        "normalize": True,
        "output": "sentence_embedding",
    }
    model = load(spec, directory)
    assert_close(embedded(model, directory), theirs(directory))
    vectors = embedded(model, directory, [*RELATED, *UNRELATED])
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > 0.6
    assert cosines[2, 3] < 0.1
    assert cosines[0, 2] < 0.1


POOLED = [
    Pooling(12, mode) for mode in ("cls", "lasttoken", "max", "mean_sqrt_len_tokens", "weightedmean", "mean")
]


@pytest.mark.parametrize(
    ("modules", "head"),
    [
        ([POOLED[4], Dense(12, 12), Dense(12, 5, bias=False, activation_function=None), Normalize()],
         {"pooling": "weighted_mean", "activation": "tanh", "projection": 5, "normalize": True}),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (
            ([POOLED[0], Normalize()], {"pooling": "first", "normalize": True}),
            ([POOLED[1]], {"pooling": "last", "normalize": False}),
            ([POOLED[2], Normalize()], {"pooling": "max"}),
            ([POOLED[3]], {"pooling": "mean_sqrt_length"}),
            ([POOLED[5], Dense(12, 12)], {"pooling": "mean", "activation": "tanh", "dense_bias": True}),
            ([POOLED[5], Dense(12, 12, bias=False, activation_function=torch.nn.GELU())],
             {"activation": "gelu", "dense_bias": False, "projection": None}),
            ([POOLED[5], Dense(12, 5, bias=False, activation_function=torch.nn.Identity()), Normalize()],
             {"activation": None, "projection": 5, "normalize": True}),
        )),
    ],
)  # fmt: skip
def test_modules_are_read_and_written_as_a_head(
    modules: list[Any], head: dict[str, Any], saved: Saved, tmp_path: Path
) -> None:
    directory, _ = saved(*modules)
    spec = import_spec(directory)
    assert head.items() <= spec.head.model_dump().items()
    expected = theirs(directory)
    assert_close(embedded(load(spec, directory), directory), expected)

    (tmp_path / "back").mkdir()
    convert(spec, str(directory), tmp_path / "back")
    assert_close(theirs(tmp_path / "back"), expected)
    back = import_spec(tmp_path / "back", name=spec.name)
    assert back == spec
    assert_close(embedded(load(back, tmp_path / "back"), directory), expected)


def test_fields_from_before_version_6_are_read(changed: Path) -> None:
    fields = {
        "word_embedding_dimension": 12,
        "pooling_mode_cls_token": False,
        "pooling_mode_max_tokens": True,
    }
    (changed / "1_Pooling" / "config.json").write_text(json.dumps(fields))
    assert import_spec(changed).head.model_dump()["pooling"] == "max"
    (changed / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 12}))
    assert import_spec(changed).head.model_dump()["pooling"] == "mean"


def test_a_body_alone_keeps_the_head_of_its_config(tiny: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(tiny, tmp_path / "alone")
    (directory / "modules.json").write_text(
        json.dumps([{"type": "sentence_transformers.models.Transformer", "path": ""}])
    )
    assert import_spec(directory).head.kind == "masked_language_modeling"


def test_the_settings_of_the_original_come_along(saved: Saved, tmp_path: Path) -> None:
    directory, model = saved(Pooling(12, "mean"))
    model.max_seq_length = 77
    model.prompts = {"query": "query: "}
    model.save(str(directory))
    (tmp_path / "back").mkdir()
    convert(import_spec(directory), str(directory), tmp_path / "back")
    back = SentenceTransformer(str(tmp_path / "back"), device="cpu")
    assert back.max_seq_length == 77
    assert back.prompts["query"] == "query: "


def write(directory: Path, name: str, value: Any) -> None:
    """Change some fields of a JSON object in a file, or all that the file holds."""
    path = directory / name
    known = json.loads(path.read_text()) if path.exists() else {}
    merged = {**known, **value} if isinstance(value, dict) and isinstance(known, dict) else value
    path.write_text(json.dumps(merged))


@pytest.fixture(scope="module")
def dense(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a module of each kind."""
    place = tmp_path_factory.mktemp("dense") / "saved"
    modules = [Transformer(str(tiny)), Pooling(12, "mean"), Dense(12, 12), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(place))
    return place


@pytest.fixture
def changed(dense: Path, tmp_path: Path) -> Path:
    """A copy of that directory, to be changed."""
    return shutil.copytree(dense, tmp_path / "changed")


TRANSFORMER = {"type": "sentence_transformers.models.Transformer", "path": ""}
POOLING = {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, "pooling_mode: must be a single mode, as concatenated vectors"),
        ("1_Pooling/config.json", {"pooling_mode": "meen"}, "pooling_mode: is not supported\n  value: 'meen'\n  Did you mean 'mean'?"),
        ("1_Pooling/config.json", {"pooling_mode": 3}, "pooling_mode: must be a single mode"),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt: must be true"),
        ("1_Pooling/config.json", {"embedding_dimension": 13}, "embedding_dimension: must be 12, the width of the body"),
        ("1_Pooling/config.json", {"layers": 2}, "has unsupported fields:\n  layers: 2"),
        ("1_Pooling/config.json", [], "1_Pooling/config.json is not a JSON object"),
        ("2_Dense/config.json", {"in_features": 5}, "in_features: must be 12, the width of the body"),
        ("2_Dense/config.json", {"activation_function": "mine.Swish"}, "activation_function: is not supported\n  value: 'mine.Swish'"),
        ("2_Dense/config.json", {"use_residual": True}, "use_residual: must be false"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, 'module_input_name: must be "sentence_embedding"'),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, 'transformer_task: must be "feature-extraction"'),
        ("modules.json", [TRANSFORMER, POOLING, {"type": "sentence_transformers.models.LSTM", "path": "x"}],
         "modules.json: the modules Transformer -> Pooling -> LSTM are not supported\n  Use Transformer, Pooling, at most two Dense"),
        ("modules.json", [TRANSFORMER, {"type": "my_code.Pooling", "path": "1_Pooling"}], "Transformer -> my_code.Pooling are not supported"),
        ("modules.json", [{**TRANSFORMER, "path": "0_Transformer"}, POOLING], "0_Transformer/config.json is missing"),
        ("modules.json", [TRANSFORMER, {**POOLING, "path": "../.."}], "each module must have a type, and a path"),
        ("modules.json", [TRANSFORMER, {**POOLING, "path": ".."}], "each module must have a type, and a path"),
        ("modules.json", [TRANSFORMER, {**POOLING, "path": "gone"}], "gone/config.json cannot be read: No such file or directory"),
        ("modules.json", {}, "modules.json is not a JSON list"),
    ],
)  # fmt: skip
def test_modules_that_no_head_can_express_are_refused(
    name: str, value: Any, message: str, changed: Path
) -> None:
    write(changed, name, value)
    with pytest.raises(UserError) as refused:
        import_spec(changed)
    assert message in str(refused.value)


def test_modules_after_a_family_without_a_bare_class_are_refused(changed: Path) -> None:
    write(changed, "config.json", {"model_type": "clip_text_model"})
    with pytest.raises(UserError, match="must be a family that has a class without a head"):
        import_spec(changed)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ({"activation": "quick_gelu"}, "head.activation quick_gelu"),
        ({"activation": "tanh", "norm": {"kind": "layer_norm"}}, "head.norm layer_norm"),
        ({"activation": "tanh", "transform": "tokens"}, "head.transform tokens"),
        ({"pooling": {"token": 3}}, "head.pooling token=3"),
    ],
)
def test_heads_that_no_modules_can_express_are_not_converted(
    head: dict[str, Any], reason: str, tiny: Path
) -> None:
    spec = import_spec(tiny).model_dump()
    pooled = Model.model_validate({**spec, "head": {"kind": "pooled", "pooling": "mean", **head}})
    with pytest.raises(NoFamilyError, match=reason):
        write_config(pooled, "bert")


def test_unused_dense_layers_are_reported(dense: Path) -> None:
    spec = import_spec(dense).model_copy(update={"head": NoHead()})
    source = open_weights(str(dense), assemble(spec), spec)
    assert "4 ignored: 2_Dense.linear.bias, 2_Dense.linear.weight, " in source.description
