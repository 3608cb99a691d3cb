"""Messages and prompts to token ids, with the small Llama's own tokenizer and with tokenizers that need care."""

import json
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="the extra `llm` is not installed")

from llm_messages import PromptError, read_messages, token_ids, with_bos  # noqa: E402
from llm_serving import CHECKPOINT  # noqa: E402
from llm_template import template_arguments_from  # noqa: E402

BOS = 0
USER = [{"role": "user", "content": "Question: Why?"}]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.PreTrainedTokenizerFast.from_pretrained(CHECKPOINT)


def ids(tokenizer: Any, messages: object = None, prompt: str | None = None, **options: Any) -> list[int]:
    text = None if messages is None else json.dumps(messages)
    usual = {"chat_template": None, "template_arguments": {}, "max_model_len": 100}
    return token_ids(tokenizer, text, prompt, **{**usual, **options})


def test_messages_are_rendered_by_the_models_chat_template(tokenizer: Any) -> None:
    assert tokenizer.decode(ids(tokenizer, USER)) == "<s>Question: Why?\nAnswer:\n"


def test_messages_and_the_same_text_as_prompt_give_the_same_tokens(tokenizer: Any) -> None:
    assert ids(tokenizer, USER) == ids(tokenizer, prompt="Question: Why?\nAnswer:\n")


def test_a_chat_template_beside_the_model_wins(tokenizer: Any) -> None:
    template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
    found = ids(tokenizer, USER, chat_template=template)
    assert tokenizer.decode(found) == "<s>[user] Question: Why?", "and <s> is put in front where the template forgot it"


def test_text_parts_are_joined(tokenizer: Any) -> None:
    parts = [{"type": "text", "text": "Question: "}, {"type": "text", "text": "Why?"}]
    assert ids(tokenizer, [{"role": "user", "content": parts}]) == ids(tokenizer, USER)


def test_exactly_one_first_token_whoever_puts_it_there(tokenizer: Any) -> None:
    for prompt in ("the", "<s>the", "<s><s>the"):
        assert ids(tokenizer, prompt=prompt).count(BOS) == 1


def test_a_tokenizer_that_wants_no_first_token_gets_none(tokenizer: Any) -> None:
    class WantsNone:
        bos_token_id = BOS

        def encode(self, text: str) -> list[int]:
            return []

    assert with_bos(WantsNone(), [5, 6]) == [5, 6]
    assert with_bos(WantsNone(), [BOS, 5]) == [BOS, 5], "what was written in front by hand stays"


def test_a_tokenizer_without_such_a_token_is_left_alone() -> None:
    assert with_bos(object(), [5, 6]) == [5, 6]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "no JSON"),
        ("{}", "a JSON dict"),
        ("[]", "an empty list"),
        ("[1]", "message 0"),
        ('[{"content": "x"}]', 'message 0 has no "role"'),
        ('[{"role": "user"}]', 'message 0 has no text "content"'),
        ('[{"role": "user", "content": "x"}, {"role": "user", "content": null}]', "message 1"),
        ('[{"role": "user", "content": [{"type": "image_url"}]}]', 'no text "content"'),
        ("[" * 100_000, "no JSON"),
        ("1" * 5000, "no JSON"),
        ('[{"role": "user", "content": "\\ud800"}]', "surrogate"),
    ],
)
def test_what_are_no_messages_is_said_with_the_form_they_need(text: str, words: str) -> None:
    with pytest.raises(PromptError, match="^MESSAGES: ") as caught:
        read_messages(text)
    assert words in str(caught.value)
    assert '[{"role": "user", "content": "..."}]' in str(caught.value)


def test_messages_that_the_template_cannot_render_are_refused(tokenizer: Any) -> None:
    with pytest.raises(PromptError, match="MESSAGES: the model's chat template refuses them"):
        ids(tokenizer, [{"role": "system", "content": "x"}])


def test_without_a_chat_template_messages_are_refused_and_the_way_out_is_named(tokenizer: Any) -> None:
    class NoTemplate:
        chat_template = None

    with pytest.raises(PromptError, match="no chat template.*send PROMPT.*chat_template.jinja"):
        ids(NoTemplate(), USER)


@pytest.mark.parametrize(("name", "given"), [("MESSAGES", {"messages": USER}), ("PROMPT", {"prompt": "a b c d e f"})])
def test_what_is_too_long_is_refused_with_both_numbers(tokenizer: Any, name: str, given: dict[str, Any]) -> None:
    fits = len(ids(tokenizer, **given))
    assert ids(tokenizer, **given, max_model_len=fits + 1)
    with pytest.raises(
        PromptError, match=f"^{name}: {fits} tokens; at most {fits - 1} are allowed.*max_model_len {fits}"
    ):
        ids(tokenizer, **given, max_model_len=fits)


@pytest.mark.parametrize(("given", "words"), [({}, "neither"), ({"messages": USER, "prompt": "x"}, "both")])
def test_exactly_one_of_messages_and_prompt_is_needed(tokenizer: Any, given: dict[str, Any], words: str) -> None:
    with pytest.raises(PromptError, match=f"MESSAGES, PROMPT: {words}"):
        ids(tokenizer, **given)


def test_an_empty_prompt_is_refused(tokenizer: Any) -> None:
    with pytest.raises(PromptError, match="PROMPT: empty"):
        ids(tokenizer, prompt="")


def test_a_message_that_only_calls_tools_needs_no_text(tokenizer: Any) -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": {}}}
    (message,) = read_messages(json.dumps([{"role": "assistant", "content": None, "tool_calls": [call]}]))
    assert message == {"role": "assistant", "content": "", "tool_calls": [call]}


TOOLS = [{"type": "function", "function": {"name": "weather"}}]
WITH_TOOLS = "{{ tools | tojson }} {{ messages[0].content }}"


def arguments(tokenizer: Any, given: object, template: str | None = WITH_TOOLS) -> dict[str, Any]:
    text = given if isinstance(given, str) else json.dumps(given)
    return template_arguments_from(text, tokenizer, template)


def test_tools_reach_a_chat_template_that_uses_them(tokenizer: Any) -> None:
    given = arguments(tokenizer, {"tools": TOOLS})
    rendered = ids(tokenizer, USER, chat_template=WITH_TOOLS, template_arguments=given)
    assert tokenizer.decode(rendered).startswith('<s>[{"type": "function", "function": {"name": "weather"}}]')


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("no json", "no JSON"),
        ("[]", "a JSON list"),
        ({"tools": "weather"}, "tools is no list"),
        ({"enable_thinking": True}, "does not use enable_thinking"),
        ({"chat_template": "{{ x }}"}, "chat_template is decided by the model"),
        ({"add_generation_prompt": False}, "add_generation_prompt is decided by the model"),
        ({"messages": []}, "messages is decided by the model"),
    ],
)
def test_what_the_template_does_not_take_is_refused_by_name(tokenizer: Any, given: object, words: str) -> None:
    with pytest.raises(PromptError, match=f"^TEMPLATE_ARGUMENTS: .*{words}"):
        arguments(tokenizer, given)


def test_the_shipped_model_knows_no_tools(tokenizer: Any) -> None:
    with pytest.raises(PromptError, match="chat template does not use tools"):
        arguments(tokenizer, {"tools": TOOLS}, template=None)
