"""The catalog of presets, read as text so that a listing needs no YAML parsing or validation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from specs.base.result_table import ResultTable
from specs.base.tabular import Tabular
from specs.language.preset_files import PRESETS, preset_names

ARCHITECTURES = ("encoder", "decoder", "encoder-decoder", "dual-encoder", "vision-language")


@dataclass(frozen=True)
class Preset(Tabular):
    """A preset in a listing.

    ``hub`` is the repository of the weights on the Hugging Face hub, as in ``org/name``, where the source names one.
    ``parameters`` and ``active_parameters`` are the published counts; ``features`` are parts of its architecture, such as
    "mixture of experts", and ``tasks`` what it is for, such as "translation".
    """

    name: str
    architecture: str
    parameters: int | None
    active_parameters: int | None
    year: int | None
    summary: str
    source: str
    features: tuple[str, ...]
    tasks: tuple[str, ...]
    hub: str | None

    def table(self) -> ResultTable:
        """The known fields."""
        counted = "" if self.parameters is None else f", {self.parameters:,} parameters"
        year = "" if self.year is None else f", {self.year}"
        rows = [(name, _words(value)) for name, value in vars(self).items() if value]
        return ResultTable(f"{self.name}: {self.architecture}{counted}{year}", ("field", "value"), rows)


class Presets(list[Preset], Tabular):
    """A list of presets that prints as a table."""

    def table(self) -> ResultTable:
        """Name, architecture, parameters and year of each preset."""
        rows = [
            (entry.name, entry.architecture, _words(entry.parameters or ""), str(entry.year or ""))
            for entry in self
        ]
        title = f"{len(rows):,} preset{'' if len(rows) == 1 else 's'}"
        return ResultTable(title, ("name", "architecture", "parameters", "year"), rows)


def _words(value: object) -> str:
    match value:
        case tuple():
            return ", ".join(value)
        case int() if value > 10_000:
            return f"{value:,}"
    return str(value)


_IN_DECODER = r"(?m)^decoder:(?:\n[ ].*)*?"

FEATURES = {
    "mixture of experts (moe)": (r"kind: mixture\b", None),
    "sliding window": (r"\bwindow: *[0-9]", r"\bwindow: null"),
    "grouped-query attention (gqa)": (
        r"kind: grouped_query\b",
        _IN_DECODER + r"kind: multi_(?:head|query)\b",
    ),
    "multi-query attention (mqa)": (
        r"kind: multi_query\b",
        _IN_DECODER + r"kind: (?:multi_head|grouped_query)\b",
    ),
    "latent attention (mla)": (r"kind: latent\b", None),
    "rotary positions (rope)": (r"kind: (?:axial_)?rope\b", None),
    "alibi": (r"kind: alibi\b", None),
    "relative positions": (r"kind: (?:relative_\w+|disentangled)\b", r"position: \{kind: rope\b"),
    "state space (ssm)": (r"kind: mamba2?\b", None),
    "linear attention": (r"kind: (?:gated_delta_net|kimi_delta_attention|linear_attention|rwkv7)\b", None),
    "short convolutions": (r"kind: short_convolution\b", None),
    "shared layers": (r"\bsharing:", None),
    "qk norm": (r"\bqk_norm:(?! null)", r"\bqk_norm: null"),
    "attention sinks": (r"\bsinks: true", None),
}
"""The YAML that has each feature, and the YAML of a variant that takes it from its base."""

_TASKS = {
    "translation": r"opus-mt|nllb|m2m|translat",
    "summarization": r"pegasus|summar(?:y|ies|iz)",
    "sentence embeddings": r"sentence encoder|embedding model|retriev|embedd?ings? of sentences",
    "reranking": r"rerank|cross-encoder",
    "speech recognition": r"whisper|moonshine|parakeet|wav2vec|speech|hubert",
    "image classification": r"imagenet",
    "object detection": r"owl|detect",
    "image captioning": r"blip|caption",
}
"""The names and summaries by which a task is known."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_HUB = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]*\w)")

_IMAGES, _SOUND = r"kind: (?:patches|packed_patches)\b", r"kind: (?:\w*spectrogram|frames|\w*waveform)\b"


def presets(
    *words: str,
    architecture: str | None = None,
    min_parameters: float | None = None,
    max_parameters: float | None = None,
    since: int | None = None,
    until: int | None = None,
) -> Presets:
    """The presets that match all filters, in the order of the numbers in their names.

    Every word has to occur in the name, the summary, the source, the architecture, a feature, a task or the hub repository;
    a number has to occur as a number, and a word with the wildcards * and ? has to match the name. Bounds leave out presets whose count or year is unknown.
    """
    names = preset_names()
    texts = {name: (PRESETS / f"{name}.yaml").read_text("utf-8") for name in names}
    data = {name: _first_values(text) for name, text in texts.items()}
    entries = [_preset(texts, data, name) for name in names]
    return Presets(
        entry
        for entry in entries
        if (architecture is None or entry.architecture == architecture)
        and _within(entry.parameters, min_parameters, max_parameters)
        and _within(entry.year, since, until)
        and all(_matches(word.casefold(), entry) for word in words)
    )


def _within(value: float | None, least: float | None, most: float | None) -> bool:
    if value is None:
        return least is None and most is None
    return (least is None or value >= least) and (most is None or value <= most)


def _matches(word: str, entry: Preset) -> bool:
    if "*" in word or "?" in word:
        return fnmatchcase(entry.name, word)
    texts = (
        entry.name,
        entry.summary,
        entry.source,
        entry.architecture,
        *entry.features,
        *entry.tasks,
        entry.hub or "",
    )
    text = " ".join(texts).casefold()
    if _NUMBER.fullmatch(word):  # "3" is in "llama-3.1", and not in "1.3 billion" or "2307.09288"
        return re.search(rf"(?<![\d.]){re.escape(word)}(?!\d)", text) is not None
    return word in text


def _preset(texts: Mapping[str, str], data: Mapping[str, Mapping[str, str]], name: str) -> Preset:
    count, active = (data[name].get(key) for key in _COUNTS)
    year = _inherited(data, name, "year")
    summary, architecture = data[name].get("summary", ""), _inherited(data, name, "architecture")
    bases = [texts[base] for base in _bases(data, name)]
    yaml = "\n".join(bases)
    return Preset(
        name,
        architecture,
        int(count) if count else None,
        int(active) if active else None,
        int(year) if year else None,
        summary,
        _inherited(data, name, "source"),
        tuple(feature for feature, patterns in FEATURES.items() if _has(bases, *patterns)),
        tuple(_tasks(f"{name} {summary}".casefold(), architecture, yaml)),
        hub[1] if (hub := _HUB.search(data[name].get("source", ""))) else None,
    )


def _has(bases: Sequence[str], has: str, removes: str | None) -> bool:
    """Whether a preset or one of its bases has a feature that no nearer one removes."""
    for text in bases:
        if _occurs(has, text):
            return True
        if removes is not None and _occurs(removes, text):
            return False
    return False


@cache
def _occurs(pattern: str, text: str) -> bool:
    """Whether a pattern occurs in the text of a preset, which many others extend."""
    return _compiled(pattern).search(text) is not None


_compiled = cache(re.compile)


def _tasks(text: str, architecture: str, yaml: str) -> Iterator[str]:
    yield from (task for task, pattern in _TASKS.items() if _compiled(pattern).search(text))
    if "kind: masked_language_modeling" in yaml:
        yield "fill mask"
    if architecture == "vision-language":
        yield "visual question answering"
    if architecture == "dual-encoder":
        yield "zero-shot image classification"
    if architecture == "decoder":
        yield "text generation"
    if re.search(_IMAGES, yaml):
        yield "images"
    if re.search(_SOUND, yaml):
        yield "audio"


_TOP_LEVEL = re.compile(r"^([a-z_]+): *(.*)$", re.MULTILINE)
_COUNTS = ("parameters", "active_parameters")
_EXPECTED = {
    key: re.compile(rf"^expect:(?:(?!^\S).)*?\b{key}: *(\d+)", re.MULTILINE | re.DOTALL) for key in _COUNTS
}


def _first_values(text: str) -> dict[str, str]:
    """The top-level scalar values of a preset, and its expected parameter counts."""
    values = {key: value.strip("'\"") for key, value in _TOP_LEVEL.findall(text)}
    counts = {key: count[1] for key, pattern in _EXPECTED.items() if (count := pattern.search(text))}
    return values | counts


def _bases(data: Mapping[str, Mapping[str, str]], name: str) -> Iterator[str]:
    """A preset, the preset that it extends, and so on."""
    yield name
    while "extends" in data[name]:
        name = data[name]["extends"]
        yield name


def _inherited(data: Mapping[str, Mapping[str, str]], name: str, key: str) -> str:
    """A preset's own value, or else the value of the nearest preset that it extends."""
    return next((data[base][key] for base in _bases(data, name) if key in data[base]), "")
