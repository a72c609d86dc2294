package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/core/definitionfile"
	"github.com/guidonhq/guidon/core/web"
)

// seedFile parses a seed file.
func seedFile(t *testing.T, text string) *definitionfile.File {
	t.Helper()
	f, err := definitionfile.Parse("seed.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSeed checks that two servers with the same seed file have the same ids, keys and
// answers.
func TestSeed(t *testing.T) {
	t.Parallel()
	text := read(t, "../examples/ci/seed.yaml")
	var answers []string
	for range 2 {
		s := serveWith(t, func(o *app.Options) { o.Seed = seedFile(t, text) })
		if s.Seeded == nil || s.Seeded.PersonalKey != "phx_ci_personal_key_of_tests" || len(s.Seeded.Projects) != 1 || s.Seeded.Projects[0].Key != "phc_ci_shop" {
			t.Fatalf("seeded %+v", s.Seeded)
		}
		var all strings.Builder
		for _, id := range []string{"ada", "grace", "linus", "visitor-1", "visitor-2"} {
			_, answer, _ := s.request(t, "POST", s.URL+"/decide?v=3", `{"api_key":"phc_ci_shop","distinct_id":"`+id+`","person_properties":{"email":"`+id+`@example.com"}}`)
			var out struct {
				Flags map[string]any `json:"featureFlags"`
			}
			if err := json.Unmarshal([]byte(answer), &out); err != nil {
				t.Fatal(err)
			}
			if out.Flags["beta"] != true || out.Flags["everyone"] != true || (out.Flags["invited"] == true) != (id == "ada" || id == "grace") {
				t.Errorf("%s: %v", id, out.Flags)
			}
			line, _ := json.Marshal(out.Flags)
			all.Write(line)
		}
		s.PersonalKey = "phx_ci_key_of_ada"
		for _, path := range []string{"feature_flags/?limit=10", "cohorts/", "actions/"} {
			var page struct {
				Results []struct {
					ID   int64  `json:"id"`
					Key  string `json:"key"`
					Name string `json:"name"`
				} `json:"results"`
			}
			if err := json.Unmarshal([]byte(s.mustManage(t, "GET", "/api/projects/1/"+path, "")), &page); err != nil {
				t.Fatal(err)
			}
			line, _ := json.Marshal(page)
			all.Write(line)
		}
		answers = append(answers, all.String())
	}
	if answers[0] != answers[1] {
		t.Errorf("two servers differ:\n%s\n%s", answers[0], answers[1])
	}
}

// TestSeedErrorsNameTheLine checks that a definition that the server refuses ends the
// start with its line.
func TestSeedErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"projects:\n- name: Shop\n  flags:\n  - key: a\n  - key: b c\n":                                                                  `seed.yaml:5: flag b c: key: `,
		"projects:\n- name: Shop\n  flags:\n  - key: a\n    filters: {groups: [{properties: [{key: id, type: cohort, value: Nine}]}]}\n": `seed.yaml:4: flag a: cohort "Nine" does not exist`,
		"personal_key: phx_1\n":                           `seed.yaml:1: personal_key: key: A personal key is phx_ and 8 to 64`,
		"projects:\n- name: Shop\n  key: phx_nope_nope\n": `seed.yaml:2: project Shop: key: A project key is`,
		"users:\n- email: ada\n":                          `seed.yaml:2: user ada: `,
	} {
		cfg := app.DefaultConfig()
		cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
		s, err := app.Start(t.Context(), cfg, app.Options{Version: "test", Seed: seedFile(t, text)})
		if err == nil {
			_ = s.Stop()
			t.Errorf("%q starts a server", text)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// TestInterruptedSeedIsReported checks that a start with a seed file fails after one that
// ended in the middle, and that one without a seed file goes on.
func TestInterruptedSeedIsReported(t *testing.T) {
	t.Parallel()
	cfg := app.DefaultConfig()
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	start := func(text string) error {
		opts := app.Options{Version: "test"}
		if text != "" {
			opts.Seed = seedFile(t, text)
		}
		s, err := app.Start(t.Context(), cfg, opts)
		if err == nil {
			err = s.Stop()
		}
		return err
	}
	if err := start("projects:\n- name: Shop\n  flags: [{key: a}, {key: b c}, {key: d e}]\n"); err == nil || strings.Count(err.Error(), "seed.yaml:3: flag") != 2 {
		t.Errorf("got %v", err)
	}
	if err := start("projects:\n- name: Shop\n"); err == nil || !strings.Contains(err.Error(), `before it had made everything of the seed file "seed.yaml"`) {
		t.Errorf("got %v", err)
	}
	if err := start(""); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(cfg.DataDir, "seed.incomplete")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the database has projects
		if err := start("projects:\n- name: Shop\n"); err != nil {
			t.Error(err)
		}
	}
}

// TestSeedIgnoresTheManageRate checks that a file with more definitions than the burst
// of http.manage_rate fills a server.
func TestSeedIgnoresTheManageRate(t *testing.T) {
	t.Parallel()
	cfg := app.DefaultConfig()
	cfg.DataDir, cfg.HTTP.Address, cfg.HTTP.AdminAddress = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	cfg.HTTP.ManageRate = web.Rate{PerSecond: 0.001, Burst: 1}
	s, err := app.Start(t.Context(), cfg, app.Options{Version: "test", Seed: seedFile(t, "projects:\n- name: Shop\n  flags: [{key: a}, {key: b}, {key: c}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}
