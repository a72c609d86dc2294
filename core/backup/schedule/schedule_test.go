package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// fakeMaker keeps backups in memory.
type fakeMaker struct {
	list  []Backup
	fails int // attempts that fail
	made  []time.Time
}

func (f *fakeMaker) Make(context.Context) (Backup, error) {
	if f.fails > 0 {
		f.fails--
		return Backup{}, errors.New("disk full")
	}
	b := Backup{Name: fmt.Sprint(time.Now().UnixNano()), At: time.Now(), Bytes: 5}
	f.list, f.made = append(f.list, b), append(f.made, b.At)
	return b, nil
}

func (f *fakeMaker) List(context.Context) ([]Backup, error) { return slices.Clone(f.list), nil }

func (f *fakeMaker) Remove(_ context.Context, name string) error {
	f.list = slices.DeleteFunc(f.list, func(b Backup) bool { return b.Name == name })
	return nil
}

func (f *fakeMaker) Clean(context.Context) error { return nil }

func options() Options {
	return Options{Every: time.Hour, Keep: 2, RetryMin: time.Minute, RetryMax: time.Minute}
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
		m := &fakeMaker{fails: 3}
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
		if n := value(t, reg, "guidon_backups_total", "failed"); n != 3 {
			t.Errorf("%v failures", n)
		}
		if at := value(t, reg, "guidon_backup_last_success_timestamp_seconds", ""); at != float64(m.made[0].Unix()) {
			t.Errorf("last success %v", at)
		}
		m.fails = 1e6
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := s.State(); got.State != "overdue" || !got.Degraded() {
			t.Errorf("state %+v", got)
		}
		_ = s.Stop(t.Context())
	})
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
