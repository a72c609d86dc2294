package persons

import (
	"context"
	"fmt"
	"time"
)

// Properties returns the stored properties of the person of a distinct id, a JSON
// object that must not be changed; false if the person does not exist. A change by
// this process shows immediately after its commit, one by another process within
// the lifetime of a cached value. In a transaction it reads from the transaction and bypasses
// the cache.
func (s *Service) Properties(ctx context.Context, projectID int64, distinctID string) ([]byte, bool, error) {
	key := cacheKey{projectID, noGroup, distinctID}
	return s.read(ctx, key, func() (entry, error) {
		c, err := s.store.properties(ctx, projectID, distinctID)
		if err != nil {
			err = fmt.Errorf("read the person of distinct id %q: %w", distinctID, err)
		}
		return c, err
	})
}

// GroupProperties returns the stored properties of a group, a JSON object that
// must not be changed; false if the group or its type does not exist. It is as
// fresh as Properties.
func (s *Service) GroupProperties(ctx context.Context, projectID int64, groupType, groupKey string) ([]byte, bool, error) {
	types, err := s.GroupTypes(ctx, projectID)
	if err != nil {
		return nil, false, err
	}
	slot, ok := types[groupType]
	if !ok {
		return nil, false, nil
	}
	return s.read(ctx, cacheKey{projectID, slot, groupKey}, func() (entry, error) {
		c, err := s.store.groupProperties(ctx, projectID, slot, groupKey)
		if err != nil {
			err = fmt.Errorf("read group %q of type %q: %w", groupKey, groupType, err)
		}
		return c, err
	})
}

// GroupTypes returns the indexes of the project's group types by name. The map
// must not be changed. It is as fresh as Properties.
func (s *Service) GroupTypes(ctx context.Context, projectID int64) (map[string]int, error) {
	now := time.Now()
	cachedTypes, ok, epoch := s.cache.groupTypes(projectID, now)
	direct := s.db.SQLTx(ctx) != nil
	if ok && !direct {
		return cachedTypes, nil
	}
	list, err := s.store.groupTypes(ctx, projectID)
	if err != nil {
		return nil, fmt.Errorf("read group types: %w", err)
	}
	types := make(map[string]int, len(list))
	for _, t := range list {
		types[t.Name] = t.Index
	}
	if !direct {
		s.cache.putGroupTypes(projectID, types, now, epoch)
	}
	return types, nil
}

// read returns an entry of the cache, or loads and caches it.
func (s *Service) read(ctx context.Context, key cacheKey, ask func() (entry, error)) ([]byte, bool, error) {
	if s.db.SQLTx(ctx) != nil {
		c, err := ask()
		return c.properties, c.found, err
	}
	now := time.Now()
	c, ok, epoch := s.cache.get(key, now)
	if ok {
		s.cache.hits.Inc()
		return c.properties, c.found, nil
	}
	s.cache.misses.Inc()
	c, err := ask()
	if err != nil {
		return nil, false, err
	}
	c.at = now
	s.cache.put(key, c, epoch)
	return c.properties, c.found, nil
}
