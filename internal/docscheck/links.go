package main

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	link           = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading        = regexp.MustCompile(`^#+ +(.+?) *#*$`)
	linkInHeading  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	explicitAnchor = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
)

// checkLinks follows the relative links of all documents, with their anchors.
func (r *repository) checkLinks() {
	for _, d := range r.documents {
		for _, l := range d.lines {
			if l.fenced {
				continue
			}
			text := codeSpan.ReplaceAllString(l.text, "")
			for _, match := range link.FindAllStringSubmatch(text, -1) {
				r.checkLink(d, l.number, match[1])
			}
		}
	}
}

func (r *repository) checkLink(d document, number int, to string) {
	target, err := url.Parse(to)
	if err != nil {
		r.report(d, number, "link to %s: %v", to, err)
		return
	}
	if target.Host != "" || target.Scheme != "" {
		return
	}

	file := d.name
	if target.Path != "" {
		file = path.Join(path.Dir(d.name), target.Path)
	}
	if !r.exists(file) {
		r.report(d, number, "link to %s: no such file", to)
		return
	}

	other, ok := r.document(file)
	if ok && target.Fragment != "" && !slices.Contains(other.anchors(), target.Fragment) {
		r.report(d, number, "link to %s: no such heading", to)
	}
}

// anchors returns the anchors of a document as GitHub makes them: a heading in lower case
// without punctuation, with dashes for spaces, and a number if it is repeated.
func (d document) anchors() []string {
	var anchors []string
	repeated := map[string]int{}
	for _, l := range d.lines {
		if l.fenced {
			continue
		}
		for _, match := range explicitAnchor.FindAllStringSubmatch(l.text, -1) {
			anchors = append(anchors, match[1])
		}

		match := heading.FindStringSubmatch(l.text)
		if match == nil {
			continue
		}
		title := linkInHeading.ReplaceAllString(match[1], "$1")
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		if n := repeated[anchor]; n > 0 {
			anchors = append(anchors, anchor+"-"+strconv.Itoa(n))
		} else {
			anchors = append(anchors, anchor)
		}
		repeated[anchor]++
	}
	return anchors
}
