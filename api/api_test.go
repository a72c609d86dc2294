package api_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/guidonhq/guidon/api"
	"github.com/guidonhq/guidon/api/apitest"
	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/match"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// eachOperation calls fn for every documented operation, named "METHOD /path".
func eachOperation(t *testing.T, doc *openapi3.T, fn func(t *testing.T, path string, op *openapi3.Operation)) {
	t.Helper()
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			t.Run(method+" "+path, func(t *testing.T) { fn(t, path, op) })
		}
	}
}

func TestTheDocumentIsOpenAPI31(t *testing.T) {
	t.Parallel()
	doc := load(t)
	if !doc.IsOpenAPI31OrLater() {
		t.Errorf("it says %s", doc.OpenAPI)
	}
}

func TestOperationsSayWhatClientsNeed(t *testing.T) {
	t.Parallel()
	doc := load(t)
	var tags []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	ids := map[string]bool{}
	eachOperation(t, doc, func(t *testing.T, path string, op *openapi3.Operation) {
		if op.OperationID == "" || ids[op.OperationID] {
			t.Errorf("operationId %q is empty or taken", op.OperationID)
		}
		ids[op.OperationID] = true
		if op.Summary == "" || strings.HasSuffix(op.Summary, ".") {
			t.Errorf("summary %q: one line, without a full stop", op.Summary)
		}
		if len(op.Tags) != 1 || !slices.Contains(tags, op.Tags[0]) {
			t.Errorf("tags %v: one of %v", op.Tags, tags)
		}
		if path != "/" && strings.HasSuffix(path, "/") {
			t.Error("paths are written without the slash that they work with, too")
		}
	})
}

// Management operations require a key and document the common errors; pages for
// operators and public paths require no personal key. Signing in needs none either, nor
// does accepting an invitation: the person has none yet.
func TestTheTwoFaces(t *testing.T) {
	t.Parallel()
	doc := load(t)
	signIn := []string{
		"acceptInvite", "listSignInMethods", "signInWithPassword", "signInWithLink", "signInWithInvitation",
		"resetPassword", "requestPasswordReset", "startOIDC", "finishOIDC",
	}
	eachOperation(t, doc, func(t *testing.T, path string, op *openapi3.Operation) {
		manage := (strings.HasPrefix(path, "/api/") || path == "/flags/definitions") && !slices.Contains(op.Tags, "clients") &&
			!slices.Contains(signIn, op.OperationID)
		open := !needsPersonalKey(op)
		if manage == open {
			t.Errorf("open to everybody: %v", open)
		}
		if !manage {
			return
		}
		fallback := op.Responses.Default()
		if fallback == nil || fallback.Ref != "#/components/responses/Error" {
			t.Error("the default answer is not the management error")
		}
	})
}

// needsPersonalKey reports whether an operation is for personal keys: by default,
// or because it names them.
func needsPersonalKey(op *openapi3.Operation) bool {
	return op.Security == nil || slices.ContainsFunc(*op.Security, func(r openapi3.SecurityRequirement) bool {
		_, ok := r["personalKey"]
		return ok
	})
}

var scope = regexp.MustCompile("^Scope `([a-z_]+):(read|write)`")

// Every management operation names a scope that auth defines.
func TestScopesAreNamed(t *testing.T) {
	t.Parallel()
	doc := load(t)
	unscoped := []string{
		"readCurrentPersonalKey",                  // needs none
		"readSession", "changeSession", "signOut", // of the session itself
		"localEvaluation", "projectLocalEvaluation", // as flagDefinitions
		"replaceFlag", "refuseFlagDeletion", "replaceCohort", "refuseCohortDeletion", // as the PATCH beside them
	}
	eachOperation(t, doc, func(t *testing.T, _ string, op *openapi3.Operation) {
		open := !needsPersonalKey(op)
		if open || slices.Contains(unscoped, op.OperationID) {
			return
		}
		found := scope.FindStringSubmatch(op.Description)
		if found == nil || !slices.Contains(apikey.ScopeObjects(), found[1]) {
			t.Errorf("the description names no scope: %q", op.Description)
		}
	})
}

func TestTheScopesOfKeysAreThoseOfAuth(t *testing.T) {
	t.Parallel()
	pattern := load(t).Components.Schemas["Scope"].Value.Pattern
	if want := "(" + strings.Join(apikey.ScopeObjects(), "|") + ")"; !strings.Contains(pattern, want) {
		t.Errorf("%s is not about %s", pattern, want)
	}
}

// A filter names its operator, so every built-in one is in the document.
func TestFiltersListTheBuiltInOperators(t *testing.T) {
	t.Parallel()
	description := load(t).Components.Schemas["PropertyFilter"].Value.Properties["operator"].Value.Description
	listed := strings.FieldsFunc(description, func(r rune) bool { return strings.ContainsRune(" ,;.`", r) })
	for _, name := range match.Operators() {
		if !slices.Contains(listed, name) {
			t.Errorf("PropertyFilter.operator does not list %s", name)
		}
	}
}

// The contract fixes the order of the fields of a flag, which clients display.
func TestFlagsHaveTheFieldsOfTheContractInItsOrder(t *testing.T) {
	t.Parallel()
	flag := load(t).Components.Schemas["FeatureFlag"].Value
	want := strings.Fields(`id name key filters deleted active created_by created_at is_simple_flag rollout_percentage
		ensure_experience_continuity experiment_set features rollback_conditions performed_rollback can_edit tags usage_dashboard
		analytics_dashboards has_enriched_analytics version updated_at status
		bucketing_identifier evaluation_runtime evaluation_contexts evaluation_tags`)
	if !slices.Equal(flag.Required, want) {
		t.Errorf("got %v", flag.Required)
	}
}

func TestAnswersAreHeldAgainstTheDocument(t *testing.T) {
	t.Parallel()
	doc, err := apitest.New(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	const member = `{"id":1,"uuid":"0190c7a4-0000-7000-8000-000000000001","distinct_id":"d","first_name":"","email":"a@b.c","is_email_verified":false}`
	cases := map[string]struct {
		method, path string
		status       int
		kind, body   string
		ok           bool
	}{
		"what is promised":                  {"POST", "/capture/", 200, "application/json", `{"status":1}`, true},
		"another value":                     {"POST", "/capture/", 200, "application/json", `{"status":2}`, false},
		"a name that is not documented":     {"POST", "/capture", 200, "application/json", `{"status":1,"more":1}`, false},
		"no body":                           {"POST", "/capture", 200, "application/json", ``, false},
		"a beacon":                          {"POST", "/e/?beacon=1", 204, "", ``, true},
		"a body where none is":              {"POST", "/e/?beacon=1", 204, "application/json", `{}`, false},
		"an error of the public face":       {"POST", "/batch", 401, "application/json", `{"type":"authentication_error","code":"invalid_api_key","detail":"No."}`, true},
		"an error of the wrong face":        {"POST", "/batch", 401, "application/json", `{"type":"a","code":"b","detail":"c","attr":null}`, false},
		"an error of the management face":   {"GET", "/api/projects/@current/feature_flags/7/", 404, "application/json", `{"type":"invalid_request","code":"not_found","detail":"Not found.","attr":null}`, true},
		"an error without attr":             {"GET", "/api/projects/1/feature_flags/7", 404, "application/json", `{"type":"invalid_request","code":"not_found","detail":"Not found."}`, false},
		"too many events":                   {"POST", "/batch", 413, "application/json", `{"type":"client_error","code":"too_many_events","detail":"No."}`, true},
		"too many events to decide":         {"POST", "/decide", 413, "application/json", `{"type":"client_error","code":"too_many_events","detail":"No."}`, false},
		"too much for the memory":           {"POST", "/flags", 503, "application/json", `{"type":"server_error","code":"server_saturated","detail":"Later."}`, true},
		"too many wrong keys":               {"POST", "/capture", 429, "application/json", `{"type":"throttled_error","code":"throttled","detail":"Later."}`, true},
		"another reason for 429":            {"POST", "/capture", 429, "application/json", `{"type":"throttled_error","code":"tired","detail":"Later."}`, false},
		"too much for the protocol of 2026": {"POST", "/i/v1/analytics/events", 413, "application/json", `{"error":"payload_too_large","error_description":"No."}`, true},
		"too much for an uploaded cohort":   {"POST", "/api/projects/1/cohorts", 413, "application/json", `{"type":"client_error","code":"request_too_large","detail":"No.","attr":null}`, true},
		"a refused method":                  {"DELETE", "/api/projects/1/feature_flags/7/", 405, "", ``, true},
		"a method that nobody documented":   {"PUT", "/api/projects/1", 405, "application/json", `{"type":"invalid_request","code":"method_not_allowed","detail":"No.","attr":null}`, true},
		"a path that nobody documented":     {"GET", "/api/nothing", 404, "application/json", `{"type":"invalid_request","code":"not_found","detail":"No.","attr":null}`, true},
		"an answer that nobody documented":  {"GET", "/api/nothing", 200, "application/json", `{}`, false},
		"a list":                            {"GET", "/api/organizations/@current/members", 200, "application/json", `{"count":1,"next":null,"previous":null,"results":[{"id":"0190c7a4-0000-7000-8000-000000000001","user":` + member + `,"level":8,"joined_at":"2026-01-01T00:00:00.000000Z","updated_at":"2026-01-01T00:00:00.000000Z"}]}`, true},
		"a list with a strange item":        {"GET", "/api/organizations/@current/members", 200, "application/json", `{"count":1,"next":null,"previous":null,"results":[{"id":"0190c7a4-0000-7000-8000-000000000001","user":` + member + `,"level":8,"joined_at":"","updated_at":"","age":7}]}`, false},
		"a list without count":              {"GET", "/api/projects", 200, "application/json", `{"next":null,"previous":null,"results":[]}`, false},
		"fixed segments before parameters":  {"GET", "/api/projects/1/feature_flags/my_flags", 200, "application/json", `[]`, true},
		"a page for operators":              {"GET", "/_readiness", 503, "application/json", `{"status":"not ready","not_ready":{"database":"not available"}}`, true},
		"a flag value that is no flag's":    {"POST", "/decide?v=3", 200, "application/json", `{"featureFlags":{"a":1},"errorsWhileComputingFlags":false,"errorComputingFlags":false,"requestId":"0190c7a4-0000-7000-8000-000000000001","evaluatedAt":1}`, false},
		"a flag that is on, and a variant":  {"POST", "/decide?v=3", 200, "application/json", `{"featureFlags":{"a":true,"b":"blue"},"errorsWhileComputingFlags":false,"errorComputingFlags":false,"requestId":"0190c7a4-0000-7000-8000-000000000001","evaluatedAt":1}`, true},
		"the keys of flags, as version one": {"POST", "/decide", 200, "application/json", `{"featureFlags":["a"],"errorsWhileComputingFlags":false,"errorComputingFlags":false,"requestId":"0190c7a4-0000-7000-8000-000000000001","evaluatedAt":1}`, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := doc.Check(c.method, c.path, c.status, http.Header{"Content-Type": {c.kind}}, []byte(c.body))
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestServedPathsAreComparedWithDocumentedOnes(t *testing.T) {
	t.Parallel()
	doc, err := apitest.New([]byte(`{"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": {
		"/a/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {}}], "get": {"responses": {"200": {"description": "x"}}}}, "/b": {"get": {"responses": {"200": {"description": "x"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := doc.Differences([]string{"GET /a/:id", "POST /a/:id"})
	want := []string{"POST /a/{id} is served but not documented", "GET /b is documented but not served"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
