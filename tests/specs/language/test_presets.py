"""Every preset: its published count, the architecture it stands for, and that nothing changes it unseen."""

import re
from typing import Any

import pytest

from specs.forms.resolved import resolved
from specs.kinds.mixture import Mixture
from specs.kinds.side_by_side import SideBySide
from specs.language.catalog import FEATURES, Preset, preset_names, presets
from specs.language.load import load
from specs.language.named_blocks import with_named_blocks
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump
from tests.specs import digests
from tests.thinned import one_in
from zoo.builder import assemble

PUBLISHED = {
    "albert-base-v2": 11_683_584,
    "albert-large-v2": 17_683_968,
    "albert-xlarge-v2": 58_724_864,
    "albert-xxlarge-v2": 222_595_584,
    "all-mpnet-base-v2": 109_486_464,
    "apertus-70b": 70_599_864_480,
    "apertus-8b": 8_053_338_176,
    "aya-23-8b": 8_028_033_024,
    "bamba-9b": 9_780_235_392,
    "bart-base": 139_420_416,
    "bart-large": 406_291_456,
    "bart-large-cnn": 406_290_432,
    "bart-large-mnli": 407_344_131,
    "bert-base": 109_482_240,
    "bert-base-cased": 108_310_272,
    "bert-base-mlm": 109_514_298,
    "bert-base-multilingual-cased": 177_853_440,
    "bert-base-sinusoidal": 108_496_896,
    "bert-large": 335_141_888,
    "bert-medium": 41_373_184,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-tiny": 4_385_920,
    "bge-base-en": 109_482_240,
    "bge-large-en": 335_141_888,
    "bge-small-en": 33_360_000,
    "bloom-176b": 176_247_271_424,
    "bloom-1b1": 1_065_314_304,
    "bloom-1b7": 1_722_408_960,
    "bloom-3b": 3_002_557_440,
    "bloom-560m": 559_214_592,
    "bloom-7b1": 7_069_016_064,
    "camembert-base": 110_621_952,
    "clip-vit-b16": 149_620_737,
    "clip-vit-b32": 151_277_313,
    "clip-vit-b32-text": 63_165_952,
    "clip-vit-l14": 427_616_513,
    "clip-vit-l14-336": 427_944_193,
    "owlvit-base-32": 152_838_662,
    "paligemma-3b-224": 2_923_466_480,
    "paligemma2-3b-224": 3_032_242_416,
    "long-t5-local-base": 247_577_856,  # these four of the reference's classes, by sizes of T5 1.1
    "long-t5-tglobal-base": 247_577_856 + 12 * 768 + 32 * 12,
    "long-t5-tglobal-large": 783_150_080 + 24 * 1024 + 32 * 16,
    "long-t5-tglobal-xl": 2_849_757_184 + 24 * 2048 + 32 * 32,
    "llava-1.5-7b": 7_050_828_800,  # of 7,063,427,072: the last layer of images and its norm are not read
    "llava-1.5-13b": 13_338_896_384,
    "idefics2-8b": 8_402_768_112,  # that of the reference class for sizes from memory
    "internvl3-1b": 938_193_024,  # those of the reference class for the sizes of the published configs
    "internvl3-2b": 2_088_957_440,
    "internvl3-8b": 7_944_373_760,
    "smolvlm-256m": 256_484_928,
    "smolvlm-500m": 507_482_304,
    "smolvlm-2.2b": 2_246_272_880,
    "clip-vit-l14-text": 123_060_480,
    "codegen-2b": 2_779_356_160,
    "codegen-350m": 356_712_448,
    "codellama-13b": 13_016_028_160,
    "codellama-34b": 33_743_970_304,
    "codellama-7b": 6_738_546_688,
    "command-r-35b": 34_980_831_232,
    "command-r7b": 8_028_033_024,
    "deberta-v3-base": 183_831_552,
    "deberta-v3-large": 434_012_160,
    "deberta-v3-small": 141_304_320,
    "deberta-v3-xsmall": 70_682_112,
    "deepseek-coder-1.3b": 1_346_471_936,
    "deepseek-coder-33b": 33_342_991_360,
    "deepseek-coder-6.7b": 6_740_512_768,
    "deepseek-llm-67b": 67_425_001_472,
    "deepseek-llm-7b": 6_910_365_696,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v3": 671_026_404_352,
    "beit-base-16": 86_530_984,
    "beit-base-16-384": 86_744_104,
    "beit-large-16": 304_430_568,
    "beit-large-16-384": 304_998_888,
    "beit-large-16-512": 305_674_728,
    "deit-base-16": 86_567_656,
    "deit-base-distilled-16": 87_338_192,
    "deit-base-distilled-16-384": 87_630_032,
    "deit-small-16": 22_050_664,
    "deit-small-distilled-16": 22_436_432,
    "deit-tiny-16": 5_717_416,
    "deit-tiny-distilled-16": 5_910_800,
    "distil-whisper-large-v3": 756_405_760,
    "distilbart-cnn-12-6": 305_510_400,
    "distilbert-base": 66_362_880,
    "distilgpt2": 81_912_576,
    "distilroberta-base": 82_118_400,
    "e5-base": 109_482_240,
    "e5-large": 335_141_888,
    "e5-small": 33_360_000,
    "electra-base": 108_891_648,
    "electra-large": 334_092_288,
    "electra-small": 13_483_008,
    "ernie-4.5-0.3b": 360_748_032,
    "ernie-4.5-21b-a3b": 21_825_436_160,
    "ettin-decoder-150m": 149_655_232,
    "ettin-decoder-17m": 16_913_600,
    "ettin-decoder-1b": 1_031_314_112,
    "ettin-decoder-32m": 32_081_344,
    "ettin-decoder-400m": 395_881_664,
    "ettin-decoder-68m": 68_457_664,
    "eurobert-2.1b": 2_107_590_912,
    "eurobert-210m": 211_766_016,
    "eurobert-610m": 607_874_688,
    "exaone-4-1.2b": 1_279_391_488,
    "exaone-4-32b": 32_003_216_384,
    "falcon-40b": 41_303_293_952,
    "falcon-7b": 6_921_720_704,
    "falcon-h1-0.5b": 521_411_104,
    "falcon-h1-7b": 7_585_648_736,
    "zamba-7b": 7_232_490_496,
    "zamba2-1.2b": 1_215_064_704,
    "zamba2-2.7b": 2_662_214_560,
    "zamba2-7b": 7_356_749_648,
    "falcon-mamba-7b": 7_272_665_088,
    "falcon-rw-1b": 1_311_625_216,
    "flan-t5-base": 247_577_856,
    "flan-t5-large": 783_150_080,
    "flan-t5-small": 76_961_152,
    "flan-t5-xl": 2_849_757_184,
    "flan-t5-xxl": 11_135_332_352,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma2-27b": 27_227_128_320,
    "gemma2-2b": 2_614_341_888,
    "gemma2-9b": 9_241_705_984,
    "gemma3-12b": 12_187_325_040,
    "gemma3-12b-text": 11_766_034_176,
    "gemma3-1b": 999_885_952,
    "gemma3-270m": 268_098_176,
    "gemma3-27b": 27_432_406_640,
    "gemma3-27b-text": 27_009_346_304,
    "gemma3-4b": 4_300_079_472,
    "gemma3-4b-text": 3_880_263_168,
    "gemma3n-e2b-text": 4_435_182_688,
    "gemma3n-e4b-text": 6_835_235_568,
    "gemma4-26b-a4b-text": 25_233_141_760,
    "gemma4-31b-text": 30_697_345_280,
    "gemma4-e2b-text": 4_628_569_344,
    "gemma4-e4b-text": 7_463_013_376,
    "glm-4-32b-0414": 32_566_081_536,
    "glm-4-9b": 9_399_951_360,
    "glm-4-9b-0414": 9_400_279_040,
    "glm-4.5": 352_797_814_784,
    "glm-4.5-air": 106_852_245_504,
    "gpt-j-6b": 6_050_882_784,
    "gpt-neo-1.3b": 1_315_575_808,
    "gpt-neo-125m": 125_198_592,
    "gpt-neo-2.7b": 2_651_307_520,
    "gpt-neox-20b": 20_554_567_680,
    "gpt-oss-120b": 116_829_156_672,
    "gpt-oss-20b": 20_914_757_184,
    "gpt1": 116_534_784,
    "gpt2": 124_439_808,
    "gpt2-large": 774_030_080,
    "gpt2-medium": 354_823_168,
    "gpt2-untied": 163_037_184,
    "gpt2-xl": 1_557_611_200,
    "gpt3-1.3b": 1_315_723_264,
    "gpt3-125m": 125_226_240,
    "gpt3-13b": 12_853_386_240,
    "gpt3-175b": 174_604_259_328,
    "gpt3-2.7b": 2_651_553_280,
    "gpt3-350m": 355_871_744,
    "gpt3-6.7b": 6_658_404_352,
    "gpt3-760m": 760_300_032,
    "granite-3.1-1b-a400m": 1_334_628_352,
    "granite-3.1-2b": 2_533_531_648,
    "granite-3.1-8b": 8_170_848_256,
    "granite-4.0-h-350m": 340_332_224,
    "granite-4.0-h-micro": 3_191_396_096,
    "granite-4.0-h-tiny": 6_939_037_248,
    "gte-base": 109_482_240,
    "gte-large": 335_141_888,
    "gte-multilingual-base": 305_368_320,
    "gte-small": 33_360_000,
    "helium-1-2b": 2_172_643_840,
    "jamba-v0.1": 51_570_323_328,
    "jina-embeddings-v3": 559_364_096,
    "kimi-linear-48b-a3b": 49_122_675_072,
    "lfm2-1.2b": 1_170_340_608,
    "lfm2-350m": 354_483_968,
    "lfm2-700m": 742_489_344,
    "lfm2-8b-a1b": 8_339_929_856,
    "llama-4-maverick-17b-128e-text": 400_711_848_960,  # with images 401,583,781,376, of which the card says 400B
    "llama-4-scout-17b-16e-text": 107_769_861_120,  # with images 108,641,793,536, of which the card says 109B
    "llama-13b": 13_015_864_320,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-2-7b": 6_738_415_616,
    "llama-3-70b": 70_553_706_496,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.3-70b": 70_553_706_496,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama-7b": 6_738_415_616,
    "m2m100-1.2b": 1_239_470_080,
    "m2m100-418m": 483_905_536,
    "mamba-1.4b": 1_372_178_432,
    "mamba-130m": 129_135_360,
    "mamba-2.8b": 2_768_345_600,
    "mamba-370m": 371_516_416,
    "mamba-790m": 793_204_224,
    "mamba2-1.3b": 1_343_757_312,
    "mamba2-130m": 128_989_632,
    "mamba2-2.7b": 2_702_599_680,
    "mamba2-370m": 368_346_624,
    "mamba2-780m": 780_161_280,
    "mbart-large-50": 610_879_488,
    "mbart-large-cc25": 610_851_840,
    "mdeberta-v3-base": 278_218_752,
    "minilm-l12": 33_360_000,
    "minilm-l6": 22_713_216,
    "minimax-m2": 228_689_748_992,
    "minimax-text-01": 456_089_655_296,
    "ministral-3-14b-text": 13_506_073_600,
    "ministral-3-3b-text": 3_429_006_336,
    "ministral-3-8b-text": 8_489_553_920,
    "minitron-4b": 4_190_509_056,
    "minitron-8b": 8_271_699_968,
    "mistral-7b": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400,
    "mistral-small-24b": 23_572_403_200,
    "mixtral-8x22b": 140_620_634_112,
    "mixtral-8x7b": 46_702_792_704,
    "modernbert-base": 149_014_272,
    "modernbert-large": 394_781_696,
    "mpnet-base": 109_486_464,
    "mpt-30b": 29_957_200_896,
    "mpt-7b": 6_649_286_656,
    "mt5-base": 582_401_280,
    "mt5-large": 1_229_581_312,
    "mt5-small": 300_176_768,
    "mt5-xl": 3_742_619_648,
    "mt5-xxl": 12_921_057_280,
    "nano-gpt": 10_788_929,
    "neobert": 245_136_954,
    "nemotron-h-8b": 8_100_852_736,
    "nllb-200-1.3b": 1_370_638_336,
    "nllb-200-3.3b": 3_344_863_232,
    "nllb-200-distilled-600m": 615_073_792,
    "nllb-moe-54b": 54_500_569_088,
    "nomic-embed-text-v1.5": 136_731_648,
    "olmo-1b": 1_176_764_416,
    "olmo-7b": 6_888_095_744,
    "olmo2-13b": 13_716_198_400,
    "olmo2-1b": 1_484_916_736,
    "olmo2-32b": 32_234_279_936,
    "olmo2-7b": 7_298_617_344,
    "olmo3-32b": 32_233_522_176,
    "olmo3-7b": 7_298_011_136,
    "olmoe-1b-7b": 6_919_161_856,
    "opt-1.3b": 1_315_758_080,
    "opt-125m": 125_239_296,
    "opt-13b": 12_853_473_280,
    "opt-2.7b": 2_651_596_800,
    "opt-30b": 29_974_540_288,
    "opt-350m": 331_196_416,
    "opt-6.7b": 6_658_473_984,
    "opt-66b": 65_719_701_504,
    "opus-mt-en-de": 74_410_496,
    "pegasus-large": 570_797_056,
    "phi-1": 1_418_270_720,
    "phi-1.5": 1_418_270_720,
    "phi-2": 2_779_683_840,
    "phi-3-medium": 13_960_238_080,
    "phi-3-mini": 3_821_079_552,
    "phi-3.5-mini": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "pythia-1.4b": 1_414_647_808,
    "pythia-12b": 11_846_072_320,
    "pythia-160m": 162_322_944,
    "pythia-1b": 1_011_781_632,
    "pythia-2.8b": 2_775_208_960,
    "pythia-410m": 405_334_016,
    "pythia-6.9b": 6_857_302_016,
    "pythia-70m": 70_426_624,
    "qwen2-0.5b": 494_032_768,
    "qwen2-1.5b": 1_543_714_304,
    "qwen2-57b-a14b": 57_408_658_944,
    "qwen2-72b": 72_706_203_648,
    "qwen2-7b": 7_615_616_512,
    "qwen2.5-vl-32b": 33_452_718_336,
    "qwen2.5-vl-3b": 3_754_622_976,
    "qwen2.5-vl-72b": 73_410_777_344,
    "qwen2.5-vl-7b": 8_292_166_656,
    "qwen3-vl-235b-a22b": 235_670_022_896,
    "qwen3-vl-2b": 2_127_532_032,
    "qwen3-vl-30b-a3b": 31_070_754_032,
    "qwen3-vl-4b": 4_437_815_808,
    "qwen3-vl-8b": 8_767_123_696,
    "qwen2-vl-2b": 2_208_985_600,
    "qwen2-vl-72b": 73_405_560_320,
    "qwen2-vl-7b": 8_291_375_616,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-72b": 72_706_203_648,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-14b": 14_768_307_200,
    "qwen3-235b-a22b": 235_093_634_560,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-embedding-0.6b": 595_776_512,
    "qwen3-next-80b-a3b": 79_674_391_296,
    "qwen3.5-0.8b": 852_985_920,
    "qwen3.5-0.8b-text": 752_393_024,
    "qwen3.5-27b": 27_356_728_560,
    "qwen3.5-27b-text": 26_895_998_464,
    "qwen3.5-2b": 2_213_241_664,
    "qwen3.5-2b-text": 1_881_825_088,
    "qwen3.5-35b-a3b": 35_107_181_936,
    "qwen3.5-35b-a3b-text": 34_660_610_688,
    "qwen3.5-4b": 4_539_265_536,
    "qwen3.5-4b-text": 4_205_751_296,
    "qwen3.5-9b": 9_409_813_744,
    "qwen3.5-9b-text": 8_953_803_264,
    "recurrentgemma-2b": 2_682_862_080,
    "roberta-base": 124_645_632,
    "roberta-large": 355_359_744,
    "rwkv7-0.1b": 191_034_624,
    "rwkv7-0.4b": 450_767_872,
    "rwkv7-1.5b": 1_527_404_544,
    "rwkv7-2.9b": 2_947_735_040,
    "seed-oss-36b": 36_151_104_512,
    "smollm2-1.7b": 1_711_376_384,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm3-3b": 3_075_098_624,
    "snowflake-arctic-embed-m-v2.0": 305_368_320,
    "siglip-base-16": 203_155_970,
    "siglip-large-16-256": 652_150_786,
    "siglip-so400m-14-384": 877_960_498,
    "siglip2-base-16": 375_187_970,
    "siglip2-large-16-256": 881_526_786,
    "siglip2-so400m-14-384": 1_136_008_498,
    "stablelm-2-1.6b": 1_644_515_328,
    "stablelm-2-12b": 12_143_185_920,
    "stablelm-3b-4e1t": 2_795_443_200,
    "starcoder-15b": 15_517_456_384,
    "starcoder2-15b": 15_957_889_024,
    "starcoder2-3b": 3_030_371_328,
    "starcoder2-7b": 7_173_923_840,
    "t5-11b": 11_307_321_344,
    "t5-3b": 2_851_598_336,
    "t5-base": 222_903_552,
    "t5-large": 737_668_096,
    "t5-small": 60_506_624,
    "t5-v1.1-base": 247_577_856,
    "t5-v1.1-large": 783_150_080,
    "t5-v1.1-small": 76_961_152,
    "t5-v1.1-xl": 2_849_757_184,
    "t5-v1.1-xxl": 11_135_332_352,
    "t5-v1.1-xxl-encoder": 4_762_310_656,
    "tiny-gpt": 223_616,
    "tinyllama-1.1b": 1_100_048_384,
    "torch-transformer": 63_084_544,
    "torch-transformer-big": 214_249_472,
    "transformer-base": 63_045_632,
    "transformer-big": 214_171_648,
    "dinov2-small": 22_056_576 - 384,  # without the mask token, which only training reads
    "dinov2-base": 86_580_480 - 768,
    "dinov2-large": 304_368_640 - 1024,
    "dinov2-giant": 1_136_480_768 - 1536,
    "dinov2-with-registers-small": 22_058_112 - 384,
    "dinov2-with-registers-base": 86_583_552 - 768,
    "dinov2-with-registers-large": 304_372_736 - 1024,
    "dinov2-with-registers-giant": 1_136_486_912 - 1536,
    "dinov3-small-16": 21_596_544 - 384,
    "dinov3-small-plus-16": 28_692_864 - 384,
    "dinov3-base-16": 85_660_416 - 768,
    "dinov3-large-16": 303_129_600 - 1024,
    "dinov3-huge-plus-16": 840_592_640 - 1280,
    "dinov3-7b-16": 6_716_035_072 - 4096,
    "wav2vec2-base-960h": 94_396_320 - 768,  # without the vector that masks frames in training
    "wav2vec2-large-960h-lv60-self": 315_471_520 - 1024,
    "wav2vec2-xls-r-300m": 315_438_720 - 1024,
    "hubert-base-ls960": 94_371_712 - 768,
    "hubert-large-ls960-ft": 315_471_520 - 1024,
    "wavlm-base-plus": 94_381_936 - 768,
    "wavlm-large": 315_453_120 - 1024,
    "umt5-base": 592_043_520,
    "umt5-small": 306_601_984,
    "umt5-xl": 3_768_356_864,
    "umt5-xxl": 12_972_531_712,
    "vit-base-16": 86_567_656,
    "vit-base-32": 88_224_232,
    "vit-huge-14": 632_045_800,
    "vit-large-16": 304_326_632,
    "moonshine-base": 61_513_920,
    "moonshine-tiny": 27_092_736,
    "wav2vec2-conformer-rel-pos-large-960h-ft": 618_591_904
    - 1024
    - 8_389_760,  # without what masks frames and is not read
    "wav2vec2-conformer-rope-large-960h-ft": 593_376_928 - 1024 - 8_389_760,
    "w2v-bert-2.0": 580_493_120 - 1024,
    "parakeet-ctc-0.6b": 608_799_745,
    "parakeet-ctc-1.1b": 1_062_540_289,
    "whisper-base": 72_593_920,
    "whisper-large-v2": 1_543_304_960,
    "whisper-large-v3": 1_543_490_560,
    "whisper-large-v3-turbo": 808_878_080,
    "whisper-medium": 763_857_920,
    "whisper-small": 241_734_912,
    "whisper-tiny": 37_760_640,
    "trocr-base": 333_921_792 - (768 + 1) * 768,  # without the pooler of its ViT, which nothing reads
    "blip-captioning-base": 223_971_644,
    "blip-captioning-large": 446_290_492,
    "trocr-large": 558_226_432 - (1024 + 1) * 1024,
    "vit-gpt2": 239_195_904 - (768 + 1) * 768,
    "xglm-1.7b": 1_732_907_008,
    "xglm-2.9b": 2_941_505_536,
    "xglm-4.5b": 4_552_511_488,
    "xglm-564m": 564_463_616,
    "xglm-7.5b": 7_492_771_840,
    "xlm-roberta-base": 278_043_648,
    "xlm-roberta-large": 559_890_432,
    "yi-34b": 34_388_917_248,
    "yi-6b": 6_061_035_520,
}

PUBLISHED_MODULES = {
    ("torch-transformer", "encoder + decoder"): 44_140_544,
    ("torch-transformer", "encoder.blocks.0"): 3_152_384,
    ("torch-transformer", "decoder.blocks.0"): 4_204_032,
    ("torch-transformer-big", "encoder + decoder"): 176_361_472,
    ("nano-gpt", "decoder.blocks.0"): 1_773_312,
    ("tiny-gpt", "decoder"): 199_040,
}


def test_every_preset_is_counted_here():
    assert set(PUBLISHED) == set(preset_names())


@one_in(12)
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_built_model_has_the_published_parameters(name):
    spec = load(name)
    assert spec.expect.parameters == PUBLISHED[name]
    model = assemble(spec)
    assert sum(parameter.numel() for parameter in model.parameters()) == PUBLISHED[name]
    assert all(parameter.is_meta for parameter in model.parameters())


@pytest.mark.parametrize(("name", "modules"), PUBLISHED_MODULES)
def test_the_built_modules_have_the_published_parameters(name, modules):
    spec = load(name)
    count = PUBLISHED_MODULES[name, modules]
    assert spec.expect.modules[modules] == count
    model = assemble(spec)
    parts = [model.get_submodule(path) for path in modules.split(" + ")]
    parameters = {id(parameter): parameter for part in parts for parameter in part.parameters()}
    assert sum(parameter.numel() for parameter in parameters.values()) == count


def test_no_module_count_goes_unpublished():
    stated = {(name, modules) for name in preset_names() for modules in load(name).expect.modules}
    assert stated == set(PUBLISHED_MODULES)


@one_in(4)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_resolves_to_the_recorded_spec(name):
    text = digests.text_of(name)
    if digests.digest(text) != digests.recorded()[name]:
        pytest.fail(digests.explanation(name, text))


def test_every_digest_belongs_to_a_preset():
    assert list(digests.recorded()) == preset_names()


def test_a_changed_preset_is_reported_by_key():
    before = {"d_model": 64, "norm": {"kind": "rms_norm", "eps": 1e-6}, "layers": [1, 2]}
    now = {"d_model": 64, "norm": {"kind": "layer_norm"}, "layers": [1, 3], "bias": True}
    assert list(digests.changed_keys(before, now)) == [
        "norm.kind: 'rms_norm' -> 'layer_norm'",
        "norm.eps: 1e-06 -> removed",
        "layers.1: 2 -> 3",
        "bias: added -> True",
    ]


@one_in(4)
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_resolved_preset_reads_back_as_the_same_model(name):
    model = load(name)
    assert validate(with_named_blocks(read_text(dump(resolved(model)), "resolved.yaml"))) == model


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_name_summary_and_source(name):
    model = load(name)
    assert model.name == name
    assert 0 < len(model.summary) <= 82  # a line of a listing
    assert name == "tiny-gpt" or (model.source and model.year)


def parts_of(feed_forward):
    """A feed-forward, or those side by side in it."""
    if isinstance(feed_forward, SideBySide):
        return [branch.feed_forward for branch in feed_forward.branches.values()]
    return [feed_forward]


@pytest.mark.slow
def test_the_catalog_agrees_with_the_presets():
    for preset in presets():
        model = load(preset.name)
        assert preset == Preset(
            model.name,
            model.architecture,
            model.expect.parameters,
            model.expect.active_parameters,
            model.year,
            model.summary,
            model.source,
            tuple(feature for feature, (has, _) in FEATURES.items() if re.search(has, dump(resolved(model)))),
            preset.tasks,
            preset.hub,
        )
        assert preset.hub is None or f"https://huggingface.co/{preset.hub}" in model.source
        feed_forwards = [block.feed_forward for block in model.last_stack.layer_blocks()]
        routed = any(isinstance(part, Mixture) for each in feed_forwards for part in parts_of(each))
        assert (preset.active_parameters is not None) == routed, preset.name


def test_the_original_transformer_has_one_table_for_source_target_and_scores():
    model: Any = assemble(load("transformer-base"))
    token = model.encoder_embedding.token.weight
    assert model.decoder_embedding.token.weight is token
    assert model.head.vocabulary.weight is token
