package stage

import "strings"

// Some programs send one distinct id for all visitors without a login, or the
// text of a missing value. A merge with such a placeholder would make one
// person of all visitors, so it is rejected; ordinary events may carry it.

// placeholdersAnyCase are rejected in upper and lower case.
var placeholdersAnyCase = set(`anonymous guest distinctid distinct_id id not_authenticated email undefined true false
	anonymous-user backend system user 00000000-0000-0000-0000-000000000000`)

// placeholdersExact are rejected in this case only: Nan is a given name.
var placeholdersExact = set(`NaN None none null 0`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// isPlaceholder reports whether id cannot take part in a merge: it is blank or
// a known placeholder, with or without quotes.
func isPlaceholder(id string) bool {
	id = strings.TrimSpace(id)
	if n := len(id); n >= 2 && (id[0] == '"' || id[0] == '\'') && id[n-1] == id[0] {
		id = strings.TrimSpace(id[1 : n-1])
	}
	return id == "" || id == "[object Object]" || placeholdersExact[id] || placeholdersAnyCase[strings.ToLower(id)]
}
