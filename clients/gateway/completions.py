"""/v1/completions: prompts in, what follows each out."""

from starlette.responses import Response

from clients.gateway.bodies import CompletionBody
from clients.gateway.chat import check_choices
from clients.gateway.likelihoods import wanted_in_completion
from clients.gateway.merge import merged
from clients.gateway.metrics import Metrics
from clients.gateway.replies import EventStream, begun, json_response
from clients.gateway.sampling import sampling_options, seeds
from clients.gateway.settings import Settings
from clients.gateway.upstream import Upstream
from clients.gateway.writing import CompletionForm, Usage, Writer


async def answer_completion(body: CompletionBody, upstream: Upstream, settings: Settings, metrics: Metrics) -> Response:
    """The response to one request; choice `place` belongs to prompt `place // n`."""
    body.check_stream_options()
    prompts = body.prompts
    count = body.choices * len(prompts)
    check_choices(count, settings)
    extra = body.extra
    logprobs = wanted_in_completion(extra)
    options = {**sampling_options(extra, max_tokens=body.max_tokens, stop=body.stop), **logprobs}
    events = merged([upstream.complete(one, each) for one in prompts for each in seeds(options, body.choices)])
    writer = Writer(CompletionForm(), body.model, Usage(answers_per_prompt=body.choices, metrics=metrics))
    if not body.stream:
        return json_response(await writer.whole(events, count))
    return EventStream(await begun(writer.chunks(events, with_usage=body.includes_usage)))
