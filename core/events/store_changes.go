package events

import "context"

// allProjects is the row of event_changes that stands for every project.
const allProjects = 0

func (s *Service) readCheckpoint(ctx context.Context, projectID int64) (st Checkpoint, err error) {
	err = s.db.Read(ctx).NewRaw(`SELECT (SELECT coalesce(max(id), 0) FROM events) AS row,
		coalesce(sum(erased), 0) AS erased, coalesce(sum(people), 0) AS people
		FROM event_changes WHERE project_id IN (?, ?)`, projectID, allProjects).Scan(ctx, &st.Row, &st.Erased, &st.Persons)
	return st, err
}

func (s *Service) recordChange(ctx context.Context, projectID, erased, people int64) error {
	_, err := s.db.Write(ctx).NewRaw(`INSERT INTO event_changes (project_id, erased, people) VALUES (?, ?, ?)
		ON CONFLICT (project_id) DO UPDATE SET erased = event_changes.erased + excluded.erased,
			people = event_changes.people + excluded.people`, projectID, erased, people).Exec(ctx)
	return err
}
