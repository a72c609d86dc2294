package erasure

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/persons"
)

// Record is the memory of one erased distinct id, for a file outside of the server.
// It holds no distinct id.
type Record struct {
	ProjectID int64     `json:"project_id"`
	Hash      string    `json:"id_hash"`   // in hexadecimal, with the key of the installation
	PersonAt  time.Time `json:"person_at"` // when the person was erased last
	EventsAt  time.Time `json:"events_at"` // when its events were; zero if they stayed
}

// List returns the memory of all erased distinct ids in the database d.
func List(ctx context.Context, d *db.DB) ([]Record, error) {
	return (&store{d}).records(ctx)
}

// Request requests the erasures of a list again that d does not know, since it was
// restored from an older backup. The server on d carries them out, or the next one to
// start. It returns the number of distinct ids that were found. The keyed hashes fit
// only a database of the same installation.
func Request(ctx context.Context, d *db.DB, list []Record) (found int, err error) {
	s := &store{d}
	key, err := s.key(ctx)
	if err != nil {
		return 0, err
	}
	wanted := map[int64]map[idHash]Record{}
	for i, r := range list {
		raw, err := hex.DecodeString(r.Hash)
		if err != nil || len(raw) != len(idHash{}) || r.ProjectID < 1 || r.PersonAt.IsZero() {
			return 0, fmt.Errorf("erasure %d of the list is invalid", i+1)
		}
		known, err := s.markOf(ctx, r.ProjectID, idHash(raw))
		if err != nil {
			return 0, err
		}
		if !known.personAt.Before(r.PersonAt) {
			continue
		}
		if wanted[r.ProjectID] == nil {
			wanted[r.ProjectID] = map[idHash]Record{}
		}
		wanted[r.ProjectID][idHash(raw)] = r
	}
	for project, hashes := range wanted {
		err := s.eachID(ctx, project, func(person int64, distinctID string) error {
			r, ok := hashes[hashID(key, project, distinctID)]
			if !ok {
				return nil
			}
			found++
			e := &Erasure{
				Removal: persons.Removal{ProjectID: project, PersonID: person, DistinctIDs: []string{distinctID}, Events: !r.EventsAt.IsZero()},
				ID:      uuid.Must(uuid.NewV7()).String(), RequestedAt: r.PersonAt,
			}
			return s.insert(ctx, e)
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}
