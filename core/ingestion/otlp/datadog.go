package otlp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/web/body"
)

var errDatadog = fault.New(fault.Malformed, "invalid_payload", "The body is not a log of Datadog or a list of them.")

// datadogLevels are the levels of Datadog in the words of OpenTelemetry.
var datadogLevels = map[string]string{
	"emergency": "fatal", "emerg": "fatal", "critical": "fatal", "crit": "fatal", "alert": "fatal", "error": "error", "err": "error",
	"warning": "warn", "warn": "warn", "notice": "info", "info": "info", "debug": "debug", "trace": "trace",
}

// addDatadog adds an event $log for each log of a body: an object, or a list of
// them. query has the fields of logs without them.
func (b *batch) addDatadog(raw []byte, query map[string]string, limits body.Limits) error {
	if problem := jsontext.Problem(raw, maxDepth); problem != "" {
		return errDatadog
	}
	limits.Values = maxMessages
	if err := limits.CheckValues(raw); err != nil {
		return err
	}
	if err := limits.Memory.Take(2 * len(raw)); err != nil {
		return err
	}
	list := []json.RawMessage{raw}
	if strings.HasPrefix(strings.TrimSpace(string(raw[:min(len(raw), 16)])), "[") {
		list = jsontext.Elements(raw)
	}
	shared := properties{}
	for name, value := range query {
		shared[name] = value
	}
	for _, one := range list {
		p := b.from(shared)
		if p == nil {
			return b.err
		}
		fields := properties{}
		if err := json.Unmarshal(one, &fields); err != nil {
			return errDatadog
		}
		for name, value := range fields {
			p[name] = value
		}
		b.addDatadogLog(p)
	}
	return nil
}

func (b *batch) addDatadogLog(p properties) {
	rename := map[string]string{"message": "$log_message", "service": "service.name", "hostname": "host.name", "dd.trace_id": "$trace_id", "dd.span_id": "$span_id"}
	for from, to := range rename {
		if v, ok := p[from]; ok && v != nil {
			p[to] = v
		}
		delete(p, from)
	}
	p["$log_level"] = orElse(datadogLevels[strings.ToLower(p.text("status"))], "info")
	for tag := range strings.SplitSeq(p.text("ddtags"), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(tag), ":")
		switch {
		case name == "" || strings.HasPrefix(name, "$"):
		case ok:
			p[name] = value
		default:
			p[name] = true
		}
	}
	delete(p, "ddtags")
	delete(p, "status")
	nanos := datadogTime(p["timestamp"])
	delete(p, "timestamp")
	b.add("$log", p, nanos, p.text("$trace_id"), "")
}

// datadogTime returns a timestamp in nanoseconds: milliseconds as a number or a
// text, or a time as in RFC 3339; 0 for none.
func datadogTime(v any) uint64 {
	var ms float64
	switch v := v.(type) {
	case float64:
		ms = v
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && at.Unix() > 0 {
			return uint64(at.UnixNano())
		}
		ms, _ = strconv.ParseFloat(v, 64)
	}
	if ms < 1 || ms > 1e14 {
		return 0
	}
	return uint64(ms) * 1e6
}
