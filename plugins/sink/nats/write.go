package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guidonhq/guidon/sdk"
)

// Write publishes the batch and waits until the server has acknowledged every
// message. When one fails the whole batch is given back: what the stream has
// already it knows by its id.
func (s *Sink) Write(ctx context.Context, b *sdk.Batch) (sdk.WriteResult, error) {
	events, err := b.Events()
	if err != nil {
		return sdk.WriteResult{}, sdk.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	most := int(s.conn.MaxPayload())
	var failures []sdk.Failure
	var waiting []jetstream.PubAckFuture
	for i := range events {
		m := s.message(&events[i], &b.Records[i])
		if m.Size() > most {
			failures = append(failures, sdk.Failure{Index: i, Err: sdk.Errorf(sdk.ClassPermanent, "too_large",
				"a message of %d bytes is more than the %d the server takes", m.Size(), most).From(sdk.SourceDownstream)})
			continue
		}
		ack, err := s.js.PublishMsgAsync(m)
		if err != nil {
			return sdk.WriteResult{}, classify(err)
		}
		waiting = append(waiting, ack)
	}
	duplicates, err := s.await(ctx, waiting)
	if err != nil {
		return sdk.WriteResult{}, classify(err)
	}
	result := b.Partial(failures...)
	result.Duplicates = duplicates
	return result, nil
}

// await waits for every acknowledgement, and counts those of messages that were
// in the stream before.
func (s *Sink) await(ctx context.Context, waiting []jetstream.PubAckFuture) (duplicates uint32, err error) {
	for _, f := range waiting {
		select {
		case ack := <-f.Ok():
			if ack.Stream != s.cfg.Stream {
				return 0, sdk.ConfigError("/subject", fmt.Errorf("the stream %s takes this subject, not %s", ack.Stream, s.cfg.Stream))
			}
			if ack.Duplicate {
				duplicates++
			}
		case err := <-f.Err():
			return 0, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return duplicates, nil
}

func (s *Sink) message(ev *sdk.Event, r *sdk.Record) *nats.Msg {
	m := nats.NewMsg(subjectOf(s.cfg.Subject, ev.ProjectID, ev.Name))
	m.Header.Set(jetstream.MsgIDHeader, strconv.FormatInt(ev.ProjectID, 10)+"/"+uuid.UUID(r.UUID).String())
	m.Data = r.JSON
	return m
}

// subjectOf fills in the template. For the empty event, and project 0, it is
// the subject of the stream, with wildcards.
func subjectOf(template string, project int64, event string) string {
	p, e := strconv.FormatInt(project, 10), token(event)
	if event == "" {
		p, e = "*", "*"
	}
	return strings.NewReplacer("{project}", p, "{event}", e).Replace(template)
}

// maxToken is how many bytes of an event's name are in the subject.
const maxToken = 100

// token makes one word of a subject of any text: what would part the subject or
// stand for other subjects becomes an underscore.
func token(s string) string {
	out := strings.Map(func(r rune) rune {
		if r == '.' || r == '*' || r == '>' || r <= ' ' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, s)
	if len(out) > maxToken {
		out = strings.ToValidUTF8(out[:maxToken], "")
	}
	return out
}

func validSubject(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if word == "" || strings.ContainsAny(word, " \t\r\n*>{}") {
			return false
		}
	}
	return !strings.HasPrefix(s, "$")
}

// classify returns the error with the class that the host acts on.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*sdk.Error](err); ok {
		return known
	}
	out := &sdk.Error{Class: sdk.ClassTransient, Code: "nats", Message: err.Error(), Source: sdk.SourceDownstream}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrPermissionViolation):
		out.Class, out.Code, out.Pointer = sdk.ClassConfig, "authorization", "/servers"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		out.Class, out.Code, out.Pointer = sdk.ClassConfig, "no_jetstream", "/servers"
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		out.Class, out.Code, out.Pointer = sdk.ClassConfig, "no_stream", "/subject"
	case errors.Is(err, nats.ErrConnectionClosed):
		out.Class = sdk.ClassNotConnected
	case errors.Is(err, jetstream.ErrTooManyStalledMsgs):
		out.Class = sdk.ClassThrottled
	}
	return out
}
