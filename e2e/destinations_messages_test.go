//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// posting is the action of the tests of notifiers: its messages name the event.
const posting = `{"name": "Signed up", "steps": [{"event": "signed up"}], "post_to_chat": true,
	"chat_message_format": "[event.uuid] [event.properties.n] [event.properties.smtp]"}`

// startNotifying starts a server with a notifier and an action that posts.
func startNotifying(t *testing.T, instance string) (s *server, action int) {
	t.Helper()
	s = startWith(t, instance, "GUIDON_NOTIFICATIONS_EVERY=0s", "GUIDON_NOTIFICATIONS_RETRY_MIN=100ms", "GUIDON_NOTIFICATIONS_RETRY_MAX=2s",
		"GUIDON_NOTIFICATIONS_MAX_ATTEMPTS=1000")
	var created struct{ ID int }
	s.do(t, http.MethodPost, "/api/projects/1/actions/", json.RawMessage(posting), &created, http.StatusCreated)
	return s, created.ID
}

// notifierProgress is the progress of the messages of the action.
func (s *server) notifierProgress(t *testing.T, action int) progress {
	list := func(state string) (page deliveries) {
		s.do(t, http.MethodGet, fmt.Sprintf("/api/projects/1/actions/%d/deliveries/?limit=1000&state=%s", action, state), nil, &page, http.StatusOK)
		return page
	}
	until := func(reached func() bool) func() error {
		return func() error {
			if given := append(list("failed").Results, list("expired").Results...); len(given) > 0 {
				t.Fatalf("messages are given up: %+v", given)
			}
			if !reached() {
				return fmt.Errorf("%d messages are delivered, these wait: %+v", list("delivered").Count, list("waiting").Results)
			}
			return nil
		}
	}
	refused := func(d delivery) bool { return strings.Contains(d.Error, "connection refused") }
	return progress{
		begun: until(func() bool { return list("delivered").Count > 0 }),
		failed: func(time.Time) error {
			return until(func() bool { return slices.ContainsFunc(list("waiting").Results, refused) })()
		},
		done: until(func() bool { return list("delivered").Count == capturedEvents/notifiedEvery }),
	}
}

// deliveries is a page of the messages of an action.
type deliveries struct {
	Count   int
	Results []delivery
}

type delivery struct {
	ID, Attempts int
	State, Error string
}

// notified are the events for which there are messages.
func notified(t *testing.T, lines map[string]string) map[string]string {
	t.Helper()
	some := map[string]string{}
	for id, line := range lines {
		if e, _ := parseLine(line + "\n"); e.Event == "signed up" {
			some[id] = line
		}
	}
	return some
}

// TestDestinationWebhookNotifier verifies the requests of the webhook notifier with a
// library of Standard Webhooks. After repeated requests are left out, there is one for
// each event.
func TestDestinationWebhookNotifier(t *testing.T) {
	longTest(t)
	t.Parallel()
	r := startReceiver(t)
	s, action := startNotifying(t, instanceYAML("hook", "notifier", "webhook", fmt.Sprintf("url: %q\nsecret: %s\nallow_hosts: [127.0.0.1]", r.url, webhookSecret)))
	want := notified(t, deliver(t, s, destination{"hook", func() { r.kill(t) }, func() { r.start(t) }, s.notifierProgress(t, action)}))
	arrived := arrivals{}
	for _, one := range r.requests(t) {
		var body struct {
			Type string
			Data struct{ Event rawEvent }
		}
		if err := json.Unmarshal([]byte(one.Body), &body); err != nil || body.Type != "action_performed" {
			t.Fatalf("%v: %s", err, one.Body)
		}
		arrived.checkRow(t, want, body.Data.Event)
	}
	arrived.checkOnce(t, want)
}

// TestDestinationEmail reads the mails that aiosmtpd has received. After mails with the
// same Message-ID are left out, there is one for each event. A property of each event
// looks like commands of SMTP.
func TestDestinationEmail(t *testing.T) {
	longTest(t)
	t.Parallel()
	python, dir, address := install(t, "destinations-python"), t.TempDir(), freeAddress(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	mails, interpreter := filepath.Join(dir, "mails"), filepath.Join(python, "venv", "bin", "python")
	smtp := launch(t, &software{
		name: "aiosmtpd", dir: dir, ready: listening(address),
		command: []string{interpreter, "-m", "aiosmtpd", "-n", "-l", address, "-c", "aiosmtpd.handlers.Mailbox", mails},
	})
	s, action := startNotifying(t, instanceYAML("mail", "notifier", "email",
		fmt.Sprintf("host: %s\nport: %s\ntls: none\nfrom: guidon@example.com\nto: [ada@example.com]", host, port)))
	want := notified(t, deliver(t, s, destination{"mail", func() { smtp.kill(t) }, func() { smtp.start(t) }, s.notifierProgress(t, action)}))
	checkMails(t, want, output(t, python, interpreter, "mails.py", mails))
}

// checkMails compares the lines that mails.py prints.
func checkMails(t *testing.T, want map[string]string, lines []byte) {
	t.Helper()
	arrived, ids := arrivals{}, map[string]bool{}
	for line := range strings.Lines(string(lines)) {
		var mail struct{ ID, Subject, Recipients, Text, HTML string }
		if err := json.Unmarshal([]byte(line), &mail); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if ids[mail.ID] {
			continue
		}
		ids[mail.ID] = true
		id, _, _ := strings.Cut(mail.Text, " ")
		arrived[id]++
		var e struct{ Properties struct{ N int } }
		if err := json.Unmarshal([]byte(want[id]), &e); err != nil {
			t.Fatalf("no event %q: %v", id, err)
		}
		text := fmt.Sprintf("%s %d \n.\nQUIT\nSubject: other\n", id, e.Properties.N)
		if mail.Text != text || !strings.HasPrefix(mail.Subject, "Signed up: "+id) || mail.Recipients != "ada@example.com" || !strings.Contains(mail.HTML, id) {
			t.Errorf("%+v, want text %q", mail, text)
		}
	}
	arrived.checkOnce(t, want)
	t.Logf("%d mails, %d repetitions", strings.Count(string(lines), "\n"), strings.Count(string(lines), "\n")-len(ids))
}
