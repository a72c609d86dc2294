package flagstest

import (
	"fmt"
	"math/rand/v2"
)

// GenerateShapes is Generate with flags of every shape that projects hold: also the
// forms of older servers (filters without groups, super groups, older holdouts),
// enrolment, dates in all forms, bucketing by device, runtimes, contexts and
// payloads; and with people whose properties have odd values. A client that
// evaluates locally leaves some of these flags to the server.
func GenerateShapes(seed uint64, flagCount, people int) *Corpus {
	c := Generate(seed, flagCount, people)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2)), corpus: c}
	for i := range c.Flags {
		g.reshape(&c.Flags[i])
	}
	for i := range c.People {
		g.oddPerson(&c.People[i], c.Flags)
	}
	return c
}

// reshape gives a flag another shape in most cases.
func (g *generator) reshape(f *Flag) {
	_, byGroup := f.Filters["aggregation_group_type_index"]
	switch g.IntN(12) {
	case 0:
		g.legacy(f)
	case 1:
		f.Filters["super_groups"] = []any{map[string]any{
			"properties": []any{map[string]any{
				"key": "$feature_enrollment/" + f.Key, "type": "person", "operator": "exact", "value": []any{"true"},
			}},
			"rollout_percentage": 100,
		}}
	case 2:
		f.Filters["feature_enrollment"] = true
	case 3:
		delete(f.Filters, "holdout")
		id := 1 + g.IntN(3)
		f.Filters["holdout_groups"] = []any{map[string]any{
			"properties": []any{}, "rollout_percentage": g.IntN(60), "variant": fmt.Sprintf("holdout-%d", id),
		}}
	case 4, 5:
		f.BucketingIdentifier = "device_id"
	case 6:
		f.EvaluationRuntime = pick(g, "client", "server", "all")
	case 7:
		f.EvaluationContexts = pick(g, []string{"web"}, []string{"checkout", "app"}, []string{})
	case 8, 9:
		g.dated(f, byGroup)
	case 10:
		f.Filters["payloads"] = map[string]any{"true": pick[any](g, map[string]any{"a": []any{1, nil}}, "\"text\"", 7, "null")}
		delete(f.Filters, "multivariate")
		for _, set := range sets(f) {
			delete(set, "variant")
		}
	default: // as generated
	}
}

// legacy writes the flag in the oldest form: one set, without a list of sets.
func (g *generator) legacy(f *Flag) {
	filters := map[string]any{"properties": []any{}}
	if g.chance(60) {
		filters["properties"] = []any{g.filter()}
	}
	if g.chance(80) {
		filters["rollout_percentage"] = pick[any](g, 0, 10, 30, 50, 100, nil, 33.3)
	}
	f.Filters = filters
}

// dated adds a condition on a date in one of the forms that filters may have.
func (g *generator) dated(f *Flag, byGroup bool) {
	condition := map[string]any{
		"key": "k4", "type": "person", "operator": pick(g, "is_date_before", "is_date_after"),
		"value": pick[any](g, "2024-01-01", "2024-01-01T12:30", "2024-01-01 12:30:15", "2024", "2024-01", "2024-01-01T00:00:00+09:00", "2023-12-31T22:30:00.250Z", "1704067200", "-1y", "400d"),
	}
	if byGroup {
		condition["type"] = "group"
	}
	for _, set := range sets(f) {
		set["properties"] = append(list(set["properties"]), condition)
		return
	}
}

func sets(f *Flag) []map[string]any {
	var out []map[string]any
	for _, set := range list(f.Filters["groups"]) {
		out = append(out, set.(map[string]any))
	}
	return out
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// oddPerson gives a person a device, decisions about enrolment, and odd values.
func (g *generator) oddPerson(p *Person, flags []Flag) {
	if g.chance(80) {
		p.DeviceID = fmt.Sprintf("device-%d", g.IntN(1000))
	}
	for _, f := range flags {
		if g.chance(30) {
			p.Properties["$feature_enrollment/"+f.Key] = pick[any](g, "true", "false", true, false, nil)
		}
	}
	for _, key := range []string{"k0", "k1", "k5", "k6"} {
		if g.chance(15) {
			p.Properties[key] = pick[any](g, "José", "", " ", "1e3", "9 lives", "TRUE", nil, "٣٤", "e\u0301", "İstanbul", "a\u00a0b", "\U0001f600")
		}
	}
}
