// Package accounts has the commands of the command line on accounts: projects, users, keys
// and organizations. All work on the database of the config. Keys, organizations and the
// list of users also work through the management API of a running server.
package accounts

import (
	"context"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
)

// withAdmin opens the accounts, calls do and closes them.
func withAdmin(e *command.Env, do func(ctx context.Context, a *app.Admin) error) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	ctx := context.Background()
	a, err := app.OpenAdmin(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(ctx, a)
	if closed := a.Close(); err == nil {
		err = closed
	}
	return err
}
