package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"

	sqlitedriver "modernc.org/sqlite"
)

func init() { sqlitedriver.MustRegisterDeterministicScalarFunction("event_damage", 4, damageFunction) }

// damageFunction has the arguments of event_properties. It returns the error as text, or
// NULL.
func damageFunction(c *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
	if _, err := propertiesFunction(c, args); err != nil {
		return err.Error(), nil //nolint:nilerr // the error is the value
	}
	return nil, nil
}

// checkEvents returns at most limit problems of the compressed events of a file: of their
// dictionaries and of each row. It reads all events and changes nothing.
func checkEvents(ctx context.Context, pool *sql.DB, limit int) ([]string, error) {
	var one int
	err := pool.QueryRowContext(ctx, "SELECT 1 FROM sqlite_schema WHERE name = 'event_dictionaries'").Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil // of an earlier version
	}
	var problems []string
	if err == nil {
		problems, err = checkEventDictionaries(ctx, pool)
	}
	if err == nil {
		problems, err = checkEventRows(ctx, pool, limit, problems)
	}
	if err != nil {
		return nil, fmt.Errorf("check the compressed events: %w", err)
	}
	return problems[:min(len(problems), limit)], nil
}

func checkEventDictionaries(ctx context.Context, pool *sql.DB) (problems []string, err error) {
	rows, err := pool.QueryContext(ctx, "SELECT id, content, checksum FROM event_dictionaries ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var content, checksum []byte
		if err := rows.Scan(&id, &content, &checksum); err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(content); string(sum[:]) != string(checksum) {
			problems = append(problems, fmt.Sprintf("the content of dictionary %d of events is damaged", id))
		}
	}
	return problems, rows.Err()
}

func checkEventRows(ctx context.Context, pool *sql.DB, limit int, problems []string) ([]string, error) {
	rows, err := pool.QueryContext(ctx, `SELECT id, uuid, damage FROM (
		SELECT id, uuid, event_damage(properties, (SELECT d.content FROM event_dictionaries AS d WHERE d.id = event_dictionary_id(events.properties)),
			distinct_id, current_url) AS damage FROM events WHERE typeof(properties) = 'blob')
		WHERE damage IS NOT NULL ORDER BY id LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id int64
		var uuid []byte
		var damage string
		if err := rows.Scan(&id, &uuid, &damage); err != nil {
			return nil, err
		}
		problems = append(problems, fmt.Sprintf("event %s (row %d): %s", hex.EncodeToString(uuid), id, damage))
	}
	return problems, rows.Err()
}
