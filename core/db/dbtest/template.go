package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guidonhq/guidon/migrations"
)

const (
	templateLock    = 0x74656d706c617465 // the advisory lock for templates, "template"
	templateTimeout = 5 * time.Minute    // others may be making it
	templateAge     = 7 * 24 * time.Hour // an unused template is dropped after this
	templateUse     = "template for the tests of guidon, used "
)

// schemaHash names the schema that the migrations of a dialect make.
func schemaHash(d migrations.Dialect) (string, error) {
	steps, err := migrations.Load(d)
	return hashSteps(steps), err
}

func hashSteps(steps []migrations.Step) string {
	hash := sha256.New()
	for _, s := range steps {
		fmt.Fprintf(hash, "%d %q %q\n", s.Number, s.Name, s.Up)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// prepare makes sure that the server has the template for the schema. Processes that do this
// at the same time take turns. It also drops templates that were not used for a week.
func (s *server) prepare(schema string) (p preparation, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), templateTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url.String())
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }() // which also unlocks

	// A role cannot clone the database of another one, so that each has its own templates.
	var role uint32
	var copyFiles bool
	err = conn.QueryRow(ctx, `SELECT current_user::regrole::oid,
		current_setting('server_version_num')::int >= 150000 AND current_setting('fsync') = 'off'`).Scan(&role, &copyFiles)
	if err != nil {
		return p, fmt.Errorf("inspect the server: %w", err)
	}
	p.template = fmt.Sprintf("guidon_template_%s_%d", schema, role)

	// Copying the files of the template takes less than half the time of copying it through
	// the log, unless each file must be synced. Before release 15 there is no other way.
	if copyFiles {
		p.strategy = " STRATEGY FILE_COPY"
	}

	if _, err := conn.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_lock(%d)", templateLock)); err != nil {
		return p, fmt.Errorf("lock the templates: %w", err)
	}
	used, err := templates(ctx, conn, role)
	if err != nil {
		return p, fmt.Errorf("list the templates: %w", err)
	}
	if _, found := used[p.template]; !found {
		if err := s.makeTemplate(ctx, conn, p.template); err != nil {
			return p, err
		}
	}
	return p, noteUse(ctx, conn, used, p.template)
}

// templates returns the templates of a role and the comments that say when they were used.
func templates(ctx context.Context, conn *pgx.Conn, role uint32) (map[string]string, error) {
	rows, err := conn.Query(ctx, `SELECT datname, coalesce(shobj_description(oid, 'pg_database'), '')
		FROM pg_database WHERE datname LIKE 'guidon\_template\_%' AND datdba = $1`, role)
	if err != nil {
		return nil, err
	}
	used := map[string]string{}
	var name, comment string
	_, err = pgx.ForEachRow(rows, []any{&name, &comment}, func() error {
		used[name] = comment
		return nil
	})
	return used, err
}

// makeTemplate migrates a database and gives it its name when it is complete.
func (s *server) makeTemplate(ctx context.Context, conn *pgx.Conn, name string) error {
	fresh := newName()
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+fresh); err != nil {
		return fmt.Errorf("create the template: %w", err)
	}
	err := migrate(s.database(fresh))
	if err == nil {
		_, err = conn.Exec(ctx, "ALTER DATABASE "+fresh+" RENAME TO "+name)
	}
	if err == nil {
		// Somebody's connection would make clones fail.
		_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" ALLOW_CONNECTIONS false")
		return err
	}

	_, dropped := conn.Exec(ctx, "DROP DATABASE "+fresh+" WITH (FORCE)")
	if other, ok := errors.AsType[*pgconn.PgError](err); ok && other.Code == "42P04" {
		err = nil // somebody who has another maintenance database, and so another lock, was faster
	}
	return errors.Join(err, dropped)
}

// noteUse writes the day into the comment of the template, once a day, and drops the
// templates that were not used for a week.
func noteUse(ctx context.Context, conn *pgx.Conn, used map[string]string, template string) error {
	today := time.Now().UTC()
	comment := templateUse + today.Format(time.DateOnly)
	if used[template] == comment {
		return nil
	}
	if _, err := conn.Exec(ctx, "COMMENT ON DATABASE "+template+" IS '"+comment+"'"); err != nil {
		return fmt.Errorf("note the use of the template: %w", err)
	}

	for name, comment := range used {
		day, err := time.Parse(time.DateOnly, strings.TrimPrefix(comment, templateUse))
		if name != template && err == nil && today.Sub(day) > templateAge {
			_, _ = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name) // the next process tries again
		}
	}
	return nil
}
