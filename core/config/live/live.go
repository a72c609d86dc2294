// Package live holds settings that change while the server runs.
//
// A field of a settings struct with the tag live:"true" may change without a restart,
// and so may all fields below it. A Value holds the settings that are in force. Modules
// read them with Load for each use, or Follow them to rebuild what they derive from
// them. A reload of the config computes the settings that come into force with Merge: a
// changed setting without the tag keeps its value until the restart, and is named.
//
// So the tag is the only place that says which settings are live: the reload, the
// commands and the documentation read it. A test of app changes each of them in a
// running server.
package live

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guidonhq/guidon/core/config"
)

// Value holds settings. Its methods may be called concurrently.
type Value[T any] struct {
	current atomic.Pointer[T]

	mu        sync.Mutex // orders changes
	followers []func(*T)
}

// New returns a Value with settings.
func New[T any](settings T) *Value[T] {
	v := &Value[T]{}
	v.current.Store(&settings)
	return v
}

// Load returns the settings that are in force, which must not be changed. It costs one
// atomic load.
func (v *Value[T]) Load() *T { return v.current.Load() }

// Store puts settings in force and calls the followers, in their order.
func (v *Value[T]) Store(settings T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.Store(&settings)
	for _, f := range v.followers {
		f(&settings)
	}
}

// Follow calls f with the settings that are in force, and again after each change. f
// must be quick, cannot fail, and must not use v but for Load.
func (v *Value[T]) Follow(f func(*T)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(v.current.Load())
	v.followers = append(v.followers, f)
}

// Section returns a Value with a part of the settings of v, which follows v.
func Section[T, S any](v *Value[T], part func(*T) S) *Value[S] {
	s := &Value[S]{}
	v.Follow(func(settings *T) { s.Store(part(settings)) })
	return s
}

// Merge returns running with the live settings of file. It names the live settings that
// differ in changed, and the other ones, which need a restart, in restart; both in order.
func Merge[T any](running, file T) (merged T, changed, restart []string) {
	merged = running
	walk("", reflect.TypeFor[T](), nil, false, func(key string, index []int, isLive bool) {
		is, want := reflect.ValueOf(&merged).Elem().FieldByIndex(index), reflect.ValueOf(file).FieldByIndex(index)
		switch {
		case reflect.DeepEqual(is.Interface(), want.Interface()):
		case isLive:
			is.Set(want)
			changed = append(changed, key)
		default:
			restart = append(restart, key)
		}
	})
	slices.Sort(changed)
	slices.Sort(restart)
	return merged, changed, restart
}

// Keys returns the dotted keys of the live settings of a struct, in order.
func Keys(t reflect.Type) []string {
	var out []string
	walk("", t, nil, false, func(key string, _ []int, isLive bool) {
		if isLive {
			out = append(out, key)
		}
	})
	slices.Sort(out)
	return out
}

// walk calls f with each setting of t that is no section: its key, its index from the
// struct at the top, and whether it is live.
func walk(at string, t reflect.Type, index []int, isLive bool, f func(key string, index []int, isLive bool)) {
	for name, field := range config.Fields(t) {
		key, path := config.Join(at, name), slices.Concat(index, field.Index)
		isLive := isLive || field.Tag.Get("live") == "true"
		if field.Type.Kind() == reflect.Struct {
			walk(key, field.Type, path, isLive, f)
		} else {
			f(key, path, isLive)
		}
	}
}

// Get returns the value of a setting by its dotted key, a duration as text. The key must
// exist.
func Get(settings any, key string) any {
	at := reflect.ValueOf(settings)
	for name := range strings.SplitSeq(key, ".") {
		at = at.FieldByIndex(config.Fields(at.Type())[name].Index)
	}
	if d, ok := at.Interface().(time.Duration); ok {
		return d.String()
	}
	return at.Interface()
}
