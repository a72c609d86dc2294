package auth

import (
	"context"
	"fmt"
	"time"
)

// usageInterval is the time between saves of the last use of personal keys.
const usageInterval = time.Minute

func (a *authenticator) saveUsage(ctx context.Context) error {
	last := a.usage.Drain()
	if last == nil || a.store.db.ReadOnly {
		return nil
	}
	if err := a.store.saveKeyUsage(ctx, last); err != nil {
		a.usage.Restore(last)
		return fmt.Errorf("save the last use of %d personal keys: %w", len(last), err)
	}
	return nil
}
