package pluginconfig

import "github.com/guidonhq/guidon/core/host/settings"

// SetFile replaces the section of the file and applies nothing.
func (i *Instances) SetFile(file settings.Config) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.file = file
}

// Stored returns the instances of the table as the host has them.
func (i *Instances) Stored() []settings.Instance {
	_, stored := i.current()
	return stored
}
