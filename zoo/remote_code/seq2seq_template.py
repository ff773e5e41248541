"""The classes of an encoder with a decoder that attends to it."""

from __future__ import annotations

from zoo.remote_code.model_template import OUTPUT_EMBEDDINGS

ENCODER = '''
class {prefix}Encoder(nn.Module):
    """The encoder of {name}, with its embedding."""

    def __init__(self, config):
        super().__init__()
        self.embedding = {embedding}
        self.stack = Encoder(config)

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, token_type_ids=None, **unused):
        """input_ids: B S, or inputs_embeds: B S and the table's width; attention_mask: B S with 1 for real tokens."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Pass either input_ids or inputs_embeds.")
        inputs = input_ids if inputs_embeds is None else inputs_embeds
        mask, length = checked(attention_mask), inputs.shape[1]
        positions = positions_from(0, length, inputs)[None] if mask is None else token_positions(mask, length)
        x = self.embedding(inputs, positions{types})
        return BaseModelOutput(last_hidden_state=self.stack(x, positions, mask))
'''

DECODER = '''
class {prefix}Decoder(nn.Module):
    """The decoder of {name}, with its embedding."""

    def __init__(self, config):
        super().__init__()
        self.embedding = {embedding}
        self.stack = Decoder(config)

    def forward(self, inputs, hidden, encoder_mask, mask, cache, options):
        """inputs: B T, or B T and the table's width; hidden: the encoder's output, B S D; masks: B S, and B and all tokens."""
        past, length = past_length(cache), inputs.shape[1]
        if mask is None:
            positions = (past + positions_from(0, length, inputs))[None]
        else:
            positions = token_positions(mask, length)
        x = self.embedding(inputs, positions)
        own = None if cache is None else cache.self_attention_cache
        x = self.stack(x, positions, mask, self.encoded(hidden, cache), encoder_mask, own, options)
{counted}        return x

    def encoded(self, hidden, cache):
        """The encoder's keys and values for each layer, B G S K twice: projected once, and then those of the cache."""
        found = []
        for layer, block in enumerate(self.stack.blocks):
            if cache is not None and cache.is_updated.get(layer):
                held = cache.cross_attention_cache.layers[layer]
                pair = held.keys, held.values
            else:
                pair = block.cross_attention.keys_values(hidden)
                if cache is not None:
                    cache.cross_attention_cache.update(*pair, layer)
                    cache.is_updated[layer] = True
            found.append(pair)
        return found
'''

MODEL = '''
class {prefix}Model({prefix}PreTrainedModel):
    """The last hidden state of {name}."""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
        self.encoder = {prefix}Encoder(config)
        self.decoder = {prefix}Decoder(config)
        self.post_init()

    def get_input_embeddings(self):
        return self.encoder.embedding.token

    def set_input_embeddings(self, value):
        {shared}self.encoder.embedding.token = value

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        cache=None,
        encoder_outputs=None,
        inputs_embeds=None,
        decoder_inputs_embeds=None,
        use_cache=None,
        token_type_ids=None,
        past_key_values=None,
        **options,
    ):
        """Those of the encoder: B S, and of the decoder: B T; encoder_outputs: what the encoder returned earlier."""
        if (decoder_input_ids is None) == (decoder_inputs_embeds is None):
            raise ValueError("Pass either decoder_input_ids or decoder_inputs_embeds.")
        cache = past_key_values if cache is None else cache
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = EncoderDecoderCache({cache}, DynamicCache())
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, inputs_embeds, token_type_ids)
        hidden = encoder_outputs[0]
        inputs = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        x = self.decoder(inputs, hidden, checked(attention_mask), checked(decoder_attention_mask), cache, options)
        return Seq2SeqModelOutput(last_hidden_state=x, encoder_last_hidden_state=hidden, **{{CACHE: cache}})
'''

HEAD = (
    '''
class {prefix}ForConditionalGeneration({prefix}PreTrainedModel, GenerationMixin):
    """Scores of the decoder's next token."""

    _tied_weights_keys = {ties}
{stateful}
    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()
'''
    + OUTPUT_EMBEDDINGS
    + '''
    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        decoder_attention_mask=None,
        cache=None,
        encoder_outputs=None,
        inputs_embeds=None,
        decoder_inputs_embeds=None,
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
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask,
            past_key_values if cache is None else cache, encoder_outputs, inputs_embeds, decoder_inputs_embeds, use_cache,
            return_dict=True, **options,
        )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = {scores}(outputs.last_hidden_state[:, kept], None)["logits"]
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            **{{CACHE: outputs[CACHE] if CACHE in outputs else None}},
        )
{methods}'''
)

COUNTED = """\
        if own is not None:
            own.length += length
"""
