package plugintest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// needed are the cases that all others build on.
var needed = []string{"shakes hands", "says what it is"}

// selected reports whether a case is to run.
func (t *Target) selected(group, name string) bool {
	if len(t.Only) == 0 || slices.Contains(needed, name) {
		return true
	}
	full := strings.ToLower(group + "/" + name)
	return slices.ContainsFunc(t.Only, func(part string) bool { return strings.Contains(full, strings.ToLower(part)) })
}

// selectsSome returns an error for a text of Only that no case contains.
func (t *Target) selectsSome() error {
	for _, part := range t.Only {
		found := false
		for _, g := range groups {
			for _, c := range g.cases {
				found = found || strings.Contains(strings.ToLower(g.name+"/"+c.name), strings.ToLower(part))
			}
		}
		if !found {
			return fmt.Errorf("no case is named %q", part)
		}
	}
	return nil
}

var groups = []group{handshake, common, sinkCases, notifierCases, matcherCases, remoteCases, farewell}

// maxLate is how many cases of a group may run into a deadline before the rest of the
// group is left out: a plugin that hangs is not waited for over and over.
const maxLate = 2

// run hands the cases of a group to run.
func (k *kit) run(ctx context.Context, g group, run func(group, name string, do func() (Outcome, string))) {
	k.late = 0
	for _, c := range g.cases {
		if !k.target.selected(g.name, c.name) {
			continue
		}
		run(g.name, c.name, func() (Outcome, string) {
			if why, ok := k.target.Skip[c.name]; ok {
				return Skipped, why
			}
			if why := notApplicable(&k.target, c.name); why != "" {
				return Skipped, why
			}
			switch {
			case k.info == nil && g.name != handshake.name:
				return Skipped, "it did not start"
			case k.late >= maxLate:
				return Skipped, fmt.Sprintf("%d cases of this group ran into a deadline", k.late)
			}
			return k.judge(ctx, c.try)
		})
	}
}

// maxReason is the longest reason in a report, in bytes.
const maxReason = 2000

// shorten cuts what a plugin said, in the middle.
func shorten(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason-500], "") + " […] " + strings.ToValidUTF8(s[len(s)-500:], "")
}
