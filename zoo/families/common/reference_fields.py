"""The fields that the reference has for each family, written by ``python -m tests.parity.reference_fields``.

The fields are those of transformers 5.24.0, or of code that is published with a checkpoint.
"""

SHARED = """
_attn_implementation _commit_hash _experts_implementation architectures attention_chunk_size
attention_dropout attn_implementation base_model_pp_plan base_model_tp_plan bos_token_id
chain_hidden_post_norm chunk_size_feed_forward classifier_dropout create_compatible_mapping
default_theta device_map device_mesh disable_mmap disk_offload_folder distributed_config dtype
eos_token_id experts_implementation extra_files first_k_dense_replace fusion_config get
gradient_checkpointing head_dim hf_quantizer hidden_act hidden_dropout hidden_size id2label
ignore_mismatched_sizes init_std initializer_factor initializer_range is_causal is_encoder_decoder
is_heterogeneous is_quantized json label2id layer_types logits_mup_width_multiplier
max_position_embeddings mlp_layer_types model_type moe_intermediate_size mtp_hidden_states_first
mtp_layer_types n_routed_experts name_or_path num_attention_heads num_hidden_layers num_labels
output_attentions output_hidden_states pad_token_id per_layer_config pretrained_model_name_or_path
problem_type quant_method return_dict rms_norm_eps rope_parameters rope_scaling rope_theta
sanitize_kernel_mapping sep_token_id sharded_metadata sliding_window sub_config_name sub_configs
tie_word_embeddings token_classification_bias torch_dtype transformers_version transformers_weights
unpadded_vocab_size use_return_dict vocab_size weight_mapping
"""
"""The fields of every family."""

FIELDS = {
    "albert": """
attention_probs_dropout_prob classifier_dropout_prob embedding_size hidden_dropout_prob
inner_group_num intermediate_size layer_norm_eps num_hidden_groups type_vocab_size
""",
    "apertus": """
attention_bias intermediate_size num_key_value_heads use_cache
""",
    "arcee": """
attention_bias intermediate_size mlp_bias num_key_value_heads use_cache
""",
    "bamba": """
attention_bias attn_layer_indices intermediate_size layers_block_type mamba_chunk_size
mamba_conv_bias mamba_d_conv mamba_d_head mamba_d_state mamba_expand mamba_n_groups mamba_n_heads
mamba_proj_bias mlp_bias num_key_value_heads num_logits_to_keep time_step_limit use_cache
z_loss_coefficient
""",
    "bart": """
activation_dropout activation_function d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id dropout encoder_attention_heads
encoder_ffn_dim encoder_layerdrop encoder_layers forced_eos_token_id is_decoder scale_embedding
use_cache
""",
    "beit": """
_out_features _out_indices add_fpn attention_probs_dropout_prob auxiliary_channels
auxiliary_concat_input auxiliary_loss_weight auxiliary_num_convs drop_path_rate hidden_dropout_prob
image_size intermediate_size layer_norm_eps layer_scale_init_value num_channels out_features
out_indices patch_size pool_scales reshape_hidden_states segmentation_indices
semantic_loss_ignore_index use_absolute_position_embeddings use_auxiliary_head use_mask_token
use_mean_pooling use_relative_position_bias use_shared_relative_position_bias
""",
    "bert": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps type_vocab_size use_cache
""",
    "blip": """
attention_probs_dropout_prob decoder_pad_token_id decoder_start_token_id embedding_size
encoder_hidden_size hidden_dropout_prob image_size image_text_hidden_size intermediate_size
is_decoder label_smoothing layer_norm_eps logit_scale_init_value patch_size projection_dim
text_config vision_config
""",
    "bloom": """
apply_residual_connection_post_layernorm layer_norm_epsilon n_embed n_head n_layer pretraining_tp
slow_but_exact use_cache
""",
    "camembert": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps type_vocab_size use_cache
""",
    "clip": """
image_size intermediate_size layer_norm_eps logit_scale_init_value num_channels patch_size
projection_dim text_config text_config_dict vision_config vision_config_dict
""",
    "clip_text_model": """
image_size intermediate_size layer_norm_eps logit_scale_init_value num_channels patch_size
projection_dim text_config text_config_dict vision_config vision_config_dict
""",
    "clip_vision_model": """
image_size intermediate_size layer_norm_eps logit_scale_init_value num_channels patch_size
projection_dim text_config text_config_dict vision_config vision_config_dict
""",
    "codegen": """
activation_function attn_pdrop embd_pdrop layer_norm_epsilon n_ctx n_embd n_head n_inner n_layer
n_positions resid_pdrop rotary_dim use_cache
""",
    "cohere": """
attention_bias intermediate_size layer_norm_eps logit_scale num_key_value_heads use_cache
use_qk_norm
""",
    "cohere2": """
attention_bias intermediate_size layer_norm_eps logit_scale num_key_value_heads
sliding_window_pattern use_cache
""",
    "data2vec-text": """
activation_dropout adapter_kernel_size adapter_stride add_adapter add_cross_attention
apply_spec_augment attention_probs_dropout_prob auxiliary_channels auxiliary_concat_input
auxiliary_loss_weight auxiliary_num_convs classifier_proj_size conv_bias conv_dim conv_kernel
conv_pos_kernel_size conv_stride ctc_loss_reduction ctc_zero_infinity drop_path_rate embedding_size
feat_extract_activation feat_proj_dropout final_dropout hidden_dropout_prob image_size
intermediate_size is_decoder layer_norm_eps layer_scale_init_value layerdrop mask_feature_length
mask_feature_min_masks mask_feature_prob mask_time_length mask_time_min_masks mask_time_prob
num_adapter_layers num_channels num_conv_pos_embedding_groups num_conv_pos_embeddings
num_feat_extract_layers out_indices output_hidden_size patch_size pool_scales proj_codevector_dim
semantic_loss_ignore_index tdnn_dilation tdnn_dim tdnn_kernel type_vocab_size
use_absolute_position_embeddings use_auxiliary_head use_cache use_mask_token use_mean_pooling
use_relative_position_bias use_shared_relative_position_bias use_weighted_layer_sum
xvector_output_dim
""",
    "deberta-v2": """
attention_head_size attention_probs_dropout_prob cls_dropout conv_act conv_groups conv_kernel_size
embedding_size hidden_dropout_prob intermediate_size layer_norm_eps legacy max_relative_positions
norm_rel_ebd pooler_dropout pooler_hidden_act pooler_hidden_size pos_att_type position_biased_input
position_buckets relative_attention share_att_key type_vocab_size
""",
    "deepseek_v2": """
attention_bias intermediate_size kv_lora_rank mlp_bias n_group n_shared_experts norm_topk_prob
num_experts num_experts_per_tok num_key_value_heads output_router_logits pretraining_tp q_lora_rank
qk_nope_head_dim qk_rope_head_dim routed_scaling_factor topk_group topk_method use_cache v_head_dim
""",
    "deepseek_v3": """
attention_bias intermediate_size kv_lora_rank n_group n_shared_experts norm_topk_prob
num_experts_per_tok num_key_value_heads num_local_experts num_mtp_layers num_nextn_predict_layers
output_router_logits pretraining_tp q_lora_rank qk_nope_head_dim qk_rope_head_dim rope_interleave
routed_scaling_factor topk_group use_cache v_head_dim
""",
    "deit": """
attention_probs_dropout_prob encoder_stride hidden_dropout_prob image_size intermediate_size
layer_norm_eps num_channels patch_size pooler_act pooler_output_size qkv_bias
""",
    "dinov2": """
_out_features _out_indices apply_layernorm attention_probs_dropout_prob drop_path_rate
hidden_dropout_prob image_size layer_norm_eps layerscale_value mlp_ratio num_channels out_features
out_indices patch_size qkv_bias reshape_hidden_states use_mask_token use_swiglu_ffn
""",
    "dinov2_with_registers": """
_out_features _out_indices apply_layernorm attention_probs_dropout_prob drop_path_rate
hidden_dropout_prob image_size layer_norm_eps layerscale_value mlp_ratio num_channels
num_register_tokens out_features out_indices patch_size qkv_bias reshape_hidden_states
use_swiglu_ffn
""",
    "dinov3_vit": """
_out_features _out_indices apply_layernorm drop_path_rate image_size intermediate_size key_bias
layer_norm_eps layerscale_value mlp_bias num_channels num_register_tokens out_features out_indices
patch_size pos_embed_jitter pos_embed_rescale pos_embed_shift proj_bias query_bias
reshape_hidden_states return_class_token use_gated_mlp value_bias
""",
    "distilbert": """
activation dim dropout hidden_dim n_heads n_layers qa_dropout seq_classif_dropout
sinusoidal_pos_embds
""",
    "dots1": """
attention_bias intermediate_size max_window_layers n_group n_shared_experts norm_topk_prob
num_experts_per_tok num_key_value_heads num_local_experts output_router_logits routed_scaling_factor
topk_group use_cache
""",
    "electra": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps summary_activation summary_first_dropout
summary_last_dropout summary_proj_to_labels summary_type summary_use_proj type_vocab_size use_cache
""",
    "ernie4_5": """
intermediate_size num_key_value_heads use_bias use_cache
""",
    "ernie4_5_moe": """
intermediate_size moe_k moe_layer_end_index moe_layer_interval moe_layer_start_index moe_norm_min
moe_num_experts moe_num_shared_experts num_experts num_experts_per_tok num_key_value_heads
output_router_logits router_aux_loss_coef use_bias use_cache
""",
    "eurobert": """
attention_bias classifier_pooling intermediate_size mask_token_id mlp_bias num_key_value_heads
pretraining_tp use_cache
""",
    "exaone4": """
intermediate_size num_key_value_heads sliding_window_pattern use_cache
""",
    "falcon": """
_is_quantized activation alibi bias ffn_hidden_size layer_norm_epsilon multi_query n_embed
new_decoder_architecture num_kv_heads num_ln_in_parallel_attn parallel_attn rotary use_cache
""",
    "falcon_h1": """
attention_bias attention_in_multiplier attention_out_multiplier embedding_multiplier
intermediate_size key_multiplier layers_block_type lm_head_multiplier mamba_chunk_size
mamba_conv_bias mamba_d_conv mamba_d_head mamba_d_ssm mamba_d_state mamba_expand mamba_n_groups
mamba_n_heads mamba_norm_before_gate mamba_proj_bias mamba_rms_norm mlp_bias mlp_multipliers
num_key_value_heads num_logits_to_keep projectors_bias ssm_in_multiplier ssm_multipliers
ssm_out_multiplier time_step_limit use_cache
""",
    "falcon_mamba": """
_is_quantized conv_kernel expand intermediate_size layer_norm_epsilon mixer_rms_eps
rescale_prenorm_residual residual_in_fp32 state_size time_step_floor time_step_init_scheme
time_step_max time_step_min time_step_rank time_step_scale use_associative_scan use_bias use_cache
use_conv_bias use_falcon_mambapy use_mambapy
""",
    "gemma": """
attention_bias intermediate_size num_key_value_heads use_bidirectional_attention use_cache
""",
    "gemma2": """
attention_bias attn_logit_softcapping final_logit_softcapping hidden_activation intermediate_size
num_key_value_heads query_pre_attn_scalar use_bidirectional_attention use_cache
""",
    "gemma3": """
attention_bias attn_logit_softcapping boi_token_id boi_token_index eoi_token_id eoi_token_index
final_logit_softcapping hidden_activation image_token_id image_token_index intermediate_size
mm_tokens_per_image num_key_value_heads query_pre_attn_scalar rope_local_base_freq
sliding_window_pattern text_config use_bidirectional_attention vision_config
""",
    "gemma3_text": """
attention_bias attn_logit_softcapping final_logit_softcapping hidden_activation image_token_id
intermediate_size mm_tokens_per_image num_key_value_heads query_pre_attn_scalar rope_local_base_freq
sliding_window_pattern text_config use_bidirectional_attention use_cache vision_config
""",
    "gemma3n_text": """
activation_sparsity_pattern altup_active_idx altup_coef_clip altup_correct_scale altup_num_inputs
attention_bias audio_config audio_soft_tokens_per_image audio_token_id conf_attention_chunk_size
conf_attention_context_left conf_attention_context_right conf_attention_logit_cap
conf_conv_kernel_size conf_num_attention_heads conf_num_hidden_layers conf_reduction_factor
conf_residual_weight final_logit_softcapping gradient_clipping hidden_activation
hidden_size_per_layer_input image_token_id input_feat_size intermediate_size kv_sharing_modes
laurel_rank num_key_value_heads num_kv_shared_layers rope_local_base_freq sscp_conv_channel_size
sscp_conv_group_norm_eps sscp_conv_kernel_size sscp_conv_stride_size text_config use_cache
vision_config vision_soft_tokens_per_image vocab_offset vocab_size_per_layer_input
""",
    "gemma4_text": """
attention_bias attention_context_left attention_context_right attention_invalid_logits_value
attention_k_eq_v attention_logit_cap audio_config audio_token_id conv_kernel_size enable_moe_block
final_logit_softcapping global_head_dim gradient_clipping hidden_activation
hidden_size_per_layer_input image_token_id intermediate_size kv_sharing_modes num_experts
num_global_key_value_heads num_key_value_heads num_kv_shared_layers output_proj_dims patch_size
pooling_kernel_size position_embedding_size residual_weight standardize subsampling_conv_channels
text_config top_k_experts use_bidirectional_attention use_cache use_clipped_linears
use_double_wide_mlp video_token_id vision_config vocab_size_per_layer_input
""",
    "glm": """
attention_bias intermediate_size num_key_value_heads use_cache
""",
    "glm4": """
attention_bias intermediate_size num_key_value_heads use_cache
""",
    "glm4_moe": """
attention_bias intermediate_size n_group n_shared_experts norm_topk_prob num_experts_per_tok
num_key_value_heads num_local_experts num_mtp_layers num_nextn_predict_layers output_router_logits
routed_scaling_factor topk_group use_cache use_qk_norm
""",
    "gpt2": """
activation_function add_cross_attention attn_pdrop embd_pdrop layer_norm_epsilon n_embd n_head
n_inner n_layer n_positions reorder_and_upcast_attn resid_pdrop scale_attn_by_inverse_layer_idx
scale_attn_weights summary_activation summary_first_dropout summary_last_dropout
summary_proj_to_labels summary_type summary_use_proj use_cache
""",
    "gpt_bigcode": """
activation_function add_cross_attention attention_softmax_in_fp32 attn_pdrop embd_pdrop
layer_norm_epsilon multi_query n_embd n_head n_inner n_layer n_positions resid_pdrop
scale_attention_softmax_in_fp32 scale_attn_weights use_cache
""",
    "gpt_neo": """
_is_quantized activation_function attention_layers attention_types embed_dropout intermediate_size
layer_norm_epsilon num_heads num_layers resid_dropout use_cache window_size
""",
    "gpt_neox": """
attention_bias intermediate_size is_decoder layer_norm_eps rotary_emb_base rotary_pct use_cache
use_parallel_residual
""",
    "gpt_oss": """
attention_bias intermediate_size num_experts num_experts_per_tok num_key_value_heads
num_local_experts output_router_logits router_aux_loss_coef swiglu_alpha swiglu_limit use_cache
""",
    "gptj": """
activation_function attn_pdrop embd_pdrop layer_norm_epsilon n_embd n_head n_inner n_layer
n_positions resid_pdrop rotary_dim use_cache
""",
    "granite": """
attention_bias attention_multiplier embedding_multiplier intermediate_size logits_scaling mlp_bias
num_key_value_heads residual_multiplier use_cache
""",
    "granitemoe": """
attention_bias attention_multiplier embedding_multiplier intermediate_size logits_scaling
num_experts_per_tok num_key_value_heads num_local_experts output_router_logits residual_multiplier
router_aux_loss_coef use_cache
""",
    "granitemoehybrid": """
attention_bias attention_multiplier embedding_multiplier intermediate_size layers_block_type
logits_scaling mamba_chunk_size mamba_conv_bias mamba_d_conv mamba_d_head mamba_d_state mamba_expand
mamba_n_groups mamba_n_heads mamba_proj_bias num_experts_per_tok num_key_value_heads
num_local_experts output_router_logits position_embedding_type residual_multiplier
router_aux_loss_coef shared_intermediate_size time_step_limit use_cache
""",
    "gte": """
attention_probs_dropout_prob hidden_dropout_prob intermediate_size layer_norm_eps type_vocab_size
""",
    "helium": """
attention_bias intermediate_size mlp_bias num_key_value_heads use_cache
""",
    "hubert": """
activation_dropout adapter_attn_dim add_adapter apply_spec_augment classifier_proj_size conv_bias
conv_dim conv_kernel conv_pos_batch_norm conv_stride ctc_loss_reduction ctc_zero_infinity
do_stable_layer_norm feat_extract_activation feat_extract_norm feat_proj_dropout
feat_proj_layer_norm final_dropout inputs_to_logits_ratio intermediate_size layer_norm_eps layerdrop
mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length mask_time_min_masks
mask_time_prob num_conv_pos_embedding_groups num_conv_pos_embeddings num_feat_extract_layers
output_hidden_size proj_codevector_dim use_weighted_layer_sum
""",
    "hunyuan_v1_dense": """
attention_bias eod_token_id intermediate_size num_key_value_heads pretraining_tp use_cache
""",
    "idefics2": """
image_size image_token_id intermediate_size layer_norm_eps num_channels num_key_value_heads
patch_size perceiver_config pop resampler_depth resampler_head_dim resampler_n_heads
resampler_n_latents text_config use_cache vision_config
""",
    "idefics3": """
image_size image_token_id intermediate_size layer_norm_eps num_channels patch_size scale_factor
text_config use_cache vision_config
""",
    "internvl": """
attention_bias downsample_ratio hidden_dropout_prob image_seq_length image_size image_token_id
intermediate_size layer_norm_eps layer_scale_init_value norm_type num_channels patch_size
projection_dropout projector_hidden_act text_config use_absolute_position_embeddings use_mask_token
use_mean_pooling use_qk_norm vision_config vision_feature_layer vision_feature_select_strategy
""",
    "jamba": """
_is_quantized attn_layer_offset attn_layer_period expert_layer_offset expert_layer_period
intermediate_size layers_block_type layers_num_experts mamba_conv_bias mamba_d_conv mamba_d_state
mamba_dt_rank mamba_expand mamba_proj_bias num_experts num_experts_per_tok num_key_value_heads
num_local_experts output_router_logits router_aux_loss_coef use_associative_scan use_cache
use_mamba_kernels use_mambapy
""",
    "jina_embeddings_v3": """
attention_probs_dropout_prob hidden_dropout_prob intermediate_size layer_norm_eps type_vocab_size
use_cache
""",
    "kimi_k2": """
attention_bias intermediate_size kv_lora_rank n_group n_shared_experts norm_topk_prob
num_experts_per_tok num_key_value_heads num_local_experts num_mtp_layers num_nextn_predict_layers
output_router_logits pretraining_tp q_lora_rank qk_nope_head_dim qk_rope_head_dim rope_interleave
routed_scaling_factor topk_group use_cache v_head_dim
""",
    "kimi_linear": """
attention_bias intermediate_size kv_lora_rank linear_attn_config linear_conv_kernel_dim
linear_head_dim linear_num_heads model_max_length moe_renormalize n_group n_shared_experts
norm_topk_prob num_expert_group num_experts num_experts_per_tok num_experts_per_token
num_key_value_heads num_local_experts num_shared_experts output_router_logits pretraining_tp
q_lora_rank qk_nope_head_dim qk_rope_head_dim routed_scaling_factor topk_group use_cache v_head_dim
""",
    "lfm2": """
block_auto_adjust_ff_dim block_ff_dim block_ffn_dim_multiplier block_multiple_of conv_L_cache
conv_bias full_attn_idxs intermediate_size norm_eps num_key_value_heads tie_embedding use_cache
""",
    "lfm2_moe": """
conv_L_cache conv_bias intermediate_size norm_eps norm_topk_prob num_dense_layers num_experts
num_experts_per_tok num_key_value_heads output_router_logits routed_scaling_factor tie_embedding
use_cache use_expert_bias
""",
    "llama": """
attention_bias intermediate_size mlp_bias num_key_value_heads pretraining_tp use_cache
""",
    "llama4_text": """
attention_bias attn_scale attn_temperature_tuning floor_scale image_size image_token_id
interleave_moe_layer_step intermediate_size intermediate_size_mlp moe_layers no_rope_layer_interval
no_rope_layers num_channels num_experts_per_tok num_key_value_heads num_local_experts
output_router_logits patch_size pixel_shuffle_ratio projector_dropout projector_input_dim
projector_output_dim router_aux_loss_coef router_jitter_noise text_config use_cache use_qk_norm
vision_config
""",
    "llava": """
image_seq_length image_token_id image_token_index multimodal_projector_bias projector_hidden_act
text_config vision_config vision_feature_layer vision_feature_select_strategy
""",
    "longt5": """
d_ff d_kv d_model decoder_start_token_id dense_act_fn dropout_rate encoder_attention_type
feed_forward_proj global_block_size is_decoder is_gated_act layer_norm_epsilon local_radius
num_decoder_layers num_heads num_layers relative_attention_max_distance
relative_attention_num_buckets scale_decoder_outputs use_cache
""",
    "m2m_100": """
activation_dropout activation_function d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id dropout encoder_attention_heads
encoder_ffn_dim encoder_layerdrop encoder_layers scale_embedding use_cache
""",
    "mamba": """
conv_kernel expand intermediate_size layer_norm_epsilon rescale_prenorm_residual residual_in_fp32
state_size time_step_floor time_step_init_scheme time_step_max time_step_min time_step_rank
time_step_scale use_associative_scan use_bias use_cache use_conv_bias use_mambapy
""",
    "mamba2": """
chunk_size conv_kernel expand layer_norm_epsilon n_groups num_heads rescale_prenorm_residual
residual_in_fp32 state_size time_step_floor time_step_limit time_step_max time_step_min
time_step_rank use_bias use_cache use_conv_bias
""",
    "marian": """
activation_dropout activation_function d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id decoder_vocab_size dropout
encoder_attention_heads encoder_ffn_dim encoder_layerdrop encoder_layers forced_eos_token_id
is_decoder scale_embedding share_encoder_decoder_embeddings use_cache
""",
    "mbart": """
activation_dropout activation_function d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id dropout encoder_attention_heads
encoder_ffn_dim encoder_layerdrop encoder_layers forced_eos_token_id is_decoder scale_embedding
use_cache
""",
    "minimax": """
block_size full_attn_alpha_factor full_attn_beta_factor intermediate_size linear_attn_alpha_factor
linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor num_experts num_experts_per_tok
num_key_value_heads num_local_experts output_router_logits router_aux_loss_coef router_jitter_noise
use_cache
""",
    "minimax_m2": """
intermediate_size num_experts num_experts_per_tok num_key_value_heads num_local_experts
output_router_logits rotary_dim router_aux_loss_coef router_jitter_noise use_cache
""",
    "ministral3": """
intermediate_size num_key_value_heads use_cache
""",
    "mistral": """
intermediate_size num_key_value_heads use_cache
""",
    "mixtral": """
intermediate_size num_experts num_experts_per_tok num_key_value_heads num_local_experts
output_router_logits router_aux_loss_coef router_jitter_noise use_cache
""",
    "modernbert": """
attention_bias classifier_activation classifier_bias classifier_pooling cls_token_id decoder_bias
deterministic_flash_attn embedding_dropout global_attn_every_n_layers global_rope_theta
hidden_activation initializer_cutoff_factor intermediate_size local_attention local_rope_theta
mlp_bias mlp_dropout norm_bias norm_eps sparse_pred_ignore_index sparse_prediction
""",
    "modernbert-decoder": """
attention_bias classifier_activation classifier_bias cls_token_id decoder_bias embedding_dropout
global_attn_every_n_layers global_rope_theta hidden_activation initializer_cutoff_factor
intermediate_size local_attention local_rope_theta mlp_bias mlp_dropout norm_bias norm_eps use_cache
""",
    "moonshine": """
attention_bias decoder_config decoder_hidden_act decoder_num_attention_heads
decoder_num_hidden_layers decoder_num_key_value_heads decoder_start_token_id encoder_hidden_act
encoder_num_attention_heads encoder_num_hidden_layers encoder_num_key_value_heads intermediate_size
num_key_value_heads pad_head_dim_to_multiple_of use_cache
""",
    "mpnet": """
attention_probs_dropout_prob embedding_size hidden_dropout_prob intermediate_size layer_norm_eps
relative_attention_num_buckets
""",
    "mpt": """
attn_config d_model emb_pdrop embedding_fraction expansion_ratio init_device layer_norm_epsilon
learned_pos_emb logit_scale max_seq_len n_heads n_layers no_bias norm_type resid_pdrop use_cache
""",
    "mt5": """
d_ff d_kv d_model decoder_start_token_id dense_act_fn dropout_rate feed_forward_proj is_decoder
is_gated_act layer_norm_epsilon num_decoder_layers num_heads num_layers
relative_attention_max_distance relative_attention_num_buckets use_cache
""",
    "nemotron": """
attention_bias intermediate_size mlp_bias norm_eps num_key_value_heads use_cache
""",
    "nemotron_h": """
attention_bias chunk_size conv_kernel expand hybrid_override_pattern intermediate_size
layer_norm_epsilon layers_block_type mamba_chunk_size mamba_conv_bias mamba_d_conv
mamba_dt_init_floor mamba_dt_limit mamba_dt_max mamba_dt_min mamba_expand mamba_head_dim
mamba_hidden_act mamba_n_groups mamba_num_heads mamba_proj_bias mamba_ssm_cache_dtype mlp_bias
mlp_hidden_act moe_latent_size moe_shared_expert_intermediate_size moe_shared_expert_overlap
mtp_hybrid_override_pattern mtp_layers_block_type n_group n_groups n_shared_experts norm_topk_prob
num_experts_per_tok num_key_value_heads num_local_experts num_logits_to_keep
num_nextn_predict_layers output_router_logits rescale_prenorm_residual residual_in_fp32
routed_scaling_factor ssm_state_size time_step_floor time_step_limit time_step_max time_step_min
topk_group use_bias use_cache use_conv_bias use_mamba_kernels
""",
    "neobert": """
base_scale decoder_init_range dropout embedding_init_range flash_attention intermediate_size
max_length ngpt norm_eps rms_norm rope
""",
    "nllb-moe": """
activation_dropout activation_function batch_prioritized_routing d_model decoder_attention_heads
decoder_ffn_dim decoder_layerdrop decoder_layers decoder_sparse_step decoder_start_token_id dropout
encoder_attention_heads encoder_ffn_dim encoder_layerdrop encoder_layers encoder_sparse_step
expert_capacity moe_eval_capacity_token_fraction moe_token_dropout
normalize_router_prob_before_dropping num_experts output_router_logits router_aux_loss_coef
router_bias router_dtype router_ignore_padding_tokens router_z_loss_coef scale_embedding
second_expert_policy use_cache
""",
    "nomic_bert": """
attention_probs_dropout_prob hidden_dropout_prob intermediate_size layer_norm_eps type_vocab_size
""",
    "olmo": """
attention_bias clip_qkv intermediate_size num_key_value_heads use_cache
""",
    "olmo2": """
attention_bias intermediate_size num_key_value_heads use_cache
""",
    "olmo3": """
attention_bias intermediate_size num_key_value_heads use_cache
""",
    "olmoe": """
attention_bias clip_qkv intermediate_size norm_topk_prob num_experts num_experts_per_tok
num_key_value_heads num_local_experts output_router_logits router_aux_loss_coef use_cache
""",
    "openai-gpt": """
afn attn_pdrop embd_pdrop layer_norm_epsilon n_embd n_head n_layer n_positions resid_pdrop
summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type
summary_use_proj
""",
    "opt": """
_remove_final_layer_norm activation_function do_layer_norm_before dropout enable_bias ffn_dim
layer_norm_elementwise_affine layerdrop use_cache word_embed_proj_dim
""",
    "owlvit": """
image_size intermediate_size layer_norm_eps logit_scale_init_value num_channels patch_size
projection_dim text_config vision_config
""",
    "paligemma": """
image_size image_token_id image_token_index num_image_tokens patch_size projection_dim text_config
use_bidirectional_attention vision_config
""",
    "parakeet_ctc": """
activation_dropout attention_bias blank_token_id conv_kernel_size convolution_bias
ctc_loss_reduction ctc_zero_infinity decoder_hidden_size dropout dropout_positions durations
encoder_config intermediate_size layerdrop max_symbols_per_step num_decoder_layers
num_key_value_heads num_mel_bins scale_input subsampling_conv_channels subsampling_conv_kernel_size
subsampling_conv_stride subsampling_factor
""",
    "parakeet_encoder": """
activation_dropout attention_bias blank_token_id conv_kernel_size convolution_bias
ctc_loss_reduction ctc_zero_infinity decoder_hidden_size dropout dropout_positions durations
encoder_config intermediate_size layerdrop max_symbols_per_step num_decoder_layers
num_key_value_heads num_mel_bins scale_input subsampling_conv_channels subsampling_conv_kernel_size
subsampling_conv_stride subsampling_factor
""",
    "pegasus": """
activation_dropout activation_function d_model decoder_attention_heads decoder_ffn_dim
decoder_layerdrop decoder_layers decoder_start_token_id dropout encoder_attention_heads
encoder_ffn_dim encoder_layerdrop encoder_layers forced_eos_token_id is_decoder scale_embedding
use_cache
""",
    "phi": """
embd_pdrop intermediate_size layer_norm_eps num_key_value_heads partial_rotary_factor qk_layernorm
resid_pdrop use_cache
""",
    "phi3": """
embd_pdrop intermediate_size num_key_value_heads original_max_position_embeddings
partial_rotary_factor resid_pdrop use_cache
""",
    "phimoe": """
attention_bias input_jitter_noise intermediate_size lm_head_bias num_experts_per_tok
num_key_value_heads num_local_experts original_max_position_embeddings output_router_logits
router_aux_loss_coef router_jitter_noise use_cache
""",
    "qwen2": """
intermediate_size max_window_layers num_key_value_heads use_cache use_sliding_window
""",
    "qwen2_5_vl": """
depth fullatt_block_indexes image_token_id in_channels intermediate_size num_heads
num_key_value_heads out_hidden_size patch_size spatial_merge_size temporal_patch_size text_config
use_sliding_window video_token_id vision_config vision_end_token_id vision_start_token_id
window_size
""",
    "qwen2_moe": """
decoder_sparse_step intermediate_size max_window_layers mlp_only_layers norm_topk_prob num_experts
num_experts_per_tok num_key_value_heads output_router_logits qkv_bias router_aux_loss_coef
shared_expert_intermediate_size use_cache use_sliding_window
""",
    "qwen2_vl": """
depth embed_dim image_token_id in_channels intermediate_size mlp_ratio num_heads num_key_value_heads
patch_size spatial_merge_size temporal_patch_size text_config use_sliding_window video_token_id
vision_config vision_end_token_id vision_start_token_id
""",
    "qwen3": """
attention_bias intermediate_size max_window_layers num_key_value_heads use_cache use_sliding_window
""",
    "qwen3_5": """
attention_bias depth full_attention_interval image_token_id in_channels intermediate_size
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim num_heads num_key_value_heads num_position_embeddings out_hidden_size
patch_size spatial_merge_size temporal_patch_size text_config video_token_id vision_config
vision_end_token_id vision_start_token_id
""",
    "qwen3_5_moe": """
attention_bias depth full_attention_interval image_token_id in_channels intermediate_size
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim num_experts num_experts_per_tok num_heads num_key_value_heads
num_position_embeddings out_hidden_size output_router_logits patch_size router_aux_loss_coef
shared_expert_intermediate_size spatial_merge_size temporal_patch_size text_config video_token_id
vision_config vision_end_token_id vision_start_token_id
""",
    "qwen3_5_moe_text": """
attention_bias depth full_attention_interval image_token_id in_channels intermediate_size
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim num_experts num_experts_per_tok num_heads num_key_value_heads
num_position_embeddings out_hidden_size output_router_logits patch_size router_aux_loss_coef
shared_expert_intermediate_size spatial_merge_size temporal_patch_size text_config use_cache
video_token_id vision_config
""",
    "qwen3_5_text": """
attention_bias depth full_attention_interval image_token_id in_channels intermediate_size
linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim num_heads num_key_value_heads num_position_embeddings out_hidden_size
patch_size spatial_merge_size temporal_patch_size text_config use_cache video_token_id vision_config
""",
    "qwen3_moe": """
attention_bias decoder_sparse_step intermediate_size mlp_only_layers norm_topk_prob num_experts
num_experts_per_tok num_key_value_heads num_local_experts output_router_logits router_aux_loss_coef
use_cache use_sliding_window
""",
    "qwen3_next": """
attention_bias decoder_sparse_step full_attention_interval intermediate_size linear_conv_kernel_dim
linear_key_head_dim linear_num_key_heads linear_num_value_heads linear_value_head_dim
mlp_only_layers norm_topk_prob num_experts num_experts_per_tok num_key_value_heads
output_router_logits router_aux_loss_coef shared_expert_intermediate_size use_cache
""",
    "qwen3_vl": """
attention_bias deepstack_visual_indexes depth image_token_id in_channels intermediate_size num_heads
num_key_value_heads num_position_embeddings out_hidden_size patch_size spatial_merge_size
temporal_patch_size text_config video_token_id vision_config vision_end_token_id
vision_start_token_id
""",
    "qwen3_vl_moe": """
attention_bias decoder_sparse_step deepstack_visual_indexes depth image_token_id in_channels
intermediate_size mlp_only_layers num_experts num_experts_per_tok num_heads num_key_value_heads
num_position_embeddings out_hidden_size patch_size spatial_merge_size temporal_patch_size
text_config video_token_id vision_config vision_end_token_id vision_start_token_id
""",
    "recurrent_gemma": """
attention_bias attention_window_size block_types conv1d_width final_w_init_variance_scale
hidden_activation intermediate_size layers_block_type logits_soft_cap lru_width num_key_value_heads
use_cache w_init_variance_scale
""",
    "roberta": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps type_vocab_size use_cache
""",
    "roberta-prelayernorm": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps type_vocab_size use_cache
""",
    "rwkv7": """
a_low_rank_dim attn attn_mode decay_low_rank_dim fuse_cross_entropy fuse_linear_cross_entropy
fuse_norm gate_low_rank_dim hidden_ratio intermediate_size norm_bias norm_eps norm_first num_heads
use_cache use_l2warp v_low_rank_dim value_dim
""",
    "seed_oss": """
attention_bias attention_out_bias intermediate_size mlp_bias num_key_value_heads pretraining_tp
residual_dropout use_cache
""",
    "siglip": """
image_size intermediate_size layer_norm_eps num_channels patch_size projection_size text_config
vision_config vision_use_head
""",
    "smollm3": """
attention_bias intermediate_size mlp_bias no_rope_layer_interval no_rope_layers num_key_value_heads
use_cache use_sliding_window
""",
    "smolvlm": """
image_size image_token_id intermediate_size layer_norm_eps num_channels patch_size scale_factor
text_config use_cache vision_config
""",
    "stablelm": """
intermediate_size layer_norm_eps num_key_value_heads partial_rotary_factor qk_layernorm use_cache
use_parallel_residual use_qkv_bias
""",
    "starcoder2": """
embedding_dropout intermediate_size norm_epsilon num_key_value_heads residual_dropout use_bias
use_cache
""",
    "switch_transformers": """
add_cross_attention add_router_probs d_ff d_kv d_model decoder_sparse_step decoder_start_token_id
dense_act_fn dropout_rate encoder_sparse_step expert_capacity is_decoder layer_norm_epsilon
num_decoder_layers num_experts num_heads num_layers num_sparse_decoder_layers
num_sparse_encoder_layers relative_attention_max_distance relative_attention_num_buckets
router_aux_loss_coef router_bias router_dtype router_ignore_padding_tokens router_jitter_noise
router_z_loss_coef use_cache
""",
    "t5": """
d_ff d_kv d_model decoder_start_token_id dense_act_fn dropout_rate feed_forward_proj is_decoder
is_gated_act layer_norm_epsilon num_decoder_layers num_heads num_layers
relative_attention_max_distance relative_attention_num_buckets scale_decoder_outputs use_cache
""",
    "umt5": """
d_ff d_kv d_model decoder_start_token_id dense_act_fn dropout_rate feed_forward_proj is_decoder
is_gated_act layer_norm_epsilon num_decoder_layers num_heads num_layers
relative_attention_max_distance relative_attention_num_buckets scale_decoder_outputs use_cache
""",
    "vision-encoder-decoder": """
add_cross_attention cross_attention_hidden_size decoder decoder_start_token_id encoder is_decoder
""",
    "vit": """
attention_probs_dropout_prob encoder_stride hidden_dropout_prob image_size intermediate_size
layer_norm_eps num_channels patch_size pooler_act pooler_output_size qkv_bias
""",
    "wav2vec2": """
activation_dropout adapter_attn_dim adapter_kernel_size adapter_stride add_adapter
apply_spec_augment classifier_proj_size codevector_dim contrastive_logits_temperature conv_bias
conv_dim conv_kernel conv_stride ctc_loss_reduction ctc_zero_infinity diversity_loss_weight
do_stable_layer_norm feat_extract_activation feat_extract_norm feat_proj_dropout
feat_quantizer_dropout final_dropout inputs_to_logits_ratio intermediate_size layer_norm_eps
layerdrop mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length
mask_time_min_masks mask_time_prob num_adapter_layers num_codevector_groups
num_codevectors_per_group num_conv_pos_embedding_groups num_conv_pos_embeddings
num_feat_extract_layers num_negatives output_hidden_size proj_codevector_dim tdnn_dilation tdnn_dim
tdnn_kernel use_weighted_layer_sum xvector_output_dim
""",
    "wav2vec2-bert": """
activation_dropout adapter_act adapter_kernel_size adapter_stride add_adapter apply_spec_augment
classifier_proj_size conformer_conv_dropout conv_depthwise_kernel_size ctc_loss_reduction
ctc_zero_infinity feat_proj_dropout feature_projection_input_dim final_dropout
inputs_to_logits_ratio intermediate_size layer_norm_eps layerdrop left_max_position_embeddings
mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length mask_time_min_masks
mask_time_prob max_source_positions num_adapter_layers output_hidden_size position_embeddings_type
proj_codevector_dim right_max_position_embeddings rotary_embedding_base tdnn_dilation tdnn_dim
tdnn_kernel use_intermediate_ffn_before_adapter use_weighted_layer_sum xvector_output_dim
""",
    "wav2vec2-conformer": """
activation_dropout adapter_kernel_size adapter_stride add_adapter apply_spec_augment
classifier_proj_size codevector_dim conformer_conv_dropout contrastive_logits_temperature conv_bias
conv_depthwise_kernel_size conv_dim conv_kernel conv_stride ctc_loss_reduction ctc_zero_infinity
diversity_loss_weight feat_extract_activation feat_extract_norm feat_proj_dropout
feat_quantizer_dropout final_dropout inputs_to_logits_ratio intermediate_size layer_norm_eps
layerdrop mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length
mask_time_min_masks mask_time_prob max_source_positions num_adapter_layers num_codevector_groups
num_codevectors_per_group num_conv_pos_embedding_groups num_conv_pos_embeddings
num_feat_extract_layers num_negatives output_hidden_size position_embeddings_type
proj_codevector_dim rotary_embedding_base tdnn_dilation tdnn_dim tdnn_kernel use_weighted_layer_sum
xvector_output_dim
""",
    "wavlm": """
activation_dropout adapter_attn_dim adapter_kernel_size adapter_stride add_adapter
apply_spec_augment classifier_proj_size codevector_dim contrastive_logits_temperature conv_bias
conv_dim conv_kernel conv_stride ctc_loss_reduction ctc_zero_infinity diversity_loss_weight
do_stable_layer_norm feat_extract_activation feat_extract_norm feat_proj_dropout final_dropout
inputs_to_logits_ratio intermediate_size layer_norm_eps layerdrop mask_feature_length
mask_feature_min_masks mask_feature_prob mask_time_length mask_time_min_masks mask_time_prob
max_bucket_distance num_adapter_layers num_buckets num_codevector_groups num_codevectors_per_group
num_conv_pos_embedding_groups num_conv_pos_embeddings num_ctc_classes num_feat_extract_layers
num_negatives output_hidden_size proj_codevector_dim tdnn_dilation tdnn_dim tdnn_kernel
use_weighted_layer_sum xvector_output_dim
""",
    "whisper": """
activation_dropout activation_function apply_spec_augment begin_suppress_tokens classifier_proj_size
d_model decoder_attention_heads decoder_ffn_dim decoder_layerdrop decoder_layers
decoder_start_token_id dropout encoder_attention_heads encoder_ffn_dim encoder_layerdrop
encoder_layers mask_feature_length mask_feature_min_masks mask_feature_prob mask_time_length
mask_time_min_masks mask_time_prob max_source_positions max_target_positions median_filter_width
n_positions num_key_value_heads num_mel_bins scale_embedding suppress_tokens use_cache
use_weighted_layer_sum
""",
    "xglm": """
activation_dropout activation_function add_cross_attention attention_heads d_model
decoder_start_token_id dropout ffn_dim layerdrop num_layers scale_embedding use_cache
""",
    "xlm-roberta": """
add_cross_attention attention_probs_dropout_prob embedding_size hidden_dropout_prob
intermediate_size is_decoder layer_norm_eps type_vocab_size use_cache
""",
    "zamba": """
attention_head_dim attention_hidden_size attn_layer_offset attn_layer_period hidden_mamba_act
intermediate_size layers_block_type mamba_conv_bias mamba_d_conv mamba_d_state mamba_dt_rank
mamba_expand mamba_proj_bias n_mamba_heads num_key_value_heads num_logits_to_keep time_step_floor
time_step_max time_step_min use_associative_scan use_cache use_mamba_kernels
""",
    "zamba2": """
adapter_rank add_bias_linear attention_head_dim attention_hidden_size chunk_size hybrid_layer_ids
intermediate_size layers_block_type mamba_d_conv mamba_d_state mamba_expand mamba_headdim
mamba_ngroups n_mamba_heads num_key_value_heads num_logits_to_keep num_mem_blocks time_step_floor
time_step_max time_step_min use_cache use_conv_bias use_long_context use_mamba_kernels
use_mem_eff_path use_mem_rope use_shared_attention_adapter
""",
}
"""The additional fields of each family, by model_type."""
