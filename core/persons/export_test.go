package persons

import (
	"context"
	"encoding/json"
)

// FindFew returns the persons of an address that an index finds, and whether it does.
func (s *Service) FindFew(ctx context.Context, projectID int64, email string) ([]Person, bool, error) {
	spec, err := json.Marshal([]map[string]string{{"key": "email", "type": "person", "operator": "exact", "value": email}})
	if err != nil {
		return nil, false, err
	}
	exact, err := filters(string(spec), nil)
	if err != nil {
		return nil, false, err
	}
	return s.findFew(ctx, projectID, &Query{Properties: exact, email: email})
}
