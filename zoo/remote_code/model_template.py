"""The classes that transformers loads: the model, and the model with its head."""

from __future__ import annotations

_MODEL = '''
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

    def positions(self, new, attention_mask, past_key_values, position_ids):
        """The positions of new tokens: those that are given, of which the base would make slots of a static cache."""
        found = {base}.positions(self, new, attention_mask, past_key_values, None)
        return found if position_ids is None else replace(found, positions=position_ids)

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
        past_key_values=None,{image_inputs}
        **options,
    ):
        """input_ids: B T, or inputs_embeds: B T and the table's width; attention_mask: B S with 1 for real tokens."""
        inputs = one_of("input_ids or inputs_embeds", input_ids, inputs_embeds)
        cache = past_key_values if cache is None else cache
        if cache is None and (self.config.use_cache if use_cache is None else use_cache):
            cache = {cache}
        own = isinstance(cache, Cache)
        past = past_states(cache, inputs.device) if own else None
        mask = checked(attention_mask, prepared={prepared} and position_ids is not None)
        mask = self.serving.begin(mask, None if own else cache, options)
        if mask is None and past is not None and self.serving.masks:
            mask = inputs.new_ones((inputs.shape[0], cache.get_seq_length() + inputs.shape[1]), dtype=torch.int64)
{images}        outputs = {base}.forward(
            self, inputs, mask, past, token_type_ids=token_type_ids, position_ids=position_ids{passed_images}
        )
        if own:
            keep_states(cache, outputs.present_key_values, inputs.shape[1])
        self.serving.begin()
        return BaseModelOutputWithPast(last_hidden_state=outputs["last_hidden_state"], **{{CACHE: cache}})
'''
)

IMAGES = """\
        if past is not None:
            pixel_values = None  # generation gives them in every step
"""

ENCODER_MODEL = (
    _MODEL
    + '''
    @can_return_tuple
    def forward(self, {main}=None, attention_mask=None, token_type_ids=None, position_ids=None, {embeds}**options):
        """{main}: those of the embedding{or_embeds}; attention_mask: 1 for real ones."""
        outputs = self.outputs(self.head, {main}, attention_mask, token_type_ids, position_ids, {given_embeds}, options)
        return BaseModelOutput(last_hidden_state=outputs["last_hidden_state"])

    def outputs(self, head, {main}, mask, token_type_ids, position_ids, inputs_embeds, options):
        """The outputs of a head."""
        inputs = {inputs}
        mask = self.serving.begin(checked(mask), None, options)
        if mask is None and inputs_embeds is not None:
            mask = torch.ones(inputs.shape[:2], dtype=torch.int64, device=inputs.device)
        embedding = self.embedding if position_ids is None else Positioned(self.embedding, position_ids)
        return {base}.forward(With(self, head=head, embedding=embedding), inputs, mask, token_type_ids)
'''
)

CAUSAL_HEAD = '''
class {prefix}{suffix}({prefix}PreTrainedModel, GenerationMixin):
    """Scores of the next token."""

    _tied_weights_keys = {ties}
    _tp_plan = {{"lm_head": "colwise_gather_output"}}
{stateful}
    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()
{outputs}
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
        logits = self.head(outputs.last_hidden_state[:, kept], None)["logits"]
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size)
        return CausalLMOutputWithPast(loss=loss, logits=logits, **{{CACHE: outputs[CACHE] if CACHE in outputs else None}})
'''

HEAD = '''
class {prefix}{suffix}({prefix}PreTrainedModel):
    """{doc}"""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()
{outputs}
    @can_return_tuple
    def forward(self, {main}=None, attention_mask=None, token_type_ids=None, position_ids=None, {embeds}**options):
        """Inputs as of the model."""
        outputs = self.model.outputs(
            self.head, {main}, attention_mask, token_type_ids, position_ids, {given_embeds}, options
        )
        return {result}(**outputs)
'''

DECODER_HEAD = '''
class {prefix}{suffix}({prefix}PreTrainedModel):
    """{doc}"""

    _tied_weights_keys = {ties}

    def __init__(self, config):
        super().__init__(config)
        self.model = {prefix}Model(config)
{head}
        self.post_init()

    @can_return_tuple
    def forward(self, {others}{own}input_ids=None, {own}attention_mask=None, **options):
        """Inputs as of the model."""
        x = self.model(
            {passed}{own}input_ids={own}input_ids, {own}attention_mask={own}attention_mask, return_dict=True, **options
        ).last_hidden_state
        mask = checked({own}attention_mask)
        mask = None if mask is None else mask[:, -x.shape[1] :]
        return {result}(**self.head(x, {sequence}({own}input_ids, mask)))
'''

DUAL_MODEL = '''
class {prefix}Model({prefix}PreTrainedModel, {base}):
    """The vectors of texts and images in {name}, and their products."""

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

    @can_return_tuple
    def forward(self, input_ids=None, pixel_values=None, attention_mask=None, token_type_ids=None, **options):
        """input_ids and attention_mask: N T, with 1 for real tokens; pixel_values: M channels height width."""
        return ModelOutput(**{base}.forward(self, input_ids, pixel_values, checked(attention_mask), token_type_ids))

    def get_text_features(self, input_ids, attention_mask=None, token_type_ids=None):
        """The vector of each text: N W."""
        return self.vector("text", input_ids, checked(attention_mask), token_type_ids)

    def get_image_features(self, pixel_values):
        """The vector of each image, M W, or of each of its patches with a box."""
        return self.vector("image", pixel_values)
'''
