package deadletter

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
)

// After returns dead letters with a higher id, ascending, without their payload
// and errors.
func (s *Store) After(ctx context.Context, id int64, limit int) ([]Entry, error) {
	var rows []row
	err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "project_id", "distinct_id", "received_at").
		Where("id > ?", id).Order("id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	out := make([]Entry, len(rows))
	for i := range rows {
		out[i] = rows[i].entry()
	}
	return out, nil
}

// Remove deletes dead letters of any project. Missing ones are no error.
func (s *Store) Remove(ctx context.Context, ids ...int64) error {
	for some := range slices.Chunk(ids, 500) {
		if _, err := s.db.Write(ctx).NewDelete().Model((*row)(nil)).Where("id IN (?)", bun.List(some)).Exec(ctx); err != nil {
			return fmt.Errorf("delete dead letters: %w", err)
		}
	}
	return nil
}

// Erase deletes the dead letters with events of distinct ids, and those with
// unreadable bytes of the journal in which one of the ids occurs as a JSON text.
// It returns their number.
func (s *Store) Erase(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	var total int64
	for ids := range slices.Chunk(distinctIDs, 500) {
		n, err := affected("erase dead letters")(s.db.Write(ctx).NewDelete().Model((*row)(nil)).
			Where("project_id = ?", projectID).Where("distinct_id IN (?)", bun.List(ids)).Exec(ctx))
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
	n, err := s.eraseUnreadable(ctx, projectID, distinctIDs)
	return total + n, err
}

// eraseUnreadable searches the dead letters that hold no event. Those of project 0
// may be of any project.
func (s *Store) eraseUnreadable(ctx context.Context, projectID int64, distinctIDs []string) (int64, error) {
	quoted := make([][]byte, len(distinctIDs))
	for i, id := range distinctIDs {
		quoted[i], _ = json.Marshal(id) // a string can be encoded
	}
	var erased []int64
	for last := int64(0); ; {
		var rows []row
		err := s.db.Read(ctx).NewSelect().Model(&rows).Column("id", "payload").Where("distinct_id = ''").
			Where("project_id IN (0, ?)", projectID).Where("id > ?", last).Order("id").Limit(50).Scan(ctx)
		if err != nil {
			return 0, fmt.Errorf("search unreadable dead letters: %w", err)
		}
		if len(rows) == 0 {
			return int64(len(erased)), s.Remove(ctx, erased...)
		}
		for i := range rows {
			last = rows[i].ID
			if containsAny([]byte(rows[i].Payload), quoted) {
				erased = append(erased, last)
			}
		}
	}
}

// containsAny reports whether the payload, or bytes that it holds as base64 at any
// depth, contains one of the texts.
func containsAny(payload []byte, texts [][]byte) bool {
	contains := func(data []byte) bool {
		return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(data, text) })
	}
	var value any
	return contains(payload) || json.Unmarshal(payload, &value) == nil && anyBytes(value, contains)
}

// anyBytes reports whether fn accepts the bytes of any base64 text in a JSON value.
func anyBytes(value any, fn func([]byte) bool) bool {
	switch v := value.(type) {
	case string:
		data, err := base64.StdEncoding.DecodeString(v)
		return err == nil && fn(data)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return anyBytes(one, fn) })
	case map[string]any:
		for _, one := range v {
			if anyBytes(one, fn) {
				return true
			}
		}
	}
	return false
}
