"""Uses the anthropic package against a base URL, as a test of weir's tells it to: anthropic_client.py URL [limited | stopped]."""
import sys

import anthropic

MODEL = "lab-model"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SYSTEM = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
WEATHER = {
    "name": "weather",
    "description": "The weather of a place.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
RAIN = [
    {"role": "user", "content": "Will it rain in Delft?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"place": "Delft"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"rain": true}'}]},
]


def check(what, ok, got=None):
    if not ok:
        sys.exit(f"{what}: {got!r}")


def total(usage):
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


def message(client):
    r = client.messages.create(model=MODEL, max_tokens=8, system="Be brief.", messages=[{"role": "user", "content": "What is a weir?"}])
    check("message", r.content[0].text and r.usage.output_tokens == 8 and r.stop_reason == "max_tokens", r)


def streamed_message(client):
    with client.messages.stream(
        model=MODEL, max_tokens=8, system=SYSTEM, messages=[{"role": "user", "content": [{"type": "text", "text": "What is a weir?"}]}]
    ) as stream:
        text = "".join(stream.text_stream)
        r = stream.get_final_message()
    check("streamed message", text and text == r.content[0].text and r.usage.output_tokens == 8 and r.stop_reason == "max_tokens", (text, r))


def tool_result(client):
    r = client.messages.create(model=MODEL, max_tokens=8, messages=RAIN, tools=[WEATHER])
    check("tool result", r.content[0].text, r)
    messages = RAIN + [{"role": "assistant", "content": r.content}, {"role": "user", "content": "And tomorrow?"}]
    again = client.messages.create(model=MODEL, max_tokens=8, messages=messages, tools=[WEATHER])
    check("the next turn", total(again.usage) > total(r.usage), again)


def image(client):
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is this?"}]
    r = client.messages.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": content}])
    check("image", r.content[0].text and total(r.usage) > 500, r)


def count(client):
    n = client.messages.count_tokens(model=MODEL, system=SYSTEM, messages=RAIN, tools=[WEATHER]).input_tokens
    r = client.messages.create(model=MODEL, max_tokens=8, system=SYSTEM, messages=RAIN, tools=[WEATHER])
    check("count_tokens", n == total(r.usage), (n, r))


def unknown_model(client):
    try:
        client.messages.create(model="no-such-model", max_tokens=8, messages=[{"role": "user", "content": "x"}])
    except anthropic.NotFoundError as e:
        check("the replica's own error", e.status_code == 404 and "no-such-model" in e.body["error"]["message"], e)
    else:
        sys.exit("unknown model: no error")


def refused(client, kind, status, of, **headers):
    try:
        client.messages.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "x"}], extra_headers=headers)
    except kind as e:
        error = e.body["error"]
        check("weir's refusal", e.status_code == status and e.body["type"] == "error" and error["type"] == of and error["message"], e)
        check("retry-after", int(e.response.headers["retry-after"]) >= 1, e.response.headers)
    else:
        sys.exit("no seat is free: no error")


def limited(client):
    refused(client, anthropic.RateLimitError, 429, "rate_limit_error", **{"x-weir-deadline": "100ms"})


def stopped(client):
    refused(client, anthropic.InternalServerError, 503, "api_error")


client = anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=30)
steps = {"limited": [limited], "stopped": [stopped], "": [message, streamed_message, tool_result, image, count, unknown_model]}
for step in steps["".join(sys.argv[2:])]:
    step(client)
    print(step.__name__)
