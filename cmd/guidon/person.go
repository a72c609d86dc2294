package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/guidonhq/guidon/app"
	"github.com/guidonhq/guidon/cmd/guidon/command"
	"github.com/guidonhq/guidon/cmd/guidon/manage"
)

type personCmd struct {
	manage.PersonCommands

	Erasures personErasuresCmd `cmd:"" help:"Print the list of erasures, without distinct ids: keep it beside the backups."`
	Erase    personEraseCmd    `cmd:"" help:"Erase persons; with --file, request the erasures of a list again that a restored database does not know."`
}

type personErasuresCmd struct {
	Format string `enum:"csv,json" default:"csv" help:"csv or json."`
}

// Run prints the list of erasures.
func (c personErasuresCmd) Run(e *env) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	list, err := app.Erasures(context.Background(), cfg)
	if err != nil {
		return err
	}
	if c.Format == "json" {
		enc := json.NewEncoder(e.out)
		for _, r := range list {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	w := csv.NewWriter(e.out)
	_ = w.Write(erasureColumns) // Error reports it
	for _, r := range list {
		_ = w.Write([]string{strconv.FormatInt(r.ProjectID, 10), r.Hash, csvTime(r.PersonAt), csvTime(r.EventsAt)})
	}
	w.Flush()
	return w.Error()
}

var erasureColumns = []string{"project_id", "id_hash", "person_at", "events_at"}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

type personEraseCmd struct {
	manage.PersonErase

	File string `help:"List that guidon person erasures printed, as CSV or JSON." placeholder:"FILE"`
}

// Run erases the persons, or requests the erasures of a file.
func (c personEraseCmd) Run(e *env, m *command.Env) error {
	if (c.File == "") == (len(c.Persons) == 0) {
		return errors.New("name persons, or a list with --file")
	}
	if c.File == "" {
		return c.PersonErase.Run(m)
	}
	cfg, err := e.config()
	if err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	list, err := readErasures(f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	found, err := app.RequestErasures(context.Background(), cfg, list)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "erasures in the list: %d; requested for distinct ids that are in the database: %d\n", len(list), found)
	return err
}

// readErasures reads a list of erasures: lines of JSON, or CSV with a header.
func readErasures(r io.ReadSeeker) (list []app.ErasureRecord, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(r, first); err != nil {
		return nil, fmt.Errorf("the list is empty: %w", err)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if first[0] != '{' {
		return readErasuresCSV(r)
	}
	for dec := json.NewDecoder(r); ; {
		var one app.ErasureRecord
		switch err := dec.Decode(&one); err {
		case nil:
			list = append(list, one)
		case io.EOF:
			return list, nil
		default:
			return nil, err
		}
	}
}

func readErasuresCSV(r io.Reader) (list []app.ErasureRecord, err error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = len(erasureColumns)
	if _, err := in.Read(); err != nil {
		return nil, err
	}
	rows, err := in.ReadAll()
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		one := app.ErasureRecord{Hash: row[1]}
		one.ProjectID, err = strconv.ParseInt(row[0], 10, 64)
		if err == nil {
			one.PersonAt, err = time.Parse(time.RFC3339Nano, row[2])
		}
		if err == nil && row[3] != "" {
			one.EventsAt, err = time.Parse(time.RFC3339Nano, row[3])
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		list = append(list, one)
	}
	return list, nil
}
