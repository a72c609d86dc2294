//go:build e2e

package events_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"github.com/guidonhq/guidon/core/db"
	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/events/clickhouse"
	"github.com/guidonhq/guidon/plugins/sink/clickhouse/clickhousetest"
)

// The tests of this package run on ClickHouse in the place of PostgreSQL. All tests share one
// server, and have a database each.
func init() {
	open = func(t testing.TB, cfg events.Config, d *db.DB) *events.Service {
		if !d.Postgres() {
			return events.New(cfg, d, zap.NewNop(), nil)
		}
		return openClickhouse(t, cfg, d)
	}
}

func TestMain(m *testing.M) { os.Exit(clickhousetest.RunMain(m)) }

var (
	databases  atomic.Int64
	ofDatabase sync.Map // the URL by *db.DB: two stores of one database share their events
)

func clickhouseURL(t testing.TB, d *db.DB) string {
	t.Helper()
	server := clickhousetest.Start(t)
	if known, ok := ofDatabase.Load(d); ok {
		return known.(string)
	}
	name := fmt.Sprintf("events_%d_%d", os.Getpid(), databases.Add(1))
	clickhousetest.Query(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { clickhousetest.Query(t, server, "DROP DATABASE "+name) })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.User, u.Path = "clickhouse", url.UserPassword("default", "hush"), "/"+name
	ofDatabase.Store(d, u.String())
	return u.String()
}

// openClickhouse returns a store of which each commit is in ClickHouse when it returns.
func openClickhouse(t testing.TB, cfg events.Config, d *db.DB) *events.Service {
	t.Helper()
	cfg.URL = clickhouseURL(t, d)
	shared := events.NewShared(d)
	s, err := clickhouse.New(cfg, d, shared, zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	s.OnStored(func() {
		if err := s.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return events.NewOn(s, shared, cfg, d, zap.NewNop(), nil)
}
