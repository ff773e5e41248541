"""Families that are known, and what specs cannot express of them."""

from __future__ import annotations

_INDEXER = "attention to the tokens that an indexer chooses"
_STREAMS = "several residual streams (hyper-connections)"
_SHIFTED = "attention within windows that shift from layer to layer"
_SHRINKING = f"images whose width and resolution change between layers, and {_SHIFTED} (Swin)"
_BOXES = "a convolutional network that reads images (ResNet), and a decoder of trained queries, each of which gives a class and a box"
_FROM_TOKENS = "biases of scores that are computed from the tokens, and short convolutions of keys, values and the outputs of branches"

_BOXES_OF_WORDS = "embeddings of where each token is on a page"
_PYRAMID = "images whose width and resolution change between layers"
_CONVOLUTIONS = f"{_PYRAMID} of convolutions"
_MASKS = "masks of an image as the output"
_FRAMES = "several images in time, and attention among them"
_CODES = "codebooks of audio, and the networks of convolutions that read or write waveforms"
_SERIES = "series of numbers in the place of tokens"
_KEYPOINTS = "points of images, and pairs of them, as the output"
_ENTITIES = "a second kind of input among the tokens"
_QUERIES = "a decoder of trained queries, each of which gives a class and a box"
_QFORMER = "trained queries that attend to an image (Q-Former)"
_IMAGE_CODES = "codebooks of images, and the networks of convolutions that read or write them"
_DECOMPOSED = (
    "biases of scores that are computed from the queries, for the rows and the columns between two patches"
)
_DPT = "the outputs of several layers that convolutions fuse into an image (DPT)"
_ATTENDED = "layers among those of a decoder that attend to an image instead of the text"
_NEXT_TO_TEXT = "a decoder of queries, each of which gives a box for the words of a text"
_LINES = "a network of convolutions that finds or reads the lines of a page"
_WINDOWS_AND_GLOBAL = "attention within windows and to chosen tokens that all others see"

INEXPRESSIBLE = {
    **dict.fromkeys(
        ("parakeet_rnnt", "parakeet_tdt", "nemotron_asr_streaming"),
        "a decoder that steps through the frames of the encoder (transducers) with recurrent layers (LSTM)",
    ),
    "florence2": "images whose width and resolution change between layers of convolutions and of attention among channels (DaViT), "
    "among the tokens of an encoder",
    **dict.fromkeys(("swin", "swinv2", "donut-swin", "maskformer-swin"), _SHRINKING),
    "clap": f"audio whose width and resolution change between layers, and {_SHIFTED} (HTSAT)",
    "swin2sr": f"{_SHIFTED}, groups of layers with convolutions after them, and an enlarged image as the output",
    **dict.fromkeys(("detr", "conditional_detr", "deformable_detr", "table-transformer"), _BOXES),
    "owlv2": "boxes with a score for whether they hold anything",
    **dict.fromkeys(("depth_anything", "prompt_depth_anything", "dpt", "zoedepth", "depth_pro"), _DPT),
    "modnet": "a network of convolutions alone (MobileNetV2 and its decoder), whose output is an image",
    "supertonic": "speech from text by flow matching: convolutions (ConvNeXt), a predictor of durations, steps of denoising and a vocoder",
    "rwkv": "the recurrence of RWKV-4, an average weighted by exponentials, and its gated channel mixing (RWKV-7 is supported)",
    "xlstm": "matrix memories with exponential gates (mLSTM)",
    "zaya": "queries and keys that are mixed by convolutions, and values of the token before (compressed convolutional attention)",
    **dict.fromkeys(
        ("qwen4_exp", "qwen4_exp_text"),
        f"several residual streams with gates (hyper-connections), embeddings of hashed n-grams, and {_INDEXER}",
    ),
    **dict.fromkeys(("inkling_mm_model", "inkling_text"), _FROM_TOKENS),
    **dict.fromkeys(
        (
            "deepseek_v32", "glm_moe_dsa", "mistral_large4", "mistral_large4_text", "dots3_note", "dots3_note_text",
        ),
        _INDEXER,
    ),
    **dict.fromkeys(
        ("hy_v4", "hy_v4_vl", "hy_v4_vl_text", "glm5_next", "glm5_next_text"), f"{_STREAMS}, and {_INDEXER}"
    ),
    "axk1": "a norm of the outputs of mixtures alone",
    "axk2": f"norms with gates, and {_INDEXER}",
    "dory": "vectors of length 1 in the residual stream (nGPT), in layers that run several times",
    "deepseek_v4": f"{_STREAMS}, keys and values of compressed tokens, and {_INDEXER}",
    "longcat_flash": "a mixture beside two attentions and two feed-forwards, some of whose experts return their input",
    "hrm_text": "two stacks that run in turn several times for each token",
    "blt": "bytes that are grouped into patches by their entropy, between an encoder and a decoder of their own",
    "diffllama": "attention by the difference of two softmaxes",
    "doge": "attention that sees the tokens whose values score best",
    "jetmoe": "attention whose heads are chosen by a router",
    "reformer": "attention among tokens of equal hashes, and reversible layers",
    # encoders of text
    "squeezebert": "projections that are convolutions in groups",
    "convbert": "convolutions beside attention, whose kernels are computed from the tokens",
    "funnel": "tokens that are pooled between layers",
    "fnet": "Fourier transforms in the place of attention",
    "nystromformer": "attention by way of landmark tokens (Nystr\u00f6m)",
    "yoso": "attention among tokens that are sampled by their hashes",
    "mra": "attention of several resolutions",
    "canine": "characters, whose embeddings are hashed and which are shortened by convolutions",
    **dict.fromkeys(
        ("perceiver", "idefics2_perceiver", "idefics_perciever"), "trained vectors that attend to the input"
    ),
    "xlnet": "two streams of attention over permuted tokens (XLNet)",
    "xmod": "layers for each language after each feed-forward",
    "roc_bert": "embeddings of the shapes and the sounds of characters",
    "tapas": "embeddings of rows, columns and ranks of a table",
    **dict.fromkeys(
        ("layoutlmv2", "layoutlmv3", "layoutxlm", "udop"), f"{_BOXES_OF_WORDS}, and the image of the page"
    ),
    "markuplm": "embeddings of where each token is in a document (XPath)",
    **dict.fromkeys(("luke", "mluke"), f"{_ENTITIES} (entities)"),
    **dict.fromkeys(("visual_bert", "lxmert", "vilt"), f"{_ENTITIES} (regions of an image)"),
    **dict.fromkeys(("longformer", "led", "big_bird", "bigbird_pegasus", "pegasus_x"), _WINDOWS_AND_GLOBAL),
    "blenderbot-small": "a decoder that normalises the embeddings of tokens before it adds positions",
    **dict.fromkeys(
        ("t5gemma2", "t5gemma2_decoder"),
        "one attention of a decoder to its own tokens and to the encoder's (merged attention), and images among the tokens",
    ),
    **dict.fromkeys(
        ("t5gemma2_encoder", "t5gemma2_text"),
        "windows with a token more after than before a token, and a vector of its own for one token (T5Gemma 2's encoder)",
    ),
    **dict.fromkeys(
        ("voxtral_realtime", "voxtral_realtime_text"), "norms whose factors are computed from a delay"
    ),
    "prophetnet": "several streams, each of which guesses a further token",
    "fsmt": "an encoder and a decoder with a vocabulary each",
    **dict.fromkeys(
        ("encoder-decoder", "speech-encoder-decoder"),
        "an encoder and a decoder of any two families, which a config of its own describes each",
    ),
    "rag": "a search for documents inside the model",
    # decoders
    "bitnet": "weights of -1, 0 and 1, and norms inside the branches",
    **dict.fromkeys(("mllama", "mllama_text_model", "idefics"), _ATTENDED),
    **dict.fromkeys(
        ("ernie4_5_vl_moe", "ernie4_5_vl_moe_text"),
        "positions of images that take turns in the rotations of heads, and experts for images alone",
    ),
    **dict.fromkeys(
        ("qwen2_5_omni", "qwen3_omni_moe"),
        "a model that speaks what another one thinks (talker and vocoder; the text model of the thinker is supported)",
    ),
    "git": "images before the tokens of a decoder like BERT, instead of in the places of tokens",
    "phi4_multimodal": "adapters inside the layers that images and sounds switch on",
    "pi0": "actions of a robot by flow matching, beside a model that reads images",
    "kolibri1": "experts that are chosen by their scores before the sigmoid, and weighted by those after it",
    **dict.fromkeys(
        ("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), f"{_INDEXER}, and images among the tokens"
    ),
    "nemotron-nas": "layers that differ in their heads and widths, or have no attention, one by one",
    "ctrl": "embeddings of positions that are scaled with the tokens",
    "cpmant": "segments whose distances are biases of scores",
    "decision_transformer": f"{_ENTITIES} (states, actions and rewards)",
    **dict.fromkeys(("csm", "moshi", "dia", "musicgen", "musicgen_melody", "bark", "higgs_audio_v2"), _CODES),
    **dict.fromkeys(
        ("csm_depth_decoder_model", "moshi_depth", "musicgen_decoder", "musicgen_melody_decoder"), _CODES
    ),
    **dict.fromkeys(("xcodec2", "neucodec", "wavtokenizer", "dia_decoder", "kyutai_speech_to_text"), _CODES),
    **dict.fromkeys(
        ("mimi_decoder", "mimi_encoder", "higgs_audio_v2_tokenizer", "wavtokenizer_encoder"), _CODES
    ),
    **dict.fromkeys(
        (
            "vibevoice_acoustic_tokenizer",
            "vibevoice_acoustic_tokenizer_decoder",
            "vibevoice_acoustic_tokenizer_encoder",
        ),
        _CODES,
    ),
    **dict.fromkeys(("encodec", "dac", "mimi", "xcodec", "vits", "univnet", "speecht5_hifigan"), _CODES),
    # speech
    **dict.fromkeys(("sew", "sew-d"), "frames that are pooled before the layers and spread out after them"),
    "speech_to_text": "frames that gated convolutions shorten",
    "speecht5": "one stack for speech and text, with networks before and after it",
    **dict.fromkeys(
        ("seamless_m4t", "seamless_m4t_v2"), f"units of speech between two decoders, and {_CODES}"
    ),
    **dict.fromkeys(
        ("moonshine_streaming", "moonshine_streaming_encoder"),
        "frames of a waveform that causal convolutions join, and windows over them",
    ),
    "pop2piano": "a spectrogram in the place of the encoder's tokens",
    "esmfold2": "structures of proteins as the output",
    "fastspeech2_conformer": "durations of tokens, which become frames",
    # images
    **dict.fromkeys(
        ("resnet", "regnet", "bit", "efficientnet", "convnext", "convnextv2", "mobilenet_v1", "mobilenet_v2"),
        _CONVOLUTIONS,
    ),
    **dict.fromkeys(
        (
            "mobilevit", "mobilevitv2", "cvt", "levit", "pvt", "pvt_v2", "poolformer", "swiftformer", "hiera",
            "dinat", "focalnet",
        ),
        _PYRAMID,
    ),
    **dict.fromkeys(("segformer", "glpn"), f"{_PYRAMID}, and {_MASKS}"),
    **dict.fromkeys(("sam", "sam2", "sam_hq", "maskformer", "mask2former", "oneformer", "upernet"), _MASKS),
    **dict.fromkeys(("rt_detr", "rt_detr_v2", "d_fine", "dab-detr"), _BOXES),
    **dict.fromkeys(("grounding-dino", "mm-grounding-dino", "omdet-turbo"), _NEXT_TO_TEXT),
    **dict.fromkeys(
        ("siglip2", "siglip2_vision_model"),
        "images of any shape, whose trained positions are resized (NaFlex)",
    ),
    **dict.fromkeys(("aimv2", "aimv2_vision_model"), "a norm of patches before their positions are added"),
    **dict.fromkeys(
        ("mlcd", "mlcd_vision_model"), "a trained angle by which the class token rotates beside patches"
    ),
    **dict.fromkeys(
        ("pix2struct", "pix2struct_vision_model"),
        "images of any shape, whose patches have embeddings of rows and columns",
    ),
    "vitdet": f"{_DECOMPOSED}, and attention within windows of patches",
    "vitpose_backbone": "patches of an image with a border around it",
    "mgp-str": "trained queries that each read one character of an image",
    **dict.fromkeys(("chameleon", "emu3", "janus", "glm_image"), _IMAGE_CODES),
    **dict.fromkeys(("align", "pp_lcnet_v3", "pp_lcnet_v4"), _CONVOLUTIONS),
    **dict.fromkeys(
        (
            *("pp_ocrv5_mobile_det", "pp_ocrv5_mobile_rec", "pp_ocrv5_server_det", "pp_ocrv5_server_rec"),
            *("pp_ocrv6_medium_det", "pp_ocrv6_small_det", "pp_ocrv6_small_rec", "pp_ocrv6_tiny_rec"),
        ),
        _LINES,
    ),
    **dict.fromkeys(("slanet", "slanext"), "recurrent layers (GRU) that write the structure of a table"),
    **dict.fromkeys(("deimv2", "lw_detr", "rf_detr", "pp_doclayout_v2", "pp_doclayout_v3"), _QUERIES),
    **dict.fromkeys(("blip_2_qformer", "instructblip_qformer", "instructblipvideo_qformer"), _QFORMER),
    **dict.fromkeys(("chameleon_vqgan", "emu3_vqgan", "janus_vqgan", "glm_image_vqmodel"), _IMAGE_CODES),
    **dict.fromkeys(("sam_vision_model", "sam_hq_vision_model", "got_ocr2_vision"), _DECOMPOSED),
    **dict.fromkeys(
        (
            *("sam_mask_decoder", "sam2_mask_decoder", "sam3_mask_decoder", "sam_hq_mask_decoder"),
            *("edgetam", "edgetam_mask_decoder", "edgetam_video", "sam2_video", "sam3_tracker"),
            *("sam3", "sam3_video", "sam3_lite_text", "seggpt", "clipseg", "vitmatte"),
        ),
        _MASKS,
    ),
    **dict.fromkeys(
        ("hgnet_v2", "dinov3_convnext", "rt_detr_resnet", "textnet", "align_vision_model", "pp_lcnet"),
        _CONVOLUTIONS,
    ),
    **dict.fromkeys(("xclip", "xclip_vision_model", "videoprism", "videoprism_vision_model"), _FRAMES),
    "yolos": "trained queries among the patches, each of which gives a class and a box",
    "imagegpt": "scores of one class fewer than the embedding has",
    "vitpose": "heat maps as the output",
    **dict.fromkeys(("videomae", "timesformer", "vivit", "vjepa2"), _FRAMES),
    **dict.fromkeys(("superpoint", "superglue", "lightglue", "efficientloftr"), _KEYPOINTS),
    **dict.fromkeys(
        ("timm_wrapper", "timm_backbone"), "a network of the library timm, which its own name describes"
    ),
    "trocr": "a decoder alone that attends to images (vision-encoder-decoder is supported)",
    # series
    **dict.fromkeys(
        (
            "autoformer", "informer", "time_series_transformer", "patchtst", "patchtsmixer", "timesfm",
            "timesfm2_5", "time_moe",
        ),
        _SERIES,
    ),
}  # fmt: skip
"""model_type -> what a spec cannot express."""
