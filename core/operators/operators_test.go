package operators_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/match"
	"github.com/guidonhq/guidon/core/operators"
	"github.com/guidonhq/guidon/sdk"
)

func ids(h *service) string {
	var all []string
	for _, o := range h.List() {
		all = append(all, o.ID)
	}
	return strings.Join(all, " ")
}

func TestOperatorsFollowTheirPlugins(t *testing.T) {
	t.Parallel()
	later := &fake{name: "later", away: true}
	h := newService(t, nil, later)
	var told atomic.Int32
	h.OnChange(func(context.Context) { told.Add(1) })
	if got := ids(h); got != "later/pure" {
		t.Fatalf("before it runs: %s", got)
	}
	h.start(t)

	// The plugin starts and reports more than its description has.
	later.set(func() {
		later.away, later.version = false, 1
		later.offers = []sdk.Operator{{ID: "later/pure", Purity: sdk.Pure}, {ID: "later/more"}}
	})
	eventually(t, "its operators", func() bool { return ids(h) == "later/more later/pure" && told.Load() > 0 })

	// Another plugin has one of the operators, too: the first one is used.
	other := opened("other")
	other.offers = append(other.offers, sdk.Operator{ID: "later/more"})
	before := told.Load()
	h.mu.Lock()
	h.fakes = append(h.fakes, other)
	h.mu.Unlock()
	eventually(t, "the other's operators", func() bool { return strings.Contains(ids(h), "other/pure") && told.Load() > before })
	if o, _ := h.Operator("later/more"); o.Source != "later" {
		t.Errorf("%s answers", o.Source)
	}

	// The first plugin is removed from the configuration.
	h.mu.Lock()
	h.fakes = []*fake{other}
	h.mu.Unlock()
	eventually(t, "the other answers", func() bool {
		o, _ := h.Operator("later/more")
		_, gone := h.Operator("later/pure")
		return o.Source == "other" && !gone
	})
}

func TestNewOperatorIsFoundImmediately(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.version, f.offers = 0, nil
	h := newService(t, nil, f)
	if _, ok := h.Operator("t/new"); ok {
		t.Fatal("known too early")
	}
	f.set(func() {
		f.version, f.offers = 1, []sdk.Operator{{ID: "t/new", Missing: sdk.MissingMatches, CEL: "property == value"}}
	})
	o, ok := h.Operator("t/new") // without a refresh since
	if !ok || o.Missing != match.True || o.Equivalent != "property == value" || o.Source != "t" {
		t.Errorf("%+v %v", o, ok)
	}
}

func TestPluginChecksValues(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.refuses, f.reads = `"bad"`, []string{"lat", "lng"}
	h := newService(t, nil, f)
	for name, registry := range map[string]match.Registry{"stored": h, "saved": h.ForSave()} {
		o, _ := registry.Operator("t/pure")
		made, err := o.Compile([]byte(`"good"`))
		if err != nil || made.Program == "" || made.Open || !slices.Equal(made.Reads, f.reads) {
			t.Errorf("%s: %+v %v", name, made, err)
		}
		_, err = o.Compile([]byte(`"bad"`))
		if e := fault.From(err); e == nil || e.Kind != fault.Invalid || e.Code != "invalid_value" || e.Attr != "value" || e.Detail != "at /3: is odd" {
			t.Errorf("%s: %+v", name, e)
		}
		if _, err = o.Compile([]byte(`{`)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.compiled != 2 {
		t.Errorf("asked %d times about two values", f.compiled)
	}
}

func TestFilterCanBeSavedWhilePluginIsAway(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.away = true
	h := newService(t, func(c *operators.Config) { c.CompileTimeout = 10 * time.Millisecond }, f)
	o, _ := h.ForSave().Operator("t/pure")
	if made, err := o.Compile([]byte(`"x"`)); err != nil || !made.Open {
		t.Errorf("%+v %v", made, err)
	}
	_, err := o.Compile([]byte(`7`)) // violates the schema
	if e := fault.From(err); e == nil || e.Attr != "value" || !strings.Contains(e.Detail, "string") {
		t.Errorf("%+v", err)
	}
}

func TestStoredFiltersAreCompiledWhenPluginReturns(t *testing.T) {
	t.Parallel()
	f := opened("t")
	f.away = true
	h := newService(t, nil, f)
	o, _ := h.Operator("t/pure")
	if made, err := o.Compile([]byte(`"x"`)); err != nil || !made.Open {
		t.Fatalf("%+v %v", made, err)
	}
	compiled := make(chan bool, 100)
	h.OnChange(func(context.Context) {
		o, _ := h.Operator("t/pure")
		made, err := o.Compile([]byte(`"x"`))
		compiled <- err == nil && !made.Open
	})
	h.start(t)
	f.set(func() { f.away = false })
	select {
	case ok := <-compiled:
		if !ok {
			t.Error("still open")
		}
	case <-time.After(time.Minute):
		t.Fatal("OnChange was not called")
	}
}

func TestValidateConfig(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*operators.Config){
		"compile_timeout": func(c *operators.Config) { c.CompileTimeout = 0 },
		"action_timeout":  func(c *operators.Config) { c.ActionTimeout = time.Hour },
		"max_in_flight":   func(c *operators.Config) { c.MaxInFlight = 0 },
		"cache_bytes":     func(c *operators.Config) { c.CacheBytes = -1 },
	} {
		cfg := operators.DefaultConfig()
		change(&cfg)
		if _, err := operators.New(cfg, func() []operators.Matcher { return nil }, nil, nil, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
