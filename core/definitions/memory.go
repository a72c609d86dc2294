package definitions

import (
	"cmp"
	"slices"
)

// key names a definition.
type key struct {
	project int64
	kind    Kind
	group   int
	name    string
}

// mark is what memory holds of a name.
type mark struct {
	at    int64 // when it was seen last, in seconds, rounded
	kind  string
	typed bool // kind is known, or has no meaning
}

func (m *mark) setType(t string) { m.kind, m.typed = t, t != "" }

// names is what memory holds of a project.
type names struct {
	of      [kinds]map[string]mark // but for group properties
	groups  map[int]map[string]mark
	indexes map[string]int // of group types that are stored
	count   [kinds]int
}

func newNames() *names {
	n := &names{groups: make(map[int]map[string]mark)}
	for k := range n.of {
		n.of[k] = make(map[string]mark)
	}
	return n
}

func (n *names) put(k key, m mark) (added bool) {
	in := n.of[k.kind]
	if k.kind == GroupProperty {
		if in = n.groups[k.group]; in == nil {
			in = make(map[string]mark)
			n.groups[k.group] = in
		}
	}
	if _, ok := in[k.name]; !ok {
		n.count[k.kind]++
		added = true
	}
	in[k.name] = m
	return added
}

// memory is what was written and need not be written again. It is a cache:
// what it does not hold is read from the store.
type memory struct {
	projects map[int64]*names
	size     int
}

// maxRemembered is how many names of all projects are kept in memory, about.
const maxRemembered = 400_000

// bound forgets everything when it has become too much.
func (m *memory) bound() {
	if m.projects == nil || m.size > maxRemembered {
		m.projects, m.size = make(map[int64]*names), 0
	}
}

func (m *memory) add(projectID int64, n *names) {
	m.projects[projectID] = n
	for _, c := range n.count {
		m.size += c
	}
}

// put remembers a name of a project that memory holds.
func (m *memory) put(k key, to mark) {
	if n := m.projects[k.project]; n != nil && n.put(k, to) {
		m.size++
	}
}

// forget takes a project out of memory.
func (m *memory) forget(projectID int64) {
	if n := m.projects[projectID]; n != nil {
		for _, c := range n.count {
			m.size -= c
		}
		delete(m.projects, projectID)
	}
}

// over counts the names that got no definition.
type over struct {
	names   int
	example string
	uuid    string
}

type overKey struct {
	project int64
	warning string
	kind    Kind
}

func (w *watch) refuse(warning string, kind Kind, name string) {
	w.refused.WithLabelValues(warning).Inc()
	k := overKey{w.project, warning, kind}
	o := w.over[k]
	if o == nil {
		o = &over{example: name, uuid: w.ev.UUID}
		if w.over == nil {
			w.over = make(map[overKey]*over)
		}
		w.over[k] = o
	}
	o.names++
}

// warnings says what was refused, once a batch for each project and reason.
func (w *watch) warnings() []Warning {
	out := make([]Warning, 0, len(w.over))
	for k, o := range w.over {
		details := map[string]any{"type": k.kind.String(), "names": o.names, "example": o.example}
		if k.warning != NameTooLong {
			details["limit"] = w.cfg.most(k.kind)
		}
		out = append(out, Warning{ProjectID: k.project, Type: k.warning, EventUUID: o.uuid, Details: details})
	}
	slices.SortFunc(out, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Type, b.Type), cmp.Compare(a.EventUUID, b.EventUUID))
	})
	return out
}

// String is the word the API has for properties of the kind.
func (k Kind) String() string {
	switch k {
	case PersonProperty:
		return "person"
	case GroupProperty:
		return "group"
	default:
		return "event"
	}
}
