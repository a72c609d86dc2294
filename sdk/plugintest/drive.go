package plugintest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/sdk"
	"github.com/guidonhq/guidon/sdk/pb/matchv1"
	"github.com/guidonhq/guidon/sdk/pb/notifyv1"
	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
	"github.com/guidonhq/guidon/sdk/pb/sinkv1"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/candidate"
	"github.com/guidonhq/guidon/sdk/plugintest/internal/observe"
)

// Drive runs a plugin by hand and prints what it answers. A sink is written the
// events of in, one JSON object a line; a notifier posts a message about each; a
// matcher judges lines of {"operator", "value", "property"}. A notifier without
// events is given one that is made up, a matcher its own examples. What an event
// lacks of uuid, project, time and the rest is filled in. An error means that
// something was not taken.
func Drive(ctx context.Context, target Target, dir string, in io.Reader, out io.Writer) error {
	if err := target.check(); err != nil {
		return err
	}
	args, remove, err := candidate.Copied(target.Command, dir)
	if err != nil {
		return err
	}
	defer remove()
	target.Command = args
	k := &kit{target: target, dir: dir}
	defer k.stop()
	outcome, reason := k.judge(ctx, func(c *check) {
		handshake.cases[1].try(c) // Info
		common.cases[0].try(c)    // the kind
		d := &drive{check: c, in: bufio.NewScanner(in), out: out}
		d.in.Buffer(nil, 16<<20)
		switch c.kind {
		case pluginv1.Kind_KIND_SINK:
			d.sink()
		case pluginv1.Kind_KIND_NOTIFIER:
			d.notifier()
		default:
			d.matcher()
		}
		c.no(d.in.Err(), "read events")
	})
	if outcome != Passed {
		return errors.New(reason)
	}
	return nil
}

type drive struct {
	*check
	in  *bufio.Scanner
	out io.Writer
}

func (d *drive) say(format string, args ...any) {
	_, err := fmt.Fprintf(d.out, format+"\n", args...)
	d.no(err, "write")
}

// next reads the next event.
func (d *drive) next() (sdk.Event, bool) {
	for d.in.Scan() {
		line := d.in.Bytes()
		if len(line) == 0 {
			continue
		}
		ev := event("somebody", "{}")
		ev.Name = "event"
		d.no(json.Unmarshal(line, &ev), "read the event "+observe.Clip(string(line)))
		_, err := uuid.Parse(ev.UUID)
		d.no(err, "read the uuid "+ev.UUID)
		return ev, true
	}
	return sdk.Event{}, false
}

// driven is how many events a batch has.
const driven = 500

func (d *drive) sink() {
	p := d.process()
	size := driven
	if m := int(d.openSink(p, 0).GetMaxEvents()); m > 0 {
		size = min(size, m)
	}
	lost := 0
	for more := true; more; {
		var events []sdk.Event
		for len(events) < size && more {
			var ev sdk.Event
			if ev, more = d.next(); more {
				events = append(events, ev)
			}
		}
		if len(events) > 0 {
			lost += d.written(d.batch(events))
		}
	}
	d.flush(p, sinkv1.FlushRequest_REASON_MANUAL, d.number)
	if d.openSink(p, 0).GetCommit() == sinkv1.SinkProperties_COMMIT_ON_FLUSH {
		d.say("flushed through %d", d.safe)
	}
	ctx, cancel := d.call(30 * time.Second)
	defer cancel()
	_, err := p.Plugin().Close(ctx, &pluginv1.CloseRequest{InstanceId: instanceID})
	d.no(err, "Close")
	if lost > 0 {
		d.fail("%d events were not taken", lost)
	}
}

// written writes a batch, records the result, and returns how many events
// were not taken.
func (d *drive) written(b *batch) (lost int) {
	begin := time.Now()
	out := d.write(d.process(), b)
	d.say("%d-%d: %s through %d in %s", b.request.GetFirstSeq(), b.last(), outcomeName(out.GetOutcome()), out.GetCommittedThrough(),
		time.Since(begin).Round(time.Microsecond))
	for _, f := range out.GetFailures() {
		d.say("  record %d: %s", f.GetIndex(), failed(f.GetError()))
	}
	switch out.GetOutcome() {
	case committed, staged:
		d.mark(d.process(), out.GetCommittedThrough())
		return 0
	case partial:
		return len(out.GetFailures())
	default:
		d.say("  %s", failed(out.GetError()))
		return len(b.events)
	}
}

func outcomeName(o sinkv1.WriteBatchResponse_Outcome) string { return sdk.Outcome(o).String() }

func (d *drive) notifier() {
	ev, more := d.next()
	if !more {
		ev = event("ada", `{"amount":12}`)
		ev.Name = "paid"
	}
	for first := true; first || more; first = false {
		n := d.notification(fmt.Sprintf("%s was triggered by %s", ev.Name, ev.DistinctID))
		n.EventJson = ev.AppendJSON(nil)
		r := d.notify(n)[0]
		d.say("%s: %s %s", ev.UUID, sdk.NotifyOutcome(r.GetOutcome()), r.GetProviderMessageId())
		if r.GetOutcome() != notifyv1.NotifyResult_OUTCOME_DELIVERED {
			d.fail("%s", failed(r.GetError()))
		}
		ev, more = d.next()
	}
}

// question is a line for a matcher.
type question struct {
	Operator        string
	Value, Property json.RawMessage
}

func (d *drive) matcher() {
	asked := false
	for d.in.Scan() {
		var q question
		d.no(json.Unmarshal(d.in.Bytes(), &q), "read "+observe.Clip(d.in.Text()))
		if q.Operator == "" || len(q.Value) == 0 || len(q.Property) == 0 {
			d.fail(`a line for a matcher is {"operator": "cidr/contains", "value": "10.0.0.0/8", "property": "10.1.2.3"}, not %s`, observe.Clip(d.in.Text()))
		}
		asked = true
		d.answer(&matchv1.Operator{Id: q.Operator}, q.Value, q.Property, 0)
	}
	for _, op := range d.operators() {
		for _, e := range op.GetExamples() {
			if !asked {
				d.answer(op, e.GetValueJson(), e.GetPropertyJson(), e.GetNowUs())
			}
		}
	}
}

func (d *drive) answer(op *matchv1.Operator, value, property []byte, at int64) {
	d.operators()
	p := program(op, value)
	if out := d.compile(p); !out.GetCompiled() {
		d.fail("%s does not take %s: %s", op.GetId(), value, diagnostics(out.GetDiagnostics()))
	}
	v := d.match([]*matchv1.Program{p}, [][]byte{property}, []uint32{0}, []uint32{0}, at)
	d.say("%s %s %s: %s", property, op.GetId(), value, sdk.Verdict(v[0]))
}
