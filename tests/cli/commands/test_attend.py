"""``zoo attend``: what it prints, as text, as data and as files, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from rich.console import Console
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from cli.attending.maps import Panel, Row, legend, print_maps
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.writing import dump
from tests.cli import program
from tests.cli.process import environment, tables, zoo
from tests.exporters.preprocessing.test_audio import recorded
from tests.parity.minilm import minilm_directory
from tests.thinned import one_in
from tests.zoo.filled import random_model
from tests.zoo.tiny import bert, clip, gpt2, llava, t5, trocr, vit, wav2vec2, whisper
from zoo.attention_maps.attend import Attended, attend
from zoo.attention_maps.choice import choose
from zoo.attention_maps.reading import AttentionInput


def invoke(*arguments: Any) -> Any:
    """Run the command in 160 columns, without colours, with the tables of entropies."""
    return program.invoke("attend", *arguments, "-v")


def data_of(*arguments: Any) -> Any:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of specs, of an export with a tokenizer of bytes, and of that tokenizer."""
    place = tmp_path_factory.mktemp("attend")
    specs = {
        "bert": bert(vocab_size=300),
        "gpt2": gpt2(vocab_size=300),
        "t5": t5(vocab_size=300),
        "vit": vit(),
        "whisper": whisper(),
        "speech": wav2vec2(),
        "clip": clip(),
        "llava": llava(),
        "wide": bert(name="wide", context_length=20000, head={"kind": "none"}),
    }
    for name, spec in specs.items():
        (place / f"{name}.yaml").write_text(dump(resolved(spec)))
    Image.new("RGB", (9, 9), "red").save(place / "red.png")
    for name, seconds in (("short", 0.001), ("tenth", 0.1), ("long", 0.2)):
        recorded(place / f"{name}.wav", seconds)
    program.done("export", "tiny-gpt", "--no-verify", "-o", place / "tiny-gpt")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(place / "tiny-gpt" / "tokenizer.json"))
    return place


@pytest.fixture
def minilm() -> Path:
    return minilm_directory()


# ---------------------------------------------------------------------------------------------------- what is shown


@pytest.mark.slow
def test_heads_of_minilm(minilm: Path) -> None:
    """The third head of the first layer looks at the token before, the ninth of the second at the one behind."""
    data = data_of(minilm, "--text", "The cat sat.", "--layer", "0,1", "--head", "2,8")
    tokens = [each["token"] for each in data["tokens"]["encoder"]]
    assert tokens == ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
    assert data["tokens"]["encoder"][2] == {"id": 4937, "token": "cat"}
    first, second = data["attention"]["encoder"]["layers"]
    assert [head["head"] for head in first["heads"]] == [2, 8]
    before, behind = first["heads"][0], second["heads"][1]
    assert all(before["weights"][at][at - 1] > 0.99 for at in range(1, 6))
    assert all(behind["weights"][at][at + 1] > 0.5 for at in range(1, 4))
    assert before["entropy"] < 0.01 < 1 < first["heads"][1]["entropy"] < first["uniform_entropy"]
    assert first["uniform_entropy"] == pytest.approx(2.585, abs=1e-3)


def test_maps_and_entropies_are_printed(minilm: Path) -> None:
    result = invoke(minilm, "--text", "The cat sat.", "--layer", "0", "--head", "2")
    assert result.exit_code == 0
    assert (
        tables(result.stdout)
        == f"""\
model, weights: {minilm}, 2 ignored: pooler.dense.bias, pooler.dense.weight

      layer 0, head 2
[CLS]  100   0   0   0   0   0
the    100   0   0   0   0   0
cat      0 100   0   0   0   0
sat      0   0 100   0   0   0
.        0   0   0 100   0   0
[SEP]    0   0   0   0 100   0
         [   t   c   s   .   [
         C   h   a   a       S
         L   e   t   t       E
         S                   P
         ]                   ]

percent of a query token's attention, · masked

Entropy of each head in bits, mean over query tokens; uniform is the entropy of equal weights.

encoder      2   uniform
────────────────────────
layer 0   0.00      2.58
"""
    )


def test_without_a_choice_the_means_of_the_first_and_the_last_layer(minilm: Path) -> None:
    result = invoke(minilm, "--text", "The cat sat.")
    lines = result.stdout.splitlines()
    assert lines[2].split("   ")[-2:] == ["layer 0, mean of 12 heads", "layer 5, mean of 12 heads"]
    assert [line.split()[0] for line in lines[3:9]] == ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
    assert sum(line.startswith("layer ") for line in lines) == 6  # entropies of all
    assert result.stdout.count("2.58") == 6


def test_a_pair_of_texts(minilm: Path) -> None:
    data = data_of(minilm, "--text", "A cat.", "--text", "A dog.", "--layer", "0", "--head", "0")
    tokens = [each["token"] for each in data["tokens"]["encoder"]]
    assert tokens == ["[CLS]", "a", "cat", ".", "[SEP]", "a", "dog", ".", "[SEP]"]


def test_text_of_an_export(place: Path) -> None:
    """An export has the weights, its tokenizer the names of tokens; what is written comes through the cache."""
    data = data_of(place / "tiny-gpt", "--text", "ab cd", "--max-new-tokens", "3")
    assert [each["token"] for each in data["tokens"]["decoder"][:5]] == ["a", "b", "Ġ", "c", "d"]
    assert len(data["tokens"]["decoder"]) == 7
    assert len(data["written_ids"]) == 3
    text = Tokenizer.from_file(str(place / "tiny-gpt" / "tokenizer.json")).decode(data["written_ids"])
    assert (
        f"\ngenerated: {text}\n"
        in invoke(place / "tiny-gpt", "--text", "ab cd", "--max-new-tokens", "3").stdout
    )
    spec = load("tiny-gpt")
    model = random_model(spec)
    ids = [each["id"] for each in data["tokens"]["decoder"]]
    (expected,) = Attended.of(list(attend(model, AttentionInput(ids), choose(spec)))).maps.values()
    for layer, own in zip(data["attention"]["decoder"]["layers"], expected, strict=True):
        found = torch.tensor([head["weights"] for head in layer["heads"]])
        torch.testing.assert_close(found, own.weights, atol=2e-6, rtol=0)


def test_an_encoder_decoder_generates_its_target(place: Path) -> None:
    data = data_of(place / "t5.yaml", "--ids", "5,6,7")
    assert [len(data["tokens"][reader]) for reader in ("encoder", "decoder")] == [3, 12]
    assert list(data["attention"]) == ["encoder", "decoder", "cross"]
    cross = data["attention"]["cross"]
    assert (cross["queries"], cross["keys"]) == ("decoder", "encoder")
    assert torch.tensor(cross["layers"][0]["heads"][0]["weights"]).shape == (12, 3)


def test_the_target_of_an_encoder_decoder(place: Path) -> None:
    told = ["--ids", "5,6,7", "--tokenizer", place / "tiny-gpt"]
    by_ids = data_of(place / "t5.yaml", *told, "--target-ids", "9,10", "--stack", "cross")
    assert [each["id"] for each in by_ids["tokens"]["decoder"]] == [9, 10]
    by_text = data_of(place / "t5.yaml", *told, "--target-text", "ab")
    assert [each["token"] for each in by_text["tokens"]["decoder"]] == ["!", "a", "b"]  # the start token is 0
    printed = invoke(place / "t5.yaml", *told, "--target-ids", "9,10")
    assert printed.exit_code == 0
    assert (
        "decoder layer 0, mean of 2 heads   decoder layer 1, mean of 2 heads   cross layer 0"
        in printed.stdout
    )


def test_an_image_is_shown_as_a_grid(place: Path, tmp_path: Path) -> None:
    """What the class token attends to, patch by patch, as shares of the largest weight."""
    command = [place / "vit.yaml", "--image", place / "red.png", "--layer", "0", "--head", "1"]
    data = data_of(*command)
    assert [each["name"] for each in data["tokens"]["encoder"]] == ["[CLS]", "r0c0", "r0c1", "r1c0", "r1c1"]
    assert data["patches"] == {"encoder": {"rows": 2, "columns": 2}}
    weights = data["attention"]["encoder"]["layers"][0]["heads"][0]["weights"][0][1:]
    result = invoke(*command)
    assert result.stderr == (
        "There is no preprocessor_config.json: images are resized to the model's size, with values from -1 to 1\n"
    )
    lines = result.stdout.splitlines()
    assert lines[2] == f"   layer 0, head 1, [CLS]: up to {max(weights):.1%}"
    shares = [round(100 * weight / max(weights)) for weight in weights]
    assert [line.split() for line in lines[3:7]] == [
        ["r0", *map(str, shares[:2])], ["r1", *map(str, shares[2:])], ["c", "c"], ["0", "1"],
    ]  # fmt: skip
    assert lines[8] == "percent of the largest weight of a patch in each map"
    assert "masked" not in result.stdout


def test_images_are_prepared_as_the_checkpoint_states(place: Path, tmp_path: Path) -> None:
    """The settings beside the weights, here those of an export, change what the model reads."""
    export = tmp_path / "vit"
    program.done("export", place / "vit.yaml", "--no-verify", "-o", export)
    image = tmp_path / "half.png"
    halves = Image.new("RGB", (14, 7), "blue")
    halves.paste("red", (0, 0, 7, 7))
    halves.save(image)

    def weights() -> Any:
        return data_of(export, "--image", image)["attention"]["encoder"]["layers"][1]["heads"]

    usual = weights()
    stated: dict[str, Any] = {"do_resize": True, "size": 7, "do_center_crop": True, "crop_size": 7}
    (export / "preprocessor_config.json").write_text(json.dumps(stated))
    assert weights() != usual
    assert invoke(export, "--image", image).stderr == ""
    (export / "preprocessor_config.json").write_text(json.dumps(stated | {"crop_size": 5}))
    result = invoke(export, "--image", image)
    assert result.exit_code == 2
    assert result.stderr.startswith(
        f"{image}: an image must become 3 x 7 x 7 for tiny-vit\n  value: 3 x 5 x 5"
    )


def test_frames_are_labelled_with_their_seconds(place: Path) -> None:
    data = data_of(place / "whisper.yaml", "--audio", place / "tenth.wav", "--target-ids", "3,4")
    times = ["0.00s", "0.02s", "0.04s", "0.06s", "0.08s", "0.10s"]
    assert [each["name"] for each in data["tokens"]["encoder"]] == times
    assert [each["id"] for each in data["tokens"]["decoder"]] == [3, 4]
    assert list(data["attention"]) == ["encoder", "decoder", "cross"]
    assert torch.tensor(data["attention"]["cross"]["layers"][0]["heads"][0]["weights"]).shape == (2, 6)
    command = ["--target-ids", "3,4", "--stack", "cross", "--layer", "0", "--head", "0"]
    result = invoke(place / "whisper.yaml", "--audio", place / "tenth.wav", *command)
    assert "spectrograms are those of Whisper, at 16 kHz" in result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["3", "4"]
    assert [
        "".join(letters) for letters in zip(*(line.split() for line in lines[5:10]), strict=True)
    ] == times


def test_frames_of_samples(place: Path) -> None:
    """A frame every 10 of 16,000 samples per second; times have the decimals that tell them apart."""
    data = data_of(place / "speech.yaml", "--audio", place / "tenth.wav", "--layer", "0", "--head", "0")
    names = [each["name"] for each in data["tokens"]["encoder"]]
    assert (len(names), names[:3], names[-1]) == (159, ["0.0000s", "0.0006s", "0.0013s"], "0.0988s")


@pytest.mark.slow
def test_a_dual_encoder_shows_what_is_given(place: Path, tmp_path: Path) -> None:
    clip, image, ids = place / "clip.yaml", ["--image", place / "red.png"], ["--ids", "1,2,9"]
    both, seen, read = (data_of(clip, *given) for given in ([*image, *ids], image, ids))
    assert list(both["attention"]) == ["text", "image"]
    assert both["attention"] == {**read["attention"], **seen["attention"]}
    assert both["tokens"] == {**read["tokens"], **seen["tokens"]}
    assert [each["id"] for each in read["tokens"]["text"]] == [1, 2, 9]
    assert list(data_of(clip, *image, *ids, "--stack", "text")["attention"]) == ["text"]
    result = invoke(clip, *image, *ids, "-o", tmp_path / "a.svg", "-o", tmp_path / "a.html")
    assert "\n  text layer 0, mean of 2 heads   text layer 1" in result.stdout
    assert "\n   image layer 0, mean of 2 heads, [CLS]: up to " in result.stdout
    assert "tiny-clip: image" in (tmp_path / "a.svg").read_text()
    assert '"rows":2' in (tmp_path / "a.html").read_text().replace(" ", "")


def test_texts_are_filled_up_where_a_model_reads_them_so(place: Path, tmp_path: Path) -> None:
    """As SigLIP does, which pools at the last token of all."""
    head = {"kind": "pooled", "pooling": "last", "projection": 6, "normalize": True, "output": "text_embeds"}
    spec = clip(name="tiny-siglip")
    assert spec.text is not None
    data = resolved(spec)
    data["text"] |= {"causal": False, "head": head}
    (tmp_path / "siglip.yaml").write_text(dump(data | {"vocab_size": 300}))
    (tmp_path / "tokenizer.json").write_bytes((place / "tiny-gpt" / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"pad_token": "!"}))
    data = data_of(tmp_path / "siglip.yaml", "--text", "ab")
    assert [each["token"] for each in data["tokens"]["text"]] == ["a", "b", *"!" * 8]


def test_text_about_an_image(place: Path) -> None:
    """A vision-language model: placeholders of the image come first where a prompt has none."""
    model, image = place / "llava.yaml", ["--image", place / "red.png"]
    data = data_of(model, *image, "--ids", "3,5", "--max-new-tokens", "2")
    assert list(data["attention"]) == ["image", "decoder"]
    assert [each["id"] for each in data["tokens"]["decoder"]][:6] == [19, 19, 19, 19, 3, 5]
    assert len(data["written_ids"]) == 2
    assert list(data_of(model, *image)["attention"]) == ["image"]
    assert list(data_of(model, "--ids", "3,5")["attention"]) == ["decoder"]
    result = invoke(model, *image, "--ids", "3,5")
    assert "\n   image layer 0, mean of 2 heads, [CLS]: up to " in result.stdout
    assert "decoder layer 1, mean of 2 heads" in result.stdout


@pytest.mark.slow
def test_words_of_an_image(tmp_path: Path, place: Path) -> None:
    """Attention of generated tokens to patches: one grid for each token."""
    (tmp_path / "trocr.yaml").write_text(dump(resolved(trocr())))
    image = ["--image", place / "red.png", "--max-new-tokens", "2", "--stack", "cross"]
    data = data_of(tmp_path / "trocr.yaml", *image)
    assert torch.tensor(data["attention"]["cross"]["layers"][0]["heads"][0]["weights"]).shape == (2, 5)
    drawn = [tmp_path / "a.png", tmp_path / "a.html"]
    result = invoke(tmp_path / "trocr.yaml", *image, "-o", drawn[0], "-o", drawn[1])
    assert result.exit_code == 0, result.stderr
    first, second = (each["id"] for each in data["tokens"]["decoder"])
    title = "layer 1, mean of 2 heads"
    assert result.stdout.splitlines()[2].startswith(f"   {title}, {first}: up to ")
    assert f"{title}, {second}: up to " in result.stdout.splitlines()[2]
    assert all(path.is_file() for path in drawn)


def test_seeds_and_weights(place: Path) -> None:
    def weights(*options: str) -> Any:
        data = data_of(place / "bert.yaml", "--ids", "1,2", *options)
        return data["weights"], data["attention"]["encoder"]["layers"][0]["heads"][0]["weights"]

    assert weights()[0] == "random, seed 0"
    assert weights() == weights("--weights", "random", "--seed", "0") != weights("--seed", "1")


def test_many_heads_are_summarised() -> None:
    small = ["d_model=64", "decoder.layers=2", "decoder.block.feed_forward.hidden=8", "vocab_size=20"]
    result = invoke("llama-3-8b", *(part for each in small for part in ("--set", each)), "--ids", "1,2,3")
    assert result.exit_code == 0
    assert "decoder   heads   least   mean   most   uniform\n" in result.stdout
    assert "\nlayer 1      32    " in result.stdout


@pytest.mark.slow
def test_files(place: Path, tmp_path: Path) -> None:
    made = tmp_path / "new"
    files = ["-o", made / "a.png", "-o", made / "a.svg", "-o", made / "a.html"]
    result = invoke(place / "t5.yaml", "--ids", "5,6", *files)
    assert result.exit_code == 0
    with Image.open(made / "a.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 300
    page = (made / "a.html").read_text()
    assert page.startswith("<!doctype html>")
    assert sorted(path.name for path in made.iterdir()) == ["a.html", "a.png", "a.svg"]
    assert (made / "a.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_too_many_maps_are_drawn_as_means(tmp_path: Path) -> None:
    many = ["--set", "decoder.layers=33", "--set", "decoder.block.attention.heads=8", "--set", "d_model=16"]
    assert invoke("tiny-gpt", *many, "--ids", "1,2", "-o", tmp_path / "a.png").exit_code == 0
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.width < 1000


# ---------------------------------------------------------------------------------------------------- in a terminal

TWO = [Panel("first", 3), Panel("second", 2)]
ROWS: list[Row] = [("ab", ([1.0, None, None], [0.25, 0.75])), ("cd", ([0.5, 0.5, None], [1.0, 0.0]))]
LABELS = [["ab", "cd", "e"], ["x", "sink"]]


def printed(width: int, colors: str | None = None, rows: Iterator[Row] | None = None) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=colors, force_terminal=bool(colors))  # type: ignore[arg-type]
    print_maps(out, TWO, rows or iter(ROWS), lambda: LABELS, 2)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_maps_side_by_side() -> None:
    assert (
        printed(80)
        == """\
   first          second
ab  100   ·   ·     25  75
cd   50  50   ·    100   0
      a   c   e      x   s
      b   d              i
                         n
                         k

"""
    )


def test_maps_that_do_not_fit_move_below_or_are_cut() -> None:
    assert (
        printed(16)
        == """\
   first
ab  100   ·   ·
cd   50  50   ·
      a   c   e
      b   d

   second
ab   25  75
cd  100   0
      x   s
          i
          n
          k

"""
    )
    assert printed(13).splitlines()[:6] == [
        "   first", "ab  100   ·", "cd   50  50", "      a   c", "      b   d",
        "   Showing the first 2 of 3 columns; --output FILE shows all.",
    ]  # fmt: skip


def test_rows_are_streamed() -> None:
    out = Console(file=io.StringIO(), width=80, color_system=None)
    assert isinstance(out.file, io.StringIO)
    seen = []

    def rows() -> Iterator[Row]:
        for row in ROWS:
            seen.append(out.file.getvalue().count("\n"))  # type: ignore[attr-defined]
            yield row

    print_maps(out, TWO, rows(), lambda: LABELS, 2)
    assert seen == [1, 2]


def test_colors_where_there_are_enough() -> None:
    colored = printed(80, "truecolor")
    assert "\x1b[48;2;247;252;217m  \x1b[0m" in colored  # all, in the lightest colour
    assert "100" not in colored
    for colors in ("standard", None):
        assert " 100   ·" in printed(80, colors)
    out = Console(file=io.StringIO(), width=80, color_system="truecolor", force_terminal=True)
    assert legend(out).plain.endswith(" 100% of a query token's attention")


def test_wide_signs_take_two_columns() -> None:
    out = Console(file=io.StringIO(), width=80, color_system="truecolor", force_terminal=True)
    assert isinstance(out.file, io.StringIO)
    print_maps(out, [Panel("", 2)], [("東京", ([1.0, 0.0],))], lambda: [["東", "京"]], 4)
    assert out.file.getvalue().splitlines()[-2].rstrip() == "     東京"


def test_long_texts_are_cut_to_what_fits(place: Path) -> None:
    wide = ["tiny-gpt", "--ids", ",".join(map(str, range(60)))]
    lines = invoke(*wide, "--layer", "0", "--head", "0").stdout.splitlines()
    assert "   Showing the first 39 of 60 columns; --output FILE shows all." in lines
    assert [line.split()[0] for line in lines[3:42]] == list(map(str, range(39)))
    grown = invoke(*wide, "--layer", "0", "--head", "0", "--max-new-tokens", "3").stdout.splitlines()
    assert len(grown) == len(lines) + 60 + 2 - 39 + 2  # and what was written


# ---------------------------------------------------------------------------------------------------- what is refused

REFUSED = [
    (["bert.yaml"], "No input.\n  Pass --text, or token ids such as --ids 1,2,3."),
    (["bert.yaml", "--ids", "1", "--text", "a"], "--text and --ids are mutually exclusive.\n  Pass --text, or token ids"),
    (["bert.yaml", "--ids", ""], "A prompt must have at least one token\n  value: []\n  Pass --text or --ids with at least one token."),
    (["bert.yaml", "--ids", "1,two"], "--ids must be comma-separated whole numbers.\n  value: '1,two'\n  Pass a list such as 1,2,3."),
    (["t5.yaml", "--ids", "1", "--target-ids", "x"], "--target-ids must be comma-separated whole numbers.\n  value: 'x'\n"),
    (["bert.yaml", "--ids", "1,300"], "Token ids must be below the vocab_size of tiny-bert, which is 300\n  value: 300\n  Use 0 to 299."),
    (["t5.yaml", "--ids", "1", "--target-ids", "301"], "Token ids must be below the vocab_size of tiny-t5, which is 300\n  value: 301"),
    (["bert.yaml", "--text", "a"], "--text needs a tokenizer, and there is no tokenizer.json beside the weights.\n  Pass --tokenizer"),
    (["t5.yaml", "--ids", "1", "--target-text", "a"], "--target-text needs a tokenizer, and there is no tokenizer.json beside"),
    (["bert.yaml", "--ids", ",".join("1" * 11)], "A prompt must fit the context of tiny-bert, which is 10 tokens\n  value: 11 tokens"),
    (["gpt2.yaml", "--ids", "1,2", "--max-new-tokens", "10"],
     "Input and new tokens must fit the context of tiny-gpt2, which is 10 tokens.\n"
     "  value: 2 tokens, and --max-new-tokens 10\n  Pass --max-new-tokens 9 or less."),
    (["bert.yaml", "--ids", "1", "--max-new-tokens", "1"],
     "--max-new-tokens needs a head of kind language_modeling, and the head of tiny-bert is none.\n  value: 1\n  Remove the option."),
    (["gpt2.yaml", "--ids", "1", "--target-ids", "1"],
     "--target-ids applies only to encoder-decoders, and tiny-gpt2 is architecture: decoder.\n  value: '1'\n  Pass the whole input"),
    (["t5.yaml", "--ids", "1", "--target-ids", "1", "--target-text", "a"],
     "--target-text and --target-ids are mutually exclusive.\n  Pass one of them."),
    (["gpt2.yaml", "--text", "a", "--text", "b"],
     "tiny-gpt2 takes one text; only encoders take a pair.\n  value: 2 texts\n  Join them into one."),
    (["t5.yaml", "--text", "a", "--text", "b"],
     "tiny-t5 takes one text; only encoders take a pair.\n  value: 2 texts\n  Pass the decoder input as --target-text."),
    (["bert.yaml", "--text", "a", "--text", "b", "--text", "c"],
     "tiny-bert takes at most a pair of texts.\n  value: 3 texts\n  Pass --text twice."),
    (["vit.yaml", "--ids", "1"], "tiny-vit takes pixel_values, which --ids does not give\n  Pass --image."),
    (["vit.yaml"], "No input.\n  Pass --image with a file."),
    (["vit.yaml", "--image", "absent.png"], "absent.png cannot be read: No such file or directory.\n  Check the file."),
    (["vit.yaml", "--image", "tiny-gpt"], "tiny-gpt is a directory, and zoo attend shows one input.\n  Pass one file of it."),
    (["bert.yaml", "--image", "absent.png"], "tiny-bert takes input_ids, which --image does not give\n  Pass --text."),
    (["vit.yaml", "--image", "red.png", "--max-new-tokens", "1"], "--max-new-tokens needs a head of kind language_modeling"),
    (["whisper.yaml", "--image", "red.png"], "tiny-whisper takes input_features, which --image does not give\n  Pass --audio."),
    (["whisper.yaml", "--audio", "long.wav"],
     "long.wav: must last at most 0.12 seconds, the length of an input of tiny-whisper\n  value: 2 inputs\n  Pass a shorter"),
    (["speech.yaml", "--audio", "short.wav"], "short.wav: a recording must have at least 20 samples for tiny-wav2vec2"),
    (["speech.yaml", "--set", "context_length=30", "--audio", "long.wav"],
     "A recording must fit the context of tiny-wav2vec2+context_length=30, which is 30 frames\n  value: 319 frames\n  Pass a shorter recording."),
    (["clip.yaml"], "No input.\n  Pass --text, or token ids such as --ids 1,2,3, and --image with a file."),
    (["clip.yaml", "--audio", "long.wav"], "tiny-clip takes input_ids and pixel_values, which --audio does not give\n  Pass --text."),
    (["clip.yaml", "--image", "red.png", "--stack", "text"],
     "The text stack of tiny-clip takes input_ids, and --text is missing\n  value: --stack text\n  Pass --text, or another --stack."),
    (["llava.yaml", "--image", "red.png", "--stack", "decoder"],
     "The decoder stack of tiny-llava takes input_ids, and --text is missing\n  value: --stack decoder\n  Pass --text, or another"),
    (["clip.yaml", "--ids", "1", "--stack", "encoder"],
     "tiny-clip has no such attention: its architecture is dual-encoder\n  value: --stack encoder\n  Use text or image."),
    (["clip.yaml", "--image", "red.png", "--target-ids", "1"], "--target-ids applies only to encoder-decoders, and tiny-clip is"),
    (["wide.yaml", "--ids", ",".join(["1"] * 17000)],
     "The attention maps of wide must have at most 268,435,456 weights\n  value: 1,156,000,000\n  Choose fewer layers, heads or"),
    (["bert.yaml", "--ids", "1", "--layer", "2"], "The encoder of tiny-bert has no such layer\n  value: --layer 2\n  Use 0 to 1."),
    (["bert.yaml", "--ids", "1", "--layer", "3-1"],
     "--layer must be comma-separated whole numbers and ranges.\n  value: '3-1'\n  Pass a list such as 0,3-5."),
    (["bert.yaml", "--ids", "1", "--head", "0,2"],
     "Layer 0 of the encoder of tiny-bert has no such head\n  value: --head 2\n  Use 0 to 1."),
    (["bert.yaml", "--ids", "1", "--head", "all"], "--head must be comma-separated whole numbers and ranges, or mean.\n  value: 'all'"),
    (["bert.yaml", "--ids", "1", "--stack", "cross"],
     "tiny-bert has no such attention: its architecture is encoder\n  value: --stack cross\n  Use encoder."),
    (["bert.yaml", "--ids", "1", "--stack", "crss"], "--stack 'crss' is unknown\n  Did you mean 'cross'?"),
    (["bert.yaml", "--ids", "1", "--weights", "gone"], "'gone' has no weights (did you mean 'none'?)\n  Pass random"),
    (["gone", "--ids", "1"], "A model must be a preset, a file, a checkpoint or a hub repository\n  value: 'gone'"),
    (["bert.yaml", "--ids", "1", "--tokenizer", "bert.yaml"], "bert.yaml is no tokenizer: "),
]  # fmt: skip


@one_in(3)
@pytest.mark.parametrize(
    ("arguments", "message"),
    REFUSED,
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_refused(arguments: list[str], message: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    result, data = invoke(*arguments), invoke(*arguments, "--json")
    assert (result.exit_code, result.stdout, data.exit_code) == (2, "", 2)
    lines = result.stderr.splitlines(keepends=True)
    told = "".join(line for line in lines if not line.startswith("There is no preprocessor_config.json: "))
    assert told.startswith(message)
    assert json.loads(data.stdout)["errors"][0]["message"] + "\n" == told


def test_the_suffix_of_a_file_sets_its_format(place: Path, tmp_path: Path) -> None:
    result = invoke(place / "bert.yaml", "--ids", "1", "-o", tmp_path / "a.gif")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"--output must end in .png, .svg or .html.\n  value: '{tmp_path / 'a.gif'}'\n  Pass a path such as {tmp_path / 'a.png'}.\n"
    )
    result = invoke(place / "bert.yaml", "--ids", "1", "-o", tmp_path)
    assert result.exit_code == 2


def test_pictures_need_a_library(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke(place / "bert.yaml", "--ids", "1", "-o", tmp_path / "a.png")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "Pictures need more libraries\n  Run pip install 'zoo[pictures]'.\n"


def test_a_place_that_cannot_be_written(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke(place / "bert.yaml", "--ids", "1", "-o", tmp_path / "file" / "a.html")
    assert result.exit_code == 2
    assert (
        result.stderr
        == f"Cannot write {tmp_path / 'file' / 'a.html'}: {tmp_path / 'file'} is a file.\n  Pass another --output.\n"
    )


@pytest.mark.slow
def test_the_program_itself(place: Path) -> None:
    """As a process: no warnings, and mistakes are told before torch is loaded."""
    done = zoo("attend", str(place / "gpt2.yaml"), "--ids", "1,2,3", env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert "layer 0, mean of 2 heads   layer 1, mean of 2 heads" in done.stdout
