package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/core/auth"
)

// The types below are what PostHog's Terraform provider (1.x) decodes answers into.
// It stores these fields as the state of a resource. A plan after apply shows no
// difference if reading the resource gives the same values again, and the values of
// the configuration are among them. A string or number field does not accept a value
// of another JSON type.
type (
	tfFlag struct {
		ID                int64          `json:"id"`
		Key               string         `json:"key"`
		Name              *string        `json:"name"`
		Active            *bool          `json:"active"`
		Filters           map[string]any `json:"filters"`
		RolloutPercentage *int32         `json:"rollout_percentage"`
		Tags              []string       `json:"tags"`
		Deleted           *bool          `json:"deleted"`
	}
	tfAction struct {
		ID                 int64            `json:"id"`
		Name               *string          `json:"name"`
		Description        *string          `json:"description"`
		Tags               []string         `json:"tags"`
		PostToSlack        *bool            `json:"post_to_slack"`
		SlackMessageFormat *string          `json:"slack_message_format"`
		Steps              []map[string]any `json:"steps"`
		CreatedAt          *string          `json:"created_at"`
		Deleted            *bool            `json:"deleted"`
	}
	tfCohort struct {
		ID          int64          `json:"id"`
		Name        *string        `json:"name"`
		Description *string        `json:"description"`
		Filters     map[string]any `json:"filters"`
		IsStatic    *bool          `json:"is_static"`
		Deleted     *bool          `json:"deleted"`
		CreatedAt   *string        `json:"created_at"`
	}
	tfProject struct {
		ID             int64   `json:"id"`
		Name           *string `json:"name"`
		OrganizationID *string `json:"organization"`
		APIToken       *string `json:"api_token"`
		Timezone       *string `json:"timezone"`
	}
	tfRole struct {
		ID        string  `json:"id"`
		Name      string  `json:"name"`
		CreatedAt *string `json:"created_at"`
		CreatedBy *string `json:"created_by"`
	}
	tfUser struct {
		UUID            string  `json:"uuid"`
		Email           *string `json:"email"`
		FirstName       *string `json:"first_name"`
		LastName        *string `json:"last_name"`
		IsEmailVerified *bool   `json:"is_email_verified"`
	}
	tfRoleMembership struct {
		ID       string  `json:"id"`
		RoleID   string  `json:"role_id"`
		User     *tfUser `json:"user"`
		JoinedAt *string `json:"joined_at"`
	}
	tfMember struct {
		ID           string  `json:"id"`
		User         *tfUser `json:"user"`
		Level        *int    `json:"level"`
		JoinedAt     *string `json:"joined_at"`
		Is2FAEnabled *bool   `json:"is_2fa_enabled"`
	}
	tfOrganization struct {
		ID   string `json:"id"`
		Slug string `json:"slug"`
		Name string `json:"name"`
	}
	tfPage[T any] struct {
		Results []T     `json:"results"`
		Next    *string `json:"next"`
	}
)

// provider sends requests as the Terraform provider does.
type provider struct {
	t   *testing.T
	url string
	key string
}

// send returns the status and the body of an answer.
func (p provider) send(method, path string, body any) (int, []byte) {
	p.t.Helper()
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		check(p.t, err)
		payload = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, payload)
	check(p.t, err)
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "posthog/terraform-provider; version: 1.0.4")
	res, err := http.DefaultClient.Do(req)
	check(p.t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	check(p.t, err)
	return res.StatusCode, answer
}

// resource decodes the answer to a request that the provider expects to succeed.
func resource[T any](p provider, method, path string, body any) T {
	p.t.Helper()
	var v T
	status, answer := p.send(method, path, body)
	if status < 200 || status > 299 {
		p.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		p.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
	}
	return v
}

// unchanged reads a resource twice, as a refresh and an import do, and compares it
// with the state that the provider stored.
func unchanged[T any](p provider, path string, state T) {
	p.t.Helper()
	for range 2 {
		if read := resource[T](p, http.MethodGet, path, nil); !reflect.DeepEqual(read, state) {
			p.t.Errorf("%s: a plan after apply shows a difference\n\tstate %s\n\tread  %s", path, asJSON(p.t, state), asJSON(p.t, read))
		}
	}
}

// destroyed deletes a resource and expects that a refresh drops it from the state.
func (p provider) destroyed(path string) {
	p.t.Helper()
	if status, answer := p.send(http.MethodDelete, path, nil); status != http.StatusNoContent {
		p.t.Errorf("DELETE %s: %d %s", path, status, answer)
	}
	if status, answer := p.send(http.MethodGet, path, nil); status != http.StatusNotFound {
		p.t.Errorf("GET %s after destroy: %d %s", path, status, answer)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	check(t, err)
	return string(raw)
}

// object is JSON as the provider decodes it.
func object(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	check(t, json.Unmarshal([]byte(text), &v))
	return v
}

// TestTerraformProvider sends the requests of PostHog's Terraform provider for the
// life of each resource: create, refresh and import, update, destroy.
func TestTerraformProvider(t *testing.T) {
	t.Parallel()
	w := newTenants(t)
	// The scopes of the key in docs/operators.md.
	scopes := "feature_flag:write,action:write,cohort:write,project:write,organization:write,role:write"
	p := provider{t: t, url: w.URL, key: w.key(t, "operator", auth.NewPersonalKey{Scopes: strings.Split(scopes, ",")})}
	current := resource[tfOrganization](p, http.MethodGet, "/api/organizations/@current/", nil)
	if current.ID != w.first.ID {
		t.Fatalf("@current is %+v", current)
	}
	organization := "/api/organizations/" + current.ID
	t.Run("posthog_feature_flag", func(t *testing.T) { terraformFlags(p.in(t)) })
	t.Run("posthog_action", func(t *testing.T) { terraformAction(p.in(t)) })
	t.Run("posthog_cohort", func(t *testing.T) { terraformCohort(p.in(t)) })
	t.Run("posthog_project", func(t *testing.T) { terraformProject(p.in(t), organization) })
	t.Run("posthog_role", func(t *testing.T) { terraformRole(p.in(t), w, organization) })
	t.Run("posthog_organization_member", func(t *testing.T) { terraformMember(p.in(t), w, organization) })
}

func (p provider) in(t *testing.T) provider {
	p.t = t
	return p
}

// terraformFlags: the provider compares filters as text with sorted keys, so the
// server returns the filters without a change.
func terraformFlags(p provider) {
	const path = "/api/projects/1/feature_flags/"
	for i, filters := range []string{
		`{"groups":[{}]}`,
		`{"groups":[{"rollout_percentage":25}]}`,
		`{"groups":[{"properties":[],"rollout_percentage":33.5}]}`,
		`{"groups":[{"properties":[{"key":"plan","operator":"exact","type":"person","value":["pro"]}],"rollout_percentage":50,"variant":null}]}`,
		`{"groups":[{"properties":[],"rollout_percentage":100}],"multivariate":{"variants":[{"key":"a","rollout_percentage":50},{"key":"b","rollout_percentage":50}]},"payloads":{"a":"{\"n\":1}"}}`,
		`{"aggregation_group_type_index":null,"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{}}`,
	} {
		key := fmt.Sprintf("tf-%d", i)
		state := resource[tfFlag](p, http.MethodPost, path, map[string]any{"key": key, "name": "Described", "active": true, "filters": object(p.t, filters), "tags": []string{"a", "b"}, "deleted": false})
		if !reflect.DeepEqual(state.Filters, object(p.t, filters)) {
			p.t.Errorf("filters %s are returned as %s", filters, asJSON(p.t, state.Filters))
		}
		if state.Key != key || *state.Name != "Described" || !*state.Active || *state.Deleted || !reflect.DeepEqual(state.Tags, []string{"a", "b"}) {
			p.t.Errorf("flag: %s", asJSON(p.t, state))
		}
		own := fmt.Sprintf("%s%d/", path, state.ID)
		unchanged(p, own, state)
		state = resource[tfFlag](p, http.MethodPatch, own, map[string]any{"key": key, "name": "", "active": false, "filters": object(p.t, `{"groups":[{"rollout_percentage":7}]}`), "deleted": false})
		if *state.Active || *state.Name != "" || *state.RolloutPercentage != 7 {
			p.t.Errorf("changed flag: %s", asJSON(p.t, state))
		}
		unchanged(p, own, state)
		resource[tfFlag](p, http.MethodPatch, own, map[string]any{"key": key, "deleted": true})
		if gone := resource[tfFlag](p, http.MethodGet, own, nil); !*gone.Deleted {
			p.t.Errorf("destroyed flag: %s", asJSON(p.t, gone))
		}
	}
}

func terraformAction(p provider) {
	const path = "/api/projects/1/actions/"
	steps := []any{
		object(p.t, `{"event":"$pageview","url":"/pricing","url_matching":"contains"}`),
		object(p.t, `{"event":"paid","properties":[{"key":"plan","operator":"exact","type":"event","value":["pro"]}]}`),
	}
	state := resource[tfAction](p, http.MethodPost, path, map[string]any{"name": "Bought", "description": "Money", "tags": []string{"a"}, "post_to_slack": false, "slack_message_format": "", "steps": steps})
	if *state.Name != "Bought" || *state.Description != "Money" || *state.PostToSlack || *state.Deleted || state.CreatedAt == nil || len(state.Steps) != len(steps) {
		p.t.Fatalf("action: %s", asJSON(p.t, state))
	}
	for i, step := range steps {
		for name, want := range step.(map[string]any) {
			if !reflect.DeepEqual(state.Steps[i][name], want) {
				p.t.Errorf("step %d: %s is %v, want %v", i, name, state.Steps[i][name], want)
			}
		}
	}
	own := fmt.Sprintf("%s%d/", path, state.ID)
	unchanged(p, own, state)
	state = resource[tfAction](p, http.MethodPatch, own, map[string]any{"name": "Paid", "description": "", "tags": []string{}, "steps": []any{}, "deleted": false})
	if *state.Name != "Paid" || *state.Description != "" || len(state.Tags) != 0 || len(state.Steps) != 0 {
		p.t.Errorf("changed action: %s", asJSON(p.t, state))
	}
	unchanged(p, own, state)
	if gone := resource[tfAction](p, http.MethodPatch, own, map[string]any{"deleted": true}); !*gone.Deleted {
		p.t.Errorf("destroyed action: %s", asJSON(p.t, gone))
	}
	if status, answer := p.send(http.MethodGet, own, nil); status != http.StatusNotFound && status != http.StatusOK {
		p.t.Errorf("refresh of a destroyed action: %d %s", status, answer)
	}
}

func terraformCohort(p provider) {
	const path = "/api/projects/1/cohorts/"
	const filters = `{"properties":{"type":"OR","values":[{"type":"AND","values":[{"key":"plan","operator":"exact","type":"person","value":["pro"]}]}]}}`
	state := resource[tfCohort](p, http.MethodPost, path, map[string]any{"name": "Payers", "description": "Pay", "filters": object(p.t, filters), "deleted": false})
	if !reflect.DeepEqual(state.Filters, object(p.t, filters)) || *state.Name != "Payers" || *state.Description != "Pay" || *state.IsStatic || *state.Deleted || state.CreatedAt == nil {
		p.t.Errorf("cohort: %s", asJSON(p.t, state))
	}
	own := fmt.Sprintf("%s%d/", path, state.ID)
	unchanged(p, own, state)
	state = resource[tfCohort](p, http.MethodPatch, own, map[string]any{"name": "All", "description": "", "filters": object(p.t, filters), "is_static": false, "deleted": false})
	if *state.Name != "All" || *state.Description != "" {
		p.t.Errorf("changed cohort: %s", asJSON(p.t, state))
	}
	unchanged(p, own, state)
	if gone := resource[tfCohort](p, http.MethodPatch, own, map[string]any{"deleted": true}); !*gone.Deleted {
		p.t.Errorf("destroyed cohort: %s", asJSON(p.t, gone))
	}
}

func terraformProject(p provider, organization string) {
	path := organization + "/projects/"
	state := resource[tfProject](p, http.MethodPost, path, map[string]any{"name": "Shop", "timezone": "Europe/Berlin"})
	if *state.Name != "Shop" || *state.Timezone != "Europe/Berlin" || *state.APIToken == "" || "/api/organizations/"+*state.OrganizationID != organization {
		p.t.Errorf("project: %s", asJSON(p.t, state))
	}
	own := fmt.Sprintf("%s%d/", path, state.ID)
	unchanged(p, own, state)
	token := *state.APIToken
	state = resource[tfProject](p, http.MethodPatch, own, map[string]any{"name": "Store", "timezone": "UTC"})
	if *state.Name != "Store" || *state.Timezone != "UTC" || *state.APIToken != token {
		p.t.Errorf("changed project: %s", asJSON(p.t, state))
	}
	unchanged(p, own, state)
	p.destroyed(own)
}

// terraformRole also covers the data source of roles and posthog_role_membership.
func terraformRole(p provider, w *tenants, organization string) {
	path := organization + "/roles/"
	state := resource[tfRole](p, http.MethodPost, path, map[string]any{"name": "Engineers"})
	if state.ID == "" || state.Name != "Engineers" || state.CreatedAt == nil || state.CreatedBy == nil || *state.CreatedBy != w.users["operator"].UUID {
		p.t.Errorf("role: %s", asJSON(p.t, state))
	}
	own := path + state.ID + "/"
	unchanged(p, own, state)
	renamed := resource[tfRole](p, http.MethodPatch, own, map[string]any{"name": "Builders"})
	if renamed.ID != state.ID || renamed.Name != "Builders" || *renamed.CreatedAt != *state.CreatedAt || *renamed.CreatedBy != *state.CreatedBy {
		p.t.Errorf("changed role: %s", asJSON(p.t, renamed))
	}
	unchanged(p, own, renamed)
	found := false
	for _, role := range resource[tfPage[tfRole]](p, http.MethodGet, path, nil).Results {
		found = found || reflect.DeepEqual(role, renamed)
	}
	if !found {
		p.t.Error("the data source does not find the role")
	}

	member := resource[tfRoleMembership](p, http.MethodPost, own+"role_memberships/", map[string]any{"user_uuid": w.users["member"].UUID})
	if member.ID == "" || member.RoleID != state.ID || member.User == nil || member.User.UUID != w.users["member"].UUID || *member.User.Email != "member@example.com" || member.JoinedAt == nil {
		p.t.Errorf("role membership: %s", asJSON(p.t, member))
	}
	unchanged(p, own+"role_memberships/"+member.ID+"/", member)
	p.destroyed(own + "role_memberships/" + member.ID + "/")
	p.destroyed(own)

	// Other clients read the user as an object.
	resource[tfRole](p, http.MethodPost, path, map[string]any{"name": "Readers"})
	_, body, _ := w.request(p.t, http.MethodGet, w.URL+path, "")
	if strings.Contains(body, `"created_by":"`) || !strings.Contains(body, `"created_by":{"id":`) {
		p.t.Errorf("roles for another client: %s", body)
	}
}

// terraformMember also covers the data source of users. The provider drops a member
// without an id from its state.
func terraformMember(p provider, w *tenants, organization string) {
	path := organization + "/members/"
	find := func() (found tfMember) {
		for _, m := range resource[tfPage[tfMember]](p, http.MethodGet, path, nil).Results {
			if m.User != nil && m.User.UUID == w.users["viewer"].UUID {
				found = m
			}
		}
		return found
	}
	adopted := find()
	if adopted.ID == "" || adopted.Level == nil || adopted.JoinedAt == nil || *adopted.User.Email != "viewer@example.com" || adopted.User.IsEmailVerified == nil {
		p.t.Fatalf("member: %s", asJSON(p.t, adopted))
	}
	own := path + w.users["viewer"].UUID + "/"
	state := resource[tfMember](p, http.MethodPatch, own, map[string]any{"level": 8})
	if *state.Level != 8 || state.ID != adopted.ID {
		p.t.Errorf("changed member: %s", asJSON(p.t, state))
	}
	if read := find(); !reflect.DeepEqual(read, state) {
		p.t.Errorf("a plan after apply shows a difference: state %s, read %s", asJSON(p.t, state), asJSON(p.t, read))
	}
	if status, answer := p.send(http.MethodDelete, own, nil); status != http.StatusNoContent {
		p.t.Errorf("DELETE %s: %d %s", own, status, answer)
	}
	if left := find(); left.ID != "" {
		p.t.Errorf("the member stayed: %s", asJSON(p.t, left))
	}
}
