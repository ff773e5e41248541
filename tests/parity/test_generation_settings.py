"""Generation as a checkpoint's generation_config.json states it: the tokens of transformers' ``generate``, in PyTorch and in ONNX Runtime."""

from __future__ import annotations

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from exporters.export import export
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.checkpoints.carried import stated_in
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec
from zoo.generation.generate import generate, generate_from
from zoo.generation.sampling import Sampling, distribution
from zoo.generation.settings import (
    APPLIED,
    NOT_APPLIED,
    OPTIONS,
    GenerationSettings,
    generation_fields,
)

WITHOUT_EFFECT = {
    "diversity_penalty", "early_stopping", "length_penalty", "num_beam_groups", "renormalize_logits",
    "assistant_confidence_threshold", "assistant_early_exit", "assistant_ensemble_weight",
    "assistant_lookbehind", "cache_config", "cache_implementation", "compile_config", "disable_compile",
    "continuous_batching_config", "is_assistant", "low_memory", "max_cache_len", "max_matching_ngram_size",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "prefill_chunk_size", "speculation_type",
    "prompt_lookup_num_tokens", "target_lookbehind", "use_cache", "use_mtp", "output_attentions",
    "output_hidden_states", "output_logits", "output_scores", "return_dict_in_generate", "pad_token_id",
    "_from_model_config", "transformers_version",
}  # fmt: skip
"""The fields that change no token of greedy decoding or sampling."""

PROMPT = [5, 9, 16, 16, 7, 3, 5]
MOST = 14
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
SETTINGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "repetition penalty": {"repetition_penalty": 1.7},
    "below 1": {"repetition_penalty": 0.6},
    "pairs": {"no_repeat_ngram_size": 2},
    "single tokens": {"no_repeat_ngram_size": 1},
    "triples": {"no_repeat_ngram_size": 3},
    "tokens that an encoder read": {"encoder_no_repeat_ngram_size": 2},
    "penalty of what an encoder read": {"encoder_repetition_penalty": 2.5},
    "suppressed": {"suppress_tokens": [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 999]},
    "suppressed at the beginning": {"begin_suppress_tokens": [*range(3, 25)]},
    "bad words": {"bad_words_ids": [[3], [2], [8], [16], [0, 0], [30, 19], [5, 9, 7]]},
    "forced ends": {"forced_bos_token_id": 13, "forced_eos_token_id": 2},
    "forced, then suppressed": {"forced_bos_token_id": 13, "begin_suppress_tokens": [*range(14, 31)]},
    "a minimum length": {"min_length": 12, "sequence_bias": [[[2], 9.0]]},
    "a minimum of new tokens": {"min_new_tokens": 5, "sequence_bias": [[[2], 9.0]]},
    "biases": {"sequence_bias": [[[7], -4.0], [[5, 9], 6.0], [[9, 5, 22], 9.0], [[30], 2.5]]},
    "decay": {"exponential_decay_length_penalty": [3, 1.9]},
    "invalid values": {"remove_invalid_values": True},
    "together": {
        "repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "suppress_tokens": [11, 27], "min_new_tokens": 6,
        "bad_words_ids": [[22]], "exponential_decay_length_penalty": [4, 1.5], "begin_suppress_tokens": [19],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A decoder, its directory, its spec, our model and its export."""
    config = LlamaConfig(
        vocab_size=31, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, **TOKENS,
    )  # fmt: skip
    return made(build(LlamaForCausalLM, config, 3), tmp_path_factory.mktemp("decoder"))


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    config = BartConfig(
        vocab_size=31, d_model=24, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=30, decoder_ffn_dim=30, max_position_embeddings=64, decoder_start_token_id=2,
        forced_eos_token_id=None, **TOKENS,
    )  # fmt: skip
    return made(build(BartForConditionalGeneration, config, 4), tmp_path_factory.mktemp("pair"))


WORDS = {"lang_to_id": {"<|en|>": 20, "<|de|>": 21}, "task_to_id": {"transcribe": 25, "translate": 26}}
WHISPER: dict[str, dict[str, Any]] = {
    "English alone": {"is_multilingual": False, "no_timestamps_token_id": 30},
    "a language that is heard": {**WORDS, "is_multilingual": True, "no_timestamps_token_id": 30},
    "stated": {**WORDS, "is_multilingual": True, "no_timestamps_token_id": 30, "language": "de", "task": "translate"},
    "a stated language": {**WORDS, "is_multilingual": True, "no_timestamps_token_id": 30, "language": "en"},
    "early": {
        **WORDS, "is_multilingual": True, "no_timestamps_token_id": 30, "forced_decoder_ids": [[1, None], [2, 25]],
    },
    "early, English": {"no_timestamps_token_id": 30, "forced_decoder_ids": [[1, 30]]},
}  # fmt: skip


@pytest.fixture(scope="module")
def whisper(tmp_path_factory):
    config = WhisperConfig(
        vocab_size=31, d_model=24, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=30, decoder_ffn_dim=30, num_mel_bins=8, max_source_positions=10, max_target_positions=40,
        decoder_start_token_id=1, **TOKENS,
    )  # fmt: skip
    return made(build(WhisperForConditionalGeneration, config, 5), tmp_path_factory.mktemp("whisper"))


def made(reference, directory):
    reference.save_pretrained(directory / "checkpoint")
    (directory / "checkpoint/generation_config.json").unlink()
    spec = import_spec(directory / "checkpoint")
    export(spec, directory / "onnx", ExportOptions(weights=str(directory / "checkpoint")))
    return reference, directory, spec, load(spec, directory / "checkpoint")


def told(directory, stated) -> GenerationSettings:
    """The settings, written beside the export too."""
    (directory / "onnx/generation_config.json").write_text(json.dumps(stated))
    return GenerationSettings.of(stated, {}, directory)


def theirs(reference, stated, given, begin: int, **more: Any) -> list[int]:
    """The tokens that the reference generates after its first ones."""
    reference.generation_config = GenerationConfig(**stated)
    found = reference.generate(given, do_sample=False, **more)
    return [int(token) for token in found[0, begin:]]


@one_in(24)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_decoder_generates_the_tokens_of_transformers(decoder, name):
    reference, directory, _, ours = decoder
    stated = {**TOKENS, **SETTINGS[name]}
    ids = torch.tensor([PROMPT])
    mask = torch.ones_like(ids)
    expected = theirs(reference, stated, ids, len(PROMPT), max_new_tokens=MOST, attention_mask=mask)
    settings = told(directory, stated)
    assert generate(ours, [PROMPT, [8, 4]], MOST, settings=settings)[0] == expected
    found = Generator(open_export(directory / "onnx")).generate([[8, 4], PROMPT], MOST)
    assert found.continuations[1].ids == expected


@one_in(24)
@pytest.mark.parametrize("name", SETTINGS)
def test_an_encoder_decoder_generates_the_tokens_of_transformers(pair, name):
    reference, directory, _, ours = pair
    stated = {**TOKENS, "decoder_start_token_id": 2, **SETTINGS[name]}
    expected = theirs(reference, stated, torch.tensor([PROMPT]), 1, max_new_tokens=MOST)
    settings = told(directory, stated)
    assert generate_from(ours, [PROMPT, [8, 4]], MOST, start=2, settings=settings)[0] == expected
    found = Generator(open_export(directory / "onnx")).generate([[8, 4], PROMPT], MOST, start=2)
    assert found.continuations[1].ids == expected


@pytest.mark.slow
def test_the_settings_change_what_is_generated(decoder, pair):
    """Most of them: otherwise equal tokens would say nothing."""
    _, directory, _, ours = decoder
    _, _, _, ours_of_pair = pair
    changed = set()
    for name, stated in SETTINGS.items():
        settings, nothing = (told(directory, {**TOKENS, **each}) for each in (stated, {}))
        alone = [generate(ours, [PROMPT], MOST, settings=each) for each in (settings, nothing)]
        both = [
            generate_from(ours_of_pair, [PROMPT], MOST, start=2, settings=each)
            for each in (settings, nothing)
        ]
        changed |= {name} if alone[0] != alone[1] or both[0] != both[1] else set()
    assert {*SETTINGS} - changed == {"nothing", "invalid values"}, changed


@one_in(6)
@pytest.mark.parametrize("name", WHISPER)
def test_whisper_begins_with_the_tokens_of_transformers(whisper, name):
    reference, directory, _, ours = whisper
    rules = {"suppress_tokens": [3, 5, 25, 26], "begin_suppress_tokens": [*range(6, 18)]}
    stated = {**TOKENS, "decoder_start_token_id": 1, "max_length": 30, **rules, **WHISPER[name]}
    features = torch.randn(1, 8, 20, generator=torch.Generator().manual_seed(0))
    settings = told(directory, stated)
    count = len(settings.first_tokens())
    reference.generation_config = GenerationConfig(**stated)
    expected = reference.generate(
        features, do_sample=False, max_new_tokens=MOST, return_dict_in_generate=True
    )
    tokens = [int(token) for token in getattr(expected, "sequences", expected)[0]]
    found = generate_from(ours, features, MOST + count, start=1, settings=settings)[0]
    assert 1 <= count <= 3
    assert found[count:] == tokens[-len(found[count:]) :]
    assert len(found) > count
    export_ids = Generator(open_export(directory / "onnx")).generate(features.numpy(), MOST + count, start=1)
    assert export_ids.continuations[0].ids == found


def test_every_field_of_transformers_is_in_one_class():
    classes = [APPLIED, OPTIONS, {*NOT_APPLIED}, WITHOUT_EFFECT]
    fields = {*vars(GenerationConfig())}
    assert {*fields} - set().union(*classes) == set()
    assert sum(map(len, classes)) == len(set().union(*classes))


def test_fields_that_are_not_applied_are_named():
    settings = GenerationSettings(
        {"num_beams": 4, "typical_p": 0.5, "guidance_scale": 1.0, "stop_strings": None}
    )
    assert settings.not_applied(sampling=False) == ["num_beams: 4"]
    assert settings.not_applied(sampling=True) == ["num_beams: 4", "typical_p: 0.5"]


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("repetition_penalty", 0, "a number above 0"),
        ("repetition_penalty", "1.1", "a number above 0"),
        ("no_repeat_ngram_size", -1, "a whole number, 0 or more"),
        ("no_repeat_ngram_size", True, "a whole number, 0 or more"),
        ("suppress_tokens", 3, "a list of token ids"),
        ("bad_words_ids", [[]], "a list of lists of token ids"),
        ("eos_token_id", "</s>", "a token id, or a list of them"),
        ("sequence_bias", [[[1], "2"]], "a list of token ids with a number each"),
        ("exponential_decay_length_penalty", [1], "a start and a factor"),
        ("forced_decoder_ids", [[2, 5]], "a list of places, counted from 1, each with a token id"),
        ("lang_to_id", {"<|en|>": "x"}, "token ids by their names"),
        ("top_p", 2, "above 0 and at most 1"),
    ],
)
def test_wrong_values_are_refused(name, value, rule, tmp_path):
    with pytest.raises(UserError) as caught:
        GenerationSettings.of({name: value}, {}, tmp_path)
    message = f"{tmp_path / 'generation_config.json'}: {name} must be {rule}\n  value: {value!r}\n"
    assert str(caught.value) == f"{message}  Correct the field, or remove it."


def test_settings_of_an_early_config_become_a_file(pair, tmp_path):
    """As transformers reads them from there, where there is no generation_config.json."""
    _, directory, spec, _ = pair
    place = directory / "early"
    place.mkdir()
    stated = json.loads((directory / "checkpoint/config.json").read_text())
    rules = {"no_repeat_ngram_size": 3, "repetition_penalty": 1.0}
    (place / "config.json").write_text(json.dumps({**stated, **rules}))
    shutil.copy(directory / "checkpoint/model.safetensors", place)
    convert(spec, str(place), tmp_path)
    written = stated_in(tmp_path / "generation_config.json")
    assert written.items() >= {**rules, "eos_token_id": 2, "decoder_start_token_id": 2}.items()
    assert "vocab_size" not in written


@pytest.mark.parametrize("min_p", [0.0, 0.05, 0.5, 1.0])
def test_min_p_keeps_the_tokens_of_transformers(min_p):
    from transformers import MinPLogitsWarper

    scores = np.random.default_rng(0).normal(size=50).astype(np.float32)
    kept, _ = distribution(scores, Sampling(1.0, min_p=min_p))
    warped = MinPLogitsWarper(min_p)(None, torch.from_numpy(scores)[None])[0]
    assert set(kept) == set(torch.nonzero(warped.isfinite()).flatten().tolist())


def test_a_forced_token_of_an_early_config_counts_even_if_it_is_the_first_of_the_vocabulary():
    assert generation_fields({"forced_bos_token_id": 0, "num_beams": 4, "d_model": 8}) == {
        "forced_bos_token_id": 0, "num_beams": 4,
    }  # fmt: skip
    assert generation_fields({"no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "num_beams": 4}) == {}
