package app

import (
	"context"

	"github.com/guidonhq/guidon/core/ingestion/erasure"
)

// ErasureRecord is the memory of one erased distinct id.
type ErasureRecord = erasure.Record

// Erasures returns the memory of all erased distinct ids of the database named by
// cfg. It fails with the errors of db.OpenExisting.
func Erasures(ctx context.Context, cfg Config) ([]ErasureRecord, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return nil, err
	}
	list, err := erasure.List(ctx, d)
	return list, closing(d, err)
}

// RequestErasures requests the erasures of a list that the database named by cfg does
// not know, and returns the number of distinct ids that were found.
func RequestErasures(ctx context.Context, cfg Config, list []ErasureRecord) (int, error) {
	d, err := openDB(ctx, cfg)
	if err != nil {
		return 0, err
	}
	found, err := erasure.Request(ctx, d, list)
	return found, closing(d, err)
}
