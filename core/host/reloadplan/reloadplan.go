// Package reloadplan computes what a reload of the configuration does to each plugin
// instance. It changes nothing.
//
// Compare looks at the settings before and after and at the current state of the
// instances. Checks that need files or schemas are the caller's: it passes them as
// functions. A plugin may still refuse a config that is fine by its schema, because
// only the running plugin can try it.
package reloadplan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/guidonhq/guidon/core/host/settings"
)

// Action is what a reload does to an instance.
type Action string

// The actions.
const (
	// Start starts a new instance.
	Start Action = "start"
	// Stop drains an instance that is not in the configuration any more and stops it.
	Stop Action = "stop"
	// Restart starts a process with the new settings beside the one that serves, and
	// switches over. No event is lost.
	Restart Action = "restart"
	// Reconfigure applies settings that the process does not see.
	Reconfigure Action = "reconfigure"
	// Unchanged leaves the instance alone.
	Unchanged Action = "unchanged"
	// Refused means that the settings cannot work: a new instance would not run, and
	// one that runs goes on with its former settings.
	Refused Action = "refused"
)

// Change is what a reload does to one instance.
type Change struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Use    string `json:"use"`
	Action Action `json:"action"`
	// Settings names the settings that differ, without their values.
	Settings []string `json:"settings,omitempty"`
	// Reason is the cause of an action other than changed settings, or of a refusal.
	Reason string `json:"reason,omitempty"`
}

// Current is a running instance.
type Current struct {
	Settings settings.Instance
	// Waits is why a reload makes an instance try again that waits for the operator,
	// such as "it is misconfigured"; "" otherwise.
	Waits string
	// SecretsChanged reports whether a secret behind an unchanged reference, or the
	// file of the plugin, has changed. It is called only if the settings are equal.
	SecretsChanged func() bool
}

// Compare returns the changes in the order of after, and then the removed instances.
// check returns why settings cannot work, or nil.
func Compare(before []Current, after []settings.Instance, check func(settings.Instance) error) []Change {
	old := map[string]Current{}
	for _, c := range before {
		old[c.Settings.Name] = c
	}
	out := make([]Change, 0, len(after))
	for _, c := range after {
		current, exists := old[c.Name]
		change := compareOne(current, exists, c)
		if change.Action == Start || change.Action == Restart {
			refuse(&change, exists && current.Settings.Kind == c.Kind, check(c))
		}
		out = append(out, change)
		delete(old, c.Name)
	}
	for _, c := range before {
		if _, removed := old[c.Settings.Name]; removed {
			out = append(out, Change{Name: c.Settings.Name, Kind: c.Settings.Kind, Use: c.Settings.Use, Action: Stop, Reason: "it is not in the config"})
		}
	}
	return out
}

func compareOne(current Current, exists bool, c settings.Instance) Change {
	change := Change{Name: c.Name, Kind: c.Kind, Use: c.Use, Action: Unchanged}
	if !exists {
		change.Action = Start
		return change
	}
	change.Settings = differences(current.Settings, c)
	switch {
	case current.Settings.Kind != c.Kind:
		change.Action, change.Reason = Restart, "it becomes another instance: the old one stops, the new one starts"
	case !reflect.DeepEqual(current.Settings.ProcessPart(), c.ProcessPart()):
		change.Action = Restart
	case current.SecretsChanged != nil && current.SecretsChanged():
		change.Action, change.Reason = Restart, "a referenced secret or the file of the plugin has changed"
	case current.Waits != "":
		change.Action, change.Reason = Restart, current.Waits+"; it tries again"
	case len(change.Settings) > 0:
		change.Action = Reconfigure
	}
	return change
}

// refuse makes the change a refusal if err is not nil. kept is true for an instance
// that goes on with its former settings.
func refuse(change *Change, kept bool, err error) {
	if err == nil {
		return
	}
	change.Action, change.Reason = Refused, err.Error()
	if kept {
		change.Reason += "; the former settings stay in use if it runs"
	}
}

// differences names the settings that differ, down to the options of the plugin.
func differences(a, b settings.Instance) []string {
	var out []string
	av, bv := reflect.ValueOf(a), reflect.ValueOf(b)
	for f, v := range av.Fields() {
		w := bv.FieldByIndex(f.Index)
		name, _, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case reflect.DeepEqual(v.Interface(), w.Interface()):
		case name == "-":
			out = append(out, "secrets")
		case name == "config":
			out = append(out, options(a.Config, b.Config)...)
		default:
			out = append(out, cmp.Or(name, f.Name))
		}
	}
	slices.Sort(out)
	return out
}

// options names the options of the plugin that differ.
func options(a, b map[string]any) []string {
	var out []string
	for name, value := range a {
		if other, ok := b[name]; !ok || !reflect.DeepEqual(value, other) {
			out = append(out, fmt.Sprint("config.", name))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, fmt.Sprint("config.", name))
		}
	}
	return out
}
