package reloadplan

import (
	"reflect"
	"slices"

	"github.com/guidonhq/guidon/core/host/settings"
)

// Names returns the names of the instances that only after has, that only before has, in
// order, and that both have with different settings.
func Names(before, after []settings.Instance) (added, removed, changed []string) {
	old := map[string]settings.Instance{}
	for _, c := range before {
		old[c.Name] = c
	}
	for _, c := range after {
		if was, ok := old[c.Name]; !ok {
			added = append(added, c.Name)
		} else if !reflect.DeepEqual(was, c) {
			changed = append(changed, c.Name)
		}
		delete(old, c.Name)
	}
	for name := range old {
		removed = append(removed, name)
	}
	slices.Sort(removed)
	return added, removed, changed
}
