package wire

import "strings"

var escaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`)

// Quote returns a string literal.
func Quote(s string) string { return "'" + escaper.Replace(s) + "'" }

// QuoteAll returns string literals, separated by commas.
func QuoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	return strings.Join(quoted, ",")
}
