// Package mask hides passwords in settings that are shown to an operator.
package mask

import "regexp"

var (
	secretKey      = regexp.MustCompile(`(^|[._])(secret_key|access_key|encryption_key|password|token)$`)
	urlPassword    = regexp.MustCompile(`(://[^/@:\s]*:)([^/\s]+)(@)`) // up to the last @, as URLs are parsed
	onlyReferences = regexp.MustCompile(`^(\$\{[^}]*\}[\s,]*)+$`)
	keyword        = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]+)()`)
)

// Value returns the value of a setting without passwords. References to secrets stay.
func Value(key, value string) string {
	if secretKey.MatchString(key) && value != "" && !onlyReferences.MatchString(value) {
		return "***"
	}
	return maskPart(keyword, maskPart(urlPassword, value))
}

// maskPart masks the second group of each match, unless it is a reference to a secret.
func maskPart(pattern *regexp.Regexp, value string) string {
	return pattern.ReplaceAllStringFunc(value, func(match string) string {
		part := pattern.FindStringSubmatch(match)
		if onlyReferences.MatchString(part[2]) {
			return match
		}
		return part[1] + "***" + part[3]
	})
}
