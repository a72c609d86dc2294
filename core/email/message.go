package email

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode"

	"github.com/guidonhq/guidon/core/text"
)

// Message is an e-mail to one address.
type Message struct {
	To      string
	Subject string
	Text    string
	HTML    string

	id string // of all attempts, by which mail programs show the message once
}

// content is the text of a message.
type content struct {
	Title  string
	Lines  []string // before the button
	Button string
	Link   string
	After  []string
}

// Invited are the names in an invitation, as users wrote them.
type Invited struct {
	To           string
	FirstName    string
	Inviter      string
	Organization string
	Link         string
	Expires      time.Time
}

// Invitation returns the message of an invitation.
func Invitation(in Invited) Message {
	hello, inviter, organization := "Hello,", name(in.Inviter), name(in.Organization)
	if first := name(in.FirstName); first != "" {
		hello = "Hello " + first + ","
	}
	if inviter == "" {
		inviter = "An administrator"
	}
	where := "Guidon"
	if organization != "" {
		where = organization + " on Guidon"
	}
	return content{
		Title:  "You are invited to " + where,
		Lines:  []string{hello, fmt.Sprintf("%s invites you to %s.", inviter, where)},
		Button: "Accept the invitation",
		Link:   in.Link,
		After:  []string{"The link works once, until " + endTime(in.Expires) + ".", "If you do not expect this message, ignore it."},
	}.message(in.To)
}

// Reset returns the message with a link that chooses a new password.
func Reset(to, link string, expires time.Time) Message {
	return content{
		Title:  "Choose a new password for Guidon",
		Lines:  []string{"Hello,", "Someone asked for a new password for the account with this e-mail address."},
		Button: "Choose a new password",
		Link:   link,
		After:  []string{"The link works once, until " + endTime(expires) + ".", "If you did not ask for it, ignore this message: your password stays as it is."},
	}.message(to)
}

func endTime(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

// maxName bounds a name in a message, in bytes.
const maxName = 100

// name returns a name that a user has chosen on one line, without control and format
// characters. A name that mail programs would make a link of becomes "".
func name(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	low := strings.ToLower(s)
	if strings.Contains(low, "://") || strings.Contains(low, "www.") || strings.Contains(low, "mailto:") || hasDomain(low) {
		return ""
	}
	return text.Truncate(strings.ReplaceAll(s, "=?", "= ?"), maxName) // no encoded word of a subject
}

// hasDomain reports whether a word looks like the name of a host: a dot between letters, and
// at least two letters behind the last one. An e-mail address is none.
func hasDomain(s string) bool {
	for word := range strings.FieldsSeq(s) {
		word = strings.TrimRight(word, ".,;!?)")
		host, _, _ := strings.Cut(word, "/")
		i := strings.LastIndexByte(host, '.')
		if i > 0 && len(host)-i > 2 && !strings.Contains(host, "@") {
			return true
		}
	}
	return false
}

// message returns the content as text and as HTML.
func (l content) message(to string) Message {
	lines := append(append([]string{}, l.Lines...), l.Button+":", l.Link)
	var html bytes.Buffer
	if err := page.Execute(&html, l); err != nil {
		html.Reset() // the text has everything
	}
	return Message{To: to, Subject: l.Title, Text: strings.Join(append(lines, l.After...), "\n\n") + "\n", HTML: html.String()}
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>{{.Title}}</title></head>
<body style="margin:0;padding:24px;font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<main style="display:block;max-width:520px;margin:0 auto">
<h1 style="font-size:20px;line-height:1.3">{{.Title}}</h1>
{{range .Lines}}<p>{{.}}</p>
{{end}}<p style="margin:24px 0"><a href="{{.Link}}" style="display:inline-block;padding:10px 18px;border-radius:6px;background:#3b5bdb;color:#ffffff;text-decoration:none">{{.Button}}</a></p>
<p style="font-size:13px;word-break:break-all">{{.Link}}</p>
{{range .After}}<p style="font-size:13px">{{.}}</p>
{{end}}</main>
</body></html>
`))
