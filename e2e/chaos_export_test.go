//go:build e2e

package e2e_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// checkExport checks that the first node exports each stored event once, and no other. Rows
// that ClickHouse has are read once their insertion is recorded.
func (c *chaos) checkExport(stored []string) {
	c.Helper()
	c.awaitProgress("each stored event is exported once", func() error {
		exported, err := c.exported()
		if err != nil {
			return err
		}
		times := map[string]int{}
		for _, id := range exported {
			times[id]++
		}
		wrong, first := 0, ""
		for _, id := range stored {
			if times[id] != 1 {
				wrong, first = wrong+1, cmp.Or(first, fmt.Sprintf("%s %d times", id, times[id]))
			}
		}
		if wrong > 0 || len(exported) != len(stored) {
			return fmt.Errorf("%d events are exported of %d stored ones, %d not once, such as %s", len(exported), len(stored), wrong, first)
		}
		return nil
	})
}

// exported returns the uuids of the events that the first node exports.
func (c *chaos) exported() (out []string, err error) {
	for cursor := ""; ; {
		page, next, err := c.exportPage(cursor)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if cursor = next; cursor == "" {
			return out, nil
		}
	}
}

func (c *chaos) exportPage(cursor string) (out []string, next string, err error) {
	first := c.nodes[0]
	path := first.url + "/api/projects/1/export/events/"
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, path, nil)
	if err != nil {
		return nil, "", err
	}
	request.Header.Set("Authorization", "Bearer "+first.personal)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.UUID == "" {
			return nil, "", errors.Join(err, fmt.Errorf("line %q", lines.Text()))
		}
		out = append(out, e.UUID)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, "", fmt.Errorf("the export answers %d", answer.StatusCode)
	}
	return out, answer.Header.Get("Guidon-Next-Cursor"), lines.Err()
}
