package live_test

import (
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/guidonhq/guidon/core/config/live"
)

type rate struct {
	PerSecond float64 `koanf:"per_second"`
	Burst     int     `koanf:"burst"`
}

type inner struct {
	Mode  string            `koanf:"mode" live:"true"`
	Names []string          `koanf:"names" live:"true"`
	Fixed int               `koanf:"fixed"`
	Each  map[string]string `koanf:"each"`
}

type squashed struct {
	Age int `koanf:"age" live:"true"`
}

type settings struct {
	Dir      string `koanf:"dir"`
	HTTP     inner  `koanf:"http"`
	Rate     rate   `koanf:"rate" live:"true"`
	squashed `koanf:",squash"`
	Hidden   *int `koanf:"-"`
}

func TestMergeTakesLiveSettingsOnly(t *testing.T) {
	t.Parallel()
	running := settings{Dir: "a", HTTP: inner{Mode: "x", Fixed: 1}, Rate: rate{1, 2}, squashed: squashed{5}}
	file := settings{Dir: "b", HTTP: inner{Mode: "y", Names: []string{"n"}, Fixed: 2, Each: map[string]string{"k": "v"}}, Rate: rate{1, 3}, squashed: squashed{6}}
	got, changed, restart := live.Merge(running, file)
	want := settings{Dir: "a", HTTP: inner{Mode: "y", Names: []string{"n"}, Fixed: 1}, Rate: rate{1, 3}, squashed: squashed{6}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged %+v, want %+v", got, want)
	}
	if w := []string{"age", "http.mode", "http.names", "rate.burst"}; !slices.Equal(changed, w) {
		t.Errorf("changed %v, want %v", changed, w)
	}
	if w := []string{"dir", "http.each", "http.fixed"}; !slices.Equal(restart, w) {
		t.Errorf("restart %v, want %v", restart, w)
	}
	if w := []string{"age", "http.mode", "http.names", "rate.burst", "rate.per_second"}; !slices.Equal(live.Keys(reflect.TypeFor[settings]()), w) {
		t.Errorf("keys %v, want %v", live.Keys(reflect.TypeFor[settings]()), w)
	}
	if _, changed, restart = live.Merge(got, got); changed != nil || restart != nil {
		t.Errorf("equal settings: %v, %v", changed, restart)
	}
}

func TestFollowersSeeEachChangeInOrder(t *testing.T) {
	t.Parallel()
	v := live.New(settings{})
	section := live.Section(v, func(s *settings) rate { return s.Rate })
	var seen []int
	section.Follow(func(r *rate) { seen = append(seen, r.Burst) })
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			last := 0
			for last < 100 {
				b := section.Load().Burst
				if b < last {
					t.Errorf("burst %d after %d", b, last)
					return
				}
				last = b
			}
		})
	}
	for n := 1; n <= 100; n++ {
		v.Store(settings{Rate: rate{Burst: n}})
	}
	readers.Wait()
	for n := range 101 {
		if seen[n] != n {
			t.Fatalf("seen %v", seen)
		}
	}
}
