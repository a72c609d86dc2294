package pluginconfig

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/lifecycle"
	"github.com/guidonhq/guidon/core/host/reloadplan"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/host/status"
)

// Instances merges the instances of the file with the stored ones and applies them to the host.
// Its methods are safe for concurrent use.
type Instances struct {
	host  *host.Host
	began time.Time

	applying sync.Mutex // held while the host changes

	mu     sync.Mutex // guards the rest
	file   settings.Config
	stored []settings.Instance
	// invalid are stored instances that no configuration can have, with the reason.
	invalid []status.Status
}

// NewInstances returns the instances of a host that was made with cfg, that of the file.
func NewInstances(h *host.Host, cfg settings.Config) *Instances {
	return &Instances{host: h, file: cfg, began: time.Now().UTC()}
}

// Apply replaces the section of the file. It fails, and changes nothing, as the host does.
func (i *Instances) Apply(ctx context.Context, file settings.Config) error {
	i.applying.Lock()
	defer i.applying.Unlock()
	_, stored := i.current()
	if err := i.host.Apply(ctx, Join(file, stored)); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.file = file
	return nil
}

// Plan returns what Apply would do, and changes nothing.
func (i *Instances) Plan(file settings.Config) ([]reloadplan.Change, error) {
	_, stored := i.current()
	return i.host.Plan(Join(file, stored))
}

// setStored replaces the stored instances.
func (i *Instances) setStored(ctx context.Context, stored []settings.Instance) error {
	i.applying.Lock()
	defer i.applying.Unlock()
	file, _ := i.current()
	if err := i.host.Apply(ctx, Join(file, stored)); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stored = stored
	return nil
}

// setInvalid replaces the stored instances that no configuration can have. One that was
// among them before keeps its time.
func (i *Instances) setInvalid(found []status.Status) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range found {
		for _, before := range i.invalid {
			if before.Name == found[n].Name && before.LastError == found[n].LastError {
				found[n].Since = before.Since
			}
		}
	}
	i.invalid = found
}

// LeftOut returns the stored instances that do not run: those that are not valid with this
// version, and those for which the file comes first. Of these, an instance that the file
// names has no state of its own.
func (i *Instances) LeftOut() []status.Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := slices.Clone(i.invalid)
	for _, s := range i.stored {
		one := status.Status{Name: s.Name, Kind: s.Kind, Use: s.Use, Since: i.began}
		switch {
		case slices.ContainsFunc(i.file.Instances, func(f settings.Instance) bool { return f.Name == s.Name }):
			one.LastError = "The config file has an instance of this name. The one that was configured with the API does not run."
		case i.file.ManagedBy == settings.ManagedByFile:
			one.State, one.Reason = lifecycle.StateStopped, "managed_by_file"
			one.LastError = "plugins.managed_by is file: instances that were configured with the API do not run."
		default:
			continue
		}
		out = append(out, one)
	}
	return out
}

func (i *Instances) current() (file settings.Config, stored []settings.Instance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.file, i.stored
}

// ofFile returns the instance of that name in the file, nil if there is none, and whether
// the file manages it.
func (i *Instances) ofFile(name string) (*settings.Instance, bool) {
	file, _ := i.current()
	for n := range file.Instances {
		if file.Instances[n].Name == name {
			return &file.Instances[n], true
		}
	}
	return nil, file.ManagedBy == settings.ManagedByFile
}

// Join returns the section of the file with the stored instances behind its own.
// Instances of the file have precedence.
func Join(file settings.Config, stored []settings.Instance) settings.Config {
	if file.ManagedBy == settings.ManagedByFile {
		return file
	}
	out := file
	out.Instances = slices.Clone(file.Instances)
	for _, s := range stored {
		if !slices.ContainsFunc(file.Instances, func(f settings.Instance) bool { return f.Name == s.Name }) {
			out.Instances = append(out.Instances, s)
		}
	}
	return out
}

// valid returns why a stored instance would make each configuration with it invalid.
func valid(one settings.Instance) error {
	alone := settings.Default()
	alone.Instances = []settings.Instance{one}
	return alone.Validate()
}
