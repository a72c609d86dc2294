package journal

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/journal/files"
	"github.com/guidonhq/guidon/core/journal/format"
	"github.com/guidonhq/guidon/core/journal/incident"
)

// replaceInterval is the least time between two replacements of the file: a disk
// that damages each new file must not be filled with copies.
const replaceInterval = time.Minute

// replaceFile replaces a file in which SQLite found a malformed page by a copy of
// the records that can be read. It returns true if the group may be committed again.
// Records keep their numbers, cursors their positions; the damaged file stays under
// another name. Readers continue with the old file while it is copied; appends wait.
func (w *writer) replaceFile(cause error) bool {
	j := w.j
	if !format.IsMalformed(cause) || j.wal.Lost() || !w.replaced.IsZero() && time.Since(w.replaced) < replaceInterval {
		return false
	}
	w.replaced = time.Now()
	if w.conn != nil {
		w.conn.close()
		w.conn = nil
	}
	j.log.Error("journal file malformed: copying its readable records into a new file", zap.String("path", j.path), zap.Error(cause))
	if err := w.copyAndSwap(cause); err != nil {
		j.log.Error("journal file not replaced", zap.Error(damagedFile(err)))
		return false
	}
	w.failed = false
	return true
}

func (w *writer) copyAndSwap(cause error) error {
	j, begun := w.j, time.Now()
	defer j.wal.Pause()()
	if err := j.checkCopySpace(); err != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	span, cursors := j.index.now()
	var damages []*format.Damage
	c, err := format.Copy(uninterrupted, j.path, files.CopyPath(j.path), format.Copying{
		ID: j.id, First: span.first, Last: span.last, Exact: true, End: span.endPos, Readers: rows(cursors),
		Damaged: func(d *format.Damage) { damages = append(damages, d) },
	})
	if err != nil {
		return fmt.Errorf("copy the readable records: %w", err)
	}
	kept := files.AsidePath(j.path)
	if err := j.swapFile(kept); err != nil {
		return err
	}
	j.index.setReusable(0)
	j.metrics.countReplaced()
	j.damage.keep(damages)
	for _, d := range damages {
		j.reportDamage(damagedError(d))
	}
	j.log.Error("journal file replaced", zap.String("kept", kept), zap.Uint64("records", c.Records), zap.Uint64("lost", c.Lost()),
		zap.Duration("took", time.Since(begun)))
	j.addIncident(incident.FileReplaced, "A malformed file of the journal was replaced by a copy of its readable records: %d records are lost, %d were copied. "+
		"The damaged file is %s.", c.Lost(), c.Records, kept)
	return nil
}

// checkCopySpace fails if the disk has no space for a copy of the file.
func (j *store) checkCopySpace() error {
	size, err := files.Size(j.path)
	if err != nil {
		return err
	}
	if free, _, err := j.health.space(j.path); err == nil && free < size+size/8 {
		return fmt.Errorf("a copy of the file needs %d bytes on the disk, which has %d", size+size/8, free)
	}
	return nil
}

// swapFile puts the copy in the place of the file and opens it. All uses of the
// file wait meanwhile. After a failure to open a file, appends are refused until
// the server restarts; the start completes what was begun.
func (j *store) swapFile(kept string) error {
	j.life.Lock()
	defer j.life.Unlock()
	j.health.file.Store(nil)
	if err := j.closeFile(); err != nil {
		j.log.Warn("damaged journal file not closed cleanly", zap.Error(err))
	}
	err := files.Replace(j.path, kept)
	if opened := j.openFile(); opened != nil {
		j.health.fail(fmt.Errorf("the file cannot be opened after it was replaced; restart the server: %w", opened))
		return opened
	}
	return err
}

// finishReplace completes a replacement that the last process began.
func (j *store) finishReplace() error {
	kept, err := files.FinishReplace(j.path)
	if kept != "" {
		j.log.Error("journal file replaced", zap.String("kept", kept))
	}
	return err
}

// addIncident records an incident for the operator.
func (j *store) addIncident(kind, text string, args ...any) {
	i := incident.Incident{At: time.Now().UTC(), Kind: kind, Text: fmt.Sprintf(text, args...)}
	if err := j.incidents.Add(i); err != nil {
		j.log.Warn("journal incident not recorded", zap.String("incident", i.Text), zap.Error(err))
	}
}

// rows returns cursors as they are stored.
func rows(cursors readers) []format.Reader {
	out := make([]format.Reader, 0, len(cursors))
	for name, c := range cursors {
		p := c.position
		out = append(out, format.Reader{Name: name, Seq: int64(p.Seq), Index: int64(p.Index), Count: int64(p.Count), Dropped: c.dropped})
	}
	return out
}
