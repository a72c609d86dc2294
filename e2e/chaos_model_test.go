//go:build e2e

package e2e_test

import (
	"encoding/json"
	"slices"
)

// persons returns the persons after the events, by their first distinct id.
func (s *story) persons(sure []told) map[string]chaosView {
	parent := map[string]string{}
	var root func(id string) string
	root = func(id string) string {
		if p, ok := parent[id]; ok && p != id {
			parent[id] = root(p)
			return parent[id]
		}
		parent[id] = id
		return id
	}
	properties := map[string]map[string]any{} // by distinct id
	for _, e := range sure {
		var fields struct {
			Properties struct {
				Set     map[string]any `json:"$set"`
				SetOnce map[string]any `json:"$set_once"`
			} `json:"properties"`
		}
		if err := json.Unmarshal([]byte(e.json), &fields); err != nil {
			panic(err)
		}
		root(e.distinctID)
		of := properties[e.distinctID]
		if of == nil {
			of = map[string]any{}
			properties[e.distinctID] = of
		}
		for name, value := range fields.Properties.Set {
			of[name] = value
		}
		for name, value := range fields.Properties.SetOnce {
			if _, has := of[name]; !has {
				of[name] = value
			}
		}
	}
	for _, pair := range s.merges {
		parent[root(pair[0])] = root(pair[1])
	}
	groups := map[string]chaosView{}
	for id := range parent {
		g := groups[root(id)]
		if g.Properties == nil {
			g.Properties = map[string]any{}
		}
		g.DistinctIDs = append(g.DistinctIDs, id)
		for name, value := range properties[id] {
			g.Properties[name] = value
		}
		groups[root(id)] = g
	}
	out := map[string]chaosView{}
	for _, g := range groups {
		slices.Sort(g.DistinctIDs)
		out[g.DistinctIDs[0]] = g
	}
	return out
}
