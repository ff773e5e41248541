"""The classes that transformers loads: the model, and the model with its head."""

from __future__ import annotations

_MODEL = '''
class {prefix}Model({prefix}PreTrainedModel):
    """The last hidden state of {name}."""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
        self.embedding = {embedding}
        self.{part} = {stack}(config)
        self.post_init()

    def get_input_embeddings(self):
        return self.embedding.token

    def set_input_embeddings(self, value):
        self.embedding.token = value
'''

OUTPUT_EMBEDDINGS = """
    def get_output_embeddings(self):
        return self.{output}

    def set_output_embeddings(self, value):
        self.{output} = value
"""

DECODER_MODEL = (
    _MODEL
    + '''
    def get_decoder(self):
        return self

    @can_return_tuple
    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        cache=None,
        inputs_embeds=None,
        use_cache=None,
        token_type_ids=None,
        past_key_values=None,
        **options,
    ):
        """input_ids: B T, or inputs_embeds: B T and the table's width; attention_mask: B S with 1 for real tokens."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Pass either input_ids or inputs_embeds.")
        inputs = input_ids if inputs_embeds is None else inputs_embeds
        cache = past_key_values if cache is None else cache
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = {cache}
        mask, length = checked(attention_mask, prepared={prepared}), inputs.shape[1]
        if position_ids is None and mask is None:
            position_ids = (past_length(cache) + positions_from(0, length, inputs))[None]
        elif position_ids is None:
            position_ids = token_positions(mask, length)
        x = self.embedding(inputs, position_ids{types})
        x = self.decoder(x, position_ids, mask, cache, options)
{counted}        return BaseModelOutputWithPast(last_hidden_state=x, **{{CACHE: cache}})
'''
)

ENCODER_MODEL = (
    _MODEL
    + '''
    @can_return_tuple
    def forward(
        self, input_ids=None, attention_mask=None, token_type_ids=None, position_ids=None, inputs_embeds=None, **options
    ):
        """input_ids: B T, or inputs_embeds: B T and the table's width; attention_mask: B T with 1 for real tokens."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Pass either input_ids or inputs_embeds.")
        inputs = input_ids if inputs_embeds is None else inputs_embeds
        mask, length = checked(attention_mask), inputs.shape[1]
        if position_ids is None:
            position_ids = positions_from(0, length, inputs)[None] if mask is None else token_positions(mask, length)
        x = self.embedding(inputs, position_ids{types})
        x = self.encoder(x, position_ids, mask, None, options)
        return BaseModelOutput(last_hidden_state=x)
'''
)

CAUSAL_HEAD = (
    '''
class {prefix}ForCausalLM({prefix}PreTrainedModel, GenerationMixin):
    """Scores of the next token."""

    _tied_weights_keys = {ties}
    _tp_plan = {{"lm_head": "colwise_gather_output"}}
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
        position_ids=None,
        cache=None,
        inputs_embeds=None,
        labels=None,
        use_cache=None,
        logits_to_keep=0,
        past_key_values=None,
        **options,
    ):
        """logits: B T vocabulary, of the last ``logits_to_keep`` tokens (0: of all)."""
        cache = past_key_values if cache is None else cache
        outputs = self.model(
            input_ids, attention_mask, position_ids, cache, inputs_embeds, use_cache, return_dict=True, **options
        )
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = {scores}(outputs.last_hidden_state[:, kept], None)["logits"]
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size)
        return CausalLMOutputWithPast(loss=loss, logits=logits, **{{CACHE: outputs[CACHE] if CACHE in outputs else None}})
{methods}'''
)

HEAD = '''
class {prefix}{suffix}({prefix}PreTrainedModel):
    """{doc}"""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()
{output}
    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, **options):
        """Inputs as of the model{outputs_doc}."""
        outputs = self.model(input_ids, attention_mask, return_dict=True, **options)
        scores = {scores}(outputs.last_hidden_state, TokenSequence(input_ids, checked(attention_mask)))
        return {result}(**scores)
{methods}'''
