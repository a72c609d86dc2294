package persons

import (
	"slices"
	"strconv"
)

// groupID names a group within a project.
type groupID struct {
	index int
	key   string
}

// group is a group as the stage works on it.
type group struct {
	groupID
	createdAt int64
	stored    string // properties as stored; "" when the group is new
	next      string // properties to store
	version   int64
	props     object
}

// groupBook holds the group types of a project and the groups that a batch
// says something about.
type groupBook struct {
	limit    int            // how many types the project may have
	types    map[string]int // by name
	newTypes []GroupType
	groups   map[groupID]*group
	list     []*group // what to write, in the order met
}

// maxTypeName is how many bytes of name a group type may have.
const maxTypeName = 400

// slot returns the index of a group type, which gets one at first sight; false
// when the project has no slot left.
func (g *groupBook) slot(name string, f *fact) (int, bool) {
	if i, ok := g.types[name]; ok {
		return i, true
	}
	if len(name) > maxTypeName {
		return 0, false
	}
	used := make([]bool, g.limit)
	for _, i := range g.types {
		if i < g.limit {
			used[i] = true
		}
	}
	i := slices.Index(used, false)
	if i < 0 {
		return 0, false
	}
	if g.types == nil {
		g.types = map[string]int{}
	}
	g.types[name] = i
	g.newTypes = append(g.newTypes, GroupType{Name: name, Index: i, CreatedAt: f.ev.Timestamp})
	return i, true
}

// take lets one event have its effect on groups.
func (g *groupBook) take(b *book, f *fact) {
	g.join(f)
	if f.groupIdentify {
		g.identify(b, f)
	}
}

// join gives the event a property $group_<index> for each group it names.
func (g *groupBook) join(f *fact) {
	f.bonus = ""
	if f.groups == "" {
		return
	}
	named, _ := parseObject(f.groups)
	var bonus []byte
	for _, m := range named.members {
		name, key := storable(m.key), groupText(m.val)
		if name == "" || key == "" {
			continue
		}
		if i, ok := g.slot(name, f); ok {
			bonus = append(bonus, `,"$group_`...)
			bonus = strconv.AppendInt(bonus, int64(i), 10)
			bonus = append(bonus, `":`...)
			bonus = appendQuoted(bonus, key)
		}
	}
	f.bonus = string(bonus)
}

// identify merges what $groupidentify says into the properties of its group.
func (g *groupBook) identify(b *book, f *fact) {
	i, ok := g.slot(f.groupType, f)
	if !ok {
		return
	}
	given, ok := parseObject(f.groupSet)
	if !ok && f.groupSet != "" && f.groupSet != "null" {
		return
	}
	gr := g.group(groupID{i, f.groupKey}, f)
	next := gr.props.clone()
	for _, m := range given.members {
		next.set(storable(m.key), storableValue(m.val))
	}
	if size := next.size(); size > maxProperties {
		b.warnings = append(b.warnings, f.warn(WarnGroupSize,
			map[string]any{"groupType": f.groupType, "groupKey": f.groupKey, "bytes": size, "limit": maxProperties}))
		return
	}
	gr.props = next
}

func (g *groupBook) group(id groupID, f *fact) *group {
	gr := g.groups[id]
	if gr == nil {
		gr = &group{groupID: id, createdAt: micros(f.ev.Timestamp)}
		if g.groups == nil {
			g.groups = map[groupID]*group{}
		}
		g.groups[id] = gr
		g.list = append(g.list, gr)
	}
	return gr
}
