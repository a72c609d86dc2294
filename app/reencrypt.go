package app

import (
	"context"

	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/sealed"
)

// ReencryptPayloads encrypts the payloads of flags in the database named by cfg with
// the first key of cfg. The key must exist. See history.Sealer.Reencrypt; a server
// may use the database.
func ReencryptPayloads(ctx context.Context, cfg Config, after int64, progress func(flagID int64), failed func(projectID, flagID int64, err error)) (history.Counts, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return history.Counts{}, err
	}
	keys, err := sealed.LoadExisting(cfg.DataDir, cfg.Flags.EncryptionKey)
	if err != nil {
		return history.Counts{}, closing(d, err)
	}
	n, err := history.NewSealer(d, keys).Reencrypt(ctx, after, progress, failed)
	return n, closing(d, err)
}
