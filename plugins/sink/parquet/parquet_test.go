package parquet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/guidonhq/guidon/plugins/sink/parquet"
	"github.com/guidonhq/guidon/sdk"
)

// try opens a sink with a config.
func try(t *testing.T, config string, through uint64) (*parquet.Sink, error) {
	t.Helper()
	s := parquet.New()
	if err := sdk.DecodeConfig([]byte(config), s.Config()); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		return s, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	_, err := s.Open(t.Context(), sdk.OpenRequest{Instance: "lake", CommittedThrough: through})
	return s, err
}

func inDir(dir, more string) string {
	quoted, _ := json.Marshal(dir)
	return fmt.Sprintf(`{"path": %s%s}`, quoted, more)
}

func opened(t *testing.T, config string) *parquet.Sink {
	t.Helper()
	s, err := try(t, config, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noon is when the first event was received.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

// events makes n events, a minute apart, of two projects.
func events(n int) []sdk.Event {
	out := make([]sdk.Event, n)
	for i := range out {
		at := noon.Add(time.Duration(i) * time.Minute)
		out[i] = sdk.Event{
			UUID: uuid.NewString(), ProjectID: int64(1 + i%2), Name: "seen", DistinctID: fmt.Sprintf("d%d", i),
			Timestamp: at.Add(-time.Hour), ReceivedAt: at, Properties: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i)),
		}
	}
	return out
}

// batch is events[from:to], numbered from 1.
func batch(events []sdk.Event, from, to int) *sdk.Batch {
	b := &sdk.Batch{ID: "b", Attempt: 1, FirstSeq: uint64(from + 1), LastSeq: uint64(to)}
	for i := from; i < to; i++ {
		b.Records = append(b.Records, sdk.Record{
			UUID: uuid.MustParse(events[i].UUID), JSON: events[i].AppendJSON(nil), ReceivedAt: events[i].ReceivedAt, ProjectID: events[i].ProjectID,
		})
	}
	return b
}

func write(t *testing.T, s *parquet.Sink, b *sdk.Batch) {
	t.Helper()
	r, err := s.Write(t.Context(), b)
	if err != nil || r.Outcome != sdk.Staged {
		t.Fatalf("%+v %v", r, err)
	}
}

func flush(t *testing.T, s *parquet.Sink, upTo uint64) {
	t.Helper()
	r, err := s.Flush(t.Context(), sdk.FlushRequest{Reason: sdk.FlushTimer, UpTo: upTo})
	if err != nil || r.CommittedThrough < upTo || len(r.Failures) > 0 {
		t.Fatalf("%+v %v", r, err)
	}
}

// filesIn reads the files under a directory.
func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rowsIn reads every row of the Parquet files.
func rowsIn(t *testing.T, files map[string][]byte) (rows []parquet.Row) {
	t.Helper()
	for name, data := range files {
		if strings.HasPrefix(name, parquet.Own) {
			continue
		}
		some, err := parquetgo.Read[parquet.Row](bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range some {
			at := time.UnixMicro(r.ReceivedAt).UTC()
			if want := fmt.Sprintf("project_id=%d/%s/", r.ProjectID, at.Format("date=2006-01-02/hour=15")); !strings.HasPrefix(name, want) {
				t.Errorf("a row of %s is in %s", want, name)
			}
		}
		rows = append(rows, some...)
	}
	return rows
}

// isOnce complains unless each event is there once.
func isOnce(t *testing.T, rows []parquet.Row, want []sdk.Event) {
	t.Helper()
	times := map[string]int{}
	for _, r := range rows {
		times[uuid.UUID(r.UUID).String()]++
	}
	for i, ev := range want {
		if n := times[ev.UUID]; n != 1 {
			t.Errorf("event %d is there %d times", i+1, n)
		}
	}
	if len(rows) < len(want) || len(times) != len(want) {
		t.Errorf("%d rows of %d events, want %d", len(rows), len(times), len(want))
	}
}

func TestEventsAreInTheFileOfTheirProjectAndHour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(90)
	write(t, s, batch(all, 0, 40))
	write(t, s, batch(all, 40, 90))
	if files := filesIn(t, dir); len(files) > 0 {
		t.Errorf("written before the flush: %d files", len(files))
	}
	flush(t, s, 90)
	files := filesIn(t, dir)
	if len(files) != 4+1 { // two projects, two hours, the notes
		t.Errorf("%d files", len(files))
	}
	isOnce(t, rowsIn(t, files), all)
}

func TestARowHoldsWhatTheEventDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(2)
	all[1].ProjectID = 1
	all[0].Properties = json.RawMessage(`{"$current_url":"https://example.com/a","$session_id":"s1","n":1.50,"text":"grün\u0000"}`)
	all[0].ElementsChain, all[0].PersonID = `a:text="Go"`, uuid.NewString()
	write(t, s, batch(all, 0, 2))
	flush(t, s, 2)
	rows := rowsIn(t, filesIn(t, dir))
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	r := rows[0]
	got := sdk.Event{
		UUID: uuid.UUID(r.UUID).String(), ProjectID: r.ProjectID, Name: r.Event, DistinctID: r.DistinctID,
		Timestamp: time.UnixMicro(r.Timestamp), ReceivedAt: time.UnixMicro(r.ReceivedAt),
		Properties: json.RawMessage(r.Properties), ElementsChain: *r.Elements, PersonID: *r.PersonID,
	}
	if got, want := string(got.AppendJSON(nil)), string(all[0].AppendJSON(nil)); got != want {
		t.Errorf("read\n%s, wrote\n%s", got, want)
	}
	if *r.CurrentURL != "https://example.com/a" || *r.SessionID != "s1" || r.Seq != 1 {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.CurrentURL != nil || r.SessionID != nil || r.Elements != nil || r.PersonID != nil || r.Seq != 2 {
		t.Errorf("%+v", r)
	}
}

func TestEventsCanBeFiledByWhenTheyHappened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, `, "partition_by": "timestamp"`))
	write(t, s, batch(events(1), 0, 1))
	flush(t, s, 1)
	found, err := filepath.Glob(dir + "/project_id=1/date=2026-11-21/hour=11/lake-*.parquet")
	if err != nil || len(found) != 1 {
		t.Errorf("%v %v", found, filesIn(t, dir))
	}
}

func TestAnEventThatTheClientSentTwiceIsInAFileOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(4)
	all[2].UUID = all[0].UUID
	write(t, s, batch(all, 0, 4))
	flush(t, s, 4)
	isOnce(t, rowsIn(t, filesIn(t, dir)), []sdk.Event{all[0], all[1], all[3]})
}

func TestRefusedRecordsDoNotHoldUpAFlush(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := opened(t, inDir(dir, ""))
	all := events(3)
	write(t, s, batch(all, 0, 2))
	bad := batch(all, 2, 3)
	bad.Records[0].JSON = []byte(`{`)
	if _, err := s.Write(t.Context(), bad); sdk.AsError(err).Class != sdk.ClassPermanent {
		t.Fatal(err)
	}
	flush(t, s, 3)
	isOnce(t, rowsIn(t, filesIn(t, dir)), all[:2])
}

func TestAFlushVouchesForNothingItWasNotGiven(t *testing.T) {
	t.Parallel()
	s, err := try(t, inDir(t.TempDir(), ""), 7)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Flush(t.Context(), sdk.FlushRequest{UpTo: 20})
	if err != nil || r.CommittedThrough != 7 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestWhatAnEarlierProcessWasWritingIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	torn := filepath.Join(dir, parquet.Own, "tmp", "lake", "1.tmp")
	if err := os.MkdirAll(filepath.Dir(torn), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := opened(t, inDir(dir, ""))
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if files := filesIn(t, dir); len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

func TestConfigsThatCannotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, pointer string }{
		"nowhere":               {`{}`, "/path"},
		"two places":            {inDir(dir, `, "s3": {"endpoint": "https://store", "bucket": "b"}`), "/path"},
		"no bucket":             {`{"s3": {"endpoint": "https://store"}}`, "/s3/bucket"},
		"no endpoint":           {`{"s3": {"bucket": "b"}}`, "/s3/endpoint"},
		"a path in an endpoint": {`{"s3": {"endpoint": "https://store/b", "bucket": "b"}}`, "/s3/endpoint"},
		"half a key":            {`{"s3": {"endpoint": "https://store", "bucket": "b", "access_key": "a"}}`, "/s3/access_key"},
		"a rooted prefix":       {`{"s3": {"endpoint": "https://store", "bucket": "b", "prefix": "/x"}}`, "/s3/prefix"},
		"a file for a path":     {inDir(filepath.Join(dir, "file"), ""), "/path"},
	} {
		_, err := try(t, c.config, 0)
		var e *sdk.Error
		if !errors.As(err, &e) || e.Class != sdk.ClassConfig || e.Pointer != c.pointer {
			t.Errorf("%s: %v", name, err)
		}
	}
}
