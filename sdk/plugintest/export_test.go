package plugintest

import "time"

// CaseNames lists every case by its group, in order.
func CaseNames() map[string][]string {
	names := map[string][]string{}
	for _, g := range []group{handshake, common, sinkCases, notifierCases, matcherCases, farewell} {
		for _, c := range g.cases {
			names[g.name] = append(names[g.name], c.name)
		}
	}
	return names
}

// EndedLongAgo returns what ends reports for a process that has ended, asked after
// the time for it has passed.
func EndedLongAgo(late time.Duration) bool {
	p := &process{exited: make(chan struct{})}
	close(p.exited)
	return p.ends(-late)
}
