// Package export serves the stored events and the persons of a project as JSON lines,
// page by page, for commands and programs that take all of them elsewhere.
//
// A page is bounded in lines and bytes and names the cursor behind its last line in the
// header Guidon-Next-Cursor; the last page has none. A client that keeps the cursor
// goes on after any interruption without a missing or a repeated line. The server keeps
// no state of an export. The first page of events also names the newest stored event in
// Guidon-Export-Through; a client that sends it back as through gets the events that
// were stored when it began.
//
// A line of an event is an item of /batch/, so that another server takes it in as it
// stands: uuid, event, distinct_id, timestamp and properties.
package export

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/persons"
	"github.com/guidonhq/guidon/sdk"
)

// A page ends with the line that reaches one of these bounds.
const (
	maxLines     = 10_000
	maxPageBytes = 8 << 20
	readLines    = 500 // of one query
)

// eventLine is the line of an event.
type eventLine struct {
	UUID       string          `json:"uuid"`
	Event      string          `json:"event"`
	DistinctID string          `json:"distinct_id"`
	Timestamp  string          `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
}

// personLine is the line of a person.
type personLine struct {
	UUID         string          `json:"uuid"`
	DistinctIDs  []string        `json:"distinct_ids"`
	Properties   json.RawMessage `json:"properties"`
	IsIdentified bool            `json:"is_identified"`
	CreatedAt    string          `json:"created_at"`
}

const timeLayout = "2006-01-02T15:04:05.000000Z"

func lineOf(ev *sdk.Event) ([]byte, error) {
	l := eventLine{ev.UUID, ev.Name, ev.DistinctID, ev.Timestamp.UTC().Format(timeLayout), ev.Properties}
	if ev.ElementsChain != "" {
		chain, err := json.Marshal(ev.ElementsChain)
		if err != nil {
			return nil, err
		}
		l.Properties = addMember(l.Properties, `"$elements_chain":`, chain)
	}
	return json.Marshal(l)
}

// addMember adds a member to a JSON object.
func addMember(object []byte, name string, value []byte) []byte {
	out := append(append([]byte("{"), name...), value...)
	if rest := bytes.TrimLeft(bytes.TrimSpace(object)[1:], " \t\r\n"); len(rest) > 1 {
		return append(append(out, ','), rest...)
	}
	return append(out, '}')
}

// page is the lines of a page.
type page struct {
	lines bytes.Buffer
	count int
	limit int
}

func (p *page) add(line []byte) {
	p.lines.Write(line)
	p.lines.WriteByte('\n')
	p.count++
}

func (p *page) full() bool { return p.count >= p.limit || p.lines.Len() >= maxPageBytes }

// eventPage returns a page of events and the cursor behind it, "" at the end.
func eventPage(ctx context.Context, e *events.Service, projectID int64, q events.ExportQuery, limit int) (*page, string, error) {
	p := &page{limit: limit}
	for {
		n := min(readLines, limit-p.count)
		list, err := e.Export(ctx, projectID, q, n)
		if err != nil {
			return nil, "", err
		}
		for i := range list {
			line, err := lineOf(&list[i].Event)
			if err != nil {
				return nil, "", err
			}
			p.add(line)
			q.After = list[i].Cursor
			if p.full() {
				return p, q.After.String(), nil
			}
		}
		if len(list) < n {
			return p, "", nil
		}
	}
}

// errFull ends a walk at the end of a page.
var errFull = errors.New("page is full")

// personPage returns a page of persons and the cursor behind it, "" at the end.
func personPage(ctx context.Context, s *persons.Service, projectID int64, after persons.Position, limit int) (*page, string, error) {
	p := &page{limit: limit}
	next := ""
	err := s.WalkAfter(ctx, projectID, after, func(list []persons.Person) error {
		for i := range list {
			one := &list[i]
			line, err := json.Marshal(personLine{one.UUID, one.DistinctIDs, one.Properties, one.IsIdentified, one.CreatedAt.UTC().Format(timeLayout)})
			if err != nil {
				return err
			}
			p.add(line)
			if p.full() {
				next = positionText(one.Position())
				return errFull
			}
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return p, next, err
}

func positionText(at persons.Position) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.CreatedAt.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(b, uint64(at.ID)))
}

func parsePosition(text string) (persons.Position, error) {
	if text == "" {
		return persons.Position{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 16 {
		return persons.Position{}, fault.Field("cursor", "invalid_input", "Not a cursor. Send Guidon-Next-Cursor of the page before.")
	}
	return persons.Position{CreatedAt: time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC(), ID: int64(binary.BigEndian.Uint64(b[8:]))}, nil
}
