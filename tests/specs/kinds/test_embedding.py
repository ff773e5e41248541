"""What goes into a model: the kinds of embeddings, how they are written, and the rules between them and the rest."""

import pytest

from specs.base.errors import SpecError
from specs.forms.resolved import resolved
from specs.kinds.embedding import Tokens
from specs.kinds.norm import LayerNorm
from specs.kinds.patches import Patches
from specs.kinds.spectrogram import Spectrogram
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.tiny import bert, vit, wav2vec2, whisper


def told(reference: str, *assignments: str) -> str:
    """What a user reads, without the option that it is about."""
    with pytest.raises(SpecError) as caught:
        load(reference, assignments)
    text = str(caught.value)
    for assignment in assignments:
        text = text.removeprefix(f"assignments {assignment}: ")
    return text


def test_an_embedding_without_a_kind_is_tokens() -> None:
    spec = bert(embedding={"token_types": 2})
    assert spec == bert(embedding={"kind": "tokens", "token_types": 2})
    assert isinstance(spec.embedding, Tokens)
    assert resolved(spec)["embedding"] == {"token_types": 2, "dropout": 0.0}
    assert Model.model_validate(resolved(spec)) == spec


def test_another_kind_takes_the_place_of_tokens_in_one_assignment() -> None:
    image = "embedding={kind: patches, image_size: 32, patch_size: 8}"
    spec = load("bert-base", [image, "vocab_size=null", "context_length=null", "head={kind: none}"])
    assert spec.embedding == Patches(image_size=32, patch_size=8, norm=LayerNorm(eps=1e-12), dropout=0.1)
    assert spec.context_length_of(spec.last_stack) == 17


def test_the_context_of_an_image_is_its_patches_and_the_class_token() -> None:
    assert vit().context_length_of(vit().last_stack) == 5
    without = vit(embedding={"kind": "patches", "image_size": 8, "patch_size": 3, "class_token": False})
    assert without.context_length_of(without.last_stack) == 4
    assert vit(context_length=5)


def test_vectors_are_named_by_what_they_are_made_of() -> None:
    patches = Patches(image_size=11, patch_size=4, registers=2)
    assert patches.patch_grid == (2, 2, 4)
    assert patches.vector_names(7) == ["[CLS]", "reg0", "reg1", "r0c0", "r0c1", "r1c0", "r1c1"]
    assert Patches(image_size=8, patch_size=8, class_token=False).vector_names(1) == ["r0c0"]
    distilled = Patches(image_size=8, patch_size=8, distillation_token=True, registers=1)
    assert distilled.vector_names(4) == ["[CLS]", "[DIST]", "reg0", "r0c0"]
    spectrogram = whisper().embedding_of(whisper().first_stack)
    assert spectrogram.vector_names(3, 0.01) == ["0.00s", "0.02s", "0.04s"]
    assert spectrogram.vector_names(3) == ["0", "1", "2"]
    waveform = wav2vec2().embedding_of(wav2vec2().first_stack)
    assert waveform.vector_names(3, 1 / 16000) == ["0.0000s", "0.0006s", "0.0013s"]
    assert waveform.patch_grid is None


@pytest.mark.parametrize("seconds", [10.0, 1.0, 0.1, 0.04, 0.01, 1 / 3, 0.00625, 1e-5])
def test_times_have_the_decimals_that_tell_them_apart(seconds: float) -> None:
    names = Spectrogram(mel_bins=4, stride=1).vector_names(200, seconds)
    assert len(set(names)) == 200
    assert all(abs(float(name[:-1]) - at * seconds) <= seconds / 2 * 1.001 for at, name in enumerate(names))


def test_registers_count_as_vectors_but_have_no_position() -> None:
    spec = load("dinov2-with-registers-small")
    assert spec.context_length_of(spec.last_stack) == 37**2 + 1 + 4
    assert spec.embedding_of(spec.last_stack).position_count(None) == 37**2 + 1
    assert "registers" not in resolved(load("dinov2-small"))["embedding"]
    text = told("dinov2-small", "embedding.registers=-1")
    assert text.startswith("embedding.registers: must be greater than or equal to 0")


def test_a_stack_may_have_its_own_embedding_position_and_context_length() -> None:
    spec = whisper()
    assert spec.encoder is not None
    assert spec.decoder is not None
    assert [spec.embedding_of(stack).input_name for _, stack in spec.stacks()] == [
        "input_features",
        "input_ids",
    ]
    assert [spec.context_length_of(stack) for _, stack in spec.stacks()] == [6, 10]
    assert spec.embedding_of(spec.encoder).input_shape(6) == (4, 12)


@pytest.mark.parametrize("kind", ["gpt2", "bert-base", "t5-small"])
def test_rare_fields_are_omitted_at_their_defaults(kind: str) -> None:
    shown = resolved(load(kind, ["position={kind: sinusoidal}"]))
    assert shown["position"] == {"kind": "sinusoidal", "layout": "interleaved", "base": 10000.0}


@pytest.mark.parametrize(
    ("preset", "assignments", "message"),
    [
        (
            "vit-base-16", ["vocab_size=9"],
            "vocab_size: must not be set, because the model takes no tokens\n  value: 9\n  Remove it.",
        ),
        ("whisper-tiny", ["vocab_size=null"], "vocab_size: is required\n  Add vocab_size."),
        (
            "vit-base-16", ["context_length=196"],
            "context_length: must equal the number of vectors of the embedding, which is 197\n"
            "  value: 196\n  Remove it, or set it to 197.",
        ),
        (
            "vit-base-16", ["encoder.context_length=9"],
            "encoder.context_length: must equal the number of vectors of the embedding, which is 197\n"
            "  value: 9\n  Remove it, or set it to 197.",
        ),
        (
            "vit-base-16", ["embedding.patch_size=300"],
            "embedding.patch_size: must not exceed image_size, which is 224\n  value: 300\n  Use 224 or less.",
        ),
        (
            "whisper-tiny", ["encoder.embedding.kernel=4"],
            "encoder.embedding.kernel: must be odd, so that it has a centre\n  value: 4\n  Use 3 or 5.",
        ),
        (
            "whisper-tiny",
            ["encoder.context_length=null", "encoder.position={kind: none}"],
            "encoder.embedding.kind: requires a context_length, because an input has 2 columns per vector\n"
            "  value: 'spectrogram'\n  Add context_length: 1500 to the model.",
        ),
        (
            "transformer-base", ["position.table=true"],
            "position.table: requires the context_length, the number of its rows\n"
            "  value: True\n  Add context_length: 512, or set table: false.",
        ),
        (
            "vit-base-16",
            ["embedding.distillation_token=true", "embedding.class_token=false"],
            "embedding.distillation_token: requires a class token, which it follows\n  value: True\n"
            "  Set class_token: true, or remove it.",
        ),
        (
            "vit-base-16", ["head={kind: distilled_classification, labels: 3}"],
            "head.kind: requires patches with a distillation token, which it reads\n"
            "  value: 'distilled_classification'\n"
            "  Add distillation_token: true to the embedding, or use classification.",
        ),
        (
            "bert-base", ["position={kind: axial_rope}"],
            "position.kind: requires an embedding of patches, whose rows and columns it reads\n  value: 'axial_rope'\n"
            "  Use rope, alibi or relative_bias, or embedding: {kind: patches, ...}.",
        ),
        (
            "bert-base", ["head={kind: pooled, pooling: patches}"],
            "head.pooling: requires an embedding of patches\n  value: 'patches'\n  Use mean.",
        ),
        (
            "gpt2", ["embedding.token_dropout={token: 5}"],
            "embedding.token_dropout: requires an encoder that is not causal, because it counts the mask tokens of the whole input\n"
            "  value: 5\n  Remove it.",
        ),
        (
            "esm2-8m", ["embedding.token_dropout.token=33"],
            "embedding.token_dropout.token: must be below vocab_size, which is 33\n  value: 33\n  Use 0 to 32.",
        ),
        (
            "dinov3-small-16", ["encoder.block.attention.head_dim=30"],
            "position.kind: requires a head width that 4 divides, for pairs along two axes; it is 30\n"
            "  value: 'axial_rope'\n  Set head_dim: 32, or another number of heads.",
        ),
        (
            "vit-base-16", ["head={kind: language_modeling}"],
            "head.kind: requires a vocabulary, but the model takes no tokens\n  value: 'language_modeling'\n"
            "  Use classification or none.",
        ),
        (
            "whisper-tiny",
            ["decoder.embedding={kind: spectrogram, mel_bins: 4}", "head={kind: none}", "vocab_size=null"],
            "decoder.embedding.kind: must take tokens in a decoder, which processes them one by one\n"
            "  value: 'spectrogram'\n  Use tokens.",
        ),
        (
            "wav2vec2-base-960h",
            ["embedding.convolutions=[{channels: 4, kernel: 2, stride: 3}]"],
            "embedding.convolutions[0].stride: must not exceed the kernel, which is 2\n  value: 3\n  Use 2 or less.",
        ),
        (
            "wav2vec2-base-960h", ["position.groups=7"],
            "position.groups: must divide d_model, which is 768\n  value: 7\n  Use 6.",
        ),
        (
            "wav2vec2-base-960h", ["head.blank=32"],
            "head.blank: must be below labels, which is 32\n  value: 32\n  Use 0 to 31.",
        ),
        (
            "whisper-tiny",
            ["encoder.embedding={kind: waveform, convolutions: [{channels: 4, kernel: 2, stride: 2}]}"],
            "encoder.embedding.kind: must take no mask in an encoder-decoder, whose decoder cannot tell vectors made of "
            "padding from others\n  value: 'waveform'\n  Set architecture: encoder, or use spectrogram or filtered_waveform.",
        ),
        (
            "moonshine-tiny",
            [
                "encoder.embedding.convolutions=[{channels: 9, kernel: 2, stride: 2}, {channels: 4, kernel: 2, stride: 2}]"
            ],
            "encoder.embedding.convolutions[1].channels: must equal d_model, which is 288: the last convolution gives the "
            "vectors\n  value: 4\n  Use 288.",
        ),
        (
            "parakeet-ctc-0.6b", ["embedding.kernel=4"],
            "embedding.kernel: must be odd, so that it has a centre\n  value: 4\n  Use 3 or 5.",
        ),
        (
            "parakeet-ctc-0.6b", ["encoder.block.convolution.kernel=8"],
            "encoder.block.convolution.kernel: must be odd, so that it has a centre\n  value: 8\n  Use 7 or 9, or set causal: true.",
        ),
        (
            "parakeet-ctc-0.6b", ["encoder.causal=true"],
            "encoder.block.kind: belongs to an encoder, because the convolution sees following vectors\n"
            "  value: 'conformer'\n  Use pre_norm.",
        ),
        (
            "parakeet-ctc-0.6b", ["d_model=1025", "encoder.block.attention.head_dim=128"],
            "position.kind: requires an even d_model, with a sine and a cosine per frequency; it is 1025\n"
            "  value: 'relative_sinusoidal'\n  Use d_model: 1024 or 1026.",
        ),
        (
            "parakeet-ctc-0.6b",
            ["encoder.block.attention={kind: latent, heads: 2, kv_rank: 8, head_dim: 4, rope_dim: 2, value_dim: 4}"],
            "position.kind: requires queries and keys of equal width in every head, and latent attention has none\n"
            "  value: 'relative_sinusoidal'\n  Use rope, or an attention of kind multi_head, grouped_query or multi_query.",
        ),
        (
            "gpt2", ["position={kind: convolutional}"],
            "position.kind: belongs to an encoder, because the convolution sees following vectors\n"
            "  value: 'convolutional'\n  Use learned, sinusoidal or rope.",
        ),
        (
            "bert-base",
            ["position={kind: relative_bias, gated: true}", "encoder.block.attention.head_dim=32"],
            "position.gated: requires heads that divide the input, whose width is 768\n"
            "  value: '12 heads of width 32'\n  Remove it, or remove head_dim.",
        ),
        (
            "transformer-base",
            ["decoder.embedding={width: 64}", "head.tie_embeddings=false"],
            "decoder.embedding.width: must equal that of the encoder's embedding, because the two share a token table\n"
            "  value: 64\n  Use 512, or set own_table: true.",
        ),
        (
            "transformer-base", ["embedding.own_table=true"],
            "embedding.own_table: belongs to the decoder of an encoder-decoder whose encoder reads tokens too\n"
            "  value: True\n  Remove it, or set it under decoder.embedding.",
        ),
        (
            "whisper-tiny", ["decoder.embedding={own_table: true}"],
            "decoder.embedding.own_table: belongs to the decoder of an encoder-decoder whose encoder reads tokens too\n"
            "  value: True\n  Remove it, or set it under decoder.embedding.",
        ),
        (
            "bert-base", ["position={kind: sinusoidal}", "embedding.width=7"],
            "position.kind: requires an even d_model, with a sine and a cosine per frequency; it is 7\n"
            "  value: 'sinusoidal'\n  Use d_model: 6 or 8.",
        ),
        (
            "bert-base", ["embedding.projection={place: middle}"],
            "embedding.projection.place: must be 'last' or 'first'\n  value: 'middle'\n  Choose from: last, first.",
        ),
        (
            "bert-base", ["embedding={kind: pixels}"],
            "embedding.kind: must be a registered embedding kind\n  value: 'pixels'\n"
            "  Choose from: tokens, next_token, patches, spectrogram, spectrogram_patches, frames, subsampled_spectrogram, packed_patches, waveform, filtered_waveform.",
        ),
    ],
)  # fmt: skip
def test_an_error_has_a_remedy(preset: str, assignments: list[str], message: str) -> None:
    assert message in told(preset, *assignments)


def test_a_decoder_of_images_gets_a_remedy() -> None:
    text = told("gpt2", "embedding={kind: patches, image_size: 8, patch_size: 2}", "head={kind: none}")
    assert "Add embedding: {kind: tokens} to the decoder." in text


def test_positions_have_the_width_of_the_embedding() -> None:
    assert load(
        "bert-base", ["position={kind: sinusoidal}", "embedding={width: 7, projection: {place: first}}"]
    )


@pytest.mark.parametrize("key", ["tasks", "boxes"])
def test_tasks_and_boxes_are_inputs_of_an_encoder(key: str) -> None:
    assert f"embedding.{key}: requires architecture: encoder" in told("gpt2", f"embedding.{key}=3")
