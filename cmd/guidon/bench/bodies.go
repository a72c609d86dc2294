package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bodies makes the bodies of requests.
type bodies struct {
	url     string
	command Command
	run     string // part of the ids of this run, so that two runs share no persons
}

func newBodies(c Command, base string) bodies {
	path := map[string]string{"capture": "/capture/", "batch": "/batch/", "decide": "/decide?v=3"}[c.Path]
	return bodies{url: base + path, command: c, run: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// nth returns the body of the nth request.
func (b bodies) nth(n int64) []byte {
	switch b.command.Path {
	case "decide":
		return fmt.Appendf(nil, `{"api_key":%q,"distinct_id":%q,"person_properties":{"plan":"pro","country":"NL","age":%d}}`, b.command.Key, b.person(n), n%90)
	case "capture":
		return fmt.Appendf(nil, `{"api_key":%q,%s`, b.command.Key, b.event(n)[1:])
	}
	events := make([]string, b.command.Events)
	for i := range events {
		events[i] = b.event(n*int64(b.command.Events) + int64(i))
	}
	return fmt.Appendf(nil, `{"api_key":%q,"batch":[%s]}`, b.command.Key, strings.Join(events, ","))
}

func (b bodies) person(n int64) string {
	return "bench-" + b.run + "-" + strconv.FormatInt((n+int64(b.command.Persons))%int64(b.command.Persons), 10)
}

// event returns an event of about 400 bytes.
func (b bodies) event(n int64) string {
	return fmt.Sprintf(`{"event":"guidon bench","distinct_id":%q,"properties":{"$lib":"guidon","$current_url":"https://example.com/products/%d?ref=bench",`+
		`"$browser":"Firefox","$browser_version":148,"$os":"Linux","$screen_width":1920,"$screen_height":1080,"plan":"pro","step":%d,"price":%d.5,"currency":"EUR"}}`,
		b.person(n), n%500, n%7, n%100)
}
