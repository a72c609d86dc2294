package flagstest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

type generator struct {
	*rand.Rand
	corpus *Corpus
}

// keys is the number of different properties. Each person has all of them,
// because a client that lacks one asks the server.
const keys = 12

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) person(i int) Person {
	p := Person{
		DistinctID: fmt.Sprintf("person-%d", i),
		Properties: g.properties(), Groups: map[string]string{}, GroupProperties: map[string]map[string]any{},
	}
	for _, name := range []string{"company", "project"} {
		if g.chance(70) {
			p.Groups[name] = fmt.Sprintf("%s-%d", name, g.IntN(50))
			p.GroupProperties[name] = g.properties()
		}
	}
	p.Properties["distinct_id"] = p.DistinctID
	return p
}

func (g *generator) properties() map[string]any {
	out := map[string]any{}
	for i := range keys {
		out["k"+strconv.Itoa(i)] = g.value(i)
	}
	return out
}

// Some kinds of properties hold nothing else, and some operators are for them
// alone, because a client leaves to the server what it cannot be sure of.
const (
	wholes   = 2 // whether 1 equals anything: it may have been 1.0
	versions = 3 // a text that is no version has no order
	dates    = 4 // what a date is depends on the platform
)

// value returns a value of the usual kind of the property with this number,
// and in some cases of another kind. Only the first two hold lists and objects,
// because clients order even those.
func (g *generator) value(key int) any {
	kind := key % 6
	if kind != dates && kind != versions && g.chance(20) {
		if kind = g.IntN(7); kind == wholes {
			kind = 6
		}
		if key%6 < 2 && g.chance(30) {
			kind = 7
		}
	}
	switch kind {
	case 0:
		return pick(g, "pro", "Pro", "free", "team", "PROfessional", "unpro", "")
	case 1:
		return pick(g, "ada@corp.test", "Bob@Corp.TEST", "eve@other.test", "corp.test@x", "a.b+c@corp.test")
	case 2:
		return pick(g, 0, 1, 2, 5, 9, 10, 11, 100, -1)
	case 3:
		return pick(g, "1.2.3", "1.10.0", "v2.0", "0.2.9", "1.2.3-rc1", "2", "9", "10", "1.2.3.4")
	case 4:
		return pick(g, "2024-01-01", "2024-01-02T03:04:05Z", "2023-12-31T23:00:00-02:00", "2019-05-05T00:00:00.5Z", "2025-07")
	case 5:
		return pick[any](g, true, false, "true", "False", "TRUE")
	case 6:
		return pick[any](g, 1.5, 0.25, "1.5", "10 apples", "apples")
	}
	return pick[any](g, nil, []any{"pro", "corp.test"}, []any{}, []any{true}, map[string]any{"a": "x"})
}

func (g *generator) filter() map[string]any {
	key := g.IntN(keys)
	f := map[string]any{"key": "k" + strconv.Itoa(key), "type": "person"}
	f["operator"], f["value"] = g.operator(key)
	return f
}

func (g *generator) operator(key int) (string, any) {
	kind := g.IntN(8)
	if kind == 5 && key%6 < 2 || kind == 6 && key%6 != versions || kind == 7 && key%6 != dates {
		kind = 1
	}
	if kind < 2 && key%6 == wholes {
		kind = 5
	}
	switch kind {
	case 0:
		return pick(g, "exact", "is_not"), []any{g.value(key), g.value(key), pick[any](g, "pro", "true", 1.5)}
	case 1:
		return pick(g, "exact", "is_not"), g.value(key)
	case 2:
		return pick(g, "is_set", "is_not_set"), "x"
	case 3:
		return pick(g, "icontains", "not_icontains", "starts_with", "not_starts_with", "ends_with", "not_ends_with"), pick(g, "PRO", "corp", "1", "test", "e", "0", "2024", "true")
	case 4:
		return pick(g, "regex", "not_regex"), pick(g, "^[a-z]+$", "corp\\.test$", "^\\d", "(", "pro|free", ".", "^$", "a.+c")
	case 5:
		return pick(g, "gt", "gte", "lt", "lte"), pick[any](g, "5", 5, "10", 9.5, "1.2.3", "pro", "2024-01-01", true)
	case 6:
		return pick(g, "semver_eq", "semver_neq", "semver_gt", "semver_gte", "semver_lt", "semver_lte", "semver_tilde", "semver_caret"), pick(g, "1.2.3", "v1.2", "2", "0.2.0", "1.10.0-beta", "0.0.3")
	}
	return pick(g, "is_date_before", "is_date_after"), pick(g, "2024-01-01", "2023-06-01T00:00:00Z", "30d", "-3y", "1m")
}

// cohort makes up the properties of a cohort: groups of groups down to groups
// of filters.
func (g *generator) cohort(number, depth int) map[string]any {
	var values []any
	for range 1 + g.IntN(3) {
		if depth > 0 {
			values = append(values, g.cohort(number, depth-1))
			continue
		}
		leaf := g.filter()
		if number > 0 && g.chance(20) {
			leaf = map[string]any{"key": "id", "type": "cohort", "value": 100 + g.IntN(number)}
		}
		leaf["negation"] = g.chance(25)
		values = append(values, leaf)
	}
	return map[string]any{"type": pick(g, "AND", "OR"), "values": values}
}

func (g *generator) flag(id int64) Flag {
	f := Flag{ID: id, Key: fmt.Sprintf("flag-%d", id), Active: g.chance(93), Filters: map[string]any{}}
	byGroup := g.chance(20)
	if byGroup {
		f.Filters["aggregation_group_type_index"] = g.IntN(2)
	}
	var names []string
	if g.chance(40) {
		names = g.variants(f.Filters)
	}
	var sets []any
	for range 1 + g.IntN(4) {
		sets = append(sets, g.set(id, names, byGroup))
	}
	f.Filters["groups"] = sets
	if g.chance(15) {
		f.Filters["early_exit"] = true
	}
	if g.chance(10) {
		f.Filters["holdout"] = map[string]any{"id": g.IntN(3), "exclusion_percentage": g.IntN(40)}
	}
	if g.chance(30) {
		f.Filters["payloads"] = map[string]any{"true": `{"n":1}`}
	}
	return f
}

func (g *generator) variants(filters map[string]any) []string {
	names := []string{"control", "blue", "green", "red"}[:2+g.IntN(3)]
	left := 100.0
	var list []any
	for i, name := range names {
		share := left
		if i < len(names)-1 {
			share = float64(g.IntN(int(left) + 1))
		}
		left -= share
		list = append(list, map[string]any{"key": name, "rollout_percentage": share})
	}
	filters["multivariate"] = map[string]any{"variants": list}
	return names
}

func (g *generator) set(id int64, variants []string, byGroup bool) map[string]any {
	s := map[string]any{}
	if !byGroup && g.chance(15) {
		byGroup, s["aggregation_group_type_index"] = true, g.IntN(2)
	}
	s["properties"] = g.filters(id, byGroup)
	if g.chance(80) {
		s["rollout_percentage"] = pick[any](g, 0, 10, 33.3, 50, 75, 100, nil)
	}
	if len(variants) > 0 && g.chance(30) {
		s["variant"] = pick(g, append(variants, "nobody")...)
	}
	return s
}

func (g *generator) filters(id int64, byGroup bool) []any {
	list := []any{}
	for range g.IntN(4) {
		list = append(list, g.filter())
	}
	if !byGroup && g.chance(15) { // cohorts are about people
		list = append(list, map[string]any{"key": "id", "type": "cohort", "value": 100 + g.IntN(5), "operator": pick(g, "in", "not_in", "exact")})
	}
	if id > 1 && g.chance(15) {
		list = append(list, map[string]any{
			"key": strconv.FormatInt(1+g.Int64N(id-1), 10), "type": "flag", "operator": "flag_evaluates_to",
			"value": pick[any](g, true, true, false, "blue"),
		})
	}
	return list
}
