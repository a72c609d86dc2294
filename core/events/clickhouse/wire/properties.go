package wire

import "strings"

// Properties in ClickHouse leave out the URL and its path, which are in the column current_url:
// text that begins with packedMark has urlMark in place of "$current_url"'s value and pathMark
// in place of that of "$pathname". No JSON text has these bytes.
const (
	packedMark = "\x01"
	urlMark    = "\x01"
	pathMark   = "\x02"
)

const (
	urlProperty  = `"$current_url":`
	pathProperty = `"$pathname":`
)

// PackProperties returns the text that is stored for properties.
func PackProperties(text, url string) string {
	if url == "" || strings.ContainsAny(text, packedMark+pathMark) {
		return text
	}
	before, after, ok := strings.Cut(text, urlProperty+`"`+url+`"`)
	if !ok {
		return text
	}
	if path := pathOf(url); path != "" {
		found := pathProperty + `"` + path + `"`
		if packed := strings.Replace(before, found, pathProperty+pathMark, 1); packed != before {
			before = packed
		} else {
			after = strings.Replace(after, found, pathProperty+pathMark, 1)
		}
	}
	return packedMark + before + urlProperty + urlMark + after
}

// UnpackProperties is the inverse of PackProperties.
func UnpackProperties(stored, url string) string {
	text, ok := strings.CutPrefix(stored, packedMark)
	if !ok {
		return stored
	}
	text = strings.Replace(text, urlMark, `"`+url+`"`, 1)
	return strings.Replace(text, pathMark, `"`+pathOf(url)+`"`, 1)
}

// PlainProperties is the expression of UnpackProperties in ClickHouse. replaceOne of old servers
// takes constants only.
var PlainProperties = "if(substring(properties, 1, 1) = '\\x01', " +
	replaceByte(replaceByte("substring(properties, 2)", `'\x01'`, "current_url"), `'\x02'`, "extract(current_url, '^[a-z]+://[^/?#]*([^?#]*)')") + ", properties)"

func replaceByte(text, mark, value string) string {
	at := "position(" + text + ", " + mark + ")"
	return "if(" + at + " = 0, " + text + ", concat(substring(" + text + ", 1, toUInt64(" + at + " - 1)), '\"', " + value + ", '\"', substring(" + text + ", " + at + " + 1)))"
}

// pathOf returns the path of a URL such as https://host/path?query#fragment, "" for others.
func pathOf(url string) string {
	i := 0
	for i < len(url) && url[i] >= 'a' && url[i] <= 'z' {
		i++
	}
	rest, ok := strings.CutPrefix(url[i:], "://")
	if i == 0 || !ok {
		return ""
	}
	begin := strings.IndexAny(rest, "/?#")
	if begin < 0 {
		return ""
	}
	path := rest[begin:]
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	return path
}
