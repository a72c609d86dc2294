//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// checkCount checks that the count of the action is that of the stored events that fit: an
// erasure corrects it.
func (c *chaos) checkCount(sure []told) {
	c.Helper()
	want := len(paidOrders(sure))
	c.awaitProgress("the action counts the events that fit", func() error {
		got, err := c.actionCount()
		if err == nil && got != want {
			err = fmt.Errorf("it counts %d, want %d", got, want)
		}
		return err
	})
}

// actionCount returns the count of the action. Times of events are up to a minute ahead.
func (c *chaos) actionCount() (int, error) {
	first := c.nodes[0]
	request, err := http.NewRequestWithContext(c.Context(), http.MethodGet, first.url+"/api/projects/1/actions/1/count/?date_from=all", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+first.personal)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the count answers %d: %s: %w", answer.StatusCode, text, err)
	}
	var count struct {
		Count         int  `json:"count"`
		IsCalculating bool `json:"is_calculating"`
	}
	if err := json.Unmarshal(text, &count); err != nil {
		return 0, err
	}
	if count.IsCalculating {
		return 0, fmt.Errorf("it is counted: %d", count.Count)
	}
	return count.Count, nil
}
