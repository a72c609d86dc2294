package sdk

import (
	"context"
	"fmt"
	"reflect"

	"github.com/guidonhq/guidon/sdk/pb/pluginv1"
)

// value is the author's value with the SDK's state for it.
type value interface {
	Close(ctx context.Context) error
	// author returns the author's own value, for its optional interfaces.
	author() any
}

// sinkValue is a sink.
type sinkValue struct{ Sink }

func (v sinkValue) author() any { return v.Sink }

// kind is one of the things a plugin offers.
type kind struct {
	number pluginv1.Kind
	name   string
	make   func() value
}

// kinds are what the plugin offers, in the order of their numbers.
func (p Plugin) kinds() []kind {
	var out []kind
	if p.Sink != nil {
		out = append(out, kind{pluginv1.Kind_KIND_SINK, "sink", func() value { return sinkValue{p.Sink()} }})
	}
	if p.Notifier != nil {
		out = append(out, kind{pluginv1.Kind_KIND_NOTIFIER, "notifier", func() value { return notifierValue{p.Notifier()} }})
	}
	if p.Matcher != nil {
		out = append(out, kind{pluginv1.Kind_KIND_MATCHER, "matcher", func() value { return newMatcherValue(p.Matcher()) }})
	}
	return out
}

// kind returns the requested kind; unspecified means the first.
func (p Plugin) kind(number pluginv1.Kind) (kind, error) {
	for _, k := range p.kinds() {
		if k.number == number || number == pluginv1.Kind_KIND_UNSPECIFIED {
			return k, nil
		}
	}
	return kind{}, Errorf(ClassUnsupported, "kind_not_offered", "the plugin %s is not of that kind", p.Name)
}

// config returns a config at its defaults, or nil for a kind that has none.
func (k kind) config() any {
	if c, ok := k.make().author().(Configured); ok {
		return c.Config()
	}
	return nil
}

// features are the optional interfaces that the author's type implements.
func (k kind) features() []string {
	var out []string
	author := k.make().author()
	add := func(implemented bool, feature string) {
		if implemented {
			out = append(out, k.name+"/"+feature)
		}
	}
	_, checks := author.(Checker)
	add(checks, "check/v1")
	_, flushes := author.(Flusher)
	add(flushes && k.number == pluginv1.Kind_KIND_SINK, "flush/v1")
	_, queries := author.(Querier)
	add(queries && k.number == pluginv1.Kind_KIND_SINK, "query/v1alpha1")
	_, previews := author.(Previewer)
	add(previews && k.number == pluginv1.Kind_KIND_NOTIFIER, "preview/v1")
	_, counts := author.(Metricser)
	add(counts, "metrics/v1")
	return out
}

// pointers lists the places of secrets in the kind's config.
func pointers(config any) []string {
	if config == nil {
		return nil
	}
	return secretPointers(reflect.TypeOf(config).Elem(), "")
}

// optional are the interfaces that a plugin may implement, apart from that of its kind.
func (k kind) optional() []reflect.Type {
	all := []reflect.Type{reflect.TypeFor[Configured](), reflect.TypeFor[Validator](), reflect.TypeFor[Checker](), reflect.TypeFor[Metricser]()}
	switch k.number {
	case pluginv1.Kind_KIND_SINK:
		return append(all, reflect.TypeFor[Flusher](), reflect.TypeFor[Querier]())
	case pluginv1.Kind_KIND_NOTIFIER:
		return append(all, reflect.TypeFor[Previewer]())
	default:
		return append(all, reflect.TypeFor[DataVersioner]())
	}
}

// checkOptional refuses a value with a method of an optional interface that does not
// implement the interface: the method would never be called.
func checkOptional(author any, optional ...reflect.Type) error {
	t := reflect.TypeOf(author)
	for _, want := range optional {
		if t == nil || t.Implements(want) {
			continue
		}
		for m := range want.Methods() {
			if has, ok := t.MethodByName(m.Name); ok {
				return fmt.Errorf("%s has a method %s of another signature than sdk.%s, which would never be called: it is %s, want %s (write var _ sdk.%s = %s(nil))",
					t, m.Name, want.Name(), reflect.ValueOf(author).Method(has.Index).Type(), m.Type, want.Name(), t)
			}
			if _, ok := reflect.PointerTo(t).MethodByName(m.Name); ok && t.Kind() != reflect.Pointer {
				return fmt.Errorf("%s has the method %s of sdk.%s only as a pointer: return a *%s", t, m.Name, want.Name(), t)
			}
		}
	}
	return nil
}
