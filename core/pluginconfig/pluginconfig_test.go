package pluginconfig_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/guidonhq/guidon/core/activity"
	"github.com/guidonhq/guidon/core/auth"
	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/db/dbtest"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/sealed"
	"github.com/guidonhq/guidon/core/host"
	"github.com/guidonhq/guidon/core/host/settings"
	"github.com/guidonhq/guidon/core/pluginconfig"
)

const schema = `{"type": "object", "additionalProperties": false, "required": ["url"], "description": "Posts.", "properties": {
	"url": {"type": "string"}, "max": {"type": "integer", "minimum": 1}, "secret": {"type": "string", "writeOnly": true},
	"path": {"type": "string", "format": "path"}, "tls": {"type": "object", "properties": {"ca_file": {"type": "string", "format": "path"}}},
	"files": {"type": "array", "items": {"type": "string", "format": "path"}}, "database": {"type": "string", "writeOnly": true, "format": "postgres-url"},
	"headers": {"type": "object", "additionalProperties": {"type": "string"}, "writeOnly": true}}}`

// node is a server as far as the configuration of plugins is concerned.
type node struct {
	*pluginconfig.Service
	host      *host.Host
	instances *pluginconfig.Instances
	logs      *observer.ObservedLogs
}

func newNode(t *testing.T, d *db.DB, dir string, file settings.Config) *node {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	h, err := host.New(file, host.Deps{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{host: h, instances: pluginconfig.NewInstances(h, file), logs: logs}
	keys := func(create bool) (*sealed.Keyring, error) {
		if create {
			return sealed.Load(dir, "")
		}
		return sealed.LoadExisting(dir, "")
	}
	p := pluginconfig.Plugins{Names: []string{"post", "tell"}, Schema: func(name, kind string) []byte {
		if name == "post" && kind != "matcher" || name == "tell" && kind == "notifier" {
			return []byte(schema)
		}
		return nil
	}}
	n.Service = pluginconfig.New(d, dir, n.instances, p, keys, activity.NewAudit(d), zap.New(core))
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(t.Context()) })
	return n
}

func (n *node) names() []string {
	var out []string
	for _, s := range n.host.Status() {
		out = append(out, s.Name)
	}
	return out
}

var who = &auth.Principal{User: auth.User{Email: "op@example.com"}}

func change(name, config string) pluginconfig.Change {
	c := pluginconfig.Change{Name: name, Plugin: "post", Kind: "sink", Version: -1}
	if err := json.Unmarshal([]byte(config), &c.Config); err != nil {
		panic(err)
	}
	return c
}

func fileWith(instances ...settings.Instance) settings.Config {
	c := settings.Default()
	c.Instances = instances
	return c
}

// A refused configuration names the field and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, t.TempDir(), fileWith(settings.Instance{Name: "filed", Use: "post", Kind: "sink"}))
		large := `{"url": "` + strings.Repeat("x", 70_000) + `"}`
		for name, test := range map[string]struct {
			change     pluginconfig.Change
			attr, code string
		}{
			"unknown plugin":    {pluginconfig.Change{Name: "a", Plugin: "pots", Kind: "sink"}, "plugin", "unknown_plugin"},
			"kinds to choose":   {pluginconfig.Change{Name: "a", Plugin: "post"}, "kind", "invalid_input"},
			"wrong kind":        {pluginconfig.Change{Name: "a", Plugin: "tell", Kind: "sink"}, "kind", "invalid_input"},
			"name":              {change("A b", `{"url": "x"}`), "name", "invalid_input"},
			"reserved name":     {change("available", `{"url": "x"}`), "name", "invalid_input"},
			"missing":           {change("a", `{}`), "config.url", "invalid_config"},
			"unknown key":       {change("a", `{"url": "x", "ulr": 1}`), "config.ulr", "invalid_config"},
			"too small":         {change("a", `{"url": "x", "max": 0}`), "config.max", "invalid_config"},
			"reference":         {change("a", `{"url": "${file:/etc/passwd}"}`), "config.url", "unsupported_reference"},
			"secret reference":  {change("a", `{"url": "x", "headers": {"A": "${env:HOME}"}}`), "config.headers.A", "unsupported_reference"},
			"password in a URL": {change("a", `{"url": "nats://user:hunter2@host:4222"}`), "config.url", "secret_in_url"},
			"user in a URL":     {change("a", `{"url": "https://user@host/x"}`), "config.url", "secret_in_url"},
			"in a list":         {change("a", `{"url": "nats://one,nats://u:hunter2@two"}`), "config.url", "secret_in_url"},
			"without a scheme":  {change("a", `{"url": "user:hunter2@host"}`), "config.url", "secret_in_url"},
			"token":             {change("a", `{"url": "hunter2@host:4222"}`), "config.url", "secret_in_url"},
			"nothing stored":    {change("a", `{"url": "x", "secret": "********* (encrypted)"}`), "config.secret", "required"},
			"too large":         {change("a", large), "config", "too_large"},
			"of the file":       {change("filed", `{"url": "x"}`), "", "managed_by_file"},
			"not there yet":     {pluginconfig.Change{Name: "a", Plugin: "post", Kind: "sink", Config: map[string]any{"url": "x"}, Version: 3}, "", "version_conflict"},
		} {
			_, err := n.Set(t.Context(), who, test.change)
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error has the secret: %v", name, err)
			}
			if got := fault.From(err); err == nil || fault.CodeOf(err) != test.code || got.Attr != test.attr {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := n.names(); !slices.Equal(got, []string{"filed"}) {
			t.Errorf("the instances are %v", got)
		}
	})
}

// Texts with an @ are not taken for a password in a URL, and secret fields may have one.
func TestTextsWithoutUserInfo(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), t.TempDir(), fileWith())
	for _, config := range []string{
		`{"url": "ada@example.com"}`, `{"url": "Guidon: mail <guidon@example.com>"}`, `{"url": "https://example.com/@ada?to=a:b@c"}`, `{"url": "nats://host:4222"}`,
		`{"url": "host:9092"}`, `{"url": "x", "secret": "https://user:password@host"}`, `{"url": "@every 5m"}`,
	} {
		if _, err := n.Set(t.Context(), who, change("a", config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// Secrets are kept when they are not sent again, and are nowhere in clear: not in answers,
// the table, the activity log or the log.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		n := newNode(t, d, t.TempDir(), fileWith())
		const secret, header = "hunter2-secret", "Bearer hunter2-header"
		first, err := n.Set(t.Context(), who, change("a", fmt.Sprintf(`{"url": "x", "secret": %q, "headers": {"A": %q}}`, secret, header)))
		if err != nil {
			t.Fatal(err)
		}
		again, err := n.Set(t.Context(), who, change("a", `{"url": "y", "secret": "********* (encrypted)"}`))
		if err != nil || again.Version != 2 {
			t.Fatalf("%+v, %v", again, err)
		}
		_, broken := n.Set(t.Context(), who, change("a", fmt.Sprintf(`{"url": 1, "secret": %q, "max": 0}`, secret)))
		if broken == nil {
			t.Fatal("a broken config is stored")
		}
		if err := n.Remove(t.Context(), who, "b", -1); !fault.Is(err, fault.NotFound) {
			t.Errorf("remove of nothing: %v", err)
		}
		seen := fmt.Sprint(first, again, broken, n.logs.All())
		for _, table := range []string{"plugin_configs", "activity_log"} {
			var rows []map[string]any
			if err := d.Read(t.Context()).NewSelect().Table(table).Scan(t.Context(), &rows); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				for _, value := range row {
					if raw, ok := value.([]byte); ok {
						value = string(raw)
					}
					seen += fmt.Sprint(value)
				}
			}
		}
		if !strings.Contains(seen, "config.secret") || !strings.Contains(seen, "configured") {
			t.Errorf("the activity log does not say what changed: %s", seen)
		}
		if strings.Contains(seen, "hunter2") {
			t.Errorf("a secret is shown: %s", seen)
		}
		if !strings.Contains(first.YAML, "${env:A_HEADERS_A}") || again.Config["secret"] != settings.StoredSecret || again.Config["headers"] != nil {
			t.Errorf("%s\n%v", first.YAML, again.Config)
		}
		stale := change("a", `{"url": "z"}`)
		stale.Version = 1
		if _, err := n.Set(t.Context(), who, stale); fault.CodeOf(err) != "version_conflict" {
			t.Errorf("an old version: %v", err)
		}
		other := change("a", `{"url": "z", "secret": "********* (encrypted)"}`)
		other.Plugin, other.Kind = "tell", "notifier"
		if _, err := n.Set(t.Context(), who, other); fault.CodeOf(err) != "required" {
			t.Errorf("another plugin gets the secret: %v", err)
		}
	})
}

// The file comes first, and what is stored survives a restart.
func TestFileComesFirst(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		dir := t.TempDir()
		n := newNode(t, d, dir, fileWith())
		if _, err := n.Set(t.Context(), who, change("a", `{"url": "x"}`)); err != nil {
			t.Fatal(err)
		}
		filed := settings.Instance{Name: "a", Use: "tell", Kind: "notifier", Config: map[string]any{"url": "y", "secret": "of-the-file"}}
		if err := n.instances.Apply(t.Context(), fileWith(filed)); err != nil {
			t.Fatal(err)
		}
		got, err := n.Get(t.Context(), "a")
		if err != nil || got.ManagedBy != "file" || got.Plugin != "tell" || got.Config["secret"] != settings.StoredSecret || n.host.Status()[0].Use != "tell" {
			t.Errorf("%+v, %v", got, err)
		}
		if err := n.Remove(t.Context(), who, "a", -1); fault.CodeOf(err) != "managed_by_file" {
			t.Errorf("remove: %v", err)
		}
		_, err = n.Set(t.Context(), who, change("a", `{"url": "x", "secret": "typed"}`))
		if fault.CodeOf(err) != "managed_by_file" || !strings.Contains(err.Error(), "use: post") || !strings.Contains(err.Error(), "${env:A_SECRET}") || strings.Contains(err.Error(), "typed") {
			t.Errorf("set: %v", err)
		}
		restarted := newNode(t, d, dir, fileWith())
		if got := restarted.names(); !slices.Equal(got, []string{"a"}) || restarted.host.Status()[0].Use != "post" {
			t.Errorf("after a restart without the file: %v", got)
		}
		only := fileWith()
		only.ManagedBy = settings.ManagedByFile
		if got := newNode(t, d, dir, only).names(); len(got) != 0 {
			t.Errorf("with managed_by file: %v", got)
		}
	})
}

// Another node follows, and an instance whose secrets it cannot open hurts no other.
func TestOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if !d.Postgres() {
			t.Skip("SQLite has one process")
		}
		one, other := newNode(t, d, t.TempDir(), fileWith()), newNode(t, d, t.TempDir(), fileWith())
		for name, config := range map[string]string{"a": `{"url": "x", "secret": "s"}`, "b": `{"url": "x"}`} {
			if _, err := one.Set(t.Context(), who, change(name, config)); err != nil {
				t.Fatal(err)
			}
		}
		wait(t, "the other node has both", func() bool { return len(other.names()) == 2 })
		if other.logs.FilterMessageSnippet("plugin secrets decryption failed").Len() == 0 {
			t.Error("the missing key is not logged")
		}
		if err := other.Remove(t.Context(), who, "b", 1); err != nil {
			t.Fatal(err)
		}
		wait(t, "the first node has one", func() bool { return slices.Equal(one.names(), []string{"a"}) })
	})
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

// A secret of the file is shown only if it is one reference and nothing else.
func TestSecretsOfTheFileAreNotShown(t *testing.T) {
	t.Parallel()
	headers := map[string]any{"Whole": "${env:TOKEN}", "File": "${file:/run/token}", "Around": "Bearer hunter2 ${env:TOKEN}", "Behind": "${env:TOKEN}hunter2", "Two": "${env:A}hunter2${env:B}", "Escaped": "$${hunter2}", "Open": "${hunter2", "Plain": "hunter2"}
	n := newNode(t, dbtest.SQLite(t), t.TempDir(), fileWith(settings.Instance{Name: "a", Use: "post", Kind: "sink", Config: map[string]any{
		"url": "x", "secret": "postgres://u:hunter2@${env:HOST}/db", "headers": headers,
	}}))
	got, err := n.Get(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "hunter2") {
		t.Errorf("a secret is shown: %s", raw)
	}
	shown, _ := got.Config["headers"].(map[string]any)
	if got.Config["secret"] != settings.StoredSecret || shown["Whole"] != "${env:TOKEN}" || shown["File"] != "${file:/run/token}" || shown["Plain"] != settings.StoredSecret {
		t.Errorf("%v", got.Config)
	}
	if !strings.Contains(got.YAML, "Whole: ${env:TOKEN}") || !strings.Contains(got.YAML, "Around: ${env:A_HEADERS_AROUND}") {
		t.Error(got.YAML)
	}
}

// A stored instance that is not valid any more stops neither the start, nor a reload, nor
// the others.
func TestStoredInstanceThatIsNotValid(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		dir := t.TempDir()
		n := newNode(t, d, dir, fileWith())
		for _, name := range []string{"a", "b"} {
			if _, err := n.Set(t.Context(), who, change(name, `{"url": "x"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.Write(t.Context()).NewUpdate().Table("plugin_configs").Set("kind = 'gone'").Where("name = 'a'").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		restarted := newNode(t, d, dir, fileWith())
		if got := restarted.names(); !slices.Equal(got, []string{"b"}) || restarted.logs.FilterMessage("stored plugin config invalid: instance not started").Len() != 1 {
			t.Errorf("after a restart: %v", got)
		}
		if err := restarted.instances.Apply(t.Context(), fileWith(settings.Instance{Name: "filed", Use: "post", Kind: "sink"})); err != nil {
			t.Errorf("reload: %v", err)
		}
	})
}

// Stored instances that do not run are listed with the reason: one that is not valid any more,
// one whose name the file has, and all of them once the file manages the plugins.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	d, dir := dbtest.SQLite(t), t.TempDir()
	n := newNode(t, d, dir, fileWith())
	for _, name := range []string{"a", "b"} {
		if _, err := n.Set(t.Context(), who, change(name, `{"url": "x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if out := n.instances.LeftOut(); len(out) != 0 {
		t.Fatalf("both run, left out are %+v", out)
	}
	if _, err := d.Write(t.Context()).NewUpdate().Table("plugin_configs").Set("kind = 'gone'").Where("name = 'a'").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	n = newNode(t, d, dir, fileWith())
	check := func(what string, want ...string) {
		t.Helper()
		got := []string{}
		for _, st := range n.instances.LeftOut() {
			got = append(got, st.Name+" "+string(st.State)+" "+st.Reason)
			if st.LastError == "" || st.Since.IsZero() {
				t.Errorf("%s: %+v has no cause or time", what, st)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: left out are %q; want %q", what, got, want)
		}
	}
	check("not valid", "a misconfigured not_valid")
	if err := n.instances.Apply(t.Context(), fileWith(settings.Instance{Name: "b", Use: "post", Kind: "sink", Config: map[string]any{"url": "y"}})); err != nil {
		t.Fatal(err)
	}
	check("in the file too", "a misconfigured not_valid", "b  ")
	managed := fileWith()
	managed.ManagedBy = settings.ManagedByFile
	if err := n.instances.Apply(t.Context(), managed); err != nil {
		t.Fatal(err)
	}
	check("managed by file", "a misconfigured not_valid", "b stopped managed_by_file")
	if err := n.Remove(t.Context(), who, "a", 1); err == nil {
		t.Error("the API removes what the file manages")
	}
	if err := n.instances.Apply(t.Context(), fileWith()); err != nil {
		t.Fatal(err)
	}
	if err := n.Remove(t.Context(), who, "a", 1); err != nil {
		t.Fatal(err)
	}
	check("removed")
}

// A stored change that could not be applied is applied later, also without another node.
func TestStoredChangeIsAppliedLater(t *testing.T) {
	t.Parallel()
	n := newNode(t, dbtest.SQLite(t), t.TempDir(), fileWith())
	good := fileWith()
	bad := good
	bad.LogLevel = "broken"
	n.instances.SetFile(bad)
	if _, err := n.Set(t.Context(), who, change("a", `{"url": "x"}`)); err != nil {
		t.Fatal(err)
	}
	if got := n.names(); len(got) != 0 {
		t.Fatalf("applied with a broken section: %v", got)
	}
	n.instances.SetFile(good)
	wait(t, "the stored instance runs", func() bool { return slices.Equal(n.names(), []string{"a"}) })
}
