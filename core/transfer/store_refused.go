package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refusesRow reports whether PostgreSQL refuses the content of a row: data, integrity, or
// a limit such as the length of a value in an index.
func refusesRow(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23") || strings.HasPrefix(e.Code, "54"))
}

// writeRows stores the rows of a batch one by one, because PostgreSQL has refused one of
// them, and leaves out those that it refuses. It corrects the progress, which is that
// behind the batch.
func (s *session) writeRows(ctx context.Context, p *tablePlan, b *batch, state *tableState) error {
	return s.dst.inTx(ctx, func(tx pgx.Tx) error {
		data := b.data[len(copyHeader) : len(b.data)-len(copyTrailer)]
		for len(data) > 0 {
			row := data[:rowLength(data)]
			data = data[len(row):]
			err := s.dst.writeRow(ctx, tx, p, row)
			switch {
			case err == nil:
				continue
			case !refusesRow(err):
				return err
			}
			if err := s.options.BrokenRows(BrokenRow{p.name, "", explain(err).Error(), decodeRow(p.columns, row)}); err != nil {
				return err
			}
			state.rows--
			state.skipped++
			state.sum -= rowChecksum(row)
		}
		return state.save(ctx, tx, p.name)
	})
}

// writeRow stores a row, or leaves the transaction as it was.
func (t *target) writeRow(ctx context.Context, tx pgx.Tx, p *tablePlan, row []byte) error {
	inner, err := tx.Begin(ctx) // a savepoint
	if err != nil {
		return err
	}
	one := bytes.Join([][]byte{copyHeader, row, copyTrailer}, nil)
	if _, err := t.conn.PgConn().CopyFrom(ctx, bytes.NewReader(one), p.copySQL()); err != nil {
		return errors.Join(err, inner.Rollback(context.WithoutCancel(ctx)))
	}
	return inner.Commit(ctx)
}

// decodeRow returns the values of a row in the binary format of COPY by column.
func decodeRow(columns []column, row []byte) map[string]any {
	out := make(map[string]any, len(columns))
	row = row[2:]
	for _, c := range columns {
		n := int32(binary.BigEndian.Uint32(row))
		row = row[4:]
		if n < 0 {
			out[c.name] = nil
			continue
		}
		out[c.name] = decodeField(c.kind, row[:n])
		row = row[n:]
	}
	return out
}

func decodeField(k kind, field []byte) any {
	switch k {
	case kindText:
		return string(field)
	case kindBool:
		return field[0] != 0
	case kindInt4:
		return int64(int32(binary.BigEndian.Uint32(field)))
	case kindInt8:
		return int64(binary.BigEndian.Uint64(field))
	case kindFloat:
		return math.Float64frombits(binary.BigEndian.Uint64(field))
	case kindBytes, kindUUID:
	}
	return bytes.Clone(field)
}
