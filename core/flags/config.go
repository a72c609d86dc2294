package flags

import "github.com/guidonhq/guidon/core/flags/decide"

// Config is what an operator can choose about flags: how they are decided and
// how they are managed.
type Config struct {
	decide.Config `koanf:",squash"`
	ManageConfig  `koanf:",squash"`
}

// DefaultConfig joins the defaults of both parts.
func DefaultConfig() Config {
	return Config{Config: decide.DefaultConfig(), ManageConfig: DefaultManageConfig()}
}

// Validate reports the first option that makes no sense.
func (c Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	return c.ManageConfig.Validate()
}
