package parquet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/guidonhq/guidon/sdk"
)

// own is the folder of the sink's own files, which hold no events.
const own = "_guidon/"

// maxNotes is how many earlier flushes are noted beside the one at hand. One
// is enough unless the answers to several are lost, one after the other.
const maxNotes = 16

// flush is what was written at once, or was about to be. As long as the server
// may not know that it is safe, it may send the events of it again.
type flush struct {
	Last  int64    `json:"last_seq"`
	Files []string `json:"files"`

	ids map[identity]struct{}
}

// flushes are the last ones of an instance, oldest first.
type flushes []flush

func newFlush(rows []row, files map[string][]row) flush {
	f := flush{Last: rows[len(rows)-1].Seq, Files: slices.Sorted(maps.Keys(files)), ids: make(map[identity]struct{}, len(rows))}
	for i := range rows {
		f.ids[rows[i].identity()] = struct{}{}
	}
	return f
}

func (f flushes) has(id identity) bool {
	return slices.ContainsFunc(f, func(one flush) bool {
		_, there := one.ids[id]
		return there
	})
}

// remember sees to it that safe are the flushes that the server may not know
// of, when a batch arrives. What is sent first after a flush, or after Open,
// tells which it knows of: those before it.
func (s *Sink) remember(ctx context.Context, first uint64) error {
	if !s.known {
		safe, err := s.readNotes(ctx)
		if err != nil {
			return err
		}
		s.safe, s.known = safe, true
	}
	if !s.settled {
		s.safe = slices.DeleteFunc(s.safe, func(f flush) bool { return f.Last < int64(first) })
		s.settled = true
	}
	return nil
}

func (s *Sink) notesName() string { return own + s.instance + ".json" }

// readNotes reads which files were written last, and those of them that are
// there and that the server does not know of.
func (s *Sink) readNotes(ctx context.Context) (flushes, error) {
	data, err := s.place.get(ctx, s.notesName())
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var all flushes
	if err := json.Unmarshal(data, &all); err != nil {
		sdk.Log(ctx).Warn("the notes of earlier flushes cannot be read: what was being written when the last process ended may be there twice",
			"file", s.notesName(), "error", err.Error())
		return nil, nil
	}
	found := flush{ids: map[identity]struct{}{}}
	for _, f := range all {
		if f.Last <= int64(s.resumed) {
			continue
		}
		found.Last = max(found.Last, f.Last)
		for _, name := range f.Files {
			if err := s.find(ctx, name, &found); err != nil {
				return nil, err
			}
		}
	}
	if len(found.Files) == 0 {
		return nil, nil
	}
	return flushes{found}, nil
}

// find adds a file to what was found, if it is there.
func (s *Sink) find(ctx context.Context, name string, found *flush) error {
	if slices.Contains(found.Files, name) {
		return nil
	}
	data, err := s.place.get(ctx, name)
	if err != nil || data == nil {
		return err
	}
	ids, err := decode(data)
	if err != nil { // not our doing: a file is there whole or not at all
		sdk.Log(ctx).Warn("a file of an earlier flush cannot be read: its events are written again", "file", name, "error", err.Error())
		return nil
	}
	for _, id := range ids {
		found.ids[id] = struct{}{}
	}
	found.Files = append(found.Files, name)
	return nil
}

func (s *Sink) writeNotes(ctx context.Context, f flushes) error {
	data, err := json.Marshal(f)
	if err != nil {
		return sdk.Transient(err)
	}
	return s.place.put(ctx, s.notesName(), data)
}
