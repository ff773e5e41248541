"""Directories with a Router beside sentence-transformers: modules of their own for queries and for documents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.parity.minilm import SENTENCES
from tests.parity.reference import assert_close, redraw
from tests.parity.test_retrieval import body, invoke
from tests.thinned import one_in
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec

QUERIES = ("Where does the cat sit?", "a man who plays the guitar")


def sparse(place: Path) -> Any:
    """Static weights of queries beside documents' body and SpladePooling."""
    transformer = Transformer(str(body(place)), transformer_task="fill-mask")
    weights = torch.rand(30522, generator=torch.Generator().manual_seed(3))
    query = SparseStaticEmbedding(transformer.tokenizer, weights)
    router = Router.for_query_document([query], [transformer, SpladePooling()])
    return SparseEncoder(modules=[router], device="cpu")


def after_pooling(place: Path) -> Any:
    """A Router in the middle of a model."""
    query = [Dense(12, 7), Dense(7, 6, bias=False, activation_function=None)]
    router = Router.for_query_document(_drawn(query), _drawn([Dense(12, 6)]))
    modules = [Transformer(str(body(place))), Pooling(12), router, Normalize()]
    return SentenceTransformer(modules=modules, device="cpu")


def shared_body(place: Path) -> Any:
    """A Router as the only module, whose routes share a body, and pool in two ways."""
    transformer = Transformer(str(body(place)))
    query = [transformer, Pooling(12, "cls"), *_drawn([Dense(12, 6, bias=False, activation_function=None)])]
    document = [transformer, Pooling(12, "mean"), *_drawn([Dense(12, 6)]), Normalize()]
    return SentenceTransformer(modules=[Router.for_query_document(query, document)], device="cpu")


def _drawn(layers: list[Any]) -> list[Any]:
    for seed, layer in enumerate(layers):
        redraw(layer, seed)
    return layers


def encoded(model: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The library's queries and documents, and the similarity of each to each."""
    queries = model.encode_query(list(QUERIES), convert_to_tensor=True)
    documents = model.encode_document(list(SENTENCES), convert_to_tensor=True)
    scores = model.similarity(queries, documents)
    queries, documents, scores = (
        part.to_dense() if part.is_sparse else part for part in (queries, documents, scores)
    )
    return queries, documents, scores


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "head"), [(sparse, "sparse"), (after_pooling, "several"), (shared_body, "several")]
)
def test_routes_are_those_of_the_library(tmp_path: Path, make: Callable[[Path], Any], head: str) -> None:
    """Read, exported, ranked, and written back."""
    make(tmp_path / "body").save(str(tmp_path / "saved"))
    library = SparseEncoder if make is sparse else SentenceTransformer
    expected = encoded(library(str(tmp_path / "saved"), device="cpu"))
    spec = import_spec(tmp_path / "saved")
    assert spec.head.kind == head
    (tmp_path / "back").mkdir()
    convert(spec, str(tmp_path / "saved"), tmp_path / "back")
    assert import_spec(tmp_path / "back", name=spec.name) == spec
    for found, wanted in zip(encoded(library(str(tmp_path / "back"), device="cpu")), expected, strict=True):
        assert_close(found, wanted)
    for origin in ("saved", "back"):
        export(spec, tmp_path / f"x-{origin}", ExportOptions(weights=str(tmp_path / origin)))
        queries = [argument for text in QUERIES for argument in ("--query", text)]
        texts = [argument for text in SENTENCES for argument in ("--text", text)]
        told = invoke("run", tmp_path / f"x-{origin}", *queries, *texts, "--json")
        assert told.exit_code == 0, told.output
        card = (tmp_path / f"x-{origin}" / "README.md").read_text()
        assert (
            "SparseStaticEmbedding/model.safetensors" if make is sparse else "`query_embedding` is the"
        ) in card
        for answer, wanted in zip(json.loads(told.stdout)["queries"], expected[2], strict=True):
            assert [text["index"] for text in answer["texts"]] == wanted.argsort(descending=True).tolist()
            for text in answer["texts"]:
                assert text["score"] == pytest.approx(wanted[text["index"]].item(), rel=1e-4, abs=1e-5)


def test_import_and_build_find_a_body_in_a_directory_of_its_own(tmp_path: Path) -> None:
    shared_body(tmp_path / "body").save(str(tmp_path / "saved"))
    told = invoke("import", tmp_path / "saved")
    assert told.exit_code == 0, told.output
    assert "all 373,490 parameters found" in told.output
    told = invoke("params", tmp_path / "saved")
    assert told.exit_code == 0, told.output


def test_a_body_in_a_directory_of_its_own_needs_no_router(tmp_path: Path) -> None:
    """As early releases saved every model."""
    modules = [Transformer(str(body(tmp_path / "body"))), Pooling(12)]
    SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path / "saved"))
    expected = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(list(SENTENCES))
    inner = tmp_path / "saved" / "0_Transformer"
    inner.mkdir()
    listed = json.loads((tmp_path / "saved" / "modules.json").read_text())
    listed[0]["path"] = inner.name
    (tmp_path / "saved" / "modules.json").write_text(json.dumps(listed))
    for path in (tmp_path / "saved").iterdir():
        if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
            shutil.move(path, inner)
    export(import_spec(tmp_path / "saved"), tmp_path / "x", ExportOptions(weights=str(tmp_path / "saved")))
    texts = [argument for text in SENTENCES for argument in ("--text", text)]
    told = json.loads(invoke("run", tmp_path / "x", *texts, "--json").stdout)
    assert_close(torch.tensor(told["vectors"]), torch.from_numpy(expected))


@one_in(3)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"structure": {"query": ["query_0_Transformer"], "document": ["query_0_Transformer"], "image": []}},
         "only the routes query and document, without route_mappings, are supported\n  value: query, document, image\n"
         "  Save each route as a model"),
        ({"parameters": {"route_mappings": {"(None, 'text')": "query"}}}, "without route_mappings"),
        ({"structure": {"query": [], "document": ["query_0_Transformer"]}}, "structure must have a module for query"),
        ({"types": {"a": "sentence_transformers.models.StaticEmbedding", "query_0_Transformer": "sentence_transformers.models.Transformer"},
          "structure": {"query": ["a"], "document": ["query_0_Transformer"]}},
         "or queries have SparseStaticEmbedding alone\n  value: StaticEmbedding, and Transformer\n"),
        ({"types": {"a": "sentence_transformers.models.LSTM", **{f"query_{i}_{kind}": f"sentence_transformers.models.{kind}"
                                                                 for i, kind in enumerate(("Transformer", "Pooling"))}},
          "structure": {"query": ["query_0_Transformer", "query_1_Pooling", "a"], "document": ["query_0_Transformer", "query_1_Pooling"]}},
         "the modules Transformer -> Pooling -> LSTM are not supported"),
        ({"structure": {"query": ["../x"], "document": []}}, "a path that is empty or a directory next to it"),
        ({"structure": {"query": None, "document": None}}, "types must be an object, and structure an object of lists"),
        ({"structure": {"query": ["query_0_Transformer"], "document": ["query_0_Transformer", "query_1_Pooling"]}},
         "queries and documents must share Transformer and have Pooling each, or queries have SparseStaticEmbedding alone\n"
         "  value: Transformer, and Transformer -> Pooling\n  Save each route as a model, and export both"),
    ],
)  # fmt: skip
def test_other_routers_are_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    shared_body(tmp_path / "body").save(str(tmp_path / "saved"))
    path = tmp_path / "saved" / "router_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(UserError) as caught:
        import_spec(tmp_path / "saved")
    assert words in str(caught.value)


def test_two_bodies_are_refused(tmp_path: Path) -> None:
    query, document = ([Transformer(str(body(tmp_path / name))), Pooling(12)] for name in ("a", "b"))
    router = Router.for_query_document(query, document)
    SentenceTransformer(modules=[router], device="cpu").save(str(tmp_path / "saved"))
    told = invoke("export", tmp_path / "saved", "-o", tmp_path / "x")
    assert told.exit_code == 2
    assert "queries and documents must share Transformer" in told.stderr
    assert not (tmp_path / "x").exists()


@one_in(2)
@pytest.mark.parametrize("command", ["export", "convert"])
def test_static_weights_in_another_format_are_refused(command: str, tmp_path: Path) -> None:
    sparse(tmp_path / "body").save(str(tmp_path / "saved"))
    (tmp_path / "saved" / "query_0_SparseStaticEmbedding" / "model.safetensors").unlink()
    told = invoke(command, tmp_path / "saved", "-o", tmp_path / "x")
    assert told.exit_code == 2
    assert "query_0_SparseStaticEmbedding must have model.safetensors" in told.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_static_weights_of_another_number_are_refused(tmp_path: Path) -> None:
    sparse(tmp_path / "body").save(str(tmp_path / "saved"))
    export(import_spec(tmp_path / "saved"), tmp_path / "x", ExportOptions(weights=str(tmp_path / "saved")))
    module = tmp_path / "x" / "query_0_SparseStaticEmbedding"
    from safetensors.torch import save_file

    save_file({"weight": torch.ones(7)}, module / "model.safetensors")
    told = invoke("run", tmp_path / "x", "--query", "a", "--text", "b")
    assert told.exit_code == 2
    assert f"{module} must have one tensor weight, with a number for each of the 30522 terms" in told.stderr
