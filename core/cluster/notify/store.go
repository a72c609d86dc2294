package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/core/db"
)

// aliveInterval is the time without a notification after which the listening
// connection is tried, because a connection can be lost without a sign.
const aliveInterval = 10 * time.Second

// listenOnce listens on a connection of its own until it fails or ctx ends. It calls
// begun when it listens.
func listenOnce(ctx context.Context, d *db.DB, begun func(), receive func(text string)) error {
	if !d.WaitReady(ctx) {
		return ctx.Err()
	}
	c, err := pgx.ConnectConfig(ctx, d.Pool().Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	begun()
	for {
		wait, cancel := context.WithTimeout(ctx, aliveInterval)
		n, err := c.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			receive(n.Payload)
		case ctx.Err() != nil:
			return ctx.Err()
		case wait.Err() == nil:
			return err
		default:
			ping, cancel := context.WithTimeout(ctx, sendTimeout)
			err := c.Ping(ping)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// publish sends each text as a notification.
func publish(ctx context.Context, d *db.DB, texts []string) error {
	_, err := d.Pool().Exec(ctx, "SELECT pg_notify($1, t) FROM unnest($2::text[]) AS t", channel, texts)
	return err
}
