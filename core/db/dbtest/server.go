package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// env names a server to use in place of a temporary cluster.
const env = "GUIDON_TEST_POSTGRES"

// withoutPostgres is the value of env that skips every test on Postgres.
const withoutPostgres = "none"

// server is a place where databases can be made.
type server struct {
	url      url.URL  // of its maintenance database
	lifeline *os.File // of a server of our own: it stops when this is closed, or collected
	migrated func() (template string, err error)
	strategy func() string // an option of CREATE DATABASE
}

// theServer is started by the first test that needs it.
var theServer = sync.OnceValues(func() (*server, error) {
	given := os.Getenv(env)
	if given == "" {
		return startCluster()
	}
	u, err := url.Parse(given)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return nil, fmt.Errorf("%s must be a URL as in postgres://user:password@host:port/database", env)
	}
	// A server given by its URL gets no template; each database is migrated.
	return &server{url: *u, migrated: func() (string, error) { return "", nil }, strategy: func() string { return "" }}, nil
})

func running(tb testing.TB) *server {
	tb.Helper()
	if os.Getenv(env) == withoutPostgres {
		tb.Skip("NOT TESTED on Postgres: " + env + "=" + withoutPostgres)
	}
	s, err := theServer()
	if err != nil {
		tb.Fatalf("no Postgres to test on: %v", err)
	}
	return s
}

// newPrivateServer is a server of our own that clones its databases from one
// migrated template.
func newPrivateServer(lifeline *os.File, u url.URL) *server {
	s := &server{url: u, lifeline: lifeline}
	s.strategy = sync.OnceValue(s.copyFiles)
	s.migrated = sync.OnceValues(func() (string, error) {
		const name = "guidon_template"
		if err := s.exec("CREATE DATABASE " + name); err != nil {
			return "", err
		}
		return name, migrate(s.database(name))
	})
	return s
}

// create makes a database, empty or cloned from template, that is dropped with
// tb, and returns its URL.
func (s *server) create(tb testing.TB, template string) string {
	tb.Helper()
	name := "guidon_test_" + strings.ToLower(rand.Text())
	query := "CREATE DATABASE " + name + s.strategy()
	if template != "" {
		query += " TEMPLATE " + template
	}
	if err := s.exec(query); err != nil {
		tb.Fatalf("create a test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			tb.Errorf("drop a test database: %v", err)
		}
	})
	return s.database(name)
}

// copyFiles is the option to copy the files of the template, which without fsync takes
// less than half the time of copying it through the log. Before release 15 there was no
// other way, and no option.
func (s *server) copyFiles() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close(ctx) }()
	var release int
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&release); err != nil || release < 150_000 {
		return ""
	}
	return " STRATEGY FILE_COPY"
}

// database is the URL of a database on the server.
func (s *server) database(name string) string {
	u := s.url
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement in the maintenance database.
func (s *server) exec(query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, query)
	if closed := conn.Close(ctx); err == nil {
		err = closed
	}
	return err
}
