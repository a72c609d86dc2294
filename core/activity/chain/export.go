package chain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/db"
)

// line is a line of an export. The hash is that of the text of entry, byte for byte,
// and detail_sha256 in it that of the salt and the text of detail.
type line struct {
	Hash   string          `json:"hash"`
	Entry  json.RawMessage `json:"entry"`
	Salt   string          `json:"salt"`
	Detail json.RawMessage `json:"detail"`
}

// Export writes the sealed entries after a number as JSON lines, the oldest first, and
// returns the last one. Memory does not grow with the log.
func (c *Chain) Export(ctx context.Context, after int64, to io.Writer) (Head, error) {
	out := bufio.NewWriter(to)
	last := Head{Sequence: after}
	for {
		rows, err := c.after(ctx, last.Sequence)
		if err != nil {
			return last, err
		}
		for i := range rows {
			if err := rows[i].write(out); err != nil {
				return last, fmt.Errorf("export activity: %w", err)
			}
			last = Head{rows[i].Sequence, rows[i].Hash}
		}
		if len(rows) < page {
			return last, out.Flush()
		}
	}
}

// write writes the row as a line. A detail that was made unreadable is written as a
// JSON text, so that the line can be read.
func (r *Row) write(out *bufio.Writer) error {
	detail := []byte(r.Detail)
	if !json.Valid(detail) || bytes.ContainsAny(detail, "\r\n") {
		detail, _ = json.Marshal(r.Detail)
	}
	for _, part := range []string{`{"hash":"`, strings.Trim(quoted(r.Hash), `"`), `","entry":`, string(r.text()), `,"salt":`, quoted(r.Salt), `,"detail":`, string(detail), "}\n"} {
		if _, err := out.WriteString(part); err != nil {
			return err
		}
	}
	return nil
}

func quoted(s string) string {
	out, _ := json.Marshal(s) // of a text
	return string(out)
}

// maxLine bounds a line of an export: a detail has both states of a flag.
const maxLine = 64 << 20

// VerifyExport is Verify for the lines of an export, which may begin in the middle of
// the chain. It fails for lines that are none of an export.
func VerifyExport(from io.Reader, anchors ...Head) (*Report, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	var v *verifier
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r, text, err := parseLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if v == nil {
			v = newVerifier(Head{}, anchors)
			v.first = r.Sequence > 1
		}
		v.check(r)
		if sum(r.text()) == r.Hash && sum(text) != r.Hash {
			v.report(r.Sequence, Changed, "%s was changed: its text is not the one that was hashed", r.name())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read export: %w", err)
	}
	if v == nil {
		return nil, errors.New("the export has no entries")
	}
	v.out.Head = v.last
	return v.finish(), nil
}

// parseLine returns the row of a line and the text that was hashed.
func parseLine(text []byte) (*Row, []byte, error) {
	var l line
	var c canonical
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, nil, fmt.Errorf("not a line of an export: %w", err)
	}
	if err := json.Unmarshal(l.Entry, &c); err != nil {
		return nil, nil, fmt.Errorf("not a line of an export: %w", err)
	}
	if c.Version != version {
		return nil, nil, fmt.Errorf("entry of version %d: this binary knows %d", c.Version, version)
	}
	at, err := time.Parse(timeLayout, c.CreatedAt)
	if err != nil {
		return nil, nil, fmt.Errorf("created_at: %w", err)
	}
	return &Row{
		ID: c.ID, ProjectID: c.ProjectID, Scope: c.Scope, ItemID: c.ItemID, Activity: c.Activity, UserID: c.UserID, UserName: c.UserName, UserEmail: c.UserEmail,
		Detail: string(l.Detail), CreatedAt: db.At(at), OrganizationID: c.OrganizationID, KeyID: c.KeyID, Client: c.Client, UserAgent: c.UserAgent, RequestID: c.RequestID,
		Sequence: c.Sequence, Previous: c.Previous, Hash: l.Hash, Salt: l.Salt, Digest: c.Digest,
	}, l.Entry, nil
}
