package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/config"
	"github.com/guidonhq/guidon/core/host/secret"
)

type nested struct {
	Name string `koanf:"name"`
	Port int16  `koanf:"port"`
}

type squashed struct {
	Level string `koanf:"level"`
}

// settings has a field of each type that settings have.
type settings struct {
	squashed  `koanf:",squash"`
	Text      string            `koanf:"text"`
	Late      string            `koanf:"late" expand:"false"`
	Wait      time.Duration     `koanf:"wait"`
	Count     int               `koanf:"count"`
	Size      int64             `koanf:"max_bytes"`
	Share     float64           `koanf:"share"`
	On        bool              `koanf:"on"`
	List      []string          `koanf:"list"`
	Numbers   []int64           `koanf:"numbers"`
	Items     []nested          `koanf:"items"`
	Section   nested            `koanf:"section"`
	Limits    map[string]int64  `koanf:"limits"`
	Variables map[string]string `koanf:"variables"`
	Free      map[string]any    `koanf:"free"`
	hidden    int
}

var variables = map[string]string{"WORD": "secret-word", "WAIT": "7s", "URL": "postgres://u:p%40ssword@h/d"}

func decode(given map[string]any) (settings, *secret.Redactor, error) {
	s := settings{Text: "before", Wait: time.Minute, hidden: 1}
	r := &secret.Redactor{}
	err := config.Decode(&s, given, config.Source{Secrets: r, LookupEnv: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}})
	return s, r, err
}

func TestDecodeSetsEachType(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		key   string
		given any
		field func(settings) any
		want  any
	}{
		{"text", "plain", func(s settings) any { return s.Text }, "plain"},
		{"text", 12, func(s settings) any { return s.Text }, "12"},
		{"text", true, func(s settings) any { return s.Text }, "true"},
		{"text", nil, func(s settings) any { return s.Text }, "before"},
		{"text", "a ${env:WORD} b", func(s settings) any { return s.Text }, "a secret-word b"},
		{"text", "${file:" + file + "}", func(s settings) any { return s.Text }, "from-a-file"},
		{"text", "$${env:WORD} costs $5", func(s settings) any { return s.Text }, "${env:WORD} costs $5"},
		{"late", "${env:WORD}", func(s settings) any { return s.Late }, "${env:WORD}"},
		{"level", "debug", func(s settings) any { return s.Level }, "debug"},
		{"wait", "1m30s", func(s settings) any { return s.Wait }, 90 * time.Second},
		{"wait", 0, func(s settings) any { return s.Wait }, time.Duration(0)},
		{"wait", "0", func(s settings) any { return s.Wait }, time.Duration(0)},
		{"wait", "${env:WAIT}", func(s settings) any { return s.Wait }, 7 * time.Second},
		{"count", 7, func(s settings) any { return s.Count }, 7},
		{"count", "7", func(s settings) any { return s.Count }, 7},
		{"count", 1e6, func(s settings) any { return s.Count }, 1000000},
		{"max_bytes", "20MB", func(s settings) any { return s.Size }, int64(20e6)},
		{"max_bytes", 512, func(s settings) any { return s.Size }, int64(512)},
		{"share", 1, func(s settings) any { return s.Share }, 1.0},
		{"share", "0.25", func(s settings) any { return s.Share }, 0.25},
		{"on", "true", func(s settings) any { return s.On }, true},
		{"list", []any{"a", "${env:WORD}"}, func(s settings) any { return s.List }, []string{"a", "secret-word"}},
		{"list", "a, b,", func(s settings) any { return s.List }, []string{"a", "b"}},
		{"numbers", []any{1, 2}, func(s settings) any { return s.Numbers }, []int64{1, 2}},
		{"items", []any{map[string]any{"name": "x", "port": 1}}, func(s settings) any { return s.Items }, []nested{{"x", 1}}},
		{"limits", map[string]any{"7": 5}, func(s settings) any { return s.Limits }, map[string]int64{"7": 5}},
		{"variables", map[string]any{"A": "${env:WORD}", "B": 1}, func(s settings) any { return s.Variables }, map[string]string{"A": "${env:WORD}", "B": "1"}},
		{"free", map[string]any{"x": "${env:WORD}"}, func(s settings) any { return s.Free }, map[string]any{"x": "${env:WORD}"}},
	}
	for _, c := range cases {
		got, _, err := decode(map[string]any{c.key: c.given})
		if err != nil || !reflect.DeepEqual(c.field(got), c.want) {
			t.Errorf("%s: %v: got %#v and %v, want %#v", c.key, c.given, c.field(got), err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	cases := []struct {
		key   string
		given any
		want  string
	}{
		{"wait", 5, "wait: 5 is a duration without a unit: write one such as 5s"},
		{"wait", 1.5, "wait: 1.5 is a duration without a unit: write one such as 1.5s"},
		{"wait", "5", `wait: "5" is a duration without a unit: write one such as 5s`},
		{"wait", "7d", `wait: "7d" is not a duration: the largest unit is the hour, write 168h`},
		{"wait", "soon", `wait: "soon" is not a duration: write one such as 250ms`},
		{"wait", true, "wait: true is not a duration"},
		{"count", 1.5, "count: 1.5 is not a whole number"},
		{"count", "1.5", `count: "1.5" is not a whole number`},
		{"count", 1e30, "count: 1e+30 is too large"},
		{"count", "99999999999999999999", "is too large"},
		{"count", uint64(1 << 63), "is too large"},
		{"count", "many", `count: "many" is not a whole number`},
		{"count", true, "count: true is not a whole number"},
		{"count", []any{1}, "is not a whole number"},
		{"section", map[string]any{"port": 70000}, "section.port: 70000 is too large"},
		{"max_bytes", "lots", `max_bytes: "lots" is not a size: write one such as 512KiB`},
		{"max_bytes", 1e30, "is too large"},
		{"share", "NaN", "is not a finite number"},
		{"share", "half", "is not a number"},
		{"on", "yes", `on: "yes" must be true or false`},
		{"on", 1, "on: 1 must be true or false"},
		{"text", 1.10, "text: 1.1 is not a text: write it in quotes"},
		{"text", map[string]any{}, "is not a text"},
		{"list", 5, `"list" must be a list`},
		{"limits", 5, "limits: must be a map"},
		{"section", 5, `"section" holds settings such as "section.name"`},
		{"cuont", 5, `unknown key "cuont"; did you mean "count"?`},
		{"text", "${env:MISSING}", "text: ${env:MISSING}: the variable is not set"},
		{"text", "${file:" + missing + "}", "no such file"},
		{"text", "${vault:x}", "want ${env:NAME} or ${file:/path}"},
		{"count", "${env:WORD}", "count: the value of ${env:WORD} is not a whole number"},
	}
	for _, c := range cases {
		_, _, err := decode(map[string]any{c.key: c.given})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: got %v, want %q", c.key, c.given, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), variables["WORD"]) {
			t.Errorf("%s: %v: the error contains a secret: %v", c.key, c.given, err)
		}
	}
}

func TestDecodeReportsEveryError(t *testing.T) {
	t.Parallel()
	s, _, err := decode(map[string]any{"wait": 5, "count": 1.5, "text": "set", "nmae": 1})
	for _, want := range []string{"wait:", "count:", `"nmae"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	if s.Text != "set" {
		t.Error("an error in one setting kept another one from being set")
	}
}

func TestDecodeCollectsSecrets(t *testing.T) {
	t.Parallel()
	_, secrets, err := decode(map[string]any{"text": "${env:URL}", "level": "info"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{variables["URL"], "p@ssword", "p%40ssword"} {
		if got := secrets.Redact("x " + text); got != "x [secret]" {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := secrets.Redact("info"); got != "info" {
		t.Errorf("a text without a reference became %q", got)
	}
}
