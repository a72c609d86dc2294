package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// fakeMaker keeps backups in memory.
type fakeMaker struct {
	list    []Backup
	fails   atomic.Int64 // attempts that fail
	cleaned int
	made    []time.Time

	listFails atomic.Int64
}

func (f *fakeMaker) Make(context.Context) (Backup, error) {
	if f.fails.Add(-1) >= 0 {
		return Backup{}, errors.New("disk full")
	}
	b := Backup{Name: fmt.Sprint(time.Now().UnixNano()), At: time.Now(), Bytes: 5}
	f.list, f.made = append(f.list, b), append(f.made, b.At)
	return b, nil
}

func (f *fakeMaker) List(context.Context) ([]Backup, error) {
	if f.listFails.Add(-1) >= 0 {
		return nil, errors.New("bucket unreachable")
	}
	return slices.Clone(f.list), nil
}

func (f *fakeMaker) Remove(_ context.Context, name string) error {
	f.list = slices.DeleteFunc(f.list, func(b Backup) bool { return b.Name == name })
	return nil
}

func (f *fakeMaker) Clean(context.Context) error {
	f.cleaned++
	return nil
}

func options() Options {
	return Options{Times: Times{Every: time.Hour}, Keep: Retention{Last: 2}, RetryMin: time.Minute, RetryMax: time.Minute}
}

// The interval counts from the newest backup that exists, and old ones are removed.
func TestIntervalCountsFromTheNewestBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		m := &fakeMaker{list: []Backup{{Name: "b", At: begin.Add(-20 * time.Minute)}, {Name: "a", At: begin.Add(-80 * time.Minute)}}}
		s := New(options(), m, zap.NewNop())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if len(m.made) != 2 || m.made[0].Sub(begin) != 40*time.Minute || m.made[1].Sub(begin) != 100*time.Minute {
			t.Errorf("made %v from %v", m.made, begin)
		}
		if len(m.list) != 2 || m.list[0].Name == "b" {
			t.Errorf("kept %v", m.list)
		}
		if got := s.State(); got.State != "ok" || got.LastBytes != 5 || got.Degraded() {
			t.Errorf("state %+v", got)
		}
		_ = s.Stop(t.Context())
	})
}

// A failing backup degrades readiness until one succeeds; so does one that is overdue.
func TestFailuresAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeMaker{}
		m.fails.Store(3)
		s := New(options(), m, zap.NewNop())
		reg := prometheus.NewRegistry()
		if err := s.Register(reg); err != nil {
			t.Fatal(err)
		}
		_ = s.Start(t.Context())
		synctest.Wait()
		if got := s.State(); got.State != "failing" || got.Error != "disk full" || !got.Degraded() {
			t.Errorf("state %+v", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := s.State(); got.State != "ok" || got.Error != "" {
			t.Errorf("state %+v", got)
		}
		if m.cleaned != 1 {
			t.Errorf("cleaned %d times before a backup", m.cleaned)
		}
		if n := value(t, reg, "guidon_backups_total", "failed"); n != 3 {
			t.Errorf("%v failures", n)
		}
		if at := value(t, reg, "guidon_backup_last_success_timestamp_seconds", ""); at != float64(m.made[0].Unix()) {
			t.Errorf("last success %v", at)
		}
		m.fails.Store(1e6)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := s.State(); got.State != "overdue" || !got.Degraded() {
			t.Errorf("state %+v", got)
		}
		_ = s.Stop(t.Context())
	})
}

// A time of the day at which the server did not run is made up for, and others are
// waited for.
// A place that is unreachable at the start degrades readiness until it answers, and not
// until the next backup is due.
func TestFailedListAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeMaker{list: []Backup{{Name: "a", At: time.Now()}}}
		m.listFails.Store(1)
		s := New(options(), m, zap.NewNop())
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.State(); got.State != "failing" || !strings.Contains(got.Error, "bucket unreachable") {
			t.Errorf("got %+v", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := s.State(); got.State != "ok" || got.Error != "" || got.LastName != "a" || len(m.made) != 0 {
			t.Errorf("got %+v, %d backups", got, len(m.made))
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTimesOfTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now().Local() // midnight of 2000-01-01 in UTC
		at := func(d time.Duration) TimeOfDay {
			due := begin.Add(d)
			return TimeOfDay(due.Hour()*60 + due.Minute())
		}
		m := &fakeMaker{list: []Backup{{Name: "a", At: begin.Add(-9 * time.Hour)}}}
		o := options()
		o.Times, o.Keep = Times{At: []TimeOfDay{at(6 * time.Hour), at(-4 * time.Hour)}}, Retention{}
		s := New(o, m, zap.NewNop())
		if longest := o.Times.Longest(); longest != 14*time.Hour {
			t.Errorf("the longest interval is %s", longest)
		}
		_ = s.Start(t.Context())
		time.Sleep(31 * time.Hour)
		synctest.Wait()
		var got []time.Duration
		for _, one := range m.made {
			got = append(got, one.Sub(begin))
		}
		if want := []time.Duration{0, 6 * time.Hour, 20 * time.Hour, 30 * time.Hour}; !slices.Equal(got, want) {
			t.Errorf("made after %v, want %v", got, want)
		}
		_ = s.Stop(t.Context())
	})
}

func TestParseTimeOfDay(t *testing.T) {
	t.Parallel()
	if at, err := ParseTimeOfDay("02:30"); err != nil || at != 150 {
		t.Errorf("%d %v", at, err)
	}
	for _, text := range []string{"", "2", "24:00", "12:60", "02:30:00", "2 am"} {
		if _, err := ParseTimeOfDay(text); err == nil {
			t.Errorf("%q is a time of the day", text)
		}
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	// Backups at noon and midnight of 70 days, the newest first.
	newest := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC) // a Sunday
	var list []Backup
	for i := range 140 {
		at := newest.Add(-time.Duration(i) * 12 * time.Hour)
		list = append(list, Backup{Name: at.Format("01-02T15"), At: at})
	}
	for _, c := range []struct {
		keep Retention
		want []string
	}{
		{Retention{Last: 2}, []string{"03-15T12", "03-15T00"}},
		{Retention{Daily: 3}, []string{"03-15T12", "03-14T12", "03-13T12"}},
		{Retention{Last: 2, Daily: 2, Weekly: 2, Monthly: 3}, []string{"03-15T12", "03-15T00", "03-14T12", "03-08T12", "02-28T12", "01-31T12"}},
		{Retention{Monthly: 1}, []string{"03-15T12"}},
	} {
		expired := c.keep.expired(list)
		var kept []string
		for _, b := range list {
			if !slices.Contains(expired, b) {
				kept = append(kept, b.Name)
			}
		}
		if !slices.Equal(kept, c.want) {
			t.Errorf("%+v keeps %v, want %v", c.keep, kept, c.want)
		}
		// What is kept is kept again.
		var left []Backup
		for _, b := range list {
			if !slices.Contains(expired, b) {
				left = append(left, b)
			}
		}
		if again := c.keep.expired(left); len(again) > 0 {
			t.Errorf("%+v removes %v of what it has kept", c.keep, again)
		}
	}
	if expired := (Retention{}).expired(list); len(expired) > 0 {
		t.Errorf("%d expired without a rule", len(expired))
	}
	if expired := (Retention{Last: 3}).expired(nil); len(expired) > 0 {
		t.Error("expired of nothing")
	}
}

// Without an interval there are no backups and no metrics.
func TestOff(t *testing.T) {
	m := &fakeMaker{}
	s := New(Options{}, m, zap.NewNop())
	reg := prometheus.NewRegistry()
	if err := errors.Join(s.Register(reg), s.Start(t.Context()), s.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if got := s.State(); err != nil || got.State != "off" || got.Degraded() || len(m.made) > 0 || len(families) > 0 {
		t.Errorf("state %+v, %d families, %v", got, len(families), err)
	}
}

// value returns a metric, or its series with the result.
func value(t *testing.T, reg *prometheus.Registry, name, result string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (result == "" || m.GetLabel()[0].GetValue() == result) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
