"""Heads of every published shape against transformers: each is given the reference's own last hidden state."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from specs.model.model import Model
from tests.parity.reference import (
    assert_close,
    bert_spec,
    build,
    gpt2_spec,
    llama_spec,
    positions,
    ragged,
    through_checkpoint,
)
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5
from zoo.builder import assemble
from zoo.components.pooling import TokenSequence

VOCABULARY, WIDTH, NARROW, LABELS, END = 43, 24, 10, 3, 42
SHARED = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 4,
    "intermediate_size": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1,
    "sep_token_id": 2,
}  # fmt: skip
DISTIL = {"vocab_size": VOCABULARY, "dim": WIDTH, "n_layers": 1, "n_heads": 4, "hidden_dim": 20}
CONFIGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "bert": (hf.BertConfig, SHARED),
    "roberta": (hf.RobertaConfig, SHARED),
    "distilbert": (hf.DistilBertConfig, DISTIL),
    "albert": (hf.AlbertConfig, {**SHARED, "embedding_size": NARROW}),
    "electra": (hf.ElectraConfig, {**SHARED, "embedding_size": NARROW}),
    "modernbert": (hf.ModernBertConfig, SHARED),
    "modernbert-mean": (hf.ModernBertConfig, {**SHARED, "classifier_pooling": "mean"}),
}

CLASSES = {
    "masked": hf.AutoModelForMaskedLM,
    "classes": hf.AutoModelForSequenceClassification,
    "tokens": hf.AutoModelForTokenClassification,
    "answers": hf.AutoModelForQuestionAnswering,
}
HEADS: dict[str, dict[str, Any]] = {
    "masked": {"kind": "masked_language_modeling", "norm": {"kind": "layer_norm", "eps": 1e-12}},
    "classes": {"kind": "classification", "labels": LABELS},
    "tokens": {"kind": "token_classification", "labels": LABELS},
    "answers": {"kind": "question_answering"},
}
MODERN = {"activation": "gelu", "dense_bias": False, "norm": {"kind": "layer_norm", "bias": False}}

# family, task, what our head states beyond the above, and where the reference has its modules
CASES: list[tuple[str, str, dict[str, Any], dict[str, str]]] = [
    ("bert", "masked", {}, {"dense": "cls.predictions.transform.dense", "norm": "cls.predictions.transform.LayerNorm",
                            "vocabulary": "cls.predictions.decoder"}),
    ("bert", "classes", {"activation": "tanh"}, {"dense": "bert.pooler.dense", "labels": "classifier"}),
    ("bert", "tokens", {}, {"labels": "classifier"}),
    ("bert", "answers", {}, {"span": "qa_outputs"}),
    ("roberta", "masked", {}, {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "vocabulary": "lm_head.decoder"}),
    ("roberta", "classes", {"activation": "tanh"}, {"dense": "classifier.dense", "labels": "classifier.out_proj"}),
    ("roberta", "tokens", {}, {"labels": "classifier"}),
    ("roberta", "answers", {}, {"span": "qa_outputs"}),
    ("distilbert", "masked", {}, {"dense": "vocab_transform", "norm": "vocab_layer_norm", "vocabulary": "vocab_projector"}),
    ("distilbert", "classes", {"activation": "relu"}, {"dense": "pre_classifier", "labels": "classifier"}),
    ("distilbert", "tokens", {}, {"labels": "classifier"}),
    ("distilbert", "answers", {}, {"span": "qa_outputs"}),
    ("albert", "masked", {"activation": "gelu_tanh"}, {"dense": "predictions.dense", "norm": "predictions.LayerNorm",
                                                       "vocabulary": "predictions.decoder"}),
    ("albert", "classes", {"activation": "tanh"}, {"dense": "albert.pooler", "labels": "classifier"}),
    ("albert", "tokens", {}, {"labels": "classifier"}),
    ("albert", "answers", {}, {"span": "qa_outputs"}),
    ("electra", "masked", {}, {"dense": "generator_predictions.dense", "norm": "generator_predictions.LayerNorm",
                               "vocabulary": "generator_lm_head"}),
    ("electra", "classes", {"activation": "gelu"}, {"dense": "classifier.dense", "labels": "classifier.out_proj"}),
    ("electra", "tokens", {}, {"labels": "classifier"}),
    ("electra", "answers", {}, {"span": "qa_outputs"}),
    ("modernbert", "masked", MODERN, {"dense": "head.dense", "norm": "head.norm", "vocabulary": "decoder"}),
    ("modernbert", "classes", MODERN, {"dense": "head.dense", "norm": "head.norm", "labels": "classifier"}),
    ("modernbert-mean", "classes", {**MODERN, "pooling": "mean"},
     {"dense": "head.dense", "norm": "head.norm", "labels": "classifier"}),
    ("modernbert", "tokens", MODERN, {"dense": "head.dense", "norm": "head.norm", "labels": "classifier"}),
    ("modernbert", "answers", MODERN, {"dense": "head.dense", "norm": "head.norm", "span": "classifier"}),
]  # fmt: skip


def filled(spec: Model, reference: nn.Module, modules: dict[str, str]) -> nn.Module:
    """The head of a spec with the weights of a reference's modules, each of which must be all used."""
    head = assemble(spec).head
    weights = {
        f"{ours}.{leaf}": tensor
        for ours, theirs in modules.items()
        for leaf, tensor in reference.get_submodule(theirs).state_dict().items()
    }
    head.load_state_dict(weights, assign=True)
    return head


def spec_of(head: dict[str, Any], width: int | None = None) -> Model:
    return bert(vocab_size=VOCABULARY, d_model=WIDTH, embedding={"width": width}, head=head)


@one_in(5)
@pytest.mark.parametrize(
    ("family", "task", "changes", "modules"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES]
)
def test_heads_of_encoders(family: str, task: str, changes: dict[str, Any], modules: dict[str, str]) -> None:
    make, sizes = CONFIGS[family]
    config = make(**sizes, num_labels=2 if task == "answers" else LABELS)
    reference = build(CLASSES[task]._model_mapping[make], config, seed=1)
    spec = spec_of({**HEADS[task], **changes}, getattr(config, "embedding_size", None))
    head = filled(spec, reference, modules)
    ids, mask = ragged(3, 9, VOCABULARY, "right", seed=2)
    with torch.no_grad():
        x = reference.base_model(ids, attention_mask=mask)[0]
        theirs = reference(ids, attention_mask=mask)
        ours = head(x, TokenSequence(ids, mask))
    for name, output in ours.items():
        assert_close(output, theirs[name], mask if output.shape[:2] == mask.shape else None)


def clip(end: int) -> hf.CLIPTextConfig:
    return hf.CLIPTextConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=4, intermediate_size=20,
        projection_dim=7, eos_token_id=end, bos_token_id=1, pad_token_id=0,
    )  # fmt: skip


def ending() -> tuple[Tensor, Tensor]:
    """Token ids that end with END, padded with END, as the tokenizer of Stable Diffusion pads; and their mask."""
    ids, mask = ragged(3, 9, END, "right", seed=3)
    ids = torch.where(mask == 1, ids, END)
    ids[torch.arange(3), mask.sum(1) - 1] = END
    return ids, mask


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("end", [END, 2])  # 2 stands for the highest id, in old configs
def test_clip_text_is_pooled_at_its_end_token(end: int, masked: bool) -> None:
    reference = build(hf.CLIPTextModel, clip(end), seed=4)
    ids, mask = ending()
    tokens = TokenSequence(ids, mask if masked else None)
    with torch.no_grad():
        theirs = reference(ids, attention_mask=tokens.mask)
        head = assemble(spec_of({"kind": "pooled", "pooling": {"token": END}})).head
        ours = head(theirs.last_hidden_state, tokens)
    assert list(ours) == ["last_hidden_state", "pooler_output"]
    assert_close(ours["pooler_output"], theirs.pooler_output)


def test_clip_text_is_projected() -> None:
    reference = build(hf.CLIPTextModelWithProjection, clip(END), seed=5)
    head = {"kind": "pooled", "pooling": {"token": END}, "projection": 7, "output": "text_embeds"}
    ids, mask = ending()
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask)
        ours = filled(spec_of(head), reference, {"projection": "text_projection"})(
            theirs.last_hidden_state, TokenSequence(ids, mask)
        )
    assert_close(ours["text_embeds"], theirs.text_embeds)


def test_vit_is_classified_by_its_first_vector() -> None:
    config = hf.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=4, intermediate_size=20, image_size=12,
        patch_size=4, num_labels=LABELS,
    )  # fmt: skip
    reference = build(hf.ViTForImageClassification, config, seed=6)
    pixels = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(7))
    head = filled(spec_of(HEADS["classes"]), reference, {"labels": "classifier"})
    with torch.no_grad():
        ours = head(reference.base_model(pixels)[0], TokenSequence(None, None))
        assert_close(ours["logits"], reference(pixels).logits)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_an_encoder_decoder_is_classified_by_its_last_token(family: str) -> None:
    # The reference takes the place at which the encoder's tokens end; the decoder's, one further on, end there too.
    sizes: dict[str, Any] = {
        "d_model": WIDTH, "vocab_size": VOCABULARY, "num_labels": LABELS, "eos_token_id": END,
    }  # fmt: skip
    if family == "t5":
        config = hf.T5Config(**sizes, d_ff=20, d_kv=6, num_heads=4, num_layers=1, decoder_start_token_id=0)
        reference = build(hf.T5ForSequenceClassification, config, seed=8)
        body = reference.transformer
    else:
        layers = {
            "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        }  # fmt: skip
        config = hf.BartConfig(
            **sizes, **layers, encoder_ffn_dim=20, decoder_ffn_dim=20, decoder_start_token_id=END
        )
        reference = build(hf.BartForSequenceClassification, config, seed=8)
        body = reference.model
    ids = torch.randint(3, END, (3, 8), generator=torch.Generator().manual_seed(9))
    ids[:, -1] = END
    shifted = torch.cat((torch.full((3, 1), config.decoder_start_token_id), ids[:, :-1]), 1)
    head = filled(
        t5(vocab_size=VOCABULARY, d_model=WIDTH, head={**HEADS["classes"], "pooling": "last", "activation": "tanh"}),
        reference,
        {"dense": "classification_head.dense", "labels": "classification_head.out_proj"},
    )  # fmt: skip
    with torch.no_grad():
        x = body(ids, decoder_input_ids=shifted).last_hidden_state
        ours = head(x, TokenSequence(shifted, torch.ones_like(shifted)))
        assert_close(ours["logits"], reference(ids).logits)


def test_gemma_2_bounds_its_scores() -> None:
    config = hf.Gemma2Config(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        head_dim=6, intermediate_size=20, final_logit_softcapping=1.5, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    reference = build(hf.Gemma2ForCausalLM, config, seed=10)
    spec = gpt2(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        head={"kind": "language_modeling", "softcap": 1.5, "tie_embeddings": False},
    )
    head = filled(spec, reference, {"vocabulary": "lm_head"})
    ids, _ = ragged(2, 7, VOCABULARY, "right", seed=11)
    with torch.no_grad():
        ours = head(reference.model(ids)[0], TokenSequence(ids, None))
        assert_close(ours["logits"], reference(ids).logits)
    assert ours["logits"].abs().max() > 1.4


def test_opt_350m_projects_to_the_width_of_its_embedding() -> None:
    config = hf.OPTConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=4, ffn_dim=20,
        word_embed_proj_dim=NARROW, do_layer_norm_before=False, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    reference = build(hf.OPTForCausalLM, config, seed=12)
    spec = gpt2(
        vocab_size=VOCABULARY, d_model=WIDTH, embedding={"width": NARROW},
        head={"kind": "language_modeling", "projection": True},
    )  # fmt: skip
    head = filled(spec, reference, {"projection": "model.decoder.project_out", "vocabulary": "lm_head"})
    ids, mask = ragged(2, 7, VOCABULARY, "right", seed=13)
    seen: list[Tensor] = []
    reference.model.decoder.project_out.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask).logits
        assert_close(head(seen[0], TokenSequence(ids, mask))["logits"], theirs, mask)


def test_bart_adds_a_vector_that_is_not_trained() -> None:
    config = hf.BartConfig(
        d_model=WIDTH, vocab_size=VOCABULARY, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=20, decoder_ffn_dim=20, eos_token_id=END,
    )  # fmt: skip
    reference = build(hf.BartForConditionalGeneration, config, seed=14)
    reference.final_logits_bias.normal_(generator=torch.Generator().manual_seed(15))
    spec = t5(vocab_size=VOCABULARY, d_model=WIDTH, head={"kind": "language_modeling", "bias": "fixed"})
    head = assemble(spec).head
    head.load_state_dict(
        {"vocabulary.weight": reference.lm_head.weight, "bias": reference.final_logits_bias}, assign=True
    )
    assert [name for name, _ in head.named_parameters()] == ["vocabulary.weight"]
    ids, mask = ragged(2, 7, VOCABULARY, "right", seed=16)
    with torch.no_grad():
        x = reference.model(ids, attention_mask=mask, decoder_input_ids=ids).last_hidden_state
        theirs = reference(ids, attention_mask=mask, decoder_input_ids=ids).logits
        assert_close(head(x, TokenSequence(ids, mask))["logits"], theirs)


@pytest.mark.parametrize("normalize", [True, False])
def test_sentences_are_the_mean_of_their_real_tokens(normalize: bool) -> None:
    # As the modules Pooling and Normalize of sentence-transformers have it.
    head = {"kind": "pooled", "pooling": "mean", "normalize": normalize, "output": "sentence_embedding"}
    _, mask = ragged(3, 9, VOCABULARY, "left", seed=17)
    x = torch.randn(3, 9, WIDTH, generator=torch.Generator().manual_seed(18))
    ours = assemble(spec_of(head)).head(x, TokenSequence(None, mask))
    mean = torch.stack([row[seen == 1].mean(0) for row, seen in zip(x, mask, strict=True)])
    assert_close(ours["sentence_embedding"], mean / mean.norm(dim=1, keepdim=True) if normalize else mean)


# ------------------------------------------------------------------- whole models, by way of their checkpoints


@one_in(3)
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("task", ["tokens", "answers"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_heads_of_checkpoints(family: str, task: str, side: str, tmp_path: Any) -> None:
    ends = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    spec: Model
    match family:
        case "bert":
            config: Any = hf.BertConfig(**SHARED)
            spec = bert_spec(config, HEADS[task])
        case "gpt2":
            config = hf.GPT2Config(
                vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=12, **ends
            )
            spec = gpt2_spec(config, HEADS[task])
        case _:
            config = hf.LlamaConfig(**{**SHARED, "num_key_value_heads": 2, **ends})
            spec = llama_spec(config, HEADS[task])
    config.num_labels = 2 if task == "answers" else LABELS
    reference = build(CLASSES[task]._model_mapping[type(config)], config, seed=19)
    model = through_checkpoint(reference, spec, tmp_path)
    ids, mask = ragged(3, 9, VOCABULARY, side, seed=20)
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask, position_ids=positions(mask))
        for name, output in model(ids, mask).items():
            assert_close(output, theirs[name], mask)


@pytest.mark.parametrize("side", ["right", "left"])
def test_llama_is_classified_by_its_last_real_token(side: str, tmp_path: Any) -> None:
    config = hf.LlamaConfig(**{**SHARED, "num_key_value_heads": 2}, num_labels=LABELS)
    reference = build(hf.LlamaForSequenceClassification, config, seed=21)
    head = {**HEADS["classes"], "pooling": "last", "bias": False}
    model = through_checkpoint(reference, llama_spec(config, head), tmp_path)
    ids, mask = ragged(3, 9, VOCABULARY, side, seed=22)
    ids = ids.clamp(min=1) * mask  # the reference finds the last token that is not padding
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
        assert_close(model(ids, mask).logits, theirs)
