// Package callseries counts the calls of flags by interval and answer: for one flag, and for
// the flags of a list in one request.
//
// The counts are read from the event store; see package flagcalls for their cost. A request
// waits for a place for scans, reads for at most Budget and names the flags that it could not
// count by then. Answers are cached for twenty times the duration of the request, its wait
// included: a project with few calls sees its latest ones, and one with many is read
// rarely. A flag that exceeds the Budget alone, or has too many different answers, is skipped
// for ten minutes. A flag that was not reached is counted by the next request, which leaves
// out the cached ones.
package callseries

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/events/flagcalls"
)

// Budget is how long a request reads, without its wait for a place.
const Budget = 3 * time.Second

const (
	maxFlags   = 200      // of a request
	maxAnswers = 10       // that are counted apart
	maxKept    = 16 << 20 // bytes of answers in memory
	keepFailed = 10 * time.Minute
	keepFactor = 20
	keepMost   = 5 * time.Minute
)

// Other is the answer of the calls whose answer is not one of the most frequent.
const Other = "(other)"

// Counter counts calls in the event store.
type Counter interface {
	Counts(ctx context.Context, q *flagcalls.Query, fn flagcalls.Visit) error
}

// Service answers with series of calls. It is safe for concurrent use.
type Service struct {
	store   *Store
	counter Counter
	now     func() time.Time

	mu   sync.Mutex
	kept map[request]answer
	size int // of all kept answers
}

// request identifies a count: the calls of a flag from a time on.
type request struct {
	project int64
	key     string
	from    int64
	width   time.Duration
	hours   bool
}

type answer struct {
	series *Series
	until  time.Time
}

// size returns about how many bytes an answer takes in memory.
func (r *request) size(s *Series) int {
	n := 256 + len(r.key)
	for _, a := range s.Answers {
		n += 64 + len(a.Response) + 8*len(a.Data)
	}
	return n
}

// New returns a Service. now is the clock of the intervals.
func New(store *Store, counter Counter, now func() time.Time) *Service {
	return &Service{store: store, counter: counter, now: now, kept: map[request]answer{}}
}

// Series is the calls of a flag by answer.
type Series struct {
	Counted bool // false: it has too many calls or answers to be counted in time
	Calls   int64
	Answers []Answer // the most frequent first
}

// Answer is the calls with one answer, in the intervals of the request.
type Answer struct {
	Response string
	Calls    int64
	Data     []int64
}

// read returns the series of the flags, by key.
func (s *Service) read(ctx context.Context, project auth.Project, flags []Flag, sp span) (map[string]*Series, error) {
	out := make(map[string]*Series, len(flags))
	q := flagcalls.Query{ProjectID: project.ID, From: sp.starts[0], To: sp.to, Width: sp.width, Budget: Budget}
	for _, f := range flags {
		if f.LastCalled.Before(q.From.Add(-lastCalledLag)) {
			out[f.Key] = &Series{Counted: true}
		} else if kept := s.find(sp.request(project.ID, f.Key)); kept != nil {
			out[f.Key] = kept
		} else {
			q.Keys = append(q.Keys, f.Key)
		}
	}
	if len(q.Keys) == 0 {
		return out, nil
	}
	began := time.Now()
	var counted, failed []string
	err := s.counter.Counts(ctx, &q, func(key string, r flagcalls.Result) {
		if !r.Counted {
			failed = append(failed, key)
			return
		}
		out[key] = sp.fold(r.Counts)
		counted = append(counted, key)
	})
	if err != nil {
		return nil, err
	}
	for _, key := range q.Keys {
		if out[key] == nil {
			out[key] = &Series{}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	for _, key := range counted {
		s.keep(sp.request(project.ID, key), out[key], min(keepFactor*time.Since(began), keepMost))
	}
	for _, key := range failed {
		s.keep(sp.request(project.ID, key), out[key], keepFailed)
	}
	return out, nil
}

func (s *Service) find(r request) *Series {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, ok := s.kept[r]; ok && s.now().Before(kept.until) {
		return kept.series
	}
	return nil
}

// dropExpired forgets the answers that are not given any more.
func (s *Service) dropExpired() {
	now := s.now()
	for r, a := range s.kept {
		if !now.Before(a.until) {
			s.drop(r)
		}
	}
}

func (s *Service) drop(r request) {
	if a, ok := s.kept[r]; ok {
		s.size -= r.size(a.series)
		delete(s.kept, r)
	}
}

// keep keeps an answer for a time, and forgets any others that have no room beside it.
func (s *Service) keep(r request, series *Series, d time.Duration) {
	s.drop(r)
	s.size += r.size(series)
	for other := range s.kept {
		if s.size <= maxKept {
			break
		}
		s.drop(other)
	}
	s.kept[r] = answer{series, s.now().Add(d)}
}

// fold adds counts up to the intervals of the span and answers.
func (sp *span) fold(rows []flagcalls.Count) *Series {
	out := &Series{Counted: true}
	totals := map[string]int64{}
	for _, r := range rows {
		totals[r.Response] += r.Calls
		out.Calls += r.Calls
	}
	names := make([]string, 0, len(totals))
	for name := range totals {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b)) })
	if len(names) > maxAnswers {
		names = slices.DeleteFunc(names, func(name string) bool { return name == Other })
		names = append(names[:maxAnswers-1], Other)
	}
	at := map[string]int{}
	for i, name := range names {
		at[name] = i
		out.Answers = append(out.Answers, Answer{Response: name, Data: make([]int64, len(sp.starts))})
	}
	for _, r := range rows {
		i, ok := at[r.Response]
		if !ok {
			i = at[Other]
		}
		out.Answers[i].Calls += r.Calls
		out.Answers[i].Data[sp.place(r.Interval)] += r.Calls
	}
	return out
}
