package plugintest

// CaseNames lists every case by its group, in order.
func CaseNames() map[string][]string {
	names := map[string][]string{}
	for _, g := range groups {
		for _, c := range g.cases {
			names[g.name] = append(names[g.name], c.name)
		}
	}
	return names
}
