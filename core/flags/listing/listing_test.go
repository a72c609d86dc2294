package listing_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/guidonhq/guidon/core/flags/eval"
	"github.com/guidonhq/guidon/core/flags/listing"
	"github.com/guidonhq/guidon/core/web/webtest"
)

// definitions are those of project 1.
type definitions []eval.Definition

func (definitions) Set(int64) *eval.Set { return nil }

func (d definitions) Kept(id int64) (eval.ProjectDefinitions, bool) {
	return eval.ProjectDefinitions{Flags: d}, id == 1
}

func (d definitions) Definitions(context.Context, int64) (eval.ProjectDefinitions, error) {
	return eval.ProjectDefinitions{}, nil
}

func flag(id int64, key, filters string) eval.Definition {
	return eval.Definition{ID: id, ProjectID: 1, Key: key, Filters: json.RawMessage(filters), Active: true}
}

// get returns the body and the header of an answer.
func get(t *testing.T, url, key string, status int) (string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "https://shop.example")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("GET %s: %d %s, %v", url, res.StatusCode, body, err)
	}
	return string(body), res.Header
}

func TestActiveFlagsOfLibrariesBefore2022(t *testing.T) {
	t.Parallel()
	off, gone, sticky := flag(8, "off", `{}`), flag(9, "gone", `{}`), flag(7, "sticky", `{"groups":[{"properties":[],"rollout_percentage":50}]}`)
	off.Active, gone.Deleted, sticky.ExperienceContinuity = false, true, true
	d := definitions{
		flag(1, "half", `{"groups":[{"properties":[],"rollout_percentage":50}]}`),
		flag(2, "all", `{"groups":[{"properties":[],"rollout_percentage":null}]}`),
		flag(3, "fraction", `{"groups":[{"properties":[],"rollout_percentage":0.4}]}`),
		flag(4, "people", `{"groups":[{"properties":[{"key":"email","type":"person","value":"a","operator":"exact"}],"rollout_percentage":100}]}`),
		flag(5, "variants", `{"groups":[{"properties":[],"rollout_percentage":100}],"multivariate":{"variants":[{"key":"a","rollout_percentage":100}]}}`),
		flag(6, "beta", `{"groups":[{"properties":[],"rollout_percentage":0}],"feature_enrollment":true}`),
		sticky, off, gone,
	}
	base := webtest.Serve(t, webtest.DefaultKeys(), listing.NewHTTP(d, d))
	body, _ := get(t, base+"/api/feature_flag/?token=phc_test", "phx_test", 200)
	var list struct {
		Count   int
		Results []struct {
			Key     string
			Active  bool
			Simple  bool   `json:"is_simple_flag"`
			Rollout *int64 `json:"rollout_percentage"`
			Filters json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || list.Count != 7 || len(list.Results) != 7 {
		t.Fatalf("%s: %v", body, err)
	}
	simple := map[string]bool{"half": true, "all": true}
	for _, f := range list.Results {
		if f.Simple != simple[f.Key] || !f.Active || len(f.Filters) == 0 {
			t.Errorf("%+v", f)
		}
	}
	if r := list.Results[0].Rollout; r == nil || *r != 50 {
		t.Errorf("the rollout is %v", r)
	}
	get(t, base+"/api/feature_flag/?token=phc_none", "phx_test", 401)
	get(t, base+"/api/feature_flag/?token=phc_test", "", 401)
}

func TestEarlyAccessFeatures(t *testing.T) {
	t.Parallel()
	off := flag(4, "off", `{"feature_enrollment":true}`)
	off.Active = false
	d := definitions{
		flag(1, "plain", `{"super_groups":[],"feature_enrollment":false}`), flag(2, "beta", `{"feature_enrollment":true}`),
		flag(3, "old-beta", `{"super_groups":[{"properties":[]}]}`), off,
	}
	d[1].Name = "New editor"
	base := webtest.Serve(t, webtest.DefaultKeys(), listing.NewHTTP(d, d))
	const want = `{"earlyAccessFeatures":[` +
		`{"id":"2","name":"New editor","description":"","stage":"beta","documentationUrl":null,"payload":{},"flagKey":"beta"},` +
		`{"id":"3","name":"old-beta","description":"","stage":"beta","documentationUrl":null,"payload":{},"flagKey":"old-beta"}]}`
	for _, query := range []string{"token=phc_test", "token=phc_test&stage=concept&stage=beta"} {
		body, header := get(t, base+"/api/early_access_features/?"+query, "", 200)
		if body != want || header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
			t.Errorf("%s: %s, %v", query, body, header)
		}
	}
	if body, _ := get(t, base+"/api/early_access_features/?token=phc_test&stage=concept", "", 200); body != `{"earlyAccessFeatures":[]}` {
		t.Errorf("of another stage: %s", body)
	}
	_, header := get(t, base+"/api/early_access_features/?token=phc_none", "", 401)
	if header.Get("Access-Control-Allow-Origin") == "" {
		t.Error("a browser cannot read the error")
	}
}
