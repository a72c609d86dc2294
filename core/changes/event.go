package changes

import (
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/changes/changelog"
	"github.com/guidonhq/guidon/core/jsontext"
)

// audience selects what a stream shows.
type audience uint8

// The audiences: the public one, and what personal keys may read. Who reads flags
// reads cohorts.
const (
	public    audience = 0
	seesFlags audience = 1 << (iota - 1)
	seesActions

	audiences = 1 << (iota - 1)
)

// sees reports whether changes of a kind concern a stream. The public stream is
// about evaluation, which actions do not affect.
func (a audience) sees(k changelog.Kind) bool {
	if k == changelog.Action {
		return a&seesActions != 0
	}
	return a == public || a&seesFlags != 0
}

// batch is a run of changes of one project, up to a revision.
type batch struct {
	head     changelog.Head
	changes  []changelog.Change // after the revision from
	from     int64
	complete bool // changes has all changes after from
}

// appendEvents appends the events of a stream that has seen everything up to
// revision. It appends nothing if no change concerns the stream.
func (b *batch) appendEvents(dst []byte, a audience, revision int64) []byte {
	if !b.complete || revision < b.from || revision > b.head.Revision {
		if a == public {
			return appendRefetch(dst, b.head)
		}
		return appendReset(dst, b.head)
	}
	last := changelog.Head{}
	for i := range b.changes {
		c := &b.changes[i]
		if c.Revision <= revision || !a.sees(c.Kind) {
			continue
		}
		if a == public {
			last = changelog.Head{Revision: c.Revision, At: c.At}
			continue
		}
		dst = appendChange(dst, c)
	}
	if last.Revision > 0 {
		dst = appendRefetch(dst, last)
	}
	return dst
}

func appendID(dst []byte, revision int64) []byte {
	return append(strconv.AppendInt(append(dst, "id: "...), revision, 10), '\n')
}

// appendRefetch appends the event of the OpenFeature Remote Evaluation Protocol.
func appendRefetch(dst []byte, h changelog.Head) []byte {
	dst = append(appendID(dst, h.Revision), `event: message`+"\n"+`data: {"type":"refetchEvaluation","etag":"`...)
	dst = strconv.AppendInt(dst, h.Revision, 10)
	dst = append(dst, `","lastModified":`...)
	dst = strconv.AppendInt(dst, max(0, h.At.Unix()), 10) // nothing ever changed
	dst = append(dst, `,"revision":`...)
	dst = strconv.AppendInt(dst, h.Revision, 10)
	return append(dst, "}\n\n"...)
}

// appendReset appends the event for a client that has missed more than there is.
func appendReset(dst []byte, h changelog.Head) []byte {
	dst = append(appendID(dst, h.Revision), "event: reset\ndata: {\"revision\":"...)
	return append(strconv.AppendInt(dst, h.Revision, 10), "}\n\n"...)
}

func appendChange(dst []byte, c *changelog.Change) []byte {
	dst = append(appendID(dst, c.Revision), "event: change\ndata: "...)
	return append(appendJSON(dst, c), "\n\n"...)
}

// appendJSON appends a change as a JSON object on one line.
func appendJSON(dst []byte, c *changelog.Change) []byte {
	dst = append(dst, `{"revision":`...)
	dst = strconv.AppendInt(dst, c.Revision, 10)
	dst = append(dst, `,"at":"`...)
	dst = c.At.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
	dst = jsontext.AppendString(append(dst, `","kind":`...), string(c.Kind))
	dst = append(dst, `,"id":`...)
	if c.ItemID == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, c.ItemID, 10)
	}
	dst = jsontext.AppendString(append(dst, `,"name":`...), c.Name)
	dst = jsontext.AppendString(append(dst, `,"operation":`...), c.Operation)
	return append(dst, '}')
}

// appendHello appends the begin of a stream: the time until a reconnect and the
// revision from which the stream follows. Clients keep the id of the event.
func appendHello(dst []byte, retry time.Duration, revision int64) []byte {
	dst = strconv.AppendInt(append(dst, "retry: "...), retry.Milliseconds(), 10)
	dst = appendID(append(dst, '\n'), revision)
	dst = append(dst, "event: ready\ndata: {\"revision\":"...)
	return append(strconv.AppendInt(dst, revision, 10), "}\n\n"...)
}

var heartbeat = []byte(":\n\n")
