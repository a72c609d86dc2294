package pluginconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/host/schema"
	"github.com/guidonhq/guidon/core/host/secret"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/text"
)

// Limits of stored configurations.
const (
	maxConfig    = 64 << 10
	maxInstances = 100
)

// reserved are paths below /api/plugins, which are no names of instances.
var reserved = []string{"available", "reload"}

var (
	errChanged  = fault.New(fault.Conflict, "version_conflict", "The configuration was changed in the meantime. Read it again.")
	errNotFound = fault.New(fault.NotFound, "not_found", "No plugin instance of that name is configured with the API.")
)

// Change is a requested configuration.
type Change struct {
	Name, Plugin string
	Kind         string // "": the only one of the plugin
	Config       map[string]any
	// Version is the one that was read: 0 for a new instance, -1 for any.
	Version int64
}

// state is a configuration in the activity log.
type state struct {
	Plugin         string         `json:"plugin"`
	Kind           string         `json:"kind"`
	Config         map[string]any `json:"config"`
	SecretsChanged []string       `json:"secrets_changed,omitempty"`
}

// refuse is the error of a place in the config.
func refuse(pointer, code, detail string) error { return fault.Field(attrOf(pointer), code, detail) }

// Set stores a configuration and applies it on this node; others follow. It returns the
// configuration as it may be shown.
func (s *Service) Set(ctx context.Context, who *auth.Principal, c Change) (Config, error) {
	source, err := s.checkPlugin(&c)
	if err != nil {
		return Config{}, err
	}
	if err := s.refuseFile(c); err != nil {
		return Config{}, err
	}
	tree, err := schemaOf(source)
	if err != nil {
		return Config{}, fmt.Errorf("schema of the plugin %s: %w", c.Plugin, err)
	}
	err = s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		return s.set(ctx, who, c, source, tree)
	})
	if err != nil {
		return Config{}, err
	}
	s.changed(ctx)
	return s.Get(ctx, c.Name)
}

// changed applies the stored configurations to this node. A failure is logged and repeated by
// the next refresh; other nodes do not depend on it.
func (s *Service) changed(ctx context.Context) {
	if err := s.refresh(context.WithoutCancel(ctx)); err != nil {
		s.log.Warn("plugin config apply failed; retrying", zap.Error(err))
	}
}

// set is Set within the transaction.
func (s *Service) set(ctx context.Context, who *auth.Principal, c Change, source []byte, tree map[string]any) (*activity.Event, error) {
	old, err := s.store.find(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	if old == nil && c.Version > 0 || old != nil && c.Version >= 0 && c.Version != old.Version {
		return nil, errChanged
	}
	var before map[string]string
	if old != nil && old.Plugin == c.Plugin && old.Kind == c.Kind {
		if before, err = s.open(*old); err != nil {
			s.log.Warn("plugin secrets decryption failed", zap.String("instance", c.Name), zap.Error(err))
		}
	}
	shown, secrets, err := split(c.Config, tree, before)
	if err != nil {
		return nil, err
	}
	if err := checkConfig(source, decrypted(shown, secrets)); err != nil {
		return nil, err
	}
	if _, err := s.files.resolve(shown, tree, secrets); err != nil {
		return nil, err
	}
	r, err := s.recordOf(c, shown, secrets, who)
	if err != nil {
		return nil, err
	}
	after := &state{Plugin: c.Plugin, Kind: c.Kind, Config: shown, SecretsChanged: differing(before, secrets)}
	e := &activity.Event{Scope: activity.Plugin, ItemID: c.Name, Activity: "enabled", Name: c.Name, After: after}
	if old == nil {
		n, err := s.store.count(ctx)
		if err != nil {
			return nil, err
		}
		if n >= maxInstances {
			return nil, fault.Newf(fault.Conflict, "too_many_plugins", "The API configures at most %d plugin instances.", maxInstances)
		}
		r.Version, r.CreatedAt = 1, r.UpdatedAt
		err = s.store.add(ctx, r)
		s.store.wake(ctx)
		return e, err
	}
	e.Activity, e.Before = "configured", stateOf(*old)
	r.Version, r.CreatedAt = old.Version+1, old.CreatedAt
	err = s.store.replace(ctx, r, old.Version)
	s.store.wake(ctx)
	return e, err
}

// Remove removes a configuration, and with it the instance.
func (s *Service) Remove(ctx context.Context, who *auth.Principal, name string, version int64) error {
	if _, file := s.instances.ofFile(name); file {
		return fault.New(fault.Conflict, "managed_by_file", fileSentence(name)+" Remove it from the file.")
	}
	err := s.audit.Change(ctx, who, func(ctx context.Context) (*activity.Event, error) {
		old, err := s.store.find(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case old == nil:
			return nil, errNotFound
		case version >= 0 && version != old.Version:
			return nil, errChanged
		}
		if err := s.store.remove(ctx, name, old.Version); err != nil {
			return nil, err
		}
		s.store.wake(ctx)
		return &activity.Event{Scope: activity.Plugin, ItemID: name, Activity: "disabled", Name: name, Before: stateOf(*old)}, nil
	})
	if err == nil {
		s.changed(ctx)
	}
	return err
}

// checkPlugin checks what a configuration names and returns the schema of the plugin. It
// sets the kind of a plugin that has one.
func (s *Service) checkPlugin(c *Change) ([]byte, error) {
	if !slices.Contains(s.plugins.Names, c.Plugin) {
		hint := ""
		if near := text.Nearest(c.Plugin, slices.Values(s.plugins.Names), 2); near != "" {
			hint = fmt.Sprintf(" Did you mean %s?", near)
		}
		return nil, fault.Field("plugin", "unknown_plugin", "Must be a bundled plugin: "+strings.Join(s.plugins.Names, ", ")+"."+hint+" Custom executables are configured in the config file.")
	}
	kinds := s.kinds(c.Plugin)
	if c.Kind == "" && len(kinds) == 1 {
		c.Kind = kinds[0]
	}
	if !slices.Contains(kinds, c.Kind) {
		return nil, fault.Field("kind", "invalid_input", fmt.Sprintf("%s is a %s.", c.Plugin, strings.Join(kinds, " or a ")))
	}
	if slices.Contains(reserved, c.Name) {
		return nil, fault.Fieldf("name", "invalid_input", "%s is no name of an instance. Choose another one.", c.Name)
	}
	check := settings.Default()
	check.Instances = []settings.Instance{{Name: c.Name, Use: c.Plugin, Kind: c.Kind}}
	if err := check.Validate(); err != nil {
		return nil, fault.Field("name", "invalid_input", "The name must be 1 to 63 lower-case letters, digits, - and _.")
	}
	return s.plugins.Schema(c.Plugin, c.Kind), nil
}

// kinds returns the kinds that a bundled plugin can be used as.
func (s *Service) kinds(plugin string) []string {
	var out []string
	for _, kind := range []string{settings.KindSink, settings.KindNotifier, settings.KindMatcher} {
		if len(s.plugins.Schema(plugin, kind)) > 0 {
			out = append(out, kind)
		}
	}
	return out
}

// refuseFile refuses what the file manages, with what to write into it.
func (s *Service) refuseFile(c Change) error {
	one, file := s.instances.ofFile(c.Name)
	if !file {
		return nil
	}
	sentence := fileSentence(c.Name)
	if one == nil {
		sentence = "The config file of the server manages its plugins (plugins.managed_by)."
	}
	tree, _ := schemaOf(s.plugins.Schema(c.Plugin, c.Kind)) // nil: nothing is known to be a secret
	c.Config = s.forFile(c.Config, tree)
	return fault.New(fault.Conflict, "managed_by_file", sentence+" Paste this into it:\n\n"+fileText(c, tree))
}

func fileSentence(name string) string {
	return "The config file of the server manages " + name + "."
}

// checkConfig checks a config with its secrets by the schema. Errors name no values.
func checkConfig(source []byte, config map[string]any) error {
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode the config: %w", err)
	}
	if len(raw) > maxConfig {
		return fault.Fieldf("config", "too_large", "The config has %d bytes; %d are allowed.", len(raw), maxConfig)
	}
	compiled, err := schema.Compile(source)
	if err != nil {
		return fmt.Errorf("schema of a bundled plugin: %w", err)
	}
	found := compiled.Check(&secret.Config{JSON: raw})
	if len(found) == 0 {
		return nil
	}
	first := found[0]
	detail := strings.ToUpper(first.Summary[:1]) + first.Summary[1:] + "."
	if first.Detail != "" {
		detail = strings.TrimSuffix(detail, ".") + ": " + first.Detail + "."
	}
	if len(found) > 1 {
		detail += fmt.Sprintf(" There are %d more problems.", len(found)-1)
	}
	return refuse(first.Pointer, "invalid_config", strings.ReplaceAll(detail, "?.", "?"))
}

func (s *Service) recordOf(c Change, shown map[string]any, secrets map[string]string, who *auth.Principal) (*record, error) {
	raw, err := json.Marshal(shown)
	if err != nil {
		return nil, fmt.Errorf("encode the config: %w", err)
	}
	r := &record{Name: c.Name, Plugin: c.Plugin, Kind: c.Kind, Config: string(raw), UpdatedAt: time.Now().UnixMicro()}
	if who != nil {
		r.UpdatedBy = who.User.Email
	}
	if len(secrets) == 0 {
		return r, nil
	}
	keys, err := s.keys(true)
	if err == nil {
		r.Secrets, err = sealSecrets(keys, c.Name, secrets)
	}
	return r, err
}

// stateOf returns a record for the activity log.
func stateOf(r record) *state {
	config, _ := decode([]byte(r.Config)) // nil if it cannot be read
	return &state{Plugin: r.Plugin, Kind: r.Kind, Config: config}
}

// differing names the secrets with different values.
func differing(before, after map[string]string) []string {
	var out []string
	for at, value := range after {
		if was, ok := before[at]; !ok || was != value {
			out = append(out, attrOf(at))
		}
	}
	for at := range maps.Keys(before) {
		if _, ok := after[at]; !ok {
			out = append(out, attrOf(at))
		}
	}
	slices.Sort(out)
	return out
}
