// Package history keeps the versions of flags, and encrypts payloads in everything
// that is stored beside a flag.
//
// A flag becomes one with encrypted payloads at some point of its life. Until then
// its payloads are in clear in its versions, in its scheduled changes and in the
// entries of the activity log. Sealer.Seal encrypts them in the first two and redacts
// them in the third, in pages, so that neither memory nor the time of a transaction
// depends on the length of a history: most of it runs before the transaction of the
// change, and only what was added since then inside of it (Mark).
//
// Sealer.Reencrypt encrypts all payloads of the database with the first key of a
// keyring. It goes through the flags in the order of their ids and changes what is
// not encrypted with that key, so it can be stopped and started again at any time,
// also beside a running server.
//
// The package does not know the fields of a flag: a version is a JSON object with
// the member filters.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// Version is a flag as it was after a change.
type Version struct {
	State json.RawMessage // the fields of the flag
	By    int64           // a user id
	At    time.Time
}

// Sealer encrypts stored payloads. It is safe for concurrent use.
type Sealer struct {
	db   *db.DB
	keys *sealed.Keyring
}

// NewSealer returns a sealer of the payloads in d.
func NewSealer(d *db.DB, keys *sealed.Keyring) *Sealer { return &Sealer{db: d, keys: keys} }

// Mark is how far Seal has come in the history of a flag. The zero Mark is the begin.
type Mark struct {
	version int64
	change  int64
	entryAt int64 // Unix microseconds
}

// overlap is the difference between the clocks of servers that Seal allows for.
const overlap = int64(time.Minute / time.Microsecond)

// Seal encrypts the payloads in the versions and scheduled changes of a flag after
// from, and redacts them in its activity. It returns how far it has come. It joins
// the transaction in ctx; without one each page is a transaction. A payload that
// is encrypted stays as it is. A nil sealer does nothing.
func (s *Sealer) Seal(ctx context.Context, projectID, flagID int64, from Mark) (Mark, error) {
	if s == nil || s.keys == nil {
		return from, nil
	}
	w := &work{Sealer: s, project: projectID, flag: flagID, mark: from, rewrite: func(payload string) (string, error) {
		if sealed.IsSealed(payload) {
			return payload, nil
		}
		return s.keys.Seal(projectID, payload), nil
	}}
	err := w.run(ctx, &w.mark)
	return w.mark, err
}

// Counts are the results of Reencrypt.
type Counts struct {
	Flags     int // flags that were read
	Encrypted int // flags, versions and scheduled changes with payloads that were encrypted again
	Failed    int // flags with a payload whose key is unknown or that was changed
}

// Reencrypt encrypts all payloads that are not encrypted with the first key, in
// flags, their versions and their scheduled changes: those of another key in every
// flag, those in clear in flags with encrypted payloads. It redacts the latter in
// the activity log. A flag with a payload that cannot be decrypted is reported to
// failed and skipped. after is the id of a flag to begin behind. progress is called
// after each flag.
func (s *Sealer) Reencrypt(ctx context.Context, after int64, progress func(flagID int64), failed func(projectID, flagID int64, err error)) (Counts, error) {
	var n Counts
	for {
		list, err := s.flagsAfter(ctx, after)
		if err != nil || len(list) == 0 {
			return n, err
		}
		for _, f := range list {
			n.Flags++
			changed, err := s.reencryptFlag(ctx, f)
			n.Encrypted += changed
			switch {
			case errors.Is(err, sealed.ErrPayload):
				n.Failed++
				failed(f.ProjectID, f.ID, err)
			case err != nil:
				return n, err
			}
			after = f.ID
			progress(f.ID)
		}
	}
}

// reencryptFlag encrypts the payloads of one flag again. It returns the number of
// changed rows, and the first error of a payload after all others are done.
func (s *Sealer) reencryptFlag(ctx context.Context, f flagRow) (int, error) {
	w := &work{Sealer: s, project: f.ProjectID, flag: f.ID, sealedOnly: !f.EncryptedPayloads}
	w.rewrite = func(payload string) (string, error) {
		if !sealed.IsSealed(payload) && w.sealedOnly {
			return payload, nil
		}
		out, err := s.keys.Reseal(f.ProjectID, payload)
		if err != nil {
			w.broken = err
			return payload, nil //nolint:nilerr // reported after all others are done
		}
		return out, nil
	}
	if err := w.reencryptFilters(ctx); err != nil {
		return w.changed, err
	}
	var mark Mark
	if err := w.run(ctx, &mark); err != nil {
		return w.changed, err
	}
	return w.changed, w.broken
}
