package history

import (
	"bytes"
	"context"
	"slices"
	"sync"

	actionmatch "github.com/guidonhq/guidon/core/actions/match"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/jsontext"
)

// maxTableBytes bounds the memory of a personTable. Persons beyond it are read
// again for each batch of events.
const maxTableBytes = 64 << 20

// personTable holds the properties of persons that one definition reads. All
// goroutines of one run share it.
type personTable struct {
	events    EventHistory
	projectID int64
	names     []string // of the properties

	mu    sync.RWMutex
	known map[string][]byte // by distinct id; nil without a person
	size  int
}

func (t *personTable) get(distinctID string) ([]byte, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	raw, ok := t.known[distinctID]
	return raw, ok
}

// load reads the persons of distinct ids in one query.
func (t *personTable) load(ctx context.Context, distinctIDs []string) (map[string][]byte, error) {
	loaded := make(map[string][]byte, len(distinctIDs))
	for _, id := range distinctIDs {
		loaded[id] = nil
	}
	err := t.events.Persons(ctx, t.projectID, distinctIDs, true, func(p *events.HistoryPerson) error {
		loaded[p.DistinctID] = pick(p.Properties, t.names)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, raw := range loaded {
		if t.size > maxTableBytes {
			break
		}
		t.known[id] = raw
		t.size += len(id) + len(raw) + 64
	}
	return loaded, nil
}

// pick returns an object with the members of a JSON object that have one of these
// names. It copies text that is not an object.
func pick(object []byte, names []string) []byte {
	c, ok := jsontext.OpenObject(jsontext.View(object))
	if !ok {
		return bytes.Clone(object)
	}
	out := []byte{'{'}
	for c.Next() {
		if !slices.Contains(names, c.Key) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendString(out, c.Key), ':')
		out = append(out, c.Value...)
	}
	if c.Bad {
		return bytes.Clone(object)
	}
	return append(out, '}')
}

// batchFacts are the facts of a batch of events, with the persons of the run.
type batchFacts struct {
	*actionmatch.Facts

	persons *personTable
	loaded  map[string][]byte // of this batch
}

// Person implements actionmatch.Lookup. Persons that were not read yet are not
// known.
func (f *batchFacts) Person(s *actionmatch.EventView) ([]byte, bool) {
	id := s.Event().DistinctID
	if raw, ok := f.loaded[id]; ok {
		return raw, true
	}
	return f.persons.get(id)
}

// loadMissing reads the persons of events that are not known.
func (f *batchFacts) loadMissing(ctx context.Context, batch []events.HistoryEvent) error {
	var missing []string
	f.loaded = make(map[string][]byte, len(batch))
	for i := range batch {
		id := batch[i].Event.DistinctID
		if _, listed := f.loaded[id]; listed {
			continue
		}
		raw, known := f.persons.get(id)
		if f.loaded[id] = raw; !known {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	loaded, err := f.persons.load(ctx, missing)
	for id, raw := range loaded {
		f.loaded[id] = raw
	}
	return err
}
