"""The names and layouts of other projects' checkpoints: read, written, and told apart; and what does not fit."""

import json
import os

import pytest
import torch
import transformers
from safetensors.torch import save_file

from specs.language.load import load
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, NORM, bert, gpt2, t5, vit, whisper
from zoo.builder import ZooModel, assemble
from zoo.checkpoints.families import family_of
from zoo.checkpoints.open_weights import open_weights
from zoo.checkpoints.write import stored_tensors
from zoo.core.tensors import weight_tensors
from zoo.families.common.tensors import Tensors
from zoo.families.common.transforms import (
    SAME,
    STACKED,
    Grouped,
    Interleaved,
    Stacked,
    Transposed,
    Unsqueezed,
)
from zoo.families.own import OWN
from zoo.families.registry import MODULES, family, tensor_names
from zoo.weights.files import TensorFiles
from zoo.weights.materialize import materialize
from zoo.weights.names import SINGLE
from zoo.weights.source import WeightError

UNTIED = {"kind": "language_modeling", "tie_embeddings": False}
GATED = {"kind": "gated", "hidden": 12, "activation": "silu", "bias": False}
LLAMA_BLOCK = {
    "kind": "pre_norm",
    "norm": {"kind": "rms_norm"},
    "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "bias": False},
    "feed_forward": GATED,
}


def llama(**changes: object) -> Model:
    return gpt2(position={"kind": "rope"}, decoder={"layers": 2, "block": LLAMA_BLOCK}, **changes)


MIXTURE = {"kind": "mixture", "experts": 3, "top_k": 2, "expert": {**GATED, "hidden": 7}}


def mixtral(**changes: object) -> Model:
    block = {**LLAMA_BLOCK, "feed_forward": MIXTURE}
    return gpt2(position={"kind": "rope"}, decoder={"layers": 2, "block": block}, **changes)


MASKED = {"kind": "masked_language_modeling", "norm": NORM}
CLASSES = {"kind": "classification", "labels": 3, "activation": "tanh"}
LAST = {"kind": "classification", "labels": 3, "pooling": "last", "bias": False}
LABELS = {"kind": "token_classification", "labels": 2}
ANSWERS = {"kind": "question_answering"}
BERT, GPT2, LLAMA, MIXTRAL, T5, VIT, WHISPER = (
    family(model_type).tensors for model_type in ("bert", "gpt2", "llama", "mixtral", "t5", "vit", "whisper")
)
CASES: list[tuple[Tensors, Model]] = [
    (BERT, bert()),
    (BERT, bert(head={"kind": "pooler"})),
    (BERT, bert(head=MASKED)),
    (BERT, bert(head={**MASKED, "tie_embeddings": False})),
    (BERT, bert(head=CLASSES)),
    (BERT, bert(head={"kind": "pooled", "pooling": "mean"})),
    (BERT, bert(head=LABELS)),
    (BERT, bert(head=ANSWERS)),
    (GPT2, gpt2(head={"kind": "none"})),
    (GPT2, gpt2()),
    (GPT2, gpt2(head=UNTIED)),
    (GPT2, gpt2(head=LAST)),
    (GPT2, gpt2(head=LABELS)),
    (GPT2, gpt2(head=ANSWERS)),
    (LLAMA, llama()),
    (LLAMA, llama(head=UNTIED)),
    (LLAMA, llama(head=LAST)),
    (LLAMA, llama(head=LABELS)),
    (LLAMA, llama(head=ANSWERS)),
    (MIXTRAL, mixtral()),
    (MIXTRAL, mixtral(head=UNTIED)),
    (T5, t5()),
    (T5, t5(head=UNTIED)),
    (VIT, vit()),
    (VIT, vit(head={"kind": "pooler"})),
    (WHISPER, whisper()),
    (WHISPER, whisper(head=UNTIED)),
    (WHISPER, whisper(head={"kind": "none"})),
    (OWN, mixtral()),
    (OWN, vit()),
    (OWN, whisper()),
    (OWN, bert(head={"kind": "pooler"})),
    (OWN, gpt2()),
    (OWN, t5()),
]
IDS = [f"{names.name}-{spec.architecture}-{spec.head.kind}" for names, spec in CASES]


def drawn(spec: Model, seed: int = 1) -> ZooModel:
    model = random_model(spec, seed)
    with torch.no_grad():
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))
    return model


def stored(names: Tensors, spec: Model) -> dict[str, torch.Tensor]:
    """A drawn model's tensors as a family stores them."""
    return dict(stored_tensors(drawn(spec), spec, names))


def opened(path, spec: Model, **options):
    return open_weights(str(path), assemble(spec), spec, **options)


def refused(path, spec: Model) -> str:
    with pytest.raises(WeightError) as caught:
        opened(path, spec)
    return str(caught.value)


@one_in(12)
@pytest.mark.parametrize(("names", "spec"), CASES, ids=IDS)
def test_written_checkpoints_are_read_back(names, spec, tmp_path):
    tensors = stored(names, spec)
    save_file(tensors, tmp_path / SINGLE)
    model = assemble(spec)
    files = TensorFiles.open(tmp_path)
    assert family_of(files, model, spec) is names
    source = opened(tmp_path, spec)
    assert source.names is names
    assert source.ignored == ()
    materialize(model, source)
    before = dict(drawn(spec).named_parameters())
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name
    again = dict(stored_tensors(model, spec, names))
    assert again.keys() == tensors.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())


@one_in(12)
@pytest.mark.parametrize(("names", "spec"), CASES, ids=IDS)
def test_names_match_with_and_without_the_prefix(names, spec, tmp_path):
    tensors = {names.plain(name): tensor for name, tensor in stored(names, spec).items()}
    save_file(tensors, tmp_path / "bare.safetensors")
    prefixed = {
        f"{'' if name.startswith(names.outside) else names.prefix}{name}": t for name, t in tensors.items()
    }
    save_file(prefixed, tmp_path / "prefixed.safetensors")
    for file in ("bare", "prefixed"):
        source = opened(tmp_path / f"{file}.safetensors", spec)
        assert source.names is names
        assert all(list(source.pieces(name)) for name, _ in assemble(spec).named_parameters())


REFERENCES = [
    (transformers.BertModel, BERT, bert(head={"kind": "pooler"})),
    (transformers.BertForMaskedLM, BERT, bert(head=MASKED)),
    (transformers.BertForSequenceClassification, BERT, bert(head=CLASSES)),
    (transformers.BertForTokenClassification, BERT, bert(head=LABELS)),
    (transformers.BertForQuestionAnswering, BERT, bert(head=ANSWERS)),
    (transformers.GPT2ForTokenClassification, GPT2, gpt2(head=LABELS)),
    (transformers.GPT2ForQuestionAnswering, GPT2, gpt2(head=ANSWERS)),
    (transformers.LlamaForTokenClassification, LLAMA, llama(head=LABELS)),
    (transformers.LlamaForQuestionAnswering, LLAMA, llama(head=ANSWERS)),
    (transformers.GPT2LMHeadModel, GPT2, gpt2()),
    (transformers.GPT2LMHeadModel, GPT2, gpt2(head=UNTIED)),
    (transformers.LlamaForCausalLM, LLAMA, llama(head=UNTIED)),
    (transformers.T5ForConditionalGeneration, T5, t5()),
    (transformers.T5ForConditionalGeneration, T5, t5(head=UNTIED)),
    (transformers.ViTForImageClassification, VIT, vit()),
    (transformers.ViTModel, VIT, vit(head={"kind": "pooler"})),
    (transformers.WhisperForConditionalGeneration, WHISPER, whisper()),
]


def config_of(names: Tensors, spec: Model) -> transformers.PreTrainedConfig:
    tied = {"tie_word_embeddings": getattr(spec.head, "tie_embeddings", True)}
    match names.name:
        case "bert":
            return transformers.BertConfig(
                vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
                max_position_embeddings=10, num_labels=getattr(spec.head, "labels", 2), **tied,
            )  # fmt: skip
        case "gpt2":
            return transformers.GPT2Config(
                vocab_size=20, n_embd=8, n_layer=2, n_head=2, n_inner=12, n_positions=10,
                bos_token_id=0, eos_token_id=0, **tied,
            )  # fmt: skip
        case "llama":
            return transformers.LlamaConfig(
                vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                intermediate_size=12, **tied,
            )  # fmt: skip
        case "mixtral":
            return transformers.MixtralConfig(
                vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                intermediate_size=7, num_local_experts=3, **tied,
            )  # fmt: skip
        case "vit":
            return transformers.ViTConfig(
                hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=7,
                patch_size=3, num_labels=3,
            )  # fmt: skip
        case "whisper":
            return transformers.WhisperConfig(
                vocab_size=20, d_model=8, num_mel_bins=4, encoder_layers=2, decoder_layers=2,
                encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12,
                max_source_positions=6, max_target_positions=10, pad_token_id=0, bos_token_id=0, eos_token_id=0,
            )  # fmt: skip
        case _:
            return transformers.T5Config(
                vocab_size=20, d_model=8, d_kv=4, d_ff=12, num_layers=2, num_heads=2, **tied
            )  # fmt: skip


@one_in(4)
@pytest.mark.parametrize(("reference_class", "names", "spec"), REFERENCES)
def test_transformers_loads_written_checkpoints(reference_class, names, spec, tmp_path):
    tensors = stored(names, spec)
    save_file(tensors, tmp_path / SINGLE, {"format": "pt"})
    config_of(names, spec).save_pretrained(tmp_path)
    reference, report = reference_class.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    reference.save_pretrained(tmp_path / "again")  # published names may not be those of the modules
    again = {name: t.read() for name, t in TensorFiles.open(tmp_path / "again").tensors.items()}
    state = {**reference.state_dict(), **again}
    assert all(torch.equal(state[name], tensor) for name, tensor in tensors.items())


EXPERTS = "layers.1.block_sparse_moe.experts"


def test_experts_stored_one_by_one(tmp_path):
    tensors = stored(MIXTRAL, mixtral())
    assert tensors[f"model.{EXPERTS}.2.w2.weight"].shape == (8, 7)
    save_file(tensors, tmp_path / SINGLE)
    source = opened(tmp_path, mixtral())
    pieces = list(source.pieces("decoder.blocks.1.feed_forward.experts.up.weight"))
    assert [piece.numel() for piece in pieces] == [56, 56, 56]
    theirs = [tensors[f"model.{EXPERTS}.{expert}.w3.weight"] for expert in range(3)]
    assert torch.equal(torch.cat(pieces), torch.stack(theirs).flatten())
    assert source.raw("decoder.blocks.1.feed_forward.experts.up.weight") is None
    assert source.raw("decoder.blocks.1.attention.query.weight") is not None


def test_faults_of_single_experts_are_named(tmp_path):
    tensors = stored(MIXTRAL, mixtral())
    del tensors[f"model.{EXPERTS}.1.w1.weight"]
    tensors[f"model.{EXPERTS}.2.w2.weight"] = torch.ones(7, 8)
    tensors[f"model.{EXPERTS}.3.w1.weight"] = torch.ones(7, 8)
    save_file(tensors, tmp_path / SINGLE)
    assert refused(tmp_path, mixtral()).splitlines()[1:] == [
        f"  missing: {EXPERTS}.1.w1.weight (for decoder.blocks.1.feed_forward.experts.gate.weight)",
        f"  unused: model.{EXPERTS}.3.w1.weight",
        f"  of another shape: model.{EXPERTS}.2.w2.weight is 7 x 8, and decoder.blocks.1.feed_forward.experts.down.weight needs 8 x 7",
    ]
    for expert in range(4):
        tensors.pop(f"model.{EXPERTS}.{expert}.w1.weight", None)
    save_file(tensors, tmp_path / SINGLE)
    assert refused(tmp_path, mixtral()).count(".w1.weight (for decoder.blocks.1") == 3


def test_config_json_names_the_family(tmp_path):
    save_file(stored(BERT, bert()), tmp_path / SINGLE)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert opened(tmp_path, bert()).names is BERT
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    assert "tensor names of gpt2" in refused(tmp_path, bert())
    for model_type in ("berd", 3, None):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        assert opened(tmp_path, bert()).names is BERT  # every tensor of the spec has BERT's name
    for content, said in (
        ("", "is not a JSON object\n  Copy the file again from where it came."),
        ("[]", "is not a JSON object"),
        ("[" * 1_000_000, "is nested more than 64 levels deep"),
    ):
        (tmp_path / "config.json").write_text(content)
        assert said in refused(tmp_path, bert())
    save_file({f"other.{name}": tensor for name, tensor in stored(BERT, bert()).items()}, tmp_path / SINGLE)
    for model_type in ("berd", 3):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        assert f"weights of model_type {model_type!r} cannot be read\n  " in refused(tmp_path, bert())


def test_config_json_that_cannot_be_read(tmp_path, monkeypatch):
    save_file(stored(BERT, bert()), tmp_path / SINGLE)
    (tmp_path / "config.json").write_text("{}")
    real = os.open

    def forbidden(path, *arguments, **named):
        if str(path).endswith("config.json"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", forbidden)
    assert "config.json cannot be read: Permission denied" in refused(tmp_path, bert())


def test_names_of_no_family(tmp_path):
    save_file({f"x{i}": torch.ones(1) for i in range(9)}, tmp_path / SINGLE)
    message = refused(tmp_path, gpt2())
    known = ", ".join(table.name for table in tensor_names())
    assert f"has tensor names of no known family ({known}) for this spec: x0, x1," in message


def test_everything_wrong_is_named_in_one_error(tmp_path):
    tensors = stored(GPT2, gpt2())
    del tensors["transformer.h.1.attn.c_attn.weight"]
    tensors["transformer.h.1.ln_3.weight"] = tensors.pop("transformer.h.1.ln_2.weight")
    tensors["transformer.h.0.mlp.c_fc.weight"] = torch.ones(12, 8)
    tensors["transformer.wpe.weight"] = torch.ones(10, 8, dtype=torch.int32)
    save_file(tensors, tmp_path / SINGLE)
    assert refused(tmp_path, gpt2()).splitlines() == [
        f"{tmp_path} does not fit the spec (tensor names of gpt2): 2 missing, 1 unused, 1 of another dtype, 1 of another shape",
        "  missing: h.1.attn.c_attn.weight (for decoder.blocks.1.attention.query.weight)",
        "  missing: h.1.ln_2.weight (for decoder.blocks.1.feed_forward_norm.weight): did you mean 'h.1.ln_3.weight'?",
        "  unused: transformer.h.1.ln_3.weight",
        "  of another dtype: transformer.wpe.weight has dtype I32; weights must be F64, F32, F16 or BF16",
        "  of another shape: transformer.h.0.mlp.c_fc.weight is 12 x 8, and decoder.blocks.0.feed_forward.up.weight needs 8 x 12",
    ]


def test_the_weights_of_another_model_are_called_that(tmp_path):
    tensors = {name: torch.ones(3, 5) for name in stored(GPT2, gpt2())}
    save_file(tensors, tmp_path / SINGLE)
    first, *_ = refused(tmp_path, gpt2(name="mine")).splitlines()
    count = len(tensors)
    assert (
        first
        == f"{tmp_path} has the weights of another model than mine (tensor names of gpt2): {count} of another shape"
    )


def test_a_long_list_is_cut(tmp_path):
    tensors = stored(GPT2, gpt2()) | {f"more{i:02}": torch.ones(1) for i in range(20)}
    save_file(tensors, tmp_path / SINGLE)
    lines = refused(tmp_path, gpt2()).splitlines()
    assert len(lines) == 10
    assert lines[0].endswith(": 20 unused")
    assert lines[-1] == "  unused: ... and 12 more"


def test_a_name_close_to_a_missing_one_is_suggested(tmp_path):
    tensors = stored(OWN, gpt2())
    tensors["embedding.tokens.weight"] = tensors.pop("embedding.token.weight")
    save_file(tensors, tmp_path / SINGLE)
    assert "  missing: embedding.token.weight: did you mean 'embedding.tokens.weight'?" in refused(
        tmp_path, gpt2()
    )


def test_a_checkpoint_of_another_depth(tmp_path):
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    more = refused(tmp_path, gpt2(decoder={"layers": 1, "block": BLOCK}))
    assert more.endswith("The checkpoint has more layers than the spec.")
    fewer = refused(tmp_path, gpt2(decoder={"layers": 4, "block": BLOCK}))
    assert fewer.endswith("The checkpoint has fewer layers than the spec.")
    assert "more layers" not in fewer


def test_a_scalar_where_a_vector_belongs(tmp_path):
    save_file(stored(OWN, gpt2()) | {"decoder.final_norm.bias": torch.tensor(1.0)}, tmp_path / SINGLE)
    assert "decoder.final_norm.bias is a scalar, and decoder.final_norm.bias needs 8" in refused(
        tmp_path, gpt2()
    )


def test_a_parameter_that_the_family_has_no_name_for(tmp_path):
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    gated = gpt2(decoder={"layers": 2, "block": {**BLOCK, "feed_forward": GATED}})
    message = refused(tmp_path, gated)
    assert "2 without a name in gpt2 checkpoints" in message
    assert "without a name in gpt2 checkpoints: decoder.blocks.0.feed_forward.gate.weight" in message
    with pytest.raises(
        WeightError, match=r"gpt2 checkpoints have no place for decoder\.blocks\.0\.feed_forward\.gate"
    ):
        stored(GPT2, gated)
    with pytest.raises(WeightError, match=r"t5 checkpoints have no place for .* and \d+ more"):
        stored(T5, gated)


def test_a_fused_tensor_needs_all_of_its_parts(tmp_path):
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    bias = {"query": True, "key": False, "value": True, "output": True}
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "bias": bias}}
    assert "without a name in gpt2 checkpoints: decoder.blocks.0.attention.query.bias" in refused(
        tmp_path, gpt2(decoder={"layers": 2, "block": block})
    )


def test_other_heads_are_ignored_and_listed(tmp_path):
    save_file(stored(BERT, bert(head=MASKED)), tmp_path / SINGLE)
    source = opened(tmp_path, bert())
    assert len(source.ignored) == 6
    assert all(name.startswith("cls.predictions.") for name in source.ignored)
    assert ", 6 ignored: cls.predictions." in source.description
    assert source.description.endswith(", ...")
    save_file(stored(GPT2, gpt2(head=UNTIED)), tmp_path / SINGLE)
    assert opened(tmp_path, gpt2(head={"kind": "none"})).ignored == ("lm_head.weight",)


def test_buffers_are_not_weights(tmp_path):
    buffers = {"h.0.attn.bias": torch.ones(1, 1, 4, 4), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    save_file(stored(GPT2, gpt2()) | buffers, tmp_path / SINGLE)
    assert opened(tmp_path, gpt2()).ignored == ()
    save_file(stored(BERT, bert()) | {"embeddings.position_ids": torch.arange(10)}, tmp_path / SINGLE)
    assert opened(tmp_path, bert()).ignored == ()


def test_old_names_of_layer_norm(tmp_path):
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = stored(BERT, bert())
    for new, name in old.items():
        tensors = {key.replace(new, name): tensor for key, tensor in tensors.items()}
    assert sum("gamma" in name for name in tensors) == 5
    save_file(tensors, tmp_path / SINGLE)
    assert opened(tmp_path, bert()).names is BERT
    tensors["bert.embeddings.LayerNorm.weight"] = tensors["embeddings.LayerNorm.gamma"].clone()
    save_file(tensors, tmp_path / SINGLE)
    message = refused(tmp_path, bert())
    assert "has one tensor twice: as " in message
    assert "embeddings.LayerNorm.gamma" in message


def test_tied_tensors_may_be_stored_again_if_they_are_equal(tmp_path):
    tensors = stored(GPT2, gpt2())
    copy = tensors["transformer.wte.weight"].clone()
    save_file(tensors | {"lm_head.weight": copy}, tmp_path / SINGLE)
    source = opened(tmp_path, gpt2())
    assert source.ignored == ()
    assert source.raw("embedding.token.weight") is not None
    save_file(tensors | {"lm_head.weight": copy + 1}, tmp_path / SINGLE)
    assert refused(tmp_path, gpt2()).splitlines() == [
        f"{tmp_path} has different values for tensors that the spec shares:",
        "  transformer.wte.weight and lm_head.weight (both embedding.token.weight)",
        "  If it is the head's matrix, set head.tie_embeddings: false.",
    ]
    save_file(tensors | {"lm_head.weight": copy[:-1]}, tmp_path / SINGLE)
    assert "lm_head.weight is 19 x 8, and embedding.token.weight needs 20 x 8" in refused(tmp_path, gpt2())


def test_many_shared_tensors_that_differ(tmp_path):
    block = {**BLOCK, "kind": "parallel", "norms": "shared"}
    spec = gpt2(decoder={"layers": 6, "block": block})
    tensors = {name: p.detach() for name, p in drawn(spec).named_parameters()}
    copies = {
        name.replace(".norm.", ".attention_norm."): t + 1 for name, t in tensors.items() if ".norm." in name
    }
    save_file(tensors | copies, tmp_path / SINGLE)
    lines = refused(tmp_path, spec).splitlines()
    assert len(lines) == 11
    assert lines[9] == "  ... and 4 more"


def test_a_tied_tensor_may_be_stored_under_the_heads_name_alone(tmp_path):
    tensors = stored(GPT2, gpt2())
    table = tensors.pop("transformer.wte.weight")
    save_file(tensors | {"lm_head.weight": table}, tmp_path / SINGLE)
    assert torch.equal(next(opened(tmp_path, gpt2()).pieces("embedding.token.weight")).view(20, 8), table)


def test_an_untied_spec_wants_the_heads_matrix(tmp_path):
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    message = refused(tmp_path, gpt2(head=UNTIED))
    assert "missing: lm_head.weight (for head.vocabulary.weight)" in message
    assert "  If the checkpoint ties its embeddings, set head.tie_embeddings: true." in message


def test_raw_is_only_for_tensors_stored_unchanged(tmp_path):
    save_file(stored(GPT2, gpt2()), tmp_path / SINGLE)
    source = opened(tmp_path, gpt2())
    assert source.raw("decoder.blocks.0.attention.query.weight") is None  # stored transposed
    content = (tmp_path / SINGLE).read_bytes()
    for name in (
        "decoder.blocks.1.attention.value.bias",
        "decoder.final_norm.bias",
    ):  # one a slice of a fused tensor
        _path, offset, nbytes = source.raw(name)
        assert content[offset : offset + nbytes] == next(source.pieces(name)).numpy().tobytes()


@pytest.mark.parametrize(
    "transform", [SAME, STACKED, Stacked(1), Transposed(), Transposed(STACKED), Grouped(2), Unsqueezed()]
)
def test_transforms_can_be_undone(transform):
    shapes = [(4, 6)] if transform in (SAME, Transposed(), Unsqueezed()) else [(4, 6), (2, 6), (2, 6)]
    shapes = [(4, 6), (4, 3)] if transform == Stacked(1) else shapes
    parts = [torch.randn(shape) for shape in shapes]
    joined = transform.join(parts)
    assert transform.stored_shape(shapes) == joined.shape
    for part, again in zip(parts, transform.split(joined, shapes), strict=True):
        assert torch.equal(part, again)


def test_gate_and_up_that_take_turns():
    gate, up = torch.randn(3, 5, 4), torch.randn(3, 5, 4)  # E H D
    stored = torch.randn(3, 4, 10)  # E D 2H, as GPT-OSS has it
    weights = Transposed(Interleaved(1))
    assert weights.stored_shape([gate.shape, up.shape]) == stored.shape
    split = weights.split(stored, [gate.shape, up.shape])
    assert torch.equal(split[0], stored[..., 0::2].transpose(1, 2))
    assert torch.equal(split[1], stored[..., 1::2].transpose(1, 2))
    assert torch.equal(weights.join(split), stored)
    bias = torch.randn(3, 10)
    assert Interleaved(1).stored_shape([(3, 5), (3, 5)]) == bias.shape
    assert torch.equal(Interleaved(1).split(bias, [(3, 5), (3, 5)])[1], bias[:, 1::2])
    assert torch.equal(Interleaved(1).join(Interleaved(1).split(bias, [(3, 5), (3, 5)])), bias)


@one_in(4)
@pytest.mark.parametrize(
    "preset",
    ["deepseek-v2-lite", "mamba2-130m", "rwkv7-0.1b", "t5-small", "whisper-tiny", "clip-vit-b32", "zamba2-1.2b"],
)  # fmt: skip
def test_the_names_of_every_family_are_looked_for_in_a_model_of_any_other(preset):
    spec = load(preset)
    shapes = {name: tuple(tensor.shape) for name, tensor in weight_tensors(assemble(spec))}
    for table in tensor_names():
        assert len([*table.table(spec, shapes).names()]) <= len(shapes), table.name


def test_families_are_distinguished_by_tensor_names():
    tables = tensor_names()
    assert len({table.name for table in tables}) == len(tables)
    assert [family(model_type).model_type for model_type in MODULES] == list(MODULES)
    assert {id(family(model_type).tensors) for model_type in MODULES} == set(map(id, tables))
