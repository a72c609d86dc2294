package standby

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/auth"
)

func sample(at time.Time) *content {
	return &content{TakenAt: at, Projects: []auth.Project{{ID: 1, Name: "p"}}, ProjectKeys: []projectKey{{Digest: digestOf("phc_x"), ProjectID: 1}}}
}

func TestUnusableSnapshotsAreIgnored(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	path := filepath.Join(t.TempDir(), fileName)
	if err := writeFile(path, sample(now)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := readFile(path, now, time.Hour); err != nil || len(c.Projects) != 1 {
		t.Fatalf("a good snapshot: %v", err)
	}
	text := string(good)
	for name, c := range map[string]struct {
		raw  string
		at   time.Time
		want string
	}{
		"empty":               {"", now, "not a snapshot"},
		"another file":        {"{}\n{}", now, "not a snapshot"},
		"a newer version":     {strings.Replace(text, `"version":1`, `"version":2`, 1), now, "has version 2"},
		"a flipped character": {strings.Replace(text, `"name":"p"`, `"name":"q"`, 1) + "", now, "checksum"},
		"truncated":           {text[:len(text)-1], now, "checksum"},
		"too old":             {text, now.Add(2 * time.Hour), "more than standby.max_age"},
		"from the future":     {text, now.Add(-time.Hour), "from the future"},
	} {
		raw := c.raw
		if name == "a flipped character" {
			raw = strings.Replace(text, digestOf("phc_x"), digestOf("phc_y"), 1)
		}
		if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readFile(path, c.at, time.Hour); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// Every truncation and every flipped byte of a snapshot is noticed.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	path := filepath.Join(t.TempDir(), fileName)
	if err := writeFile(path, sample(now)); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bodyAt := strings.IndexByte(string(good), '\n') + 1
	for i := bodyAt; i < len(good); i++ {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		for _, raw := range [][]byte{bad, good[:i]} {
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readFile(path, now, time.Hour); err == nil {
				t.Fatalf("damage at byte %d was not noticed", i)
			}
		}
	}
}

// A process that is killed while it writes leaves a partial file beside the
// snapshot: the old snapshot is read, and the next write replaces both.
func TestInterruptedWrite(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	path := filepath.Join(t.TempDir(), fileName)
	if err := writeFile(path, sample(now)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(`{"format":"gui`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path, now, time.Hour); err != nil {
		t.Errorf("the old snapshot: %v", err)
	}
	if err := writeFile(path, sample(now.Add(time.Second))); err != nil {
		t.Fatal(err)
	}
	c, err := readFile(path, now, time.Hour)
	if err != nil || !c.TakenAt.Equal(now.Add(time.Second)) {
		t.Errorf("the new snapshot: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the partial file is still there: %v", err)
	}
}
