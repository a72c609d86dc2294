package app

import (
	"context"
	"errors"

	"github.com/guidonhq/guidon/core/flags/history"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/pluginconfig"
)

// ReencryptPayloads encrypts the payloads of flags, and the secrets of plugins, in the
// database named by cfg with the first key of cfg, which must exist. A server may use it.
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
	return n, closing(d, errors.Join(err, pluginconfig.Reencrypt(ctx, d, keys)))
}
