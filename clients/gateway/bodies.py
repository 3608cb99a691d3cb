"""The bodies of the two endpoints that write text, as far as the gateway reads them itself.

Whatever else a body holds is kept, and judged by sampling.py or by the engine: the gateway has no list of its own of
what an engine can do.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clients.gateway.problems import invalid

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Stop = str | list[str] | None


class StreamOptions(BaseModel):
    """What a streamed answer carries besides text."""

    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class Message(BaseModel):
    """One message; further keys, such as a name, are the chat template's."""

    model_config = ConfigDict(extra="allow")
    role: Role
    content: str | list[dict[str, Any]] | None = None


class Writing(BaseModel):
    """What both endpoints share."""

    model_config = ConfigDict(extra="allow")
    model: str
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Count | None = 1
    max_tokens: Count | None = None
    stop: Stop = None

    @property
    def choices(self) -> int:
        return self.n or 1

    @property
    def includes_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def check_stream_options(self) -> None:
        """Raises Problem for options of a stream where there is none."""
        if self.stream_options and not self.stream:
            raise invalid("stream_options", "the answer is not streamed", "stream: true is needed with it")

    @property
    def extra(self) -> dict[str, Any]:
        """Everything that is not read here."""
        return dict(self.model_extra or {})


class ChatBody(Writing):
    """Body of /v1/chat/completions."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Count | None = None

    @property
    def limit(self) -> int | None:
        """The most tokens of an answer, under either of its two names."""
        if self.max_tokens and self.max_completion_tokens and self.max_tokens != self.max_completion_tokens:
            found = f"{self.max_tokens}, while max_completion_tokens is {self.max_completion_tokens}"
            raise invalid("max_tokens", found, "one of the two is needed")
        return self.max_completion_tokens or self.max_tokens


class CompletionBody(Writing):
    """Body of /v1/completions."""

    prompt: str | Annotated[list[str], Field(min_length=1)]

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt
