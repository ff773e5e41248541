"""The classes of an encoder with a decoder that attends to it."""

from __future__ import annotations

MODEL = '''
class EncoderView(nn.Module):
    """The encoder of a model, as transformers calls it before it generates."""

    main_input_name = "{main}"

    def __init__(self, model):
        super().__init__()
        self.owner = (model,)

    def forward(self, {main}=None, attention_mask=None, {embeds}token_type_ids=None, **unused):
        """{main}: those of the encoder's embedding{or_embeds}; attention_mask: 1 for real ones."""
        inputs, mask = {inputs}, checked(attention_mask)
        if mask is None and inputs is not {main}:
            mask = torch.ones(inputs.shape[:2], dtype=torch.int64, device=inputs.device)
        self.owner[0].serving.begin()
        return BaseModelOutput(last_hidden_state=self.owner[0].encoder_output(inputs, mask, token_type_ids))


class {prefix}Model({prefix}PreTrainedModel, {base}):
    """The last hidden state of {name}."""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
{parts}
        connect(self, Serving(config))
        self.post_init()

    def get_input_embeddings(self):
        return {token}

    def set_input_embeddings(self, value):
        {set_token}

    def get_encoder(self, modality=None):
        return EncoderView(self)

    @can_return_tuple
    def forward(
        self,
        {main}=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        cache=None,
        encoder_outputs=None,
        {embeds}decoder_inputs_embeds=None,
        use_cache=None,
        token_type_ids=None,
        past_key_values=None,
        **options,
    ):
        """Those of the encoder: B S, and of the decoder: B T; encoder_outputs: what the encoder returned earlier."""
        inputs = one_of("decoder_input_ids or decoder_inputs_embeds", decoder_input_ids, decoder_inputs_embeds)
        cache = past_key_values if cache is None else cache
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = EncoderDecoderCache({cache}, DynamicCache())
        if encoder_outputs is None:
            encoder_outputs = EncoderView(self)({main}, attention_mask, {pass_embeds}token_type_ids)
        hidden = encoder_outputs[0]
        own = None if cache is None else cache.self_attention_cache
        past = None if own is None else past_states(own, inputs.device)
        mask, encoder_mask = checked(decoder_attention_mask), checked(attention_mask)
        if mask is None and past is not None:
            mask = inputs.new_ones((inputs.shape[0], own.get_seq_length() + inputs.shape[1]), dtype=torch.int64)
        self.serving.begin(options=options)
        outputs = self.decode(inputs, self.encoded(hidden, cache), encoder_mask, past, mask)
        if own is not None:
            keep_states(own, outputs.present_key_values, inputs.shape[1])
        self.serving.begin()
        return Seq2SeqModelOutput(
            last_hidden_state=outputs["last_hidden_state"], encoder_last_hidden_state=hidden, **{{CACHE: cache}}
        )

    def encoded(self, hidden, cache):
        """The encoder's keys and values for each layer, B G S K twice: projected once, and then those of the cache."""
        if cache is not None and cache.is_updated.get(0):
            return [(held.keys, held.values) for held in cache.cross_attention_cache.layers]
        found = self.keys_values(hidden)
        if cache is not None:
            for layer, pair in enumerate(found):
                cache.cross_attention_cache.update(*pair, layer)
                cache.is_updated[layer] = True
        return found
'''

HEAD = '''
class {prefix}{suffix}({prefix}PreTrainedModel, GenerationMixin):
    """Scores of the decoder's next token."""

    _tied_weights_keys = {ties}
{stateful}
    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()

    def get_encoder(self, modality=None):
        return self.model.get_encoder()
{outputs}
    @can_return_tuple
    def forward(
        self,
        {main}=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        cache=None,
        encoder_outputs=None,
        {embeds}decoder_inputs_embeds=None,
        labels=None,
        use_cache=None,
        logits_to_keep=0,
        past_key_values=None,
        **options,
    ):
        """logits: B T vocabulary, of the last ``logits_to_keep`` tokens (0: of all).

        labels: B T, -100 where none counts; shifted by a token, they are the decoder's inputs unless these are given.
        """
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            start = labels.new_full((labels.shape[0], 1), self.config.decoder_start_token_id)
            decoder_input_ids = torch.cat((start, labels[:, :-1].clamp(min=0)), 1)
        outputs = self.model(
            {main}, attention_mask, decoder_input_ids, decoder_attention_mask,
            past_key_values if cache is None else cache, encoder_outputs, {pass_embeds}decoder_inputs_embeds, use_cache,
            return_dict=True, **options,
        )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.head(outputs.last_hidden_state[:, kept], None)["logits"]
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            **{{CACHE: outputs[CACHE] if CACHE in outputs else None}},
        )
'''
