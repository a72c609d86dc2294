package backup

import (
	"context"
	"time"

	"github.com/guidonhq/guidon/core/backup/place"
	"github.com/guidonhq/guidon/core/backup/schedule"
)

// maker makes the backups of a server.
type maker struct {
	src     Source
	to      place.Place
	options Options
}

var _ schedule.Maker = (*maker)(nil)

// NewMaker returns the maker of the backups that c configures.
func NewMaker(c Config, src Source) (schedule.Maker, error) {
	m := &maker{src: src, options: Options{BytesPerSecond: c.RateBytes, Timeout: c.Timeout}}
	if !c.scheduled() {
		return m, nil
	}
	target := c.To
	if target[len(target)-1] != '/' {
		target += "/"
	}
	var err error
	if m.to, _, err = place.Parse(target, c.S3); err != nil {
		return nil, err
	}
	m.options.Recipients, err = ParseRecipients(c.Recipients)
	return m, err
}

// Make implements schedule.Maker.
func (m *maker) Make(ctx context.Context) (schedule.Backup, error) {
	made, err := Create(ctx, m.src, m.to, "", m.options)
	if err != nil {
		return schedule.Backup{}, err
	}
	return schedule.Backup{Name: made.Name, At: made.Manifest.CreatedAt.Truncate(time.Second), Bytes: made.Bytes}, nil
}

// placeTimeout bounds the calls of a place that write nothing.
const placeTimeout = 5 * time.Minute

// List implements schedule.Maker.
func (m *maker) List(ctx context.Context) (out []schedule.Backup, err error) {
	entries, err := place.CallDetached(ctx, m.to, placeTimeout, m.to.List)
	for _, e := range entries {
		if at, ok := place.IsGenerated(e.Name); ok {
			out = append(out, schedule.Backup{Name: e.Name, At: at, Bytes: e.Bytes})
		}
	}
	return out, err
}

// Remove implements schedule.Maker.
func (m *maker) Remove(ctx context.Context, name string) error {
	return m.call(ctx, func(ctx context.Context) error { return m.to.Remove(ctx, name) })
}

// Clean implements schedule.Maker.
func (m *maker) Clean(ctx context.Context) error { return m.call(ctx, m.to.Clean) }

func (m *maker) call(ctx context.Context, fn func(context.Context) error) error {
	_, err := place.CallDetached(ctx, m.to, placeTimeout, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}
