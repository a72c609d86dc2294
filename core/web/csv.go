package web

import (
	"bytes"
	"encoding/csv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
)

// WantsCSV reports whether the client asks for CSV: format=csv, or no format and
// an Accept header that takes text/csv but not JSON. An unknown format is
// NotFound.
func (c *Call) WantsCSV() (bool, error) {
	switch c.Query("format") {
	case "csv":
		return true, nil
	case "json":
		return false, nil
	case "":
		return c.Accepts(fiber.MIMEApplicationJSON, "text/csv") == "text/csv", nil
	}
	return false, fault.New(fault.NotFound, "not_found", "Not found.")
}

// CSV answers with a table. Cells that a spreadsheet would run as a formula get
// a leading apostrophe; rows is changed in place.
func (c *Call) CSV(head []string, rows [][]string) error {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	if err := w.Write(head); err != nil {
		return err
	}
	for _, row := range rows {
		for i := range row {
			row[i] = withoutFormula(row[i])
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	c.Set(fiber.HeaderContentType, "text/csv; charset=utf-8")
	return c.Send(out.Bytes())
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
