"""Tells what vLLM gives to a chat template for a request: reads lines of JSON with path and body, writes them with rendered.

Two bodies with the same rendered are the same prompt to a vLLM, whatever its template. It uses vLLM's own request
models and converters, without a model. A body that vLLM refuses has a rendered of null.
"""

import json
import logging
import sys
from types import SimpleNamespace

logging.disable(logging.CRITICAL)

from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.utils import construct_input_messages, construct_tool_dicts
from vllm.renderers import chat_utils


class Media(chat_utils.BaseMultiModalContentParser):
    """Notes media instead of fetching them: by kind and content, or uuid."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    @property
    def model_config(self):
        return SimpleNamespace(enable_prompt_embeds=True)

    def note(self, kind, content, uuid=None):
        modality = {"input_audio": "audio", "prompt_embeds": "prompt_embeds"}.get(kind, kind.partition("_")[0])
        self.seen.append([modality, "uuid", uuid] if uuid is not None else [kind, content])
        self._add_placeholder(modality, f"<{modality}>")

    def parse_image(self, content, uuid=None):
        self.note("image", content, uuid)

    def parse_image_embeds(self, content, uuid=None):
        self.note("image_embeds", content, uuid)

    def parse_image_pil(self, content, uuid=None):
        self.note("image", content, uuid)

    def parse_audio(self, content, uuid=None):
        self.note("audio", content, uuid)

    def parse_input_audio(self, content, uuid=None):
        self.note("input_audio", content and content.get("data"), uuid)

    def parse_audio_embeds(self, content, uuid=None):
        self.note("audio_embeds", content, uuid)

    def parse_video(self, content, uuid=None):
        self.note("video", content, uuid)

    def parse_video_embeds(self, content, uuid=None):
        self.note("video_embeds", content, uuid)

    def parse_prompt_embeds(self, content):
        self.note("prompt_embeds", content)


class Tracker:
    def __init__(self, seen):
        self.seen = seen

    def create_parser(self, mm_processor_kwargs=None):
        return Media(self.seen)


def conversation(messages, form):
    """Messages as a template gets them: one empty text is no content, and one reasoning has one name."""
    seen, out = [], []
    for m in messages:
        out += chat_utils._parse_chat_message_content(m, Tracker(seen), form, interleave_strings=form == "string")
    for m in out:
        m.pop("reasoning_content", None)
        if m.get("content") in ("", [], [{"type": "text", "text": ""}]):
            m.pop("content")
        elif isinstance(m.get("content"), list):  # what else a part has is passed on, and shown by no template
            m["content"] = [{k: v for k, v in p.items() if k in ("type", "text", "name")} for p in m["content"]]
        if not m.get("tools"):
            m.pop("tools", None)
    return out, seen


def plain(value):
    """A value of plain JSON; iterators of pydantic are read."""
    return json.loads(json.dumps(value, default=lambda v: v.model_dump() if hasattr(v, "model_dump") else list(v)))


def sorted_keys(value):
    return json.loads(json.dumps(value, sort_keys=True))


def rendered(path, body):
    body = json.loads(body)
    if path == "/v1/responses":
        r = ResponsesRequest.model_validate(body)
        messages = construct_input_messages(request_instructions=r.instructions, request_input=r.input)
        tools = construct_tool_dicts(r.tools, r.tool_choice)
    else:
        if path == "/v1/messages":
            r = AnthropicServingMessages.to_chat_completion_request(AnthropicMessagesRequest.model_validate(body))
        else:
            r = ChatCompletionRequest.model_validate(body)
        messages, tools = r.messages, r.tools and [t.model_dump() for t in r.tools]
    params = r.build_chat_params(None, "auto")
    kwargs = dict(params.chat_template_kwargs)
    documents = kwargs.pop("documents", None)
    messages = plain(messages)
    forms = [conversation(messages, form) for form in ("string", "openai")]
    media = forms[0][1]
    known = {k: getattr(r, k) for k in type(r).model_fields}  # all else that a body has is ignored
    about = media and [sorted_keys(known.get(k) or None) for k in ("mm_processor_kwargs", "media_io_kwargs")]
    return [r.model, r.cache_salt, params.chat_template or None, sorted_keys(kwargs), documents or None, plain(tools) or None,
            known.get("add_special_tokens", False), [form[0] for form in forms], media, about]


for line in sys.stdin:
    row = json.loads(line)
    try:
        row["rendered"] = rendered(row["path"], row["body"])
    except ValueError:  # vLLM answers 400: pydantic's errors and its own are such
        row["rendered"] = None
    print(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
