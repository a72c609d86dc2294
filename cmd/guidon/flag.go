package main

import (
	"context"
	"fmt"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/manage"
)

type flagCmd struct {
	manage.FlagCommands

	Reencrypt flagReencryptCmd `cmd:"" help:"Encrypt the payloads of flags, their versions and scheduled changes with the first key of flags.encryption_key."`
}

type flagReencryptCmd struct {
	After int64 `help:"Begin behind the flag with this id." placeholder:"ID"`
}

// Run encrypts payloads that are not encrypted with the first key. It fails after all
// flags if a payload could not be decrypted.
func (c flagReencryptCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	last := c.After
	n, err := app.ReencryptPayloads(context.Background(), cfg, c.After,
		func(flagID int64) { last = flagID },
		func(projectID, flagID int64, err error) {
			fmt.Fprintf(e.out, "flag %d of project %d: %v\n", flagID, projectID, err)
		})
	if err != nil {
		return fmt.Errorf("%w (continue with --after %d)", err, last)
	}
	if n.Failed > 0 {
		return fmt.Errorf("flags with payloads that cannot be decrypted: %d; keep their old keys in flags.encryption_key", n.Failed)
	}
	_, err = fmt.Fprintf(e.out, "flags: %d; flags, versions and scheduled changes that were encrypted: %d\n", n.Flags, n.Encrypted)
	return err
}
