"""Uses the openai package against a base URL, as a test of weir's tells it to: openai_client.py URL [limited | stopped]."""
import sys

import openai

MODEL = "lab-model"
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def check(what, ok, got=None):
    if not ok:
        sys.exit(f"{what}: {got!r}")


def chat(client):
    r = client.chat.completions.create(
        model=MODEL, max_tokens=8, messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is a weir?"}]
    )
    check("chat", r.choices[0].message.content and r.usage.completion_tokens == 8, r)


def streamed_chat(client):
    text, usage = "", None
    for event in client.chat.completions.create(
        model=MODEL, max_tokens=8, stream=True, stream_options={"include_usage": True}, messages=[{"role": "user", "content": "What is a weir?"}]
    ):
        usage = event.usage or usage
        for choice in event.choices:
            text += choice.delta.content or ""
    check("streamed chat", text and usage.completion_tokens == 8, (text, usage))


def completions(client):
    r = client.completions.create(model=MODEL, prompt="A weir is", max_tokens=8)
    check("completions", r.choices[0].text and r.choices[0].finish_reason == "length", r)


def models(client):
    check("models", MODEL in [m.id for m in client.models.list()])
    check("one model", client.models.list().data[0].object == "model")


def tool_call(client):
    messages = [
        {"role": "user", "content": "Will it rain in Delft?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Delft"}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": '{"rain": true}'},
    ]
    r = client.chat.completions.create(model=MODEL, max_tokens=8, messages=messages, tools=[WEATHER])
    check("tool call", r.choices[0].message.content, r)
    messages += [{"role": "assistant", "content": r.choices[0].message.content}, {"role": "user", "content": "And tomorrow?"}]
    again = client.chat.completions.create(model=MODEL, max_tokens=8, messages=messages, tools=[WEATHER])
    check("the next turn", again.usage.prompt_tokens > r.usage.prompt_tokens, again)


def image(client):
    content = [{"type": "image_url", "image_url": {"url": PIXEL}}, {"type": "text", "text": "What is this?"}]
    r = client.chat.completions.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": content}])
    check("image", r.choices[0].message.content and r.usage.prompt_tokens > 500, r)


def response(client):
    content = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": PIXEL, "detail": "auto"}]
    r = client.responses.create(model=MODEL, max_output_tokens=16, instructions="Be brief.", input=[{"role": "user", "content": content}])
    check("response", r.output_text and r.usage.output_tokens == 16 and r.usage.input_tokens > 500 and r.status == "incomplete", r)


def streamed_response(client):
    text, last = "", None
    for event in client.responses.create(model=MODEL, max_output_tokens=16, input="What is a weir?", stream=True):
        last = event
        if event.type == "response.output_text.delta":
            text += event.delta
    check("streamed response", last.type == "response.completed" and text and text == last.response.output_text, (text, last))


def response_tools(client):
    tool = {"type": "function", "strict": False, **WEATHER["function"]}
    call = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"place": "Delft"}'}
    result = {"type": "function_call_output", "call_id": "call_1", "output": '{"rain": true}'}
    asked = [{"role": "user", "content": "Will it rain in Delft?"}, call, result]
    r = client.responses.create(model=MODEL, max_output_tokens=16, tools=[tool], input=asked)
    again = client.responses.create(model=MODEL, max_output_tokens=16, tools=[tool], input=asked + r.output + [{"role": "user", "content": "And tomorrow?"}])
    check("the next turn of a response", again.usage.input_tokens > r.usage.input_tokens, again)


def embeddings(client):
    for input, items, tokens in [("four", 1, 1), (["four", "eight by"], 2, 3), ([1, 2, 3, 4], 1, 4), ([[1, 2, 3], [4]], 2, 4)]:
        r = client.embeddings.create(model=MODEL, input=input)
        check("embeddings", len(r.data) == items and len(r.data[0].embedding) > 1 and r.usage.prompt_tokens == tokens, r)


def unknown_model(client):
    try:
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "x"}])
    except openai.NotFoundError as e:
        check("the replica's own error", e.status_code == 404 and "no-such-model" in e.message, e)
    else:
        sys.exit("unknown model: no error")


def refused(client, kind, status, code, of, **headers):
    try:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "x"}], extra_headers=headers)
    except kind as e:
        check("weir's refusal", e.status_code == status and e.code == code and e.type == of and e.body["message"], e)
        check("retry-after", int(e.response.headers["retry-after"]) >= 1, e.response.headers)
    else:
        sys.exit("no seat is free: no error")


def limited(client):
    refused(client, openai.RateLimitError, 429, "late", "rate_limit_error", **{"x-weir-deadline": "100ms"})


def stopped(client):
    refused(client, openai.InternalServerError, 503, "stopped", "server_error")


client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=30)
served = [chat, streamed_chat, completions, models, tool_call, image, response, streamed_response, response_tools, embeddings, unknown_model]
for step in {"limited": [limited], "stopped": [stopped], "": served}["".join(sys.argv[2:])]:
    step(client)
    print(step.__name__)
