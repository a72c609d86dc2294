package chain_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/activity/chain"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)

// add inserts unsealed entries from number first to last, a minute apart.
func add(t *testing.T, d *db.DB, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		r := &chain.Row{
			ID: fmt.Sprintf("id-%04d", n), Scope: "FeatureFlag", ItemID: fmt.Sprint(n), Activity: "updated", UserID: 7, UserName: "Ada", UserEmail: "ada@corp.test",
			Detail: fmt.Sprintf(`{"name":"flag <%d>","changes":[]}`, n), CreatedAt: db.At(at.Add(time.Duration(n) * time.Minute)), Client: "192.0.2.7",
		}
		if _, err := d.Write(t.Context()).NewInsert().Model(r).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func sealed(t *testing.T, d *db.DB, entries int) *chain.Chain {
	t.Helper()
	add(t, d, 1, entries)
	c := chain.New(d)
	if err := c.SealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.Write(t.Context()).ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func verify(t *testing.T, c *chain.Chain, anchors ...chain.Head) *chain.Report {
	t.Helper()
	r, err := c.Verify(t.Context(), anchors...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func export(t *testing.T, c *chain.Chain) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := c.Export(t.Context(), 0, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// problems returns the kinds and numbers of the problems.
func problems(r *chain.Report) string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, fmt.Sprintf("%s %d", p.Kind, p.Sequence))
	}
	return strings.Join(out, ", ")
}

func TestSealedEntriesVerify(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := sealed(t, d, 1203) // more than two pages
		add(t, d, 1204, 1205)
		r := verify(t, c)
		if len(r.Problems) > 0 || r.Entries != 1203 || r.Unsealed != 2 || r.Head.Sequence != 1203 {
			t.Errorf("report: %+v", r)
		}
		again, err := chain.VerifyExport(strings.NewReader(export(t, c)), r.Head)
		if err != nil || len(again.Problems) > 0 || again.Entries != 1203 || again.Head != r.Head {
			t.Errorf("report of the export: %+v, %v", again, err)
		}
	})
}

// Every edit of the rows is found, and the entry is named.
func TestEditsAreFound(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		sealed(t, d, 9)
		for _, column := range []string{"scope", "item_id", "activity", "user_name", "user_email", "organization_id", "client", "user_agent", "request_id", "detail", "salt", "digest", "previous", "hash"} {
			tampered(t, d, column, "changed 5", "UPDATE activity_log SET "+column+" = 'x' WHERE sequence = 5")
		}
		for _, column := range []string{"user_id", "project_id", "key_id", "created_at"} {
			tampered(t, d, column, "changed 5", "UPDATE activity_log SET "+column+" = 99 WHERE sequence = 5")
		}
		tampered(t, d, "id", "changed 5", "UPDATE activity_log SET id = 'other' WHERE sequence = 5")
		tampered(t, d, "removed", "missing 5", "DELETE FROM activity_log WHERE sequence = 5")
		tampered(t, d, "first removed", "missing 1", "DELETE FROM activity_log WHERE sequence <= 2")
		tampered(t, d, "end removed", "missing 8", "DELETE FROM activity_log WHERE sequence >= 8")
		tampered(t, d, "unsealed", "missing 5", "UPDATE activity_log SET sequence = NULL WHERE sequence = 5")
		tampered(t, d, "reordered", "changed 4, reordered 5, changed 5", "UPDATE activity_log SET sequence = 99 WHERE sequence = 4", "UPDATE activity_log SET sequence = 4 WHERE sequence = 5", "UPDATE activity_log SET sequence = 5 WHERE sequence = 99")
		tampered(t, d, "added", "extra 10", "UPDATE activity_log SET sequence = 10 WHERE sequence = 9", "UPDATE activity_chain SET sequence = 9")
		tampered(t, d, "cut by hand", "missing 3", "DELETE FROM activity_log WHERE sequence <= 3",
			"UPDATE activity_chain SET cut_sequence = 3, cut_hash = (SELECT previous FROM activity_log WHERE sequence = 4)")
	})
}

// tampered runs the queries, compares the problems with those that contain want, and
// takes the queries back.
func tampered(t *testing.T, d *db.DB, name, want string, queries ...string) {
	t.Helper()
	undo := fmt.Errorf("undo")
	_ = d.Tx(t.Context(), func(ctx context.Context) error {
		for _, q := range queries {
			if _, err := d.Write(ctx).ExecContext(ctx, q); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		r, err := chain.New(d).Verify(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := problems(r); !strings.Contains(got, want) {
			t.Errorf("%s: problems %q, want %q", name, got, want)
		}
		return undo
	})
}

// A chain that is written again fits itself, and not an anchor.
func TestAnchorFindsAChainThatWasWrittenAnew(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := sealed(t, d, 5)
		anchor, err := c.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := chain.Parse(anchor.String()); err != nil || parsed != anchor {
			t.Fatalf("parsed %v, %v", parsed, err)
		}
		run(t, d, "UPDATE activity_log SET user_name = 'Eve' WHERE sequence = 3")
		run(t, d, "UPDATE activity_log SET sequence = NULL")
		run(t, d, "UPDATE activity_chain SET sequence = 0, hash = ''")
		if err := c.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, c); len(r.Problems) > 0 {
			t.Errorf("problems without an anchor: %s", problems(r))
		}
		if got := problems(verify(t, c, anchor)); got != "anchor 5" {
			t.Errorf("problems %q, want anchor 5", got)
		}
		if got := problems(verify(t, c, chain.Head{Sequence: 8, Hash: anchor.Hash})); got != "anchor 8" {
			t.Errorf("problems %q, want anchor 8", got)
		}
	})
}

func TestRedactedEntriesVerify(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := sealed(t, d, 5)
		for _, detail := range []string{`{"name":"once"}`, `{"name":"twice"}`} {
			if err := c.Redact(t.Context(), "id-0003", detail); err != nil {
				t.Fatal(err)
			}
			if r := verify(t, c); len(r.Problems) > 0 || r.Redacted != 1 {
				t.Errorf("after %s: %+v", detail, r)
			}
		}
		if err := c.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, c); len(r.Problems) > 0 || r.Redacted != 1 || r.Entries != 7 {
			t.Errorf("sealed: %+v", r)
		}
		if text := export(t, c); strings.Contains(text, "flag <3>") {
			t.Error("the export has the redacted text")
		}
		if r, err := chain.VerifyExport(strings.NewReader(export(t, c))); err != nil || len(r.Problems) > 0 {
			t.Errorf("export: %+v, %v", r, err)
		}
		run(t, d, `UPDATE activity_log SET detail = '{"name":"three times"}' WHERE id = 'id-0003'`)
		if got := problems(verify(t, c)); got != "changed 3" {
			t.Errorf("problems %q, want changed 3", got)
		}
	})
}

func TestCutLeavesACheckpoint(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := sealed(t, d, 9)
		anchor, err := c.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cutBefore := func(age time.Time) int64 {
			n, err := c.Cut(t.Context(), age)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := cutBefore(at.Add(4 * time.Minute)); n != 3 {
			t.Errorf("%d entries cut, want 3", n)
		}
		if r := verify(t, c, anchor); len(r.Problems) > 0 || r.Entries != 6 || r.Cut != 3 {
			t.Errorf("after the cut: %+v", r)
		}
		if err := c.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := cutBefore(time.Now().Add(time.Hour)); n != 7 {
			t.Errorf("%d entries cut, want 6 and that of the first cut", n)
		}
		if r := verify(t, c, anchor); len(r.Problems) > 0 || r.Cut != 10 {
			t.Errorf("after the second cut: %+v", r)
		}
		if err := c.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := cutBefore(time.Now().Add(time.Hour)); n != 0 {
			t.Errorf("%d entries about cuts removed, want none", n)
		}
	})
}

// Several processes that seal at the same time make one chain, and writers do not wait
// for them.
func TestConcurrentSealsDoNotFork(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const writers, each = 4, 25
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() { add(t, d, 1+w*each, (w+1)*each) })
			all.Go(func() {
				for range each {
					if err := chain.New(d).SealAll(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		c := chain.New(d)
		if err := c.SealAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, c); len(r.Problems) > 0 || r.Entries != writers*each {
			t.Errorf("report: %+v", r)
		}
	})
}

func TestEditsOfAnExportAreFound(t *testing.T) {
	t.Parallel()
	c := sealed(t, dbtest.SQLite(t), 5)
	lines := strings.SplitAfter(strings.TrimSpace(export(t, c))+"\n", "\n")[:5]
	for name, edit := range map[string]struct{ text, want string }{
		"changed":   {strings.Join(lines[:2], "") + strings.Replace(lines[2], "Ada", "Eve", 1) + strings.Join(lines[3:], ""), "changed 3"},
		"spaces":    {strings.Replace(strings.Join(lines, ""), `"user_name":"Ada"`, `"user_name": "Ada"`, 1), "changed 1"},
		"detail":    {strings.Replace(strings.Join(lines, ""), "flag <4>", "flag <5>", 1), "changed 4"},
		"removed":   {lines[0] + lines[1] + lines[3] + lines[4], "missing 3"},
		"reordered": {lines[0] + lines[2] + lines[1] + lines[3] + lines[4], "missing 2"},
	} {
		r, err := chain.VerifyExport(strings.NewReader(edit.text))
		if err != nil || !strings.Contains(problems(r), edit.want) {
			t.Errorf("%s: %+v, %v; want %s", name, r, err, edit.want)
		}
	}
	if r, err := chain.VerifyExport(strings.NewReader(lines[3] + lines[4])); err != nil || len(r.Problems) > 0 {
		t.Errorf("the end of an export: %+v, %v", r, err)
	}
	if _, err := chain.VerifyExport(strings.NewReader("{}\n")); err == nil {
		t.Error("a file that is no export is accepted")
	}
}

func TestVerifyNamesTheLastGoodEntry(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	c := sealed(t, d, 600)
	good := &chain.Row{ID: "id-0555"}
	if err := d.Read(t.Context()).NewSelect().Model(good).WherePK().Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, d, "UPDATE activity_log SET user_id = 'x' WHERE sequence = ?", good.Sequence+1)
	_, err := c.Verify(t.Context())
	want := fmt.Sprintf("entry %d cannot be read", good.Sequence+1)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the last good entry is "+chain.Head{Sequence: good.Sequence, Hash: good.Hash}.String()) {
		t.Errorf("got %v, want %s", err, want)
	}
}
