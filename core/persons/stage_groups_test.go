package persons_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/persons"
)

// groups is every group of a project as "type:key properties", one a line.
func groups(t testing.TB, s *persons.Service, project int64) string {
	t.Helper()
	types, err := s.GroupTypes(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(types))
	for name, slot := range types {
		names[slot] = name
	}
	var lines []string
	for slot, name := range names {
		err := s.Groups.Walk(t.Context(), project, slot, func(page []persons.Group) error {
			for _, g := range page {
				lines = append(lines, fmt.Sprintf("%s:%s %s", name, g.Key, g.Properties))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(lines, "\n")
}

func TestGroups(t *testing.T) {
	long := strings.Repeat("k", 400)
	cases := []struct {
		name   string
		events []string
		groups string
		last   string // properties of the last event
	}{
		{
			name:   "$groupidentify makes a group",
			events: []string{`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"seats":5}}`},
			groups: `company:acme {"seats":5}`,
		},
		{
			name: "and merges into it, shallow",
			events: []string{
				`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"seats":5,"o":{"a":1}}}`,
				`$groupidentify u {"$group_type":"company","$group_key":"acme","$group_set":{"o":{"b":1.50}}}`,
			},
			groups: `company:acme {"seats":5,"o":{"b":1.50}}`,
		},
		{
			name:   "an event that names a group carries it by its slot, and makes no group",
			events: []string{`x u {"a":1,"$groups":{"company":"acme","team":7}}`},
			last:   `{"a":1,"$groups":{"company":"acme","team":7},"$group_0":"acme","$group_1":"7"}`,
		},
		{
			name:   "the sixth type has no slot, and the event stays as it is",
			events: []string{`x u {"$groups":{"a":"1","b":"1","c":"1","d":"1","e":"1"}}`, `x u {"$groups":{"f":"1"}}`},
			last:   `{"$groups":{"f":"1"}}`,
		},
		{
			name:   "a group of a type without a slot is not kept",
			events: []string{`x u {"$groups":{"a":"1","b":"1","c":"1","d":"1","e":"1"}}`, `$groupidentify u {"$group_type":"f","$group_key":"1"}`},
		},
		{
			name:   "a key may be a number",
			events: []string{`$groupidentify u {"$group_type":"company","$group_key":42}`},
			groups: `company:42 {}`,
		},
		{
			name: "a key that is an object has one spelling",
			events: []string{
				`$groupidentify u {"$group_type":"company","$group_key":{"b": 1, "a" : [1.50, {"d":1,"c":2}]}}`,
				`x u {"$groups":{"company":{ "a":[1.50,{"c":2,"d":1}],"b":1}}}`,
			},
			groups: `company:{"a":[1.50,{"c":2,"d":1}],"b":1} {}`,
			last:   `{"$groups":{"company":{ "a":[1.50,{"c":2,"d":1}],"b":1}},"$group_0":"{\"a\":[1.50,{\"c\":2,\"d\":1}],\"b\":1}"}`,
		},
		{
			name:   "a missing or null set is an empty one",
			events: []string{`$groupidentify u {"$group_type":"company","$group_key":"x","$group_set":null}`},
			groups: `company:x {}`,
		},
		{
			name:   "without a key nothing happens",
			events: []string{`$groupidentify u {"$group_type":"company"}`, `$groupidentify u {"$group_type":"company","$group_key":""}`},
		},
		{
			name:   "a key has at most 400 characters",
			events: []string{`$groupidentify u {"$group_type":"company","$group_key":"` + long + `"}`, `$groupidentify u {"$group_type":"company","$group_key":"` + long + `k"}`},
			groups: `company:` + long + ` {}`,
		},
		{
			name:   "without person processing groups are left alone",
			events: []string{`x u {"$process_person_profile":false,"$groups":{"company":"acme"}}`},
			last:   `{"$process_person_profile":false,"$groups":{"company":"acme"}}`,
		},
		{
			name:   "null and empty keys are no membership",
			events: []string{`x u {"$groups":{"company":null,"team":""}}`},
			last:   `{"$groups":{"company":null,"team":""}}`,
		},
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		t.Parallel()
		s := service(t, d)
		for i, c := range cases {
			for range 2 {
				batch := in(int64(i+1), evs(c.events...))
				process(t, s, batch)
				process(t, s, batch)
				if got := groups(t, s, int64(i+1)); got != c.groups {
					t.Errorf("%s\ngot  %s\nwant %s", c.name, got, c.groups)
				}
				if got := string(batch[len(batch)-1].Properties); c.last != "" && got != c.last {
					t.Errorf("%s: the event has %s\nwant %s", c.name, got, c.last)
				}
			}
		}
	})
}
