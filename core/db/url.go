package db

import (
	"errors"
	"path/filepath"
	"strings"
)

// fileName is the SQLite file in the data directory.
const fileName = "guidon.db"

// target is a store named by a URL: one of the two fields is set.
type target struct {
	file     string // path of a SQLite file
	postgres string // connection string
}

var errURL = errors.New(`database.url must be empty, "sqlite:PATH" or "postgres://user:password@host/database"` +
	` (the value is not shown, it may hold a password)`)

// parseURL returns the target of a URL. Its errors never quote the URL.
func parseURL(raw, dataDir string) (target, error) {
	scheme, rest, found := strings.Cut(raw, ":")
	switch {
	case raw == "":
		return target{file: filepath.Join(dataDir, fileName)}, nil
	case !found:
		return target{}, errURL
	}
	switch strings.ToLower(scheme) {
	case "postgres", "postgresql":
		return target{postgres: raw}, checkPostgresURL(raw)
	case "sqlite":
		return sqliteTarget(rest)
	}
	return target{}, errURL
}

func sqliteTarget(path string) (target, error) {
	path = strings.TrimPrefix(path, "//")
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return target{}, errors.New("database.url: sqlite needs the path of a file, as in sqlite:/var/lib/guidon/guidon.db")
	}
	return target{file: path}, nil
}
