package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events/dictionaries"

	"github.com/guidonhq/guidon/core/events/clickhouse/wire"
)

// MoveOptions are the options of Move.
type MoveOptions struct {
	DryRun   bool               // counts events; changes nothing
	Verify   bool               // compares all columns of all events; changes nothing
	Rate     int                // bounds the events that are copied in a second; 0 does not
	Progress func(MoveProgress) // may be nil
	chunk    int64              // in rows; 0 for moveChunk
}

// MoveProgress is how far a move has come.
type MoveProgress struct {
	Row, Last int64 // the row of the source that it has come to, and the last one
	Copied    int64 // events
}

// MoveReport is the result of Move.
type MoveReport struct {
	Through  int64         `json:"through_row"` // the last row of the source
	Projects []MovedEvents `json:"projects"`
	Copied   int64         `json:"copied"`   // by this run
	Removed  int64         `json:"removed"`  // by this run: they are no longer in the source
	Repeated int64         `json:"repeated"` // left out: ClickHouse has their uuids in events of its own
	Took     time.Duration `json:"-"`
}

// MovedEvents are the numbers of events of a project.
type MovedEvents struct {
	Project int64 `json:"project_id"`
	Source  int64 `json:"source"`
	Target  int64 `json:"target"`
	Left    int64 `json:"repeated"` // of Source, not copied
}

// Equal reports whether ClickHouse has all events of the project.
func (m *MovedEvents) Equal() bool { return m.Source == m.Target+m.Left }

// Errors of Move.
var (
	// ErrMoveDiffers reports that source and ClickHouse have different events.
	ErrMoveDiffers = errors.New("the events of the database and those of ClickHouse differ")
	errRowsTaken   = errors.New("ClickHouse has events of its own with the rows of the database: they cannot be moved into this ClickHouse database")
)

// The sizes of a move, in rows: one statement compares a window; what differs is copied in
// chunks.
const (
	moveWindow = 50 // in chunks
	moveChunk  = 20_000
	movePage   = 1_000
	moveBytes  = 16 << 20 // of one insertion
)

// Move copies the events of the event store in source, a SQLite or PostgreSQL database, to
// ClickHouse. They keep their rows, which histories of actions and cursors of exports name.
//
// What is copied follows from a comparison, by chunks of rows and by project, of the number
// of events and the sums of their rows and times. So Move continues where an interrupted one
// ended, copies later events when it is called again, and removes events that were erased in
// the source meanwhile. A server may use the source, or ClickHouse, while it runs. Call it
// again after the last server stopped to use the source, and before one uses ClickHouse.
//
// Once ClickHouse has events of its own, those of the source whose uuids are among them are
// left out.
func (s *Store) Move(ctx context.Context, source *db.DB, o MoveOptions) (*MoveReport, error) {
	begin := time.Now()
	m := &move{Store: s, source: source, decoder: dictionaries.New(source, s.log).NewDecoder(), options: o, totals: map[int64]*MovedEvents{}}
	if o.Progress == nil {
		m.options.Progress = func(MoveProgress) {}
	}
	if o.chunk == 0 {
		m.options.chunk = moveChunk
	}
	err := m.run(ctx)
	m.report.Took = time.Since(begin)
	return &m.report, err
}

// move is a Move while it runs.
type move struct {
	*Store
	source  *db.DB
	decoder *dictionaries.Decoder
	options MoveOptions
	own     bool // ClickHouse has events of its own
	doubled bool // ClickHouse has rows twice, which a merge will remove
	begin   time.Time
	totals  map[int64]*MovedEvents
	report  MoveReport
}

func (m *move) run(ctx context.Context) error {
	exist, err := m.start(ctx)
	if err != nil {
		return err
	}
	m.begin = time.Now()
	for low := int64(0); ; {
		if m.report.Through, err = m.lastSourceRow(ctx); err != nil {
			return err
		}
		if low >= m.report.Through {
			break
		}
		for low < m.report.Through {
			high := min((low/m.options.chunk+moveWindow)*m.options.chunk, m.report.Through)
			if err := m.moveRows(ctx, low, high, exist); err != nil {
				return err
			}
			low = high
		}
		if m.options.DryRun || m.options.Verify {
			break
		}
	}
	return m.finish(ctx, exist)
}

// start prepares the tables, or checks them if nothing may be changed; exist is false if
// there are none then.
func (m *move) start(ctx context.Context) (exist bool, err error) {
	st, err := m.readState(ctx)
	if err != nil {
		return false, err
	}
	m.own = st.Drainer != ""
	if !m.options.DryRun && !m.options.Verify {
		return true, m.prepare(ctx)
	}
	if err := m.readVersion(ctx); err != nil {
		return false, err
	}
	if exist, err = m.checkExisting(ctx); err == nil && !exist && m.options.Verify {
		err = errors.New("ClickHouse has no events yet")
	}
	return exist, err
}

// figures are the sums by which the events of a project in a chunk are compared.
type figures struct{ events, rows, seconds int64 }

// figuresKey names a chunk, which begins behind row number × size, and a project.
type figuresKey struct{ chunk, project int64 }

// moveRows copies what differs among the rows in (low, high].
func (m *move) moveRows(ctx context.Context, low, high int64, exist bool) error {
	want, err := m.sourceFigures(ctx, low, high)
	if err != nil {
		return fmt.Errorf("read the events of the database: %w", err)
	}
	if m.options.DryRun {
		m.addTotals(want, nil)
		m.progress(high)
		return nil
	}
	have := map[figuresKey]figures{}
	if exist {
		if have, err = m.storedFigures(ctx, low, high); err != nil {
			return err
		}
	}
	size := m.options.chunk
	for chunk := low / size; chunk*size < high; chunk++ {
		from, to := max(low, chunk*size), min(high, (chunk+1)*size)
		switch equal := equalFigures(want, have, chunk); {
		case m.options.Verify:
			m.addTotals(want, &chunk)
			err = m.compareRows(ctx, from, to)
		case equal:
			m.addTotals(want, &chunk)
		default:
			err = m.copyRows(ctx, from, to)
		}
		if err != nil {
			return err
		}
		m.progress(to)
		if err := m.throttle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// equalFigures compares the figures of a chunk.
func equalFigures(want, have map[figuresKey]figures, chunk int64) bool {
	for key, f := range want {
		if key.chunk == chunk && have[key] != f {
			return false
		}
	}
	for key := range have {
		if _, ok := want[key]; key.chunk == chunk && !ok {
			return false
		}
	}
	return true
}

// addTotals adds the figures of a chunk to the numbers of the source; nil means all.
func (m *move) addTotals(list map[figuresKey]figures, chunk *int64) {
	for key, f := range list {
		if chunk == nil || key.chunk == *chunk {
			m.total(key.project).Source += f.events
		}
	}
}

func (m *move) total(project int64) *MovedEvents {
	t := m.totals[project]
	if t == nil {
		t = &MovedEvents{Project: project}
		m.totals[project] = t
	}
	return t
}

func (m *move) progress(row int64) {
	m.options.Progress(MoveProgress{Row: row, Last: m.report.Through, Copied: m.report.Copied})
}

// throttle waits until the copied events are within the rate.
func (m *move) throttle(ctx context.Context) error {
	if m.options.Rate <= 0 {
		return ctx.Err()
	}
	due := time.Duration(float64(m.report.Copied) / float64(m.options.Rate) * float64(time.Second))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(due - time.Since(m.begin)):
		return nil
	}
}

// position is an event without its content.
type position struct {
	row, project int64
	uuid         uuid.UUID
}

// copyRows makes ClickHouse have the rows of the source in (low, high]. It holds the lock of
// the outbox: no erasure ends between the reading of an event and its insertion. The source
// is read outside of that transaction.
func (m *move) copyRows(ctx context.Context, low, high int64) error {
	return m.db.Tx(ctx, func(tx context.Context) error {
		if err := m.lock(tx); err != nil {
			return err
		}
		list, err := m.sourcePositions(ctx, low, high)
		if err != nil {
			return fmt.Errorf("read the events of the database: %w", err)
		}
		for i := range list {
			m.total(list[i].project).Source++
		}
		missing, err := m.removeOthers(ctx, list, low, high)
		if err != nil || len(missing) == 0 {
			return err
		}
		return m.insertRows(ctx, missing, low, high)
	})
}

// removeOthers deletes rows in (low, high] that the source does not have, and returns those
// that ClickHouse does not have.
func (m *move) removeOthers(ctx context.Context, list []position, low, high int64) (missing map[int64]bool, err error) {
	missing = make(map[int64]bool, len(list))
	wanted := make(map[int64]uuid.UUID, len(list))
	for _, p := range list {
		missing[p.row], wanted[p.row] = true, p.uuid
	}
	var others []int64
	err = m.client.Query(ctx, fmt.Sprintf("SELECT row, uuid, toInt64(count()) FROM %s WHERE row > %d AND row <= %d GROUP BY row, uuid", eventTable, low, high), func(r *wire.Reader) error {
		row, id, n := r.Int(), r.UUID(), r.Int()
		m.doubled = m.doubled || n > 1
		if want, ok := wanted[row]; ok && want == id {
			delete(missing, row)
		} else {
			others = append(others, row)
		}
		return nil
	})
	switch {
	case err != nil || len(others) == 0:
		return missing, err
	case m.own:
		return nil, errRowsTaken
	}
	for _, row := range others {
		if _, ok := wanted[row]; ok {
			missing[row] = true
		}
	}
	m.report.Removed += int64(len(others))
	condition := "row IN (" + joinInts(others) + ")"
	return missing, m.deleter.Delete(ctx, condition, condition)
}

// insertRows reads the missing events and inserts them.
func (m *move) insertRows(ctx context.Context, missing map[int64]bool, low, high int64) error {
	var list []event
	size := 0
	err := m.readSource(ctx, low, high, func(e *event) error {
		if !missing[e.row] {
			return nil
		}
		list = append(list, *e)
		if size += len(e.properties) + len(e.chain); size < moveBytes {
			return nil
		}
		full := list
		list, size = nil, 0
		return m.insertMissing(ctx, full)
	})
	if err != nil {
		return err
	}
	return m.insertMissing(ctx, list)
}

func (m *move) insertMissing(ctx context.Context, list []event) error {
	if m.own && len(list) > 0 {
		all := list
		var err error
		if list, err = m.withoutKnown(ctx, slices.Clone(all)); err != nil {
			return err
		}
		m.addLeft(all, 1)
		m.addLeft(list, -1)
	}
	m.report.Copied += int64(len(list))
	return m.insertAll(ctx, list)
}

// addLeft adds to the numbers of events that are not copied.
func (m *move) addLeft(list []event, n int64) {
	for i := range list {
		m.total(list[i].project).Left += n
		m.report.Repeated += n
	}
}

// finish compares the numbers of each project.
func (m *move) finish(ctx context.Context, exist bool) error {
	if m.doubled && !m.options.Verify {
		if err := m.client.Exec(ctx, "OPTIMIZE TABLE "+eventTable+" FINAL", nil, nil); err != nil {
			return err
		}
	}
	if exist {
		err := m.client.Query(ctx, fmt.Sprintf("SELECT project_id, toInt64(count()) FROM %s WHERE row <= %d GROUP BY project_id", eventTable, m.report.Through), func(r *wire.Reader) error {
			m.total(r.Int()).Target = r.Int()
			return nil
		})
		if err != nil {
			return err
		}
	}
	equal := true
	for _, t := range m.totals {
		m.report.Projects = append(m.report.Projects, *t)
		equal = equal && t.Equal()
	}
	slices.SortFunc(m.report.Projects, func(a, b MovedEvents) int { return int(a.Project - b.Project) })
	switch {
	case m.options.DryRun:
		return nil
	case !equal:
		return ErrMoveDiffers
	case m.options.Verify:
		return nil
	}
	return m.raiseRows(ctx, m.report.Through)
}
