"""What goes into a model: the kinds of embeddings, how they are written, and the rules between them and the rest."""

import pytest

from specs.embedding import Patches, Tokens
from specs.errors import SpecError
from specs.load import load
from specs.model import Model
from specs.resolved import resolved
from tests.zoo.tiny import bert, vit, whisper


def told(reference: str, *assignments: str) -> str:
    """What a user reads, without the option that it is about."""
    with pytest.raises(SpecError) as caught:
        load(reference, assignments)
    text = str(caught.value)
    for assignment in assignments:
        text = text.removeprefix(f"--set {assignment}: ")
    return text


def test_a_mapping_without_a_kind_is_of_tokens_and_shown_so() -> None:
    spec = bert(embedding={"token_types": 2})
    assert spec == bert(embedding={"kind": "tokens", "token_types": 2})
    assert isinstance(spec.embedding, Tokens)
    assert resolved(spec)["embedding"] == {"token_types": 2, "dropout": 0.0}
    assert Model.model_validate(resolved(spec)) == spec


def test_another_kind_takes_the_place_of_tokens_in_one_assignment() -> None:
    image = "embedding={kind: patches, image_size: 32, patch_size: 8}"
    spec = load("bert-base", [image, "vocab_size=null", "context_length=null", "head={kind: none}"])
    assert spec.embedding == Patches(image_size=32, patch_size=8, dropout=0.1)
    assert spec.context_length_of(spec.last_stack) == 17


def test_the_context_of_an_image_is_its_patches_and_the_class_token() -> None:
    assert vit().context_length_of(vit().last_stack) == 5
    without = vit(embedding={"kind": "patches", "image_size": 8, "patch_size": 3, "class_token": False})
    assert without.context_length_of(without.last_stack) == 4
    assert vit(context_length=5)


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
def test_what_few_models_have_is_not_shown_of_the_rest(kind: str) -> None:
    shown = resolved(load(kind, ["position={kind: sinusoidal}"]))
    assert shown["position"] == {"kind": "sinusoidal", "layout": "interleaved", "base": 10000.0}


@pytest.mark.parametrize(
    ("preset", "assignments", "message"),
    [
        ("vit-base-16", ["vocab_size=9"], "vocab_size: has no use: no tokens go in\n  value: 9\n  remove it"),
        ("whisper-tiny", ["vocab_size=null"], "vocab_size: is required\n  add vocab_size:"),
        (
            "vit-base-16",
            ["context_length=196"],
            "context_length: must be the number of vectors that the embedding gives, which is 197\n"
            "  value: 196\n  remove it, or write 197",
        ),
        (
            "vit-base-16",
            ["encoder.context_length=9"],
            "encoder.context_length: must be the number of vectors that the embedding gives, which is 197\n"
            "  value: 9\n  remove it, or write 197",
        ),
        (
            "vit-base-16",
            ["embedding.patch_size=300"],
            "embedding.patch_size: must not exceed image_size, which is 224\n  value: 300\n  224 or less would work",
        ),
        (
            "whisper-tiny",
            ["encoder.embedding.kernel=4"],
            "encoder.embedding.kernel: must be odd, to have a middle\n  value: 4\n  3 or 5 would work",
        ),
        (
            "whisper-tiny",
            ["encoder.context_length=null", "encoder.position={kind: none}"],
            "encoder.embedding.kind: needs a context_length: an input has 2 columns for each of its vectors\n"
            "  value: 'spectrogram'\n  add context_length: 1500 beside it",
        ),
        (
            "transformer-base",
            ["position.table=true"],
            "position.table: needs the context_length: the number of its rows\n"
            "  value: True\n  add context_length: 512, or set table: false",
        ),
        (
            "vit-base-16",
            ["head={kind: language_modeling}"],
            "head.kind: scores a vocabulary, and no tokens go in\n  value: 'language_modeling'\n"
            "  classification or none would work",
        ),
        (
            "whisper-tiny",
            ["decoder.embedding={kind: spectrogram, mel_bins: 4}", "head={kind: none}", "vocab_size=null"],
            "decoder.embedding.kind: must take tokens in a decoder, which reads them one after another\n"
            "  value: 'spectrogram'\n  tokens would work",
        ),
        (
            "transformer-base",
            ["decoder.embedding={width: 64}", "head.tie_embeddings=false"],
            "decoder.embedding.width: must be that of the encoder's embedding: the two share their token table\n"
            "  value: 64\n  512 would work",
        ),
        (
            "bert-base",
            ["position={kind: sinusoidal}", "embedding.width=7"],
            "position.kind: needs an even d_model, a sine and a cosine per frequency; it is 7\n"
            "  value: 'sinusoidal'\n  d_model: 6 or 8 would work",
        ),
        (
            "bert-base",
            ["embedding.projection={place: middle}"],
            "embedding.projection.place: must be 'last' or 'first'\n  value: 'middle'\n  choose from: last, first",
        ),
        (
            "bert-base",
            ["embedding={kind: pixels}"],
            "embedding.kind: must be a registered embedding kind\n  value: 'pixels'\n"
            "  choose from: tokens, patches, spectrogram",
        ),
    ],
)
def test_a_mistake_is_told_with_its_remedy(preset: str, assignments: list[str], message: str) -> None:
    assert message in told(preset, *assignments)


def test_a_decoder_that_reads_images_is_told_where_tokens_go() -> None:
    text = told("gpt2", "embedding={kind: patches, image_size: 8, patch_size: 2}", "head={kind: none}")
    assert "add to the decoder embedding: {kind: tokens}" in text


def test_positions_are_as_wide_as_what_they_are_added_to() -> None:
    assert load(
        "bert-base", ["position={kind: sinusoidal}", "embedding={width: 7, projection: {place: first}}"]
    )
