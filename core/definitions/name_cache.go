package definitions

import (
	"cmp"
	"slices"
)

// key identifies a definition.
type key struct {
	project int64
	kind    Kind
	group   int
	name    string
}

// nameState is the stored state of a name.
type nameState struct {
	at           int64 // last seen, in rounded Unix seconds
	propertyType string
	typed        bool // propertyType is known or does not apply
}

func (m *nameState) setType(t string) { m.propertyType, m.typed = t, t != "" }

// projectNames are the stored names of a project.
type projectNames struct {
	byKind  [kindCount]map[string]nameState // except group properties
	groups  map[int]map[string]nameState
	indexes map[string]int // of stored group types
	count   [kindCount]int
}

func newProjectNames() *projectNames {
	n := &projectNames{groups: make(map[int]map[string]nameState)}
	for k := range n.byKind {
		n.byKind[k] = make(map[string]nameState)
	}
	return n
}

func (n *projectNames) put(k key, m nameState) (added bool) {
	in := n.byKind[k.kind]
	if k.kind == GroupProperty {
		if in = n.groups[k.group]; in == nil {
			in = make(map[string]nameState)
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

// nameCache holds the written names of projects. Projects it does not hold are
// read from the store.
type nameCache struct {
	projects map[int64]*projectNames
	size     int
}

// maxCachedNames bounds the names of all projects in memory, approximately.
const maxCachedNames = 400_000

// drop removes a project.
func (m *nameCache) dropIfFull() {
	if m.projects == nil || m.size > maxCachedNames {
		m.projects, m.size = make(map[int64]*projectNames), 0
	}
}

func (m *nameCache) add(projectID int64, n *projectNames) {
	m.projects[projectID] = n
	for _, c := range n.count {
		m.size += c
	}
}

// put stores a name of a cached project.
func (m *nameCache) put(k key, to nameState) {
	if n := m.projects[k.project]; n != nil && n.put(k, to) {
		m.size++
	}
}

// drop takes a project out of memory.
func (m *nameCache) drop(projectID int64) {
	if n := m.projects[projectID]; n != nil {
		for _, c := range n.count {
			m.size -= c
		}
		delete(m.projects, projectID)
	}
}

// refusal counts names without definition.
type refusal struct {
	names   int
	example string
	uuid    string
}

type refusalKey struct {
	project int64
	warning string
	kind    Kind
}

func (w *collector) refuseName(warning string, kind Kind, name string) {
	w.refused.WithLabelValues(warning).Inc()
	k := refusalKey{w.project, warning, kind}
	o := w.refusals[k]
	if o == nil {
		o = &refusal{example: name, uuid: w.ev.UUID}
		if w.refusals == nil {
			w.refusals = make(map[refusalKey]*refusal)
		}
		w.refusals[k] = o
	}
	o.names++
}

// warnings reports the refused names, once per batch, project and reason.
func (w *collector) warnings() []Warning {
	out := make([]Warning, 0, len(w.refusals))
	for k, o := range w.refusals {
		details := map[string]any{"type": k.kind.String(), "names": o.names, "example": o.example}
		if k.warning != NameTooLong {
			details["limit"] = w.cfg.limit(k.kind)
		}
		out = append(out, Warning{ProjectID: k.project, Type: k.warning, EventUUID: o.uuid, Details: details})
	}
	slices.SortFunc(out, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.ProjectID, b.ProjectID), cmp.Compare(a.Type, b.Type), cmp.Compare(a.EventUUID, b.EventUUID))
	})
	return out
}

// String returns the API's word for properties of the kind.
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
