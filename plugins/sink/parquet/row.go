package parquet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/valyala/fastjson"

	"github.com/guidonhq/guidon/sdk"
)

// row is an event as the files have it. Columns are only ever added, and those
// that came later are optional.
type row struct {
	UUID       [16]byte `parquet:"uuid,uuid"`
	ProjectID  int64    `parquet:"project_id"`
	Event      string   `parquet:"event,dict"`
	DistinctID string   `parquet:"distinct_id"`
	Timestamp  int64    `parquet:"timestamp,timestamp(microsecond)"`
	ReceivedAt int64    `parquet:"received_at,timestamp(microsecond)"`
	Properties string   `parquet:"properties"`
	CurrentURL *string  `parquet:"current_url,optional"`
	SessionID  *string  `parquet:"session_id,optional"`
	Elements   *string  `parquet:"elements_chain,optional"`
	PersonID   *string  `parquet:"person_id,optional"`
	Seq        int64    `parquet:"seq,delta"`

	size int
}

var parsers fastjson.ParserPool

// rowOf returns an event as a row, the most used properties in columns
// of their own.
func rowOf(ev *sdk.Event, id [16]byte, seq uint64) row {
	r := row{
		UUID: id, ProjectID: ev.ProjectID, Event: ev.Name, DistinctID: ev.DistinctID,
		Timestamp: ev.Timestamp.UnixMicro(), ReceivedAt: ev.ReceivedAt.UnixMicro(), Properties: string(ev.Properties),
		Elements: some(ev.ElementsChain), PersonID: some(ev.PersonID), Seq: int64(seq),
	}
	p := parsers.Get()
	defer parsers.Put(p)
	if v, err := p.ParseBytes(ev.Properties); err == nil {
		r.CurrentURL = some(string(v.GetStringBytes("$current_url")))
		r.SessionID = some(string(v.GetStringBytes("$session_id")))
	}
	return r
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// identity is what makes two events the same.
type identity struct {
	project int64
	uuid    [16]byte
}

func (r *row) identity() identity { return identity{r.ProjectID, r.UUID} }

// files sorts rows into files: one a project and hour. An event that is there
// twice is written once. The name of a file has the numbers of its first and
// last event and a part of the first one's identity, so that a server whose
// numbers begin anew does not write over what another has written.
func (s *Sink) files(rows []row) map[string][]row {
	seen := make(map[identity]bool, len(rows))
	folders := map[string][]row{}
	for i := range rows {
		r := &rows[i]
		if seen[r.identity()] {
			continue
		}
		seen[r.identity()] = true
		at := r.ReceivedAt
		if s.cfg.Partition == byTimestamp {
			at = r.Timestamp
		}
		folder := fmt.Sprintf("project_id=%d/%s/", r.ProjectID, time.UnixMicro(at).UTC().Format("date=2006-01-02/hour=15"))
		folders[folder] = append(folders[folder], *r)
	}
	files := make(map[string][]row, len(folders))
	for folder, rows := range folders {
		sum := sha256.Sum256(rows[0].UUID[:])
		name := fmt.Sprintf("%s-%020d-%020d-%s.parquet", s.instance, rows[0].Seq, rows[len(rows)-1].Seq, hex.EncodeToString(sum[:4]))
		files[folder+name] = rows
	}
	return files
}

// encode makes a whole file of rows.
func encode(rows []row) ([]byte, error) {
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("guidon", "1.0.0", ""))
	if _, err := w.Write(rows); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// decode reads which events are in a file.
func decode(data []byte) ([]identity, error) {
	rows, err := parquet.Read[struct {
		UUID      [16]byte `parquet:"uuid,uuid"`
		ProjectID int64    `parquet:"project_id"`
	}](bytes.NewReader(data), int64(len(data)))
	ids := make([]identity, len(rows))
	for i, r := range rows {
		ids[i] = identity{r.ProjectID, r.UUID}
	}
	return ids, err
}
