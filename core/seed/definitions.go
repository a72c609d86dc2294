package seed

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/guidonhq/guidon/core/definitionfile"
)

// addRoles makes the roles of the organization.
func (s *seeder) addRoles() error {
	for _, r := range s.file.Roles {
		made, err := s.send(http.MethodPost, "/api/organizations/@current/roles/", r.Body)
		if err != nil {
			return s.at(r.Line, "role "+r.Name, err)
		}
		s.roles[r.Name] = made["id"]
	}
	return nil
}

// maker makes the definitions of one project.
type maker struct {
	*seeder
	project string // the path of the project
	ids     map[string]map[string]any
}

// find returns the id of a definition, nil without one.
func (m *maker) find(kind, name string) any { return m.ids[kind][name] }

// references are the kinds of references to the definitions of a section.
var references = map[string]string{"cohorts": definitionfile.RefCohort, "dashboards": definitionfile.RefDashboard, "flags": definitionfile.RefFlag}

// addDefinitions sets up a project and makes its definitions.
func (s *seeder) addDefinitions(project int64, p definitionfile.Project) error {
	m := &maker{s, fmt.Sprintf("/api/projects/%d/", project), map[string]map[string]any{}}
	for _, part := range []struct {
		path string
		body json.RawMessage
	}{{"", p.Settings}, {"retention/", p.Retention}} {
		if part.body == nil {
			continue
		}
		if _, err := m.send(http.MethodPatch, m.project+part.path, part.body); err != nil {
			return s.at(p.Line, "project "+p.Name, err)
		}
	}
	groupType := definitionfile.Kind{Section: "group_types", One: definitionfile.RefGroupType, Path: "groups_types/"}
	if err := m.addAll(&groupType, p.GroupTypes); err != nil {
		return err
	}
	for i := range definitionfile.Kinds {
		k := &definitionfile.Kinds[i]
		if err := m.addAll(k, p.Definitions[k.Section]); err != nil {
			return err
		}
	}
	return m.schedule(p.Scheduled)
}

// addAll makes the definitions of a kind. The error has the lines of those that failed.
func (m *maker) addAll(k *definitionfile.Kind, items []definitionfile.Item) error {
	return m.report(k.One, definitionfile.InOrder(items, func(it definitionfile.Item) error { return m.add(k, it) }))
}

// report joins failures. Where some failed by themselves, those that only lack them are
// left out.
func (m *maker) report(kind string, failures []definitionfile.Failure) error {
	isMissing := func(f definitionfile.Failure) bool {
		_, missing := errors.AsType[*definitionfile.MissingError](f.Err)
		return missing
	}
	if own := slices.DeleteFunc(slices.Clone(failures), isMissing); len(own) > 0 {
		failures = own
	}
	var out *definitionfile.Error
	for _, f := range failures {
		one := m.at(f.Item.Line, kind+" "+f.Item.Name, f.Err)
		if out == nil {
			out = one
			continue
		}
		out.Problems = append(out.Problems, one.Problems...)
	}
	if out == nil {
		return nil
	}
	slices.SortStableFunc(out.Problems, func(a, b definitionfile.Problem) int { return a.Line - b.Line })
	return out
}

// add makes a definition and keeps its id.
func (m *maker) add(k *definitionfile.Kind, it definitionfile.Item) error {
	body, err := definitionfile.Resolve(it.Body, m.find)
	if err != nil {
		return err
	}
	made, err := m.send(http.MethodPost, m.project+k.Path, body)
	if err != nil {
		return err
	}
	id, kind := made["id"], references[k.Section]
	if k.Section == "group_types" {
		id, kind = made["group_type_index"], definitionfile.RefGroupType
	}
	if m.ids[kind] == nil {
		m.ids[kind] = map[string]any{}
	}
	m.ids[kind][it.Name] = id
	for _, role := range it.Roles {
		if m.roles[role] == nil {
			return fmt.Errorf("role %q is not in the roles of the file", role)
		}
		body, _ := json.Marshal(map[string]any{"role_id": m.roles[role]}) // texts encode
		if _, err := m.send(http.MethodPost, fmt.Sprintf("%sfeature_flags/%v/role_access/", m.project, id), body); err != nil {
			return err
		}
	}
	return nil
}

// schedule makes the scheduled changes.
func (m *maker) schedule(items []definitionfile.Item) error {
	return m.report("scheduled change of flag", definitionfile.InOrder(items, func(it definitionfile.Item) error {
		body, err := definitionfile.WithRecord(it, m.find)
		if err != nil {
			return err
		}
		_, err = m.send(http.MethodPost, m.project+"scheduled_changes/", body)
		return err
	}))
}

// send sends a management request of the first user.
func (s *seeder) send(method, path string, body []byte) (map[string]any, error) {
	status, answer, err := s.call(method, path, s.first.PersonalKey, body)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	err = definitionfile.Decode(answer, &out)
	if status < http.StatusBadRequest {
		return out, err
	}
	if attr, ok := out["attr"].(string); ok && attr != "" {
		return nil, fmt.Errorf("%s: %v", attr, out["detail"])
	}
	return nil, fmt.Errorf("%v (status %d)", out["detail"], status)
}
