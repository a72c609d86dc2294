package app_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/guidonhq/guidon/core/auth"
)

// recordedKey is the project key in the recordings.
const recordedKey = "phc_fake_project_key_for_tests_only"

// TestRecordedRequestsReplay sends the recorded requests of unmodified clients, old
// and new and in every encoding, to a whole server and checks the statuses.
func TestRecordedRequestsReplay(t *testing.T) {
	t.Parallel()
	s := serve(t)
	keys, err := auth.New(auth.DefaultConfig(), s.DB, zap.NewNop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.CreateProjectKey(t.Context(), auth.NewProjectKey{ProjectID: 1, Label: "recorded", Key: recordedKey}); err != nil {
		t.Fatal(err)
	}
	s.mustManage(t, http.MethodPost, "/api/projects/1/feature_flags/", `{"key":"rec-on","filters":{"groups":[{"properties":[],"rollout_percentage":100}],"payloads":{"true":"{\"a\":1}"}}}`)
	files, err := filepath.Glob("../core/web/body/testdata/wire/*.jsonl")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			for _, r := range recordings(t, file) {
				status, body := s.replay(t, r)
				if status != r.want() {
					t.Errorf("request %d, %s %s?%s: %d %s", r.N, r.Method, r.Path, r.Query, status, body)
				}
				if capturing[strings.TrimSuffix(r.Path, "/")] && status == http.StatusOK && body != `{"status":1}` {
					t.Errorf("request %d, %s: got %s", r.N, r.Path, body)
				}
			}
		})
	}
}

var capturing = map[string]bool{"/batch": true, "/e": true, "/i/v0/e": true, "/engage": true, "/capture": true}

type recording struct {
	N       int
	Method  string
	Path    string
	Query   string
	Headers map[string]string
	BodyB64 string `json:"body_b64"`
}

// want returns the expected status: 204 for a beacon and for the preflight of
// /flags, else 200.
func (r recording) want() int {
	if strings.Contains(r.Query, "beacon=1") || r.Method == http.MethodOptions && strings.HasPrefix(r.Path, "/flags") {
		return http.StatusNoContent
	}
	return http.StatusOK
}

func recordings(t *testing.T, file string) []recording {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recording
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%d recordings: %v", len(out), err)
	}
	return out
}

func (s *server) replay(t *testing.T, r recording) (int, string) {
	t.Helper()
	body, err := base64.StdEncoding.DecodeString(r.BodyB64)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(r.Method, s.URL+r.Path+"?"+r.Query, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	if strings.Contains(r.Path, "local_evaluation") || strings.Contains(r.Path, "definitions") || strings.Contains(r.Path, "remote_config") {
		req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
		req.Header.Del("If-None-Match")
	}
	return s.send(t, req)
}

func (s *server) mustManage(t *testing.T, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequest(method, s.url(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.PersonalKey)
	req.Header.Set("Content-Type", "application/json")
	status, answer := s.send(t, req)
	if status >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

func (s *server) send(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}
