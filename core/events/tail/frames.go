package tail

import (
	"strconv"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/jsontext"
)

// reason is why a viewer does not get events.
type reason int

// The reasons, see the package comment.
const (
	rate reason = iota
	slow
	unread
	costly
	reasons
)

var reasonNames = [reasons]string{rate: "rate", slow: "slow", unread: "unread", costly: "costly"}

// message is an event on its way to viewers, which share its bytes.
type message struct {
	record *events.Record
	id     int64 // the row up to which everything is seen with it
	bytes  []byte
}

// View returns the JSON of an event on one line.
type View func(*events.Record) ([]byte, error)

// frame returns the message as it is written. It is for the goroutine of the topic.
func (m *message) frame(view View) ([]byte, error) {
	if m.bytes != nil {
		return m.bytes, nil
	}
	body, err := view(m.record)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(body)+48)
	m.bytes = appendFrame(b, m.id, "event", body)
	return m.bytes, nil
}

// appendFrame appends a message with an id; -1 for none.
func appendFrame(dst []byte, id int64, name string, data []byte) []byte {
	if id >= 0 {
		dst = append(strconv.AppendInt(append(dst, "id: "...), id, 10), '\n')
	}
	dst = append(append(dst, "event: "...), name...)
	dst = append(append(dst, "\ndata: "...), data...)
	return append(dst, "\n\n"...)
}

// appendReady appends the begin of a stream.
func appendReady(dst []byte, position int64) []byte {
	dst = strconv.AppendInt(append(dst, "retry: "...), retryDelay.Milliseconds(), 10)
	dst = append(dst, '\n')
	body := strconv.AppendInt([]byte(`{"position":`), position, 10)
	body = strconv.AppendInt(append(body, `,"max_rate":`...), MaxRate, 10)
	return appendFrame(dst, position, "ready", append(body, '}'))
}

func appendReset(dst []byte, position int64) []byte {
	body := strconv.AppendInt([]byte(`{"position":`), position, 10)
	return appendFrame(dst, position, "reset", append(body, '}'))
}

func appendSkipped(dst []byte, id int64, counts *[reasons]int64) []byte {
	for r, n := range counts {
		if n == 0 {
			continue
		}
		body := strconv.AppendInt([]byte(`{"count":`), n, 10)
		body = append(append(body, `,"reason":"`...), reasonNames[r]...)
		dst = appendFrame(dst, id, "skipped", append(body, `"}`...))
	}
	return dst
}

// appendEnd appends the last message of a stream, with the reason of err.
func appendEnd(dst []byte, err error) []byte {
	code, detail := "stopped", "The server stops."
	if f := fault.From(err); f != nil {
		code, detail = f.Code, f.Detail
	}
	body := jsontext.AppendString([]byte(`{"code":`), code)
	body = jsontext.AppendString(append(body, `,"detail":`...), detail)
	return appendFrame(dst, -1, "end", append(body, '}'))
}

var heartbeat = []byte(":\n\n")
