package chain

import (
	"context"
	"fmt"
	"slices"
)

// Problem is what Verify found about an entry.
type Problem struct {
	// Sequence is the number of the entry, or of the first missing one.
	Sequence int64 `json:"sequence"`
	// Kind is changed, missing, reordered, extra or anchor.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// The kinds of problems.
const (
	Changed   = "changed"   // a column differs from what was hashed
	Missing   = "missing"   // entries were removed
	Reordered = "reordered" // an entry does not follow the one before it
	Extra     = "extra"     // an entry that the chain does not have
	Anchor    = "anchor"    // the chain differs from an anchor
)

// Report is the result of a verification.
type Report struct {
	Entries  int64     `json:"entries"`  // sealed ones that were read
	Unsealed int64     `json:"unsealed"` // entries that no hash covers yet
	Redacted int64     `json:"redacted"` // entries whose detail was replaced
	Cut      int64     `json:"cut"`      // the last entry that retention removed
	Head     Head      `json:"head"`
	Problems []Problem `json:"problems"` // at most maxProblems, and how many more there are
	More     int       `json:"more_problems"`
}

// maxProblems bounds a report.
const maxProblems = 100

// Verify reads the whole chain, also beside a running server. The anchors are former
// heads that were kept elsewhere. Problems are no error.
func (c *Chain) Verify(ctx context.Context, anchors ...Head) (*Report, error) {
	start, err := c.readHead(ctx, false)
	if err != nil {
		return nil, err
	}
	v := newVerifier(Head{start.CutSequence, start.CutHash}, anchors)
	if err := c.checkRemoved(ctx, v, start.CutSequence); err != nil {
		return nil, err
	}
	for at := start.CutSequence; at < start.Sequence; {
		rows, err := c.after(ctx, at)
		if err != nil && ctx.Err() == nil {
			return nil, c.unreadable(ctx, v, at, err)
		}
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Sequence > start.Sequence {
				break
			}
			v.check(&rows[i])
		}
		if len(rows) == 0 {
			break
		}
		at = rows[len(rows)-1].Sequence
	}
	if err := c.checkEnd(ctx, v, start); err != nil {
		return nil, err
	}
	return v.finish(), nil
}

// unreadable checks the entries behind one number by one, and returns the error of the
// first that cannot be read, which names the last good entry.
func (c *Chain) unreadable(ctx context.Context, v *verifier, at int64, cause error) error {
	for {
		rows, err := c.atMost(ctx, at, 1)
		if err != nil {
			cause = err
			break
		}
		if len(rows) == 0 {
			break
		}
		v.check(&rows[0])
		at = rows[0].Sequence
	}
	if n := len(v.out.Problems); n > 0 {
		return fmt.Errorf("entry %d cannot be read: %w; the entries up to %d can, with %d problems", at+1, cause, at, n+v.out.More)
	}
	return fmt.Errorf("entry %d cannot be read: %w; the last good entry is %s", at+1, cause, v.last)
}

// checkRemoved reports entries that should not exist any more.
func (c *Chain) checkRemoved(ctx context.Context, v *verifier, sequence int64) error {
	n, err := c.db.Read(ctx).NewSelect().Model((*Row)(nil)).Where("sequence <= ?", sequence).Count(ctx)
	if err != nil {
		return fmt.Errorf("count activity: %w", err)
	}
	if n > 0 {
		v.report(sequence, Extra, "%d entries up to %d exist, which retention has removed", n, sequence)
	}
	return nil
}

// checkEnd compares the last entry with the head of the start, reads what was written
// since for notes, and reports entries beyond the head of now.
func (c *Chain) checkEnd(ctx context.Context, v *verifier, start headRow) error {
	v.end(start.head())
	unsealed, err := c.unsealed(ctx)
	if err != nil {
		return err
	}
	for i := range unsealed {
		v.readNote(&unsealed[i])
	}
	if v.out.Unsealed, err = c.CountUnsealed(ctx); err != nil {
		return err
	}
	now, err := c.readHead(ctx, false)
	if err != nil {
		return err
	}
	rows, err := c.after(ctx, start.Sequence)
	if err != nil {
		return err
	}
	for i := range rows {
		if v.readNote(&rows[i]); rows[i].Sequence > now.Sequence && now == start {
			v.report(rows[i].Sequence, Extra, "%s is beyond the head %d", rows[i].name(), now.Sequence)
		}
	}
	return nil
}

// mismatch is an entry whose detail differs from its digest, unless a later note
// explains it.
type mismatch struct {
	row    Row
	digest string
}

// verifier checks entries in the order of their numbers.
type verifier struct {
	out        Report
	last       Head // of the entries so far
	first      bool // the chain begins in the middle: no former entry is known
	anchors    []Head
	mismatches map[string]mismatch
	noted      map[string]string // digests by entry
	cuts       []Head            // that notes name
	cutHead    Head              // the checkpoint
}

func newVerifier(cut Head, anchors []Head) *verifier {
	v := &verifier{last: cut, cutHead: cut, anchors: slices.Clone(anchors), mismatches: map[string]mismatch{}, noted: map[string]string{}}
	v.out.Cut, v.out.Head, v.out.Problems = cut.Sequence, cut, []Problem{}
	v.checkAnchors(cut)
	return v
}

func (v *verifier) report(sequence int64, kind, format string, args ...any) {
	if len(v.out.Problems) == maxProblems {
		v.out.More++
		return
	}
	v.out.Problems = append(v.out.Problems, Problem{sequence, kind, fmt.Sprintf(format, args...)})
}

// check checks the next entry.
func (v *verifier) check(r *Row) {
	v.out.Entries++
	gap := r.Sequence - v.last.Sequence - 1
	switch {
	case v.first:
		v.first = false
	case gap > 0:
		v.report(v.last.Sequence+1, Missing, "%s missing before %s", span(v.last.Sequence+1, r.Sequence-1), r.name())
	case r.Previous != v.last.hashOrGenesis():
		v.report(r.Sequence, Reordered, "%s does not follow entry %d: one of them was replaced or reordered", r.name(), v.last.Sequence)
	}
	if sum(r.text()) != r.Hash {
		v.report(r.Sequence, Changed, "%s was changed: its hash does not fit", r.name())
	}
	if now := digest(r.Salt, r.Detail); now != r.Digest {
		v.mismatches[r.ID] = mismatch{*r, now}
	}
	v.readNote(r)
	v.last = Head{r.Sequence, r.Hash}
	v.checkAnchors(v.last)
}

// span names entries.
func span(from, to int64) string {
	if from == to {
		return fmt.Sprintf("entry %d is", from)
	}
	return fmt.Sprintf("entries %d to %d are", from, to)
}

// readNote reads an entry about the log itself.
func (v *verifier) readNote(r *Row) {
	if r.Scope != Scope {
		return
	}
	switch n := readNote(r.Detail); r.Activity {
	case redacted:
		v.noted[r.ItemID] = n.Digest
	case cut:
		v.cuts = append(v.cuts, Head{n.Sequence, n.Hash})
	}
}

// checkAnchors compares an entry with the anchors of its number.
func (v *verifier) checkAnchors(at Head) {
	v.anchors = slices.DeleteFunc(v.anchors, func(a Head) bool {
		if a.Sequence == at.Sequence && a.Hash != at.Hash {
			v.report(a.Sequence, Anchor, "entry %d has the hash %s, the anchor %s: the log was written anew", a.Sequence, at.Hash, a.Hash)
		}
		return a.Sequence == at.Sequence
	})
}

// end compares the last entry with the head.
func (v *verifier) end(head Head) {
	v.out.Head = head
	switch {
	case v.last.Sequence < head.Sequence:
		v.report(v.last.Sequence+1, Missing, "%s missing at the end", span(v.last.Sequence+1, head.Sequence))
	case v.last.Hash != head.Hash:
		v.report(head.Sequence, Changed, "entry %d has another hash than the head of the log", head.Sequence)
	}
}

// finish reports what later entries did not explain.
func (v *verifier) finish() *Report {
	for id, m := range v.mismatches {
		if v.noted[id] == m.digest {
			v.out.Redacted++
			continue
		}
		v.report(m.row.Sequence, Changed, "the detail of %s was changed", m.row.name())
	}
	if c := v.out.Cut; c > 0 && !slices.Contains(v.cuts, v.cutHead) {
		v.report(c, Missing, "entries up to %d are missing: no entry says that retention removed them", c)
	}
	for _, a := range v.anchors {
		if a.Sequence > v.out.Head.Sequence {
			v.report(a.Sequence, Anchor, "the log ends at entry %d, before the anchor %d", v.out.Head.Sequence, a.Sequence)
		}
	}
	slices.SortStableFunc(v.out.Problems, func(a, b Problem) int { return int(a.Sequence - b.Sequence) })
	return &v.out
}
