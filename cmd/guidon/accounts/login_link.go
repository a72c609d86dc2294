package accounts

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/output"
	"github.com/guidonhq/guidon/cmd/guidon/remote"
)

type userLoginLinkCmd struct {
	Email string `arg:"" help:"E-mail address of the user."`
	Reset bool   `help:"The link lets the user choose a new password, which ends the sessions of the user."`
}

// Run makes a link on the database of the config and prints it.
func (c userLoginLinkCmd) Run(e *command.Env) error {
	cfg, err := e.Config()
	if err != nil {
		return err
	}
	base, address := strings.TrimRight(cfg.HTTP.ConsoleSite(), "/"), cmp.Or(cfg.HTTP.ConsoleAddress, cfg.HTTP.Address)
	if base == "" {
		if base, _, err = remote.LocalURL(address, cfg.HTTP.TLS.Enabled()); err != nil {
			return err
		}
	}
	return withAdmin(e, func(ctx context.Context, a *app.Admin) error {
		token, expires, err := a.NewLink(ctx, c.Email, cfg.SignIn.LinkLifetime, c.Reset)
		if err != nil {
			return err
		}
		path, does := "/sign-in#link=", "signs in"
		if c.Reset {
			path, does = "/reset-password#token=", "chooses a password for"
		}
		_, err = fmt.Fprintf(e.Out, "this link %s %s, once, until %s:\n\n  %s%s%s\n\n", does, output.Clean(c.Email), expires.Local().Format(time.DateTime+" MST"), base, path, token)
		return err
	})
}
