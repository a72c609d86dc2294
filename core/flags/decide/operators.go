package decide

import (
	"regexp"
	"slices"

	"github.com/guidonhq/guidon/core/flags/eval"
)

// pluginOperator matches a filter with an operator of a plugin, whose id has a slash.
var pluginOperator = regexp.MustCompile(`"operator"\s*:\s*"[^"]*/`)

// WithPluginOperators returns the projects with flags or cohorts that use operators
// of plugins, by id.
func (l *LastKnown) WithPluginOperators() []int64 {
	all, _ := l.All()
	var ids []int64
	for id, d := range all {
		if usesPlugins(&d) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func usesPlugins(d *eval.ProjectDefinitions) bool {
	for i := range d.Flags {
		if f := &d.Flags[i]; f.Active && pluginOperator.Match(f.Filters) {
			return true
		}
	}
	return slices.ContainsFunc(d.Cohorts, func(c eval.CohortDefinition) bool { return pluginOperator.Match(c.Filters) })
}
