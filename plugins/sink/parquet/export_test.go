package parquet

import "context"

// Place is where files are put; Row is an event as the files have it.
type (
	Place interface {
		Put(name string, data []byte) error
		Get(name string) ([]byte, error)
		Remove(name string) error
	}
	Row = row
)

// Own is the folder of what holds no events.
const Own = own

// Use has an open sink put its files elsewhere.
func (s *Sink) Use(p Place) { s.place = elsewhere{p} }

type elsewhere struct{ p Place }

func (e elsewhere) put(_ context.Context, name string, data []byte) error { return e.p.Put(name, data) }
func (e elsewhere) get(_ context.Context, name string) ([]byte, error)    { return e.p.Get(name) }
func (e elsewhere) remove(_ context.Context, name string) error           { return e.p.Remove(name) }
