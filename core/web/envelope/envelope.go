// Package envelope finds the project key in the JSON body of a client library,
// before anything is built from the body.
//
// Clients send one event, a list of events, or an object with a batch, and the
// key in one of several places. Read checks the syntax and finds the key in one
// pass over the text. It allocates nothing that grows with the body, so that a
// request with an unknown key costs its bytes and no more. Capture and decide
// both use it.
//
// It does not decode items and does not repair text.
package envelope

import (
	"sync"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

// Envelope is what a body says about itself. Its slices and strings share memory
// with the body: copy what outlives the request.
type Envelope struct {
	// Token is the project key in the body, without surrounding white space; empty
	// if there is none.
	Token string
	// ProjectID is the project_id of the body, as text; for personal keys.
	ProjectID string
	// SentAt is the client's clock, as written in the body.
	SentAt string
	// Historical is the batch's historical_migration.
	Historical bool
	// Batch reports whether the body is an object with a batch.
	Batch bool
	// Items is the JSON of the events: an array, or a single object.
	Items []byte
	// Count is the number of items.
	Count int
	// Dirty reports whether the body has to be sanitized before it is parsed; see
	// jsontext.Scanner.
	Dirty bool
	// Depth is the nesting of the body.
	Depth int
}

// envelopeReader holds the scratch memory of Read.
type envelopeReader struct {
	scan         jsontext.Scanner
	inner        jsontext.Scanner
	top          tokens // of the envelope, or of a single event
	itemToken    []byte // the key that the events carry
	project      []byte
	sentAt       []byte
	batch        []byte
	count        int    // of the batch
	historical   []byte // historical_migration
	inProperties tokens // in the properties of a single event
}

var envelopeReaders = sync.Pool{New: func() any { return new(envelopeReader) }}

// Read checks that the body is one of the known shapes (an array of
// events, an object with a batch, a single event) and valid JSON, and finds the
// project key. It does not decode the events: an invalid one is dropped later,
// alone.
//
// It fails with fault Malformed invalid_payload, and with Unauthenticated when
// the key is not a string or the events carry different keys.
func Read(body []byte) (Envelope, error) {
	r := envelopeReaders.Get().(*envelopeReader)
	defer envelopeReaders.Put(r)
	env, err := r.read(body)
	env.Dirty, env.Depth = r.scan.Dirty, r.scan.Deepest
	r.releaseBody()
	return env, err
}

// releaseBody drops the references to the body.
func (r *envelopeReader) releaseBody() {
	r.scan.Data, r.inner.Data, r.top, r.inProperties, r.itemToken = nil, nil, tokens{}, tokens{}, nil
	r.project, r.sentAt, r.batch, r.historical = nil, nil, nil, nil
}

var (
	errSyntax = fault.New(fault.Malformed, "invalid_payload", "Malformed request data: the body is not valid JSON.")
	errShape  = fault.New(fault.Malformed, "invalid_payload", "Malformed request data: expected an event, an array of events or an object with a batch.")
	errBatch  = fault.New(fault.Malformed, "invalid_payload", "Invalid payload: batch must be an array of events.")
)

func (r *envelopeReader) read(body []byte) (env Envelope, err error) {
	s := &r.scan
	s.Reset(body)
	switch s.Peek() {
	case '[':
		start := s.Pos
		env.Count = r.countItems(s)
		env.Items = body[start:s.Pos]
		if s.End() {
			err = r.readItems(env.Items)
		}
	case '{':
		start := s.Pos
		r.readTop(s)
		env.Items, env.Count = body[start:s.Pos], 1
		if s.End() {
			err = r.classify(&env)
		}
	default:
		s.Skip()
		if s.End() {
			err = errShape
		}
	}
	switch {
	case !s.End():
		return Envelope{}, errSyntax
	case err != nil:
		return Envelope{}, err
	}
	env.Token, err = r.findToken()
	env.ProjectID = shortText(r.project)
	env.SentAt = shortText(r.sentAt)
	env.Historical = string(r.historical) == "true"
	return env, err
}

// countItems skips the array at the cursor and returns the number of its items.
func (r *envelopeReader) countItems(s *jsontext.Scanner) (n int) {
	s.Open()
	for first := true; s.Element(first); first = false {
		s.Skip()
		n++
	}
	return n
}

// readTop reads the members of a single event or of a batch's envelope.
func (r *envelopeReader) readTop(s *jsontext.Scanner) {
	var buf [32]byte
	s.Open()
	name, ok := s.Member(true)
	for ; ok; name, ok = s.Member(false) {
		field := name.Resolve(buf[:])
		if string(field) == "batch" && s.Peek() == '[' {
			start := s.Pos
			r.count = r.countItems(s)
			r.batch = s.Data[start:s.Pos]
			continue
		}
		if string(field) == "properties" {
			r.inProperties = tokens{}
			if s.Peek() == '{' {
				readProperties(s, &r.inProperties)
				continue
			}
		}
		v := s.Value()
		switch string(field) {
		case "batch":
			r.batch = v
		case "sent_at":
			r.sentAt = v
		case "historical_migration":
			r.historical = v
		case "project_id":
			r.project = v
		default:
			r.top.set(field, v)
		}
	}
}

// classify distinguishes a batch from a single event. A batch that is falsy in the
// languages of the clients (null, false, 0, "") counts as missing.
func (r *envelopeReader) classify(env *Envelope) error {
	switch string(r.batch) {
	case "", "null", "false", "0", `""`:
		r.itemToken = r.inProperties.first()
		return nil
	}
	if r.batch[0] != '[' {
		return errBatch
	}
	env.Batch, env.Items, env.Count = true, r.batch, r.count
	if r.top.first() != nil {
		return nil
	}
	return r.readItems(r.batch)
}

// readItems looks for the key in the events of an array. It fails if two events
// carry different keys.
func (r *envelopeReader) readItems(items []byte) error {
	s := &r.inner
	s.Reset(items)
	s.Open()
	for first := true; s.Element(first); first = false {
		if s.Peek() != '{' {
			s.Skip()
			continue
		}
		if err := r.readItem(s, first); err != nil {
			return err
		}
	}
	return nil
}
