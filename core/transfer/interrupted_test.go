package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/journal"
	"github.com/guidonhq/guidon/sdk"
)

func (i *installation) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := i.source.Write(t.Context()).ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// wantError checks that a transfer fails with all of some texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("the transfer succeeds, want an error with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q in it", err, text)
		}
	}
}

// A transfer that is interrupted at many places, one after the other, ends with the same
// rows. Until then no server starts on the target.
func TestContinuesAfterInterruptions(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 100)
	places := []string{
		"copying organizations", "copying persons", "copying events", "copying events", "copying events", "copying events",
		"copying log_cursors", "indexing", "verifying organizations", "verifying events", "analyzing",
	}
	var target *db.DB
	for n, place := range places {
		if err := i.interruptAt(t, place, int64(n%2+1)); !errors.Is(err, context.Canceled) {
			t.Fatalf("interruption %d at %s: %v", n, place, err)
		}
		if target == nil {
			target = openTo(t, i)
		}
		err := target.CheckSchema(t.Context())
		if newer, ok := errors.AsType[*db.NewerSchemaError](err); !ok || !strings.Contains(newer.Error(), "migrate-data") {
			t.Fatalf("a server would start on an unfinished target: %v", err)
		}
	}
	r := run(t, i, Options{})
	if !r.Resumed || r.Differing() != nil || len(r.Tables) != len(copied) {
		t.Errorf("the last run: resumed %t, differing %v", r.Resumed, r.Differing())
	}
	if err := target.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	checkIndexes(t, target)
	if r := run(t, i, Options{}); !r.Complete || r.Differing() != nil {
		t.Errorf("a run on the complete target: complete %t, differing %v", r.Complete, r.Differing())
	}
}

// interruptAt cancels a transfer when it has come to a place: there, after a number of
// progress reports.
func (i *installation) interruptAt(t *testing.T, place string, reports int64) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Run(ctx, i.config, Options{BatchBytes: 6000, largeTable: 50, Progress: func(p Progress) {
		if strings.TrimSpace(p.Stage+" "+p.Table) != place {
			return
		}
		if reports--; reports <= 0 || p.Stage != "copying" {
			cancel()
		}
	}})
	return err
}

// checkIndexes compares the indexes of the target with those that migrations make.
func checkIndexes(t *testing.T, d *db.DB) {
	t.Helper()
	read := func(d *db.DB) (out []string) {
		rows, err := d.Read(t.Context()).QueryContext(t.Context(), "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var definition string
			if err := rows.Scan(&definition); err != nil {
				t.Fatal(err)
			}
			out = append(out, definition)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got, want := strings.Join(read(d), "\n"), strings.Join(read(freshPostgres(t)), "\n")
	if got != want {
		t.Errorf("indexes of the target:\n%s\nwant:\n%s", got, want)
	}
}

func TestRefusesUnfitDatabases(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 3)
	lock, err := journal.AcquireLock(i.config.Journal, i.config.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), i.config, Options{})
	wantError(t, err, "stop it first")
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}

	other := i.config
	other.To = db.Config{URL: "postgres://nobody:secret@127.0.0.1:1/none"}
	_, err = Run(t.Context(), other, Options{})
	wantError(t, err, "open the target")
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error %q has the password", err)
	}
	other = i.config
	other.From = db.Config{URL: "sqlite:" + t.TempDir() + "/none.db"}
	_, err = Run(t.Context(), other, Options{})
	wantError(t, err, "no guidon database")

	target := openTo(t, i)
	if err := target.MigrateTo(t.Context(), 88); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), i.config, Options{})
	wantError(t, err, "the target", "lacks", "guidon migrate")
	if err := target.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Write(t.Context()).ExecContext(t.Context(), "INSERT INTO sink_pauses VALUES ('s', 1, '')"); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), i.config, Options{})
	wantError(t, err, "not empty", "sink_pauses")
	if _, err := target.Write(t.Context()).ExecContext(t.Context(), "DELETE FROM sink_pauses; INSERT INTO schema_migrations VALUES (4000, 'later', 1)"); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), i.config, Options{})
	wantError(t, err, "4000", "newer")
}

// A source that changes after an interruption is refused until the transfer begins again.
func TestRefusesChangedSource(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 50)
	interrupt(t, i, "persons")
	i.exec(t, "UPDATE organizations SET name = 'changed'")
	_, err := Run(t.Context(), i.config, Options{})
	if !errors.Is(err, ErrChanged) {
		t.Fatalf("a run with a changed source: %v", err)
	}
	r := run(t, i, Options{Restart: true})
	if r.Resumed || r.Differing() != nil {
		t.Errorf("resumed %t, differing %v", r.Resumed, r.Differing())
	}
	i.exec(t, "UPDATE organizations SET name = 'again' WHERE id = 'id 1'")
	_, err = Run(t.Context(), i.config, Options{Verify: true})
	if !errors.Is(err, ErrDiffers) || !strings.HasSuffix(err.Error(), ": organizations") {
		t.Errorf("a comparison with a changed row: %v", err)
	}
}

// interrupt ends a transfer when it begins a table.
func interrupt(t *testing.T, i *installation, table string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Run(ctx, i.config, Options{Progress: func(p Progress) {
		if p.Table == table {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted transfer: %v", err)
	}
}

// An entry that is written at the begin of a transfer is copied, and is written once.
func TestAnnouncesNewTransfers(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 10)
	announced := 0
	o := Options{Announce: func(ctx context.Context, d *db.DB, to string) error {
		announced++
		_, err := d.Write(ctx).ExecContext(ctx, "INSERT INTO sink_pauses VALUES (?, 1, '')", to)
		return err
	}}
	stopped := o
	ctx, cancel := context.WithCancel(t.Context())
	stopped.Progress = func(p Progress) {
		if p.Table == "events" {
			cancel()
		}
	}
	if _, err := Run(ctx, i.config, stopped); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	run(t, i, o)
	run(t, i, o) // complete
	var n int
	if err := openTo(t, i).Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM sink_pauses WHERE sink LIKE 'Postgres database%'").Scan(&n); err != nil || n != 1 || announced != 1 {
		t.Errorf("announced %d times, %d rows, %v; want 1 and 1", announced, n, err)
	}
}

// A disk that is full in the middle, and a target that may only be read, are errors that
// name the table; the transfer continues when there is space.
func TestContinuesAfterFullDisk(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 60)
	target := openTo(t, i)
	if err := target.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.id > 40 THEN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$`,
		`CREATE TRIGGER full_disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION full_disk()`,
	} {
		if _, err := target.Write(t.Context()).ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Run(t.Context(), i.config, Options{BatchBytes: 6000})
	wantError(t, err, "table events", "No space left")
	if _, err := target.Write(t.Context()).ExecContext(t.Context(), "DROP TRIGGER full_disk ON events"); err != nil {
		t.Fatal(err)
	}
	readOnly := i.config
	readOnly.To.URL += map[bool]string{true: "&", false: "?"}[strings.Contains(readOnly.To.URL, "?")] + "default_transaction_read_only=on"
	_, err = Run(t.Context(), readOnly, Options{})
	wantError(t, err, "read-only transaction")
	if r := run(t, i, Options{}); !r.Resumed || r.Differing() != nil {
		t.Errorf("resumed %t, differing %v", r.Resumed, r.Differing())
	}
}

func TestReportsBrokenRows(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 20)
	i.exec(t, "PRAGMA foreign_keys = OFF")
	i.exec(t, "INSERT INTO person_distinct_ids VALUES (1, 'lost \xff', 999, 1)")
	i.exec(t, "UPDATE events SET uuid = X'01' WHERE id = 7")
	_, err := Run(t.Context(), i.config, Options{})
	wantError(t, err, "person_distinct_ids", "lost", "persons", "--broken-rows")
	var broken []BrokenRow
	leaveOut := Options{BrokenRows: func(r BrokenRow) error {
		broken = append(broken, r)
		_, err := json.Marshal(r)
		return err
	}}
	r := run(t, i, leaveOut)
	if len(broken) != 2 || broken[0].Table != "person_distinct_ids" || broken[1].Table != "events" || !strings.Contains(broken[1].Reason, "16 bytes") {
		t.Errorf("broken rows: %+v", broken)
	}
	for _, table := range r.Tables {
		if !table.Equal() || table.Skipped > 0 != (table.Name == "events" || table.Name == "person_distinct_ids") {
			t.Errorf("%+v", table)
		}
	}
	if r := run(t, i, Options{Verify: true}); r.Differing() != nil {
		t.Errorf("a later comparison: %v", r.Differing())
	}
}

// Rows that PostgreSQL refuses are left out one by one; here two that are equal after the
// change of their text, and one that is NULL where SQLite allows it.
func TestLeavesOutRefusedRows(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 20)
	i.exec(t, "INSERT INTO sink_pauses VALUES (CAST(X'6100' AS TEXT), 1, ''), (CAST(X'61efbfbd' AS TEXT), 2, ''), (NULL, 3, '')")
	_, err := Run(t.Context(), i.config, Options{})
	wantError(t, err, "table sink_pauses", "--broken-rows")
	var broken []BrokenRow
	r := run(t, i, Options{BrokenRows: func(r BrokenRow) error {
		broken = append(broken, r)
		_, err := json.Marshal(r)
		return err
	}})
	if len(broken) != 2 || broken[0].Row["paused_at"] != int64(2) || broken[0].Row["sink"] != "a\uFFFD" || broken[1].Row["sink"] != nil {
		t.Errorf("broken rows: %+v", broken)
	}
	for _, table := range r.Tables {
		if !table.Equal() || table.Skipped != map[string]int64{"sink_pauses": 2}[table.Name] {
			t.Errorf("%+v", table)
		}
	}
	if n := r.Differing(); n != nil {
		t.Errorf("differing: %v", n)
	}
}

func TestReplacesTextThatPostgresRefuses(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 3)
	i.exec(t, "UPDATE events SET event = CAST(X'610062ff63' AS TEXT) WHERE id = 2")
	r := run(t, i, Options{})
	var name string
	if err := openTo(t, i).Read(t.Context()).QueryRowContext(t.Context(), "SELECT event FROM events WHERE id = 2").Scan(&name); err != nil || name != "a\uFFFDb\uFFFDc" {
		t.Errorf("event %q, %v", name, err)
	}
	for _, table := range r.Tables {
		if want := map[string]int64{"events": 1}[table.Name]; table.Replaced != want {
			t.Errorf("table %s: %d texts replaced, want %d", table.Name, table.Replaced, want)
		}
	}
}

// Events that the store has compressed arrive as their text.
func TestDecodesCompressedEvents(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, 0)
	texts := i.storeEvents(t, 3000)
	var compressed int
	if err := i.source.Read(t.Context()).QueryRowContext(t.Context(), "SELECT count(*) FROM events WHERE substr(CAST(properties AS BLOB), 1, 1) = X'01'").Scan(&compressed); err != nil || compressed < 1000 {
		t.Fatalf("%d compressed events, %v: the test proves nothing", compressed, err)
	}
	run(t, i, Options{})
	each(t, openTo(t, i), "SELECT uuid::text, properties FROM events", func(r *rowsType) error {
		var id, text string
		if err := r.Scan(&id, &text); err != nil {
			return err
		}
		if texts[id] != text {
			return fmt.Errorf("event %s has %s, want %s", id, text, texts[id])
		}
		delete(texts, id)
		return nil
	})
	if len(texts) > 0 {
		t.Errorf("%d events are missing", len(texts))
	}
}

// storeEvents stores events as a server does, with a dictionary after the first ones, and
// returns their properties by uuid.
func (i *installation) storeEvents(t testing.TB, n int) map[string]string {
	t.Helper()
	s := events.New(events.DefaultConfig(), i.source, zap.NewNop(), prometheus.NewRegistry())
	texts := map[string]string{}
	const size = 1000
	for begin := 0; begin < n; begin += size {
		batch := make([]*sdk.Event, size)
		for k := range batch {
			batch[k] = exampleEvent(begin + k)
			texts[batch[k].UUID] = string(batch[k].Properties)
		}
		err := i.source.Tx(t.Context(), func(ctx context.Context) error {
			_, err := s.Store(ctx, batch)
			return err
		})
		if err == nil && begin == size {
			_, err = s.Train(t.Context(), 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

func exampleEvent(n int) *sdk.Event {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	who := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n*7919%20_000)).String()
	id := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, "event", n)).String()
	path := fmt.Sprintf("/%s/%d", []string{"insights", "home", "pricing", "docs", "blog"}[n%5], n*31%500)
	return &sdk.Event{
		UUID: id, ProjectID: 1, Name: fmt.Sprintf("event_%d", n%100), DistinctID: who, PersonID: who, Timestamp: at, ReceivedAt: at,
		Properties: json.RawMessage(fmt.Sprintf(`{"$current_url":"https://app.example.com%s?x=%d","$host":"app.example.com",`+
			`"$pathname":"%s","$browser":"Chrome","$browser_version":120,"$os":"Mac OS X","$device_type":"Desktop",`+
			`"$session_id":"%s","$lib":"web","$lib_version":"1.96.1","$screen_height":1080,"$screen_width":1920,`+
			`"$viewport_height":900,"$viewport_width":1600,"amount":%d}`, path, n*13%1_000_000, path, id, n%1000)),
	}
}
