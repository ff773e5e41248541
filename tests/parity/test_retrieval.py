"""Heads for retrieval beside the libraries that they come from: SPLADE, ColBERT and BGE-M3, read, run, and written back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch import Tensor

from exporters.export import export
from exporters.runtime.encoding import EncoderRunner, late_interaction
from exporters.runtime.exported import open_export
from exporters.runtime.retrieval import RetrievalRunner
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.language.load import load as load_spec
from tests.cli.program import as_json, done, invoke, refused
from tests.parity.minilm import SENTENCES, minilm_directory
from tests.parity.reference import assert_close, load, redraw
from tests.thinned import one_in
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
SMALL = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
FAMILIES = {
    "bert": (transformers.BertConfig, transformers.BertForMaskedLM, {}),
    "distilbert": (
        transformers.DistilBertConfig,
        transformers.DistilBertForMaskedLM,
        {"dim": 12, "n_layers": 1, "n_heads": 2, "hidden_dim": 8},
    ),
    "xlm-roberta": (
        transformers.XLMRobertaConfig,
        transformers.XLMRobertaForMaskedLM,
        {"pad_token_id": 0, "vocab_size": 30522, "max_position_embeddings": 80},
    ),
}


def body(place: Path, family: str = "bert") -> Path:
    """A small model that scores masked tokens, with MiniLM's tokenizer."""
    config, of_masked, changes = FAMILIES[family]
    model = of_masked(config(**(changes if family == "distilbert" else {**SMALL, **changes}))).eval()
    redraw(model, 0)
    model.save_pretrained(place)
    for name in TOKENIZER:
        shutil.copy(minilm_directory() / name, place / name)
    return place


def batch(directory: Path) -> dict[str, Tensor]:
    """The sentences as token ids and their mask."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    tokens = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    return {"inputs": tokens["input_ids"], "attention_mask": tokens["attention_mask"]}


def ours(directory: Path) -> Any:
    """What our model gives for the sentences."""
    model = load(import_spec(directory), directory)
    with torch.no_grad():
        return model(**batch(directory))


def real(vectors: Tensor, directory: Path) -> list[Tensor]:
    """The vectors of each sentence's own tokens."""
    return [row[mask == 1] for row, mask in zip(vectors, batch(directory)["attention_mask"], strict=True)]


def sparse(directory: Path) -> Tensor:
    """What the library gives for the sentences."""
    return SparseEncoder(str(directory), device="cpu").encode(list(SENTENCES)).to_dense()


def late(directory: Path) -> list[Tensor]:
    """What the library gives for the sentences as documents."""
    return list(MultiVectorEncoder(str(directory), device="cpu").encode_document(list(SENTENCES)))


def converted(directory: Path, place: Path) -> Path:
    """A directory that we write for the same model; it describes the same spec."""
    spec = import_spec(directory)
    place.mkdir()
    convert(spec, str(directory), place)
    assert import_spec(place, name=spec.name) == spec
    return place


# ------------------------------------------------------------------------------------------------------------ SPLADE


@one_in(3)
@pytest.mark.parametrize(
    ("family", "pooling", "function", "head"),
    [
        ("bert", "max", "relu", {"pooling": "max", "logarithms": 1}),
        ("distilbert", "sum", "log1p_relu", {"pooling": "sum", "logarithms": 2}),
        ("xlm-roberta", "max", "log1p_relu", {"pooling": "max", "logarithms": 2}),
    ],
)
def test_term_weights_are_those_of_the_library(
    tmp_path: Path, family: str, pooling: Any, function: Any, head: dict[str, Any]
) -> None:
    modules = [
        Transformer(str(body(tmp_path / "body", family)), transformer_task="fill-mask"),
        SpladePooling(pooling, function),
    ]
    SparseEncoder(modules=modules, device="cpu").save(str(tmp_path / "saved"))
    spec = import_spec(tmp_path / "saved")
    assert {"kind": "sparse", **head}.items() <= spec.head.model_dump().items()
    expected = sparse(tmp_path / "saved")
    assert (expected > 0).any()
    assert_close(ours(tmp_path / "saved").sentence_embedding, expected)
    assert_close(sparse(converted(tmp_path / "saved", tmp_path / "back")), expected)


def test_the_module_of_earlier_releases_is_read(tmp_path: Path) -> None:
    directory = body(tmp_path / "saved")
    modules = [("MLMTransformer", ""), ("SpladePooling", "1_SpladePooling")]
    listed = [
        {"path": path, "type": f"sentence_transformers.sparse_encoder.models.{name}"}
        for name, path in modules
    ]
    (directory / "modules.json").write_text(json.dumps(listed))
    (directory / "1_SpladePooling").mkdir()
    (directory / "1_SpladePooling" / "config.json").write_text(
        '{"pooling_strategy": "sum", "word_embedding_dimension": 9}'
    )
    assert import_spec(directory).head.model_dump(exclude_defaults=True)["pooling"] == "sum"


def test_a_family_that_scores_no_masked_tokens_is_refused(tmp_path: Path) -> None:
    transformers.GPT2Config(n_embd=12, n_layer=1, n_head=2).save_pretrained(tmp_path)
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"},
               {"path": "1", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"}]  # fmt: skip
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "config.json").write_text("{}")
    with pytest.raises(
        UserError, match="must be a family that scores masked tokens, which SpladePooling needs"
    ):
        import_spec(tmp_path)


def test_a_body_for_another_task_is_refused(tmp_path: Path) -> None:
    modules = [Transformer(str(body(tmp_path / "body")), transformer_task="fill-mask"), SpladePooling()]
    SparseEncoder(modules=modules, device="cpu").save(str(tmp_path / "saved"))
    settings = tmp_path / "saved" / "sentence_bert_config.json"
    settings.write_text(settings.read_text().replace("fill-mask", "feature-extraction"))
    with pytest.raises(UserError, match="SpladePooling reads the scores of tokens"):
        import_spec(tmp_path / "saved")


# ----------------------------------------------------------------------------------------------------------- ColBERT

Late = Callable[..., Path]


@pytest.fixture
def saved(tmp_path: Path) -> Late:
    """A directory that the library writes for a small body with these modules after it."""

    def save(*modules: Any) -> Path:
        model = MultiVectorEncoder(
            modules=[Transformer(str(body(tmp_path / "body"))), *modules], device="cpu"
        )
        for index, module in enumerate(modules):
            redraw(module, index)
        model.save(str(tmp_path / "saved"))
        return tmp_path / "saved"

    return save


def dense(width: int, out: int, **options: Any) -> Dense:
    """A layer for the vectors of tokens."""
    return Dense(width, out, module_input_name="token_embeddings", **options)


def normalize() -> Normalize:
    """A layer that makes the vectors of tokens as long as 1."""
    return Normalize(module_input_name="token_embeddings")


@one_in(3)
@pytest.mark.parametrize(
    ("modules", "head"),
    [
        (lambda: [dense(12, 5, bias=False, activation_function=None), MultiVectorMask(["."]), normalize()],
         {"projection": 5, "projection_bias": False, "normalize": True}),
        (lambda: [dense(12, 12), dense(12, 5, activation_function=None), MultiVectorMask()],
         {"activation": "tanh", "projection": 5, "projection_bias": True, "normalize": False}),
        (lambda: [MultiVectorMask(), normalize()], {"projection": None, "normalize": True}),
    ],
)  # fmt: skip
def test_vectors_of_tokens_are_those_of_the_library(
    saved: Late, tmp_path: Path, modules: Any, head: dict[str, Any]
) -> None:
    directory = saved(*modules())
    assert {"kind": "multi_vector", **head}.items() <= import_spec(directory).head.model_dump().items()
    skipped = 1012 if head["projection"] == 5 and head["normalize"] else -1  # the full stop
    ids = real(batch(directory)["inputs"], directory)
    vectors = real(ours(directory).token_embeddings, directory)
    expected = late(directory)
    for row, tokens, wanted in zip(vectors, ids, expected, strict=True):
        assert_close(row[tokens != skipped], wanted)
    for row, wanted in zip(late(converted(directory, tmp_path / "back")), expected, strict=True):
        assert_close(row, wanted)


def test_a_directory_of_pylate_is_normalized(saved: Late) -> None:
    """PyLate lists no module for it."""
    directory = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask(), normalize())
    kinds = [("sentence_transformers.models.Transformer", ""), ("pylate.models.Dense.Dense", "1_Dense")]
    (directory / "modules.json").write_text(
        json.dumps([{"type": kind, "path": path} for kind, path in kinds])
    )
    usage = directory / "config_sentence_transformers.json"
    usage.write_text(json.dumps({**json.loads(usage.read_text()), "model_type": "ColBERT"}))
    head = import_spec(directory).head.model_dump()
    assert (head["kind"], head["projection"], head["normalize"]) == ("multi_vector", 5, True)
    lengths = ours(directory).token_embeddings.norm(dim=-1)
    assert_close(lengths, torch.ones_like(lengths))


@pytest.mark.slow
def test_a_checkpoint_of_stanford_is_read(saved: Late, tmp_path: Path) -> None:
    """Its only layer lies beside the body's weights, under the prefix of a class of its own."""
    directory = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask(), normalize())
    expected = late(directory)
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(directory / "model.safetensors").items()}
    layer = load_file(directory / "1_Dense" / "model.safetensors")
    save_file({**tensors, **layer}, directory / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"], "dim": 5}))
    (directory / "modules.json").unlink()
    vectors = real(ours(directory).token_embeddings, directory)
    for row, wanted in zip(vectors, expected, strict=True):
        assert_close(row, wanted)
    for row, wanted in zip(late(converted(directory, tmp_path / "back")), expected, strict=True):
        assert_close(row, wanted)


def test_a_layer_for_the_vector_of_a_text_is_refused(saved: Late) -> None:
    directory = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask())
    config = directory / "1_Dense" / "config.json"
    config.write_text(config.read_text().replace('"token_embeddings"', '"sentence_embedding"'))
    with pytest.raises(UserError, match=r"module_input_name: .*late interaction needs a vector per token"):
        import_spec(directory)


def test_a_file_ranks_as_the_library(saved: Late, tmp_path: Path) -> None:
    """MaxSim of the file's vectors, and of the library's."""
    directory = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask(), normalize())
    export(import_spec(directory), tmp_path / "x", ExportOptions(weights=str(directory)))
    ids = [row.tolist() for row in real(batch(directory)["inputs"], directory)]
    runner = RetrievalRunner(EncoderRunner(open_export(tmp_path / "x")), None, ())
    vectors = runner.encode(ids)["multi_vector"].values
    library = MultiVectorEncoder(str(directory), device="cpu")
    theirs = library.encode_document(list(SENTENCES))
    assert_close(
        torch.from_numpy(late_interaction(vectors, vectors)), library.similarity(theirs, theirs).cpu()
    )


# ------------------------------------------------------------------------------------------------------------ BGE-M3


@pytest.fixture
def three_heads(tmp_path: Path) -> Path:
    """A directory as BGE-M3's: sentence-transformers' modules, and two layers beside them."""
    modules = [Transformer(str(body(tmp_path / "body", "xlm-roberta"))), Pooling(12, "cls"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "bge"))
    for seed, (name, width) in enumerate((("colbert_linear", 12), ("sparse_linear", 1))):
        layer = torch.nn.Linear(12, width)
        redraw(layer, seed)
        torch.save(layer.state_dict(), tmp_path / "bge" / f"{name}.pt")
    return tmp_path / "bge"


def expected_of(directory: Path) -> dict[str, Tensor]:
    """The three outputs by the formulas of FlagEmbedding's BGEM3ForInference."""
    hidden = transformers.XLMRobertaModel.from_pretrained(directory, add_pooling_layer=False).eval()
    states = {name: torch.load(directory / f"{name}.pt") for name in ("colbert_linear", "sparse_linear")}
    tokens = batch(directory)
    with torch.no_grad():
        x = hidden(tokens["inputs"], tokens["attention_mask"]).last_hidden_state
    linear, unit = torch.nn.functional.linear, torch.nn.functional.normalize
    return {
        "sentence_embedding": unit(x[:, 0], dim=-1),
        "token_weights": torch.relu(linear(x, **states["sparse_linear"]))[..., 0],
        "token_embeddings": unit(linear(x, **states["colbert_linear"]), dim=-1),
    }


@pytest.mark.slow
def test_three_heads_of_one_body(three_heads: Path, tmp_path: Path) -> None:
    assert list(import_spec(three_heads).head.model_dump()["heads"]) == ["dense", "sparse", "multi_vector"]
    expected = expected_of(three_heads)
    for directory in (three_heads, converted(three_heads, tmp_path / "back")):
        outputs = ours(directory)
        assert_close(outputs.sentence_embedding, expected["sentence_embedding"])
        for name in ("token_weights", "token_embeddings"):
            for row, wanted in zip(
                real(outputs[name], directory), real(expected[name], directory), strict=True
            ):
                assert_close(row, wanted)
    library = SentenceTransformer(str(tmp_path / "back"), device="cpu")
    assert_close(library.encode(list(SENTENCES), convert_to_tensor=True), expected["sentence_embedding"])


def test_other_combinations_of_heads_have_no_directory(three_heads: Path, tmp_path: Path) -> None:
    spec = import_spec(three_heads)
    heads = {name: head for name, head in spec.head.model_dump()["heads"].items() if name != "sparse"}
    heads["other"] = {"kind": "token_weights"}
    data = {**spec.model_dump(exclude_none=True), "head": {"kind": "several", "heads": heads}}
    with pytest.raises(UserError, match="only those of BGE-M3"):
        convert(type(spec).model_validate(data), str(three_heads), tmp_path)


def test_the_class_that_loads_a_written_directory_is_named(saved: Late, tmp_path: Path) -> None:
    """SentenceTransformer would load these directories with the mean of the tokens instead."""
    late = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask())
    told = invoke("convert", late, "-o", tmp_path / "late")
    assert f'sentence_transformers.MultiVectorEncoder("{tmp_path / "late"}")' in "".join(told.stdout.split())
    modules = [Transformer(str(body(tmp_path / "mlm")), transformer_task="fill-mask"), SpladePooling()]
    SparseEncoder(modules=modules, device="cpu").save(str(tmp_path / "splade"))
    told = invoke("convert", tmp_path / "splade", "-o", tmp_path / "sparse")
    assert f'sentence_transformers.SparseEncoder("{tmp_path / "sparse"}")' in "".join(told.stdout.split())


# --------------------------------------------------------------------------------------------------------- zoo run


@pytest.mark.slow
def test_the_heaviest_terms_are_printed(tmp_path: Path) -> None:
    modules = [Transformer(str(body(tmp_path / "body")), transformer_task="fill-mask"), SpladePooling()]
    SparseEncoder(modules=modules, device="cpu").save(str(tmp_path / "saved"))
    export(import_spec(tmp_path / "saved"), tmp_path / "x", ExportOptions(weights=str(tmp_path / "saved")))
    texts = [argument for text in SENTENCES for argument in ("--text", text)]
    told = done("run", tmp_path / "x", *texts)
    assert "heaviest" in told
    data = as_json("run", tmp_path / "x", *texts)
    expected = sparse(tmp_path / "saved")
    for found, weights in zip(data["terms"], expected, strict=True):
        assert len(found) == (weights > 0).sum()
        best = weights.argmax()
        assert found[0]["id"] == best
        assert found[0]["weight"] == pytest.approx(weights[best].item(), rel=1e-4)
        assert found[0]["token"] in told
    products = SparseEncoder(str(tmp_path / "saved"), device="cpu").similarity(
        expected.to_sparse(), expected.to_sparse()
    )
    torch.testing.assert_close(torch.tensor(data["similarities"]), products.to_dense(), rtol=1e-5, atol=0)


def flag_scores(directory: Path, weights: list[float]) -> dict[str, Tensor]:
    """The scores of the sentences for each other as FlagEmbedding's compute_score states them, by head and of all."""
    outputs, tokens = expected_of(directory), batch(directory)
    mask, unused = tokens["attention_mask"], torch.tensor([101, 0, 100])  # [CLS], [PAD], [UNK]
    lexical = torch.zeros(len(mask), 30522).scatter_reduce(
        1, tokens["inputs"], outputs["token_weights"] * mask, "amax"
    )
    lexical[:, unused] = 0
    vectors = outputs["token_embeddings"][:, 1:] * mask[:, 1:, None]
    products = torch.einsum("qin,pjn->qipj", vectors, vectors).masked_fill(mask[None, None, :, 1:] == 0, -1)
    colbert = (products.amax(-1) * mask[:, 1:, None]).sum(1) / mask[:, 1:].sum(-1, keepdim=True)
    dense = outputs["sentence_embedding"] @ outputs["sentence_embedding"].T
    scores = {"dense": dense, "sparse": lexical @ lexical.T, "multi_vector": colbert}
    total = torch.stack([weight * table for weight, table in zip(weights, scores.values(), strict=True)])
    return {**scores, "all": total.sum(0) / sum(weights)}


@pytest.fixture
def three_exported(three_heads: Path, tmp_path: Path) -> Path:
    export(import_spec(three_heads), tmp_path / "x", ExportOptions(weights=str(three_heads)))
    return tmp_path / "x"


@pytest.mark.slow
def test_texts_are_ranked_by_each_head_and_all(three_heads: Path, three_exported: Path) -> None:
    texts = [argument for text in SENTENCES for argument in ("--text", text)]
    queries = [argument for text in SENTENCES for argument in ("--query", text)]
    weigh = ["--head-weight", "dense=0.4", "--head-weight", "sparse=0.2", "--head-weight", "multi_vector=0.4"]
    expected = flag_scores(three_heads, [0.4, 0.2, 0.4])
    told = done("run", three_exported, *texts)
    assert all(title in told for title in ("dense (cosine)", "sparse (product)", "multi_vector (MaxSim)"))
    data = as_json("run", three_exported, *texts, *weigh)
    assert_close(torch.tensor(data["similarities"]), expected["all"])
    for name in data["heads"]:
        assert_close(torch.tensor(data["heads"][name]["similarities"]), expected[name])
    ranked = as_json("run", three_exported, *texts, *queries, *weigh)["queries"]
    for row, answer in enumerate(ranked):
        order = [text["index"] for text in answer["texts"]]
        assert order == expected["all"][row].argsort(descending=True, stable=True).tolist()
        for text in answer["texts"]:
            assert text["score"] == pytest.approx(expected["all"][row, text["index"]].item(), abs=1e-5)
            shared = sum(term["weight"] for term in text["terms"])
            assert shared == pytest.approx(text["scores"]["sparse"], abs=1e-5)
    assert "terms in common" in done("run", three_exported, *texts, *queries[:2])


def test_a_text_of_one_token_has_no_vector(three_exported: Path) -> None:
    """The first token has none."""
    told = done("run", three_exported, "--query", "a cat", "--ids", "7", "--ids", "7,8,9", "--json")
    (answer,) = json.loads(told)["queries"]
    scores = {text["index"]: text["scores"]["multi_vector"] for text in answer["texts"]}
    assert scores[0] == 0
    assert scores[1] != 0


@one_in(3)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--head-weight", "foo=1"], "foo is not a head of the model\n  Use dense, sparse, multi_vector."),
        (["--head-weight", "dense=x"], "--head-weight must be a head and a number\n  value: 'dense=x'"),
        (["--head-weight", "dense=nan"], "--head-weight must be 0 or more, and above 0 for one head"),
    ],
)
def test_wrong_weights_of_heads_are_refused(three_exported: Path, options: list[str], words: str) -> None:
    assert words in refused("run", three_exported, "--query", "a", "--text", "b", *options)


@pytest.mark.slow
def test_the_ranking_of_each_head_is_evaluated(three_heads: Path, three_exported: Path) -> None:
    same = as_json("eval", three_exported, "--against", three_heads)["figures"]
    names = ["same_neighbours", *(f"same_neighbours.{name}" for name in ("dense", "sparse", "multi_vector"))]
    assert [*same] == ["cosine", "least_cosine", *names]
    assert all(same[name] > 0.99 for name in names)
    layer = torch.load(three_heads / "sparse_linear.pt")
    torch.save({**layer, "weight": -layer["weight"]}, three_heads / "sparse_linear.pt")
    other = as_json("eval", three_exported, "--against", three_heads)["figures"]
    assert other["same_neighbours.sparse"] < 0.9
    assert other["same_neighbours.dense"] > 0.99
    assert other["cosine"] < 0.9


def test_each_role_has_its_prompt(saved: Late, tmp_path: Path) -> None:
    """As encode_query and encode_document of the library."""
    directory = saved(dense(12, 5, bias=False, activation_function=None), MultiVectorMask(), normalize())
    usage = directory / "config_sentence_transformers.json"
    prompts = {"query": "find: ", "passage": "text: "}
    usage.write_text(json.dumps({**json.loads(usage.read_text()), "prompts": prompts}))
    export(import_spec(directory), tmp_path / "x", ExportOptions(weights=str(directory)))
    texts = [argument for text in SENTENCES for argument in ("--text", text)]
    told = as_json("run", tmp_path / "x", "--query", "a cat", *texts)
    library = MultiVectorEncoder(str(directory), device="cpu")
    documents = library.encode_document(list(SENTENCES), prompt_name="passage")
    expected = library.similarity(library.encode_query(["a cat"]), documents)[0]
    for text in told["queries"][0]["texts"]:
        assert text["score"] == pytest.approx(expected[text["index"]].item(), abs=1e-4)


def test_a_model_without_vectors_ranks_nothing(tmp_path: Path) -> None:
    spec = load_spec("bert-tiny", ["head={kind: classification, labels: 2}"])
    export(spec, tmp_path / "x", ExportOptions(verify=False))
    shutil.copy(minilm_directory() / "tokenizer.json", tmp_path / "x")
    told = refused("run", tmp_path / "x", "--query", "a", "--ids", "1,2")
    assert told.startswith("--query ranks texts by the vectors or the terms of an encoder, which bert-tiny")
    message = refused("run", tmp_path / "x", "--ids", "1,2", "--head-weight", "dense=2")
    assert message.startswith("--head-weight applies only to models with several heads")
