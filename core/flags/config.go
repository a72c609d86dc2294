package flags

// Config is what an operator can choose about flags: how they are decided and
// how they are managed.
type Config struct {
	DecideConfig `koanf:",squash"`
	ManageConfig `koanf:",squash"`
}

// DefaultConfig joins the defaults of both parts.
func DefaultConfig() Config {
	return Config{DecideConfig: DefaultDecideConfig(), ManageConfig: DefaultManageConfig()}
}

// Validate reports the first option that makes no sense.
func (c Config) Validate() error {
	if err := c.DecideConfig.Validate(); err != nil {
		return err
	}
	return c.ManageConfig.Validate()
}
