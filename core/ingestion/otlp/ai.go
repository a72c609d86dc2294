package otlp

import (
	"encoding/json"
	"strings"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
)

// aiPrefixes start the attributes of spans of language models: the conventions of
// GenAI, of OpenLLMetry, of the Vercel AI SDK and of Pydantic AI.
var aiPrefixes = []string{"gen_ai.", "llm.", "traceloop.", "ai.", "pydantic_ai.", "$ai_"}

// isAI reports whether a span is one of a language model.
func isAI(span *trace.Span) bool {
	for _, kv := range span.GetAttributes() {
		for _, prefix := range aiPrefixes {
			if strings.HasPrefix(kv.GetKey(), prefix) {
				return true
			}
		}
	}
	return false
}

// aiProperties maps attributes to the properties of AI events. Of several attributes
// for a property the first in the list counts.
var aiProperties = []struct{ attribute, property string }{
	{"gen_ai.input.messages", "$ai_input"},
	{"gen_ai.output.messages", "$ai_output_choices"},
	{"gen_ai.usage.input_tokens", "$ai_input_tokens"},
	{"gen_ai.usage.prompt_tokens", "$ai_input_tokens"},
	{"ai.usage.promptTokens", "$ai_input_tokens"},
	{"gen_ai.usage.output_tokens", "$ai_output_tokens"},
	{"gen_ai.usage.completion_tokens", "$ai_output_tokens"},
	{"ai.usage.completionTokens", "$ai_output_tokens"},
	{"gen_ai.usage.cache_read.input_tokens", "$ai_cache_read_input_tokens"},
	{"gen_ai.usage.cache_creation.input_tokens", "$ai_cache_creation_input_tokens"},
	{"gen_ai.response.model", "$ai_model"},
	{"gen_ai.request.model", "$ai_model"},
	{"ai.model.id", "$ai_model"},
	{"gen_ai.provider.name", "$ai_provider"},
	{"gen_ai.system", "$ai_provider"},
	{"ai.model.provider", "$ai_provider"},
	{"gen_ai.tool.definitions", "$ai_tools"},
	{"gen_ai.request.temperature", "$ai_temperature"},
	{"gen_ai.request.max_tokens", "$ai_max_tokens"},
	{"gen_ai.conversation.id", "$ai_session_id"},
	{"ai.prompt.messages", "$ai_input"},
	{"ai.prompt", "$ai_input"},
	{"ai.response.text", "$ai_output_choices"},
	{"server.address", "$ai_base_url"},
	{"telemetry.sdk.name", "$ai_lib"},
	{"telemetry.sdk.version", "$ai_lib_version"},
}

// aiDropped are attributes that the AI event states in another way.
var aiDropped = []string{"telemetry.sdk.language", "gen_ai.operation.name", "llm.request.type"}

// toAI changes the properties of a span to those of an AI event and returns the
// name of the event.
func (p properties) toAI(span *trace.Span) string {
	name := p.aiEvent(spanID(span.GetParentSpanId()) == "")
	for _, m := range aiProperties {
		v, ok := p[m.attribute]
		if !ok {
			continue
		}
		if delete(p, m.attribute); p[m.property] == nil {
			p[m.property] = parsed(m.property, v)
		}
	}
	p.addSystemInstructions()
	for _, attribute := range aiDropped {
		delete(p, attribute)
	}
	p.set("$ai_trace_id", traceID(span.GetTraceId()))
	p.set("$ai_span_id", spanID(span.GetSpanId()))
	p.set("$ai_parent_id", spanID(span.GetParentSpanId()))
	p.set("$ai_span_name", span.GetName())
	if start, end := span.GetStartTimeUnixNano(), span.GetEndTimeUnixNano(); end > start {
		p["$ai_latency"] = float64(end-start) / 1e9
	}
	if span.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR {
		p["$ai_is_error"] = true
		p.set("$ai_error", orElse(span.GetStatus().GetMessage(), p.text("error.type")))
	}
	p["$ai_ingestion_source"] = "otel"
	if p["$geoip_disable"] == nil {
		p["$geoip_disable"] = true // the address is that of a server
	}
	return name
}

// aiEvent returns the name of the event: by the operation that the span states,
// else a trace for the first span of one and a span for the others.
func (p properties) aiEvent(root bool) string {
	operation, vercel := p.first("gen_ai.operation.name", "llm.request.type"), p.text("ai.operationId")
	switch operation {
	case "chat", "completion", "text_completion", "generate_content":
		return "$ai_generation"
	case "embedding", "embeddings":
		return "$ai_embedding"
	}
	switch {
	case operation != "":
	case strings.HasSuffix(vercel, ".doGenerate"), strings.HasSuffix(vercel, ".doStream"):
		return "$ai_generation"
	case strings.HasSuffix(vercel, ".doEmbed"):
		return "$ai_embedding"
	}
	if root {
		return "$ai_trace"
	}
	return "$ai_span"
}

// parsed returns a value of messages that is JSON in a text as that JSON.
func parsed(property string, v any) any {
	text, ok := v.(string)
	if !ok || property != "$ai_input" && property != "$ai_output_choices" && property != "$ai_tools" || !json.Valid([]byte(text)) {
		return v
	}
	return json.RawMessage(text)
}

// addSystemInstructions puts gen_ai.system_instructions in front of a list of input
// messages, or makes them the input.
func (p properties) addSystemInstructions() {
	v, ok := p["gen_ai.system_instructions"]
	if !ok {
		return
	}
	delete(p, "gen_ai.system_instructions")
	message := properties{"role": "system", "content": parsed("$ai_input", v)}
	switch input := p["$ai_input"].(type) {
	case nil:
		p["$ai_input"] = []any{message}
	case []any:
		p["$ai_input"] = append([]any{message}, input...)
	case json.RawMessage:
		var list []json.RawMessage
		if json.Unmarshal(input, &list) == nil {
			all := []any{message}
			for _, m := range list {
				all = append(all, m)
			}
			p["$ai_input"] = all
		}
	}
}
