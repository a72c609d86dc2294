// Package csvtable encodes tables as CSV that a spreadsheet opens safely.
//
// A cell that a spreadsheet would run as a formula gets a leading apostrophe.
// Such cells come from events, which anyone with a public key can send.
package csvtable

import (
	"bytes"
	"encoding/csv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Encode returns a table as CSV. Lines end with CRLF; line ends inside of cells stay
// as they are. It changes rows in place.
func Encode(head []string, rows [][]string) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out) // with its CRLF it would change the cells, too
	add := func(row []string) error {
		if err := w.Write(row); err != nil {
			return err
		}
		w.Flush()
		out.Truncate(out.Len() - 1)
		out.WriteString("\r\n")
		return w.Error()
	}
	if err := add(head); err != nil {
		return nil, err
	}
	for _, row := range rows {
		for i := range row {
			row[i] = withoutFormula(row[i])
		}
		if err := add(row); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// withoutFormula prefixes a cell that a spreadsheet would run as a formula.
func withoutFormula(cell string) string {
	if cell == "" {
		return cell
	}
	bare := strings.TrimLeftFunc(cell, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\ufeff' })
	first, _ := utf8.DecodeRuneInString(bare)
	if strings.ContainsRune("=+-@＝＋－＠", first) && bare != "" || strings.IndexByte("\t\r\n", cell[0]) >= 0 {
		return "'" + cell
	}
	return cell
}
