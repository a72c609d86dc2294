package stage

import (
	"slices"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/core/jsontext"
	"github.com/guidonhq/guidon/core/persons/properties"
)

// groupID names a group within a project.
type groupID struct {
	index int
	key   string
}

// group is a group during a batch.
type group struct {
	groupID
	createdAt int64
	stored    string // properties as stored; "" if the group is new
	next      string // properties to store
	version   int64
	props     properties.Object
}

// searchText returns the value of the column label, nil for NULL.
func (g *group) searchText() *string { return nullable(g.props.SearchText()) }

// groupType is a new group type of a project.
type groupType struct {
	name      string
	index     int
	createdAt time.Time
}

// groupState holds the group types of a project and the groups that a batch
// updates.
type groupState struct {
	limit    int            // maximum number of types of the project
	types    map[string]int // by name
	newTypes []groupType
	groups   map[groupID]*group
	list     []*group // groups to write, in order of appearance
}

// MaxTypeName is the maximum length of the name of a group type, in bytes.
const MaxTypeName = 400

// index returns the index of a group type and creates the type if it is new;
// false if the project has no free index.
func (g *groupState) index(name string, f *parsedEvent) (int, bool) {
	if i, ok := g.types[name]; ok {
		return i, true
	}
	if len(name) > MaxTypeName {
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
	g.addType(name, i)
	g.newTypes = append(g.newTypes, groupType{name: name, index: i, createdAt: f.ev.Timestamp})
	return i, true
}

func (g *groupState) addType(name string, index int) {
	if g.types == nil {
		g.types = map[string]int{}
	}
	g.types[name] = index
}

// applyEvent applies one event to groups.
func (g *groupState) applyEvent(b *batchState, f *parsedEvent) {
	g.addGroupProperties(b, f)
	if f.groupIdentify {
		g.identify(b, f)
	}
}

// addGroupProperties gives the event a property $group_<index> for each group
// that it names.
func (g *groupState) addGroupProperties(b *batchState, f *parsedEvent) {
	f.addedProperties = ""
	if f.groups == "" {
		return
	}
	named, _ := properties.Parse(f.groups)
	var added []byte
	for _, m := range named.Members {
		name, key := withoutNUL(m.Key), groupText(m.Value)
		if name == "" || key == "" {
			continue
		}
		if i, ok := g.index(name, f); ok {
			added = append(added, `,"$group_`...)
			added = strconv.AppendInt(added, int64(i), 10)
			added = append(added, `":`...)
			added = jsontext.AppendString(added, key)
		} else {
			g.warnOfType(b, f, name)
		}
	}
	f.addedProperties = string(added)
}

// warnOfType reports a group type without an index, once in a batch.
func (g *groupState) warnOfType(b *batchState, f *parsedEvent, name string) {
	for i := range b.warnings {
		if b.warnings[i].Type == WarnGroupType && b.warnings[i].Details["groupType"] == name {
			return
		}
	}
	if len(name) > MaxTypeName {
		name = name[:MaxTypeName]
	}
	b.warnings = append(b.warnings, f.warn(WarnGroupType, map[string]any{"groupType": name, "limit": g.limit}))
}

// identify merges the properties of a $groupidentify into those of its group.
func (g *groupState) identify(b *batchState, f *parsedEvent) {
	i, ok := g.index(f.groupType, f)
	if !ok {
		g.warnOfType(b, f, f.groupType)
		return
	}
	given, ok := properties.Parse(f.groupSet)
	if !ok && f.groupSet != "" && f.groupSet != "null" {
		return
	}
	gr := g.group(groupID{i, f.groupKey}, f)
	next := gr.props.Clone()
	for _, m := range given.Members {
		next.Set(withoutNUL(m.Key), withoutNULEscapes(m.Value))
	}
	if size := next.Size(); size > maxProperties {
		b.warnings = append(b.warnings, f.warn(WarnGroupSize,
			map[string]any{"groupType": f.groupType, "groupKey": f.groupKey, "bytes": size, "limit": maxProperties}))
		return
	}
	gr.props = next
}

func (g *groupState) group(id groupID, f *parsedEvent) *group {
	gr := g.groups[id]
	if gr == nil {
		gr = &group{groupID: id, createdAt: toMicros(f.ev.Timestamp)}
		g.addGroup(gr)
	}
	return gr
}

func (g *groupState) addGroup(gr *group) {
	if g.groups == nil {
		g.groups = map[groupID]*group{}
	}
	g.groups[gr.groupID] = gr
	g.list = append(g.list, gr)
}
