"""Tiny checkpoints of the reference implementation, with a tokenizer, whose scores leave no doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tests.parity.minilm import SENTENCES

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
VOCABULARY = 320
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96}
GROUPED = {**SIZES, "num_key_value_heads": 2, "max_position_embeddings": 128}
BOTH = {
    "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "max_position_embeddings": 128,
}  # fmt: skip
SPREAD = 0.3
"""The standard deviation of the weights: far more than usual, so that one token is always clearly the best."""


def gpt2() -> PreTrainedModel:
    """Learned positions, biases, a tied head."""
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=128, **TOKENS
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> PreTrainedModel:
    """Rotated positions and grouped heads."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=VOCABULARY, **GROUPED, **TOKENS))


def gemma2() -> PreTrainedModel:
    """Layers with a window and without one in turn, a soft cap and no sinks."""
    config = transformers.Gemma2Config(
        vocab_size=VOCABULARY, sliding_window=8, head_dim=16, attn_implementation="eager", **GROUPED, **TOKENS
    )
    return transformers.Gemma2ForCausalLM(config)


def mistral() -> PreTrainedModel:
    """Grouped heads, and a window that the generated text outgrows."""
    config = transformers.MistralConfig(vocab_size=VOCABULARY, sliding_window=8, **GROUPED, **TOKENS)
    return transformers.MistralForCausalLM(config)


def qwen3() -> PreTrainedModel:
    """Norms of queries and keys, which ONNX Runtime computes inside attention on WebGPU."""
    config = transformers.Qwen3Config(vocab_size=VOCABULARY, head_dim=16, **GROUPED, **TOKENS)
    return transformers.Qwen3ForCausalLM(config)


def qwen3_moe() -> PreTrainedModel:
    """Experts of which each token has two."""
    sizes = {"moe_intermediate_size": 32, "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": True}
    config = transformers.Qwen3MoeConfig(vocab_size=VOCABULARY, head_dim=16, **sizes, **GROUPED, **TOKENS)
    return transformers.Qwen3MoeForCausalLM(config)


def mixtral() -> PreTrainedModel:
    """Experts without norms of queries and keys."""
    sizes = {"num_local_experts": 4, "num_experts_per_tok": 2}
    config = transformers.MixtralConfig(vocab_size=VOCABULARY, **sizes, **GROUPED, **TOKENS)
    return transformers.MixtralForCausalLM(config)


def lfm2() -> PreTrainedModel:
    """Short convolutions, and attention in every second layer."""
    config = transformers.Lfm2Config(
        vocab_size=VOCABULARY, layer_types=["conv", "full_attention"], **GROUPED, **TOKENS
    )
    return transformers.Lfm2ForCausalLM(config)


def granite_hybrid() -> PreTrainedModel:
    """Mamba-2, and attention in every second layer."""
    mamba = {
        "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_expand": 2, "mamba_n_groups": 1,
    }  # fmt: skip
    experts = {"num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 96}
    config = transformers.GraniteMoeHybridConfig(
        vocab_size=VOCABULARY, layer_types=["mamba", "attention"], **mamba, **experts, **GROUPED, **TOKENS
    )
    return transformers.GraniteMoeHybridForCausalLM(config)


def falcon_h1() -> PreTrainedModel:
    """Attention and Mamba-2 side by side in every layer, with multipliers."""
    mamba = {
        "mamba_d_ssm": 96, "mamba_n_heads": 4, "mamba_d_state": 16, "ssm_multipliers": [1.0, 0.5, 0.7, 0.7, 1.0],
    }  # fmt: skip
    factors = {"key_multiplier": 0.5, "attention_out_multiplier": 0.9, "mlp_multipliers": [0.9, 0.6]}
    config = transformers.FalconH1Config(vocab_size=VOCABULARY, **mamba, **factors, **GROUPED, **TOKENS)
    return transformers.FalconH1ForCausalLM(config)


def zamba2() -> PreTrainedModel:
    """Mamba-2 in every layer, beside a shared transformer in two of them.

    The reference's full pass clamps step sizes to ``time_step_min`` and its cached steps do not, so no step is that small.
    """
    mamba: dict[str, Any] = {"n_mamba_heads": 4, "mamba_d_state": 16, "time_step_min": 1e-9}
    mamba["layers_block_type"] = ["hybrid", "mamba", "hybrid"]
    adapters = {"adapter_rank": 4, "use_shared_attention_adapter": True, "use_mem_rope": True}
    sizes = {**GROUPED, "num_hidden_layers": 3, "num_key_value_heads": GROUPED["num_attention_heads"]}
    config = transformers.Zamba2Config(vocab_size=VOCABULARY, **mamba, **adapters, **sizes, **TOKENS)
    return transformers.Zamba2ForCausalLM(config)


def qwen3_next() -> PreTrainedModel:
    """The gated delta rule, gated attention in every second layer, and experts."""
    sizes = {"moe_intermediate_size": 32, "num_experts": 6, "num_experts_per_tok": 2, "head_dim": 16}
    linear = {
        "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16,
        "linear_value_head_dim": 16, "shared_expert_intermediate_size": 32,
    }  # fmt: skip
    kinds = {"layer_types": ["linear_attention", "full_attention"]}
    config = transformers.Qwen3NextConfig(
        vocab_size=VOCABULARY, **kinds, **sizes, **linear, **GROUPED, **TOKENS
    )
    return transformers.Qwen3NextForCausalLM(config)


def qwen3_5() -> PreTrainedModel:
    """The gated delta rule, and gated attention in every second layer."""
    linear = {
        "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 16,
        "linear_value_head_dim": 16, "layer_types": ["linear_attention", "full_attention"], "head_dim": 16,
    }  # fmt: skip
    config = transformers.Qwen3_5TextConfig(vocab_size=VOCABULARY, **linear, **GROUPED, **TOKENS)
    return transformers.Qwen3_5ForCausalLM(config)


def nemotron_h() -> PreTrainedModel:
    """One branch in each layer: Mamba-2, a feed-forward or attention."""
    mamba = {"mamba_num_heads": 4, "mamba_head_dim": 32, "ssm_state_size": 16, "n_groups": 1, "head_dim": 16}
    layers = {"layers_block_type": ["mamba", "mlp", "attention", "mlp"]}
    sizes = {name: size for name, size in GROUPED.items() if name != "num_hidden_layers"}
    config = transformers.NemotronHConfig(vocab_size=VOCABULARY, **layers, **mamba, **sizes, **TOKENS)
    return transformers.NemotronHForCausalLM(config)


def mamba2() -> PreTrainedModel:
    """State alone: no layer has attention."""
    sizes = {
        "num_hidden_layers": 2, "hidden_size": 64, "num_heads": 4, "head_dim": 32, "state_size": 16, "n_groups": 1,
    }  # fmt: skip
    return transformers.Mamba2ForCausalLM(transformers.Mamba2Config(vocab_size=VOCABULARY, **sizes, **TOKENS))


def t5() -> PreTrainedModel:
    """Relative biases, and heads that are wider than their share of the model."""
    sizes = {"d_model": 64, "d_kv": 24, "d_ff": 96, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(vocab_size=VOCABULARY, **sizes, **TOKENS, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


def bart() -> PreTrainedModel:
    """Learned positions with an offset."""
    config = transformers.BartConfig(
        vocab_size=VOCABULARY, **BOTH, **TOKENS, decoder_start_token_id=2, forced_eos_token_id=None
    )
    return transformers.BartForConditionalGeneration(config)


def usual(model_type: str) -> PreTrainedModel:
    """A decoder whose config has Llama's names."""
    config = transformers.CONFIG_MAPPING[model_type](vocab_size=VOCABULARY, head_dim=16, **GROUPED, **TOKENS)
    return transformers.AutoModelForCausalLM.from_config(config)


def encoder(model_type: str, **more: Any) -> PreTrainedModel:
    """An encoder of texts whose config has BERT's names."""
    sizes = {**SIZES, "max_position_embeddings": 128, **more}
    config = transformers.CONFIG_MAPPING[model_type](vocab_size=VOCABULARY, **sizes, **TOKENS)
    return transformers.AutoModel.from_config(config)


def encoder_of_images(model_type: str, **more: Any) -> PreTrainedModel:
    """An encoder of images whose config has ViT's names."""
    sizes = {**SIZES, "image_size": 32, "patch_size": 8, **more}
    return transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[model_type](**sizes))


SEEDS = {"cohere2": 8, "longt5": 9, "m2m_100": 8, "mixtral": 8}
"""Those of models that others leave in doubt about a token, or at its end after one."""


def modernbert_decoder() -> PreTrainedModel:
    """Windows in two of three layers, and a transform before the scores."""
    sizes = {**SIZES, "local_attention": 8, "max_position_embeddings": 128}
    special = {**TOKENS, "cls_token_id": 1, "sep_token_id": 2}
    config = transformers.ModernBertDecoderConfig(vocab_size=VOCABULARY, **sizes, **special)
    return transformers.ModernBertDecoderForCausalLM(config)


def maker(name: str) -> Callable[[], PreTrainedModel]:
    """What makes the model of a name: a function here, or the usual config of that model_type."""
    own: Callable[[], PreTrainedModel] | None = globals().get(name)
    return own or partial(usual, name)


def gpt_bigcode() -> PreTrainedModel:
    """GPT-2 with the projections of queries, keys and values as one."""
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "multi_query": False}
    return transformers.GPTBigCodeForCausalLM(
        transformers.GPTBigCodeConfig(vocab_size=VOCABULARY, **sizes, **TOKENS)
    )


def mpt() -> PreTrainedModel:
    """Linear biases."""
    config = transformers.MptConfig(vocab_size=VOCABULARY, d_model=64, n_heads=4, n_layers=2, **TOKENS)
    return transformers.MptForCausalLM(config)


def codegen() -> PreTrainedModel:
    """Rotated parts of heads, and both branches at once."""
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "rotary_dim": 8}
    config = transformers.CodeGenConfig(vocab_size=VOCABULARY, **sizes, **TOKENS)
    return transformers.CodeGenForCausalLM(config)


def m2m_100() -> PreTrainedModel:
    """Sinusoids, and norms before the branches."""
    config = transformers.M2M100Config(
        vocab_size=VOCABULARY, **BOTH, **TOKENS, decoder_start_token_id=2, forced_eos_token_id=None
    )
    return transformers.M2M100ForConditionalGeneration(config)


def longt5() -> PreTrainedModel:
    """An encoder that sees a window, and sums of blocks of four tokens."""
    sizes = {"d_model": 64, "d_kv": 24, "d_ff": 96, "num_layers": 2, "num_heads": 4, "local_radius": 3}
    blocks = {"encoder_attention_type": "transient-global", "global_block_size": 4}
    config = transformers.LongT5Config(
        vocab_size=VOCABULARY, **sizes, **blocks, **TOKENS, decoder_start_token_id=0
    )
    return transformers.LongT5ForConditionalGeneration(config)


def trocr() -> PreTrainedModel:
    """Images in, and a decoder that is wider than their encoder."""
    special = {**TOKENS, "decoder_start_token_id": 2}
    images = transformers.ViTConfig(image_size=32, patch_size=8, **{**SIZES, "hidden_size": 48})
    words = transformers.TrOCRConfig(
        vocab_size=VOCABULARY, d_model=64, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=96,
        max_position_embeddings=64, cross_attention_hidden_size=48, is_decoder=True, **special,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(images, words, **special)
    return transformers.VisionEncoderDecoderModel(config)


def clip() -> PreTrainedModel:
    """Texts and images of another width."""
    words = {**SIZES, "vocab_size": VOCABULARY, "max_position_embeddings": 32, **TOKENS}
    images = {**SIZES, "hidden_size": 48, "image_size": 32, "patch_size": 8}
    words["eos_token_id"] = _tokenizer().encode(" words").ids[-1]  # pooled at where a text first has it
    config = transformers.CLIPConfig(text_config=words, vision_config=images, projection_dim=24)
    return transformers.CLIPModel(config)


def gemma3(directory: Path, marks: list[str]) -> Checkpoint:
    """A decoder that reads images of 64 pixels as 256 vectors each, with the tokens of its prompts: before an image, of an image,
    and after one."""

    def make() -> PreTrainedModel:
        token = VOCABULARY + marks.index("<image_soft_token>")
        sizes = dict(num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)
        seen = dict(**sizes, hidden_size=48, image_size=64, patch_size=2, model_type="siglip_vision_model")
        said = dict(
            **sizes, **TOKENS, hidden_size=64, vocab_size=VOCABULARY + len(marks), head_dim=16, num_key_value_heads=2,
            max_position_embeddings=512, sliding_window=64, layer_types=["sliding_attention", "full_attention"],
            query_pre_attn_scalar=16,
        )  # fmt: skip
        config = transformers.Gemma3Config(
            vision_config=seen, text_config=said, image_token_index=token, mm_tokens_per_image=256,
            tie_word_embeddings=False,
        )  # fmt: skip
        return transformers.Gemma3ForConditionalGeneration(config)

    return checkpoint(make, directory, marks=marks)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in a directory, and what the reference makes of it."""

    directory: Path
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def no_repeat(self) -> int:
        """How many tokens in a row may not come again: of random weights, encoder-decoders say one token for ever."""
        return 1 if self.model.config.is_encoder_decoder else 0

    def greedy(self, texts: list[str], new_tokens: int) -> list[list[int]]:
        """The tokens that the reference generates after (or from) each of the texts, by itself."""
        return [self._greedy(text, new_tokens) for text in texts]

    def _greedy(self, text: str, new_tokens: int) -> list[int]:
        batch = self.tokenizer(text, return_tensors="pt")
        return self.generated(new_tokens, **batch)

    def generated(self, new_tokens: int, **inputs: torch.Tensor) -> list[int]:
        """The tokens that the reference generates from the inputs of one row."""
        with torch.no_grad():
            found = self.model.generate(
                **inputs, do_sample=False, min_new_tokens=new_tokens, max_new_tokens=new_tokens,
                no_repeat_ngram_size=self.no_repeat, output_scores=True, return_dict_in_generate=True,
            )  # fmt: skip
        best = torch.stack(found.scores).topk(2, -1)[0]
        assert float((best[..., 0] - best[..., 1]).min()) > 1e-3, "rounding may decide: draw other weights"
        return found.sequences[0, -new_tokens:].tolist()


def checkpoint(
    make: Callable[[], PreTrainedModel], directory: Path, seed: int = 7, marks: Sequence[str] = ()
) -> Checkpoint:
    """A model with random weights, saved with a tokenizer that has further special tokens."""
    torch.manual_seed(seed)
    model = make().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=SPREAD)
        else:
            parameter.data += SPREAD * torch.randn_like(parameter)
    side = "right" if model.config.is_encoder_decoder else "left"
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(), pad_token=PAD, bos_token=BOS, eos_token=EOS, padding_side=side,
        model_input_names=["input_ids", "attention_mask"], additional_special_tokens=list(marks),
    )  # fmt: skip
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return Checkpoint(directory, model, tokenizer)


def _tokenizer() -> Tokenizer:
    """Byte pairs, learned from a few sentences."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, BOS, EOS], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer
