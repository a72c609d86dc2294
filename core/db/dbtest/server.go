package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guidonhq/guidon/migrations"
)

// env names a server to use in place of a temporary cluster.
const env = "GUIDON_TEST_POSTGRES"

// withoutPostgres is the value of env that skips every test on Postgres.
const withoutPostgres = "none"

// server is a place where databases can be made.
type server struct {
	url      url.URL                     // of its maintenance database
	idle     chan *pgx.Conn              // to the maintenance database
	cluster  *cluster                    // of a server of our own, which stops when this is collected
	prepared func() (preparation, error) // makes the template if it is missing
}

// preparation is what a server gives to new databases.
type preparation struct {
	template string
	strategy string // an option of CREATE DATABASE
}

// theServer is started by the first test that needs it.
var theServer = sync.OnceValues(func() (*server, error) {
	given := os.Getenv(env)
	if given == "" {
		c, err := startCluster()
		if err != nil {
			return nil, err
		}
		s := newServer(c.url())
		s.cluster = c
		return s, nil
	}
	u, err := url.Parse(given)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return nil, fmt.Errorf("%s must be a URL as in postgres://user:password@host:port/database", env)
	}
	return newServer(*u), nil
})

func newServer(u url.URL) *server {
	s := &server{url: u, idle: make(chan *pgx.Conn, 4)}
	s.prepared = sync.OnceValues(func() (preparation, error) {
		schema, err := schemaHash(migrations.Postgres)
		if err != nil {
			return preparation{}, err
		}
		return s.prepare(schema)
	})
	return s
}

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

// fresh makes a database, which is a clone of the template or empty.
func (s *server) fresh(tb testing.TB, empty bool) (url string) {
	tb.Helper()
	p, err := s.prepared()
	if err != nil {
		tb.Fatalf("make a migrated Postgres database: %v", err)
	}
	if empty {
		return s.create(tb, p.strategy)
	}
	return s.create(tb, p.strategy+" TEMPLATE "+p.template)
}

// create makes a database that is dropped with tb, and returns its URL.
func (s *server) create(tb testing.TB, options string) string {
	tb.Helper()
	name := newName()
	if err := s.exec("CREATE DATABASE " + name + options); err != nil {
		tb.Fatalf("create a test database: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			tb.Errorf("drop a test database: %v", err)
		}
	})
	return s.database(name)
}

func newName() string { return "guidon_test_" + strings.ToLower(rand.Text()) }

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
	conn, err := s.connection(ctx)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, query)

	select {
	case s.idle <- conn:
		return err
	default:
		return errors.Join(err, conn.Close(ctx))
	}
}

// connection is one that exec used before, if there is one: a new one would cost as much as
// half of creating a database.
func (s *server) connection(ctx context.Context) (*pgx.Conn, error) {
	for {
		select {
		case conn := <-s.idle:
			if conn.Ping(ctx) == nil {
				return conn, nil
			}
			_ = conn.Close(ctx)
		default:
			return pgx.Connect(ctx, s.url.String())
		}
	}
}
