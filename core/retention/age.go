package retention

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/guidonhq/guidon/core/events"
	"github.com/guidonhq/guidon/core/fault"
)

// maxAge is the longest age, a hundred years.
const maxAge = 36500 * 24 * time.Hour

// ParseAge reads an age: days such as 90d, a duration such as 36h, or 0 for ever. It
// fails with Invalid for other texts, and for ages under an hour or above a hundred
// years.
func ParseAge(text string) (time.Duration, error) {
	if text = strings.TrimSpace(text); text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 32); err == nil {
			d = maxAge + 1
			if n <= int64(maxAge/(24*time.Hour)) {
				d = time.Duration(n) * 24 * time.Hour
			}
		}
	}
	switch {
	case err != nil:
		return 0, fault.Newf(fault.Invalid, "invalid_input", "%q is not an age: write days such as 90d, a duration such as 36h, or 0 for ever.", text)
	case d == 0:
		return 0, nil
	case d < events.MinRetention || d > maxAge:
		return 0, fault.Newf(fault.Invalid, "invalid_input", "%q: an age is 0 for ever, or from 1h to 36500d.", text)
	}
	return d.Truncate(time.Second), nil
}

// FormatAge returns the text of an age: in days if they are whole, and 0 for ever.
func FormatAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if cut := strings.TrimSuffix(text, zero); cut != text && strings.ContainsAny(cut[len(cut)-1:], "hm") {
			text = cut
		}
	}
	return text
}

// parseJSON reads an age; null or nothing is nil.
func parseJSON(raw json.RawMessage) (*time.Duration, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		var number json.Number
		if json.Unmarshal(raw, &number) != nil {
			return nil, fault.New(fault.Invalid, "invalid_input", "Not a text: write an age such as 90d.")
		}
		s := number.String()
		text = &s
	}
	if text == nil {
		return nil, nil
	}
	d, err := ParseAge(*text)
	return &d, err
}
