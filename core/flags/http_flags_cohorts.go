package flags

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/flags/rules"
	"github.com/guidonhq/guidon/core/web"
)

const cohortsPath = "/api/projects/:project_id/cohorts"

func (h *HTTP) cohortRoutes(g *web.Router) {
	g.Manage("GET", cohortsPath, scopeReadCohort, h.listCohorts)
	g.Manage("POST", cohortsPath, scopeWriteCohort, h.createCohort)
	g.Manage("GET", cohortsPath+"/:id", scopeReadCohort, h.retrieveCohort)
	g.Manage("PATCH", cohortsPath+"/:id", scopeWriteCohort, h.updateCohort(false))
	g.Manage("PUT", cohortsPath+"/:id", scopeWriteCohort, h.updateCohort(true))
	g.Manage("DELETE", cohortsPath+"/:id", scopeWriteCohort, (*web.Call).MethodNotAllowed)
}

// Scopes for cohorts. Whoever may work with flags may work with what they are
// made of.
const (
	scopeReadCohort  = scopeRead
	scopeWriteCohort = scopeWrite
)

func (h *HTTP) listCohorts(c *web.Call) error {
	page := c.Page()
	list, total, err := h.service.Cohorts(c.UserContext(), c.Project, strings.Clone(c.Query("search")), page.Limit, page.Offset)
	if err != nil {
		return err
	}
	views, err := h.showCohorts(c, list...)
	if err != nil {
		return err
	}
	return c.List(page, total, views)
}

func (h *HTTP) createCohort(c *web.Call) error {
	in, err := cohortInput(c, true)
	if err != nil {
		return err
	}
	made, err := h.service.CreateCohort(c.UserContext(), c.Principal, c.Project, in)
	if err != nil {
		return err
	}
	c.Status(fiber.StatusCreated)
	return h.answerCohort(c, made)
}

func (h *HTTP) retrieveCohort(c *web.Call) error {
	id, err := idOf(c, "id")
	if err != nil {
		return err
	}
	found, err := h.service.FreshCohort(c.UserContext(), c.Project, id)
	if err != nil {
		return err
	}
	return h.answerCohort(c, found)
}

func (h *HTTP) updateCohort(full bool) func(c *web.Call) error {
	return func(c *web.Call) error {
		id, err := idOf(c, "id")
		if err != nil {
			return err
		}
		if _, err := h.service.Cohort(c.UserContext(), c.Project, id); err != nil {
			return err
		}
		in, err := cohortInput(c, full)
		if err != nil {
			return err
		}
		changed, err := h.service.UpdateCohort(c.UserContext(), c.Principal, c.Project, id, in)
		if err != nil {
			return err
		}
		return h.answerCohort(c, changed)
	}
}

// cohortInput reads the writable fields of a cohort. People of a static one
// come as a list of distinct ids, or as a CSV file in the field csv of a form.
func cohortInput(c *web.Call, full bool) (CohortInput, error) {
	body, err := c.Fields()
	if err != nil {
		return CohortInput{}, err
	}
	name := []web.Rule{web.Max(maxKey)}
	if full {
		name = append(name, web.Required)
	}
	in := CohortInput{
		Name:        value(body.String("name", name...)),
		Description: value(body.String("description", web.Blank, web.Nullable)),
		Filters:     body.Object("filters").Value,
		Static:      value(body.Bool("is_static")),
		Deleted:     value(body.Bool("deleted")),
		Add:         distinctIDs(body, "distinct_ids"),
		Remove:      distinctIDs(body, "remove_distinct_ids"),
	}
	if err := body.Err(); err != nil {
		return in, err
	}
	listed, err := uploaded(c)
	in.Add = append(in.Add, listed...)
	return in, err
}

func distinctIDs(body *web.Fields, name string) []string {
	var ids []string
	for i, id := range body.Strings(name).Value {
		switch {
		case id == "":
			body.Fail(name+"__"+strconv.Itoa(i), "blank", "This field may not be blank.")
		case len(id) > maxKey:
			body.Fail(name+"__"+strconv.Itoa(i), "max_length", "Ensure this field has no more than "+strconv.Itoa(maxKey)+" characters.")
		default:
			ids = append(ids, id)
		}
	}
	return ids
}

// uploaded reads the distinct ids of a CSV file: the column distinct_id when
// the first row names one, else the first column.
func uploaded(c *web.Call) ([]string, error) {
	if !strings.HasPrefix(strings.ToLower(c.Get(fiber.HeaderContentType)), fiber.MIMEMultipartForm) {
		return nil, nil
	}
	part, err := c.FormFile("csv")
	if err != nil {
		return nil, nil // a form without a file
	}
	file, err := part.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readIDs(file)
}

func readIDs(file io.Reader) ([]string, error) {
	rows := csv.NewReader(file)
	rows.FieldsPerRecord = -1
	var ids []string
	column := 0
	for first := true; ; first = false {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return ids, nil
		}
		if err != nil {
			return nil, fault.Fieldf("csv", rules.CodeInvalid, "The file is no CSV: %v", err)
		}
		if first {
			if at := headed(row); at >= 0 {
				column = at
				continue
			}
		}
		if column < len(row) {
			if id := strings.ToValidUTF8(strings.TrimSpace(row[column]), ""); id != "" && len(id) <= maxKey && !strings.ContainsRune(id, 0) {
				ids = append(ids, id)
			}
		}
	}
}

// headed finds the column of distinct ids in a row of headings, -1 when the
// row is none.
func headed(row []string) int {
	for i, name := range row {
		switch strings.ToLower(strings.Trim(name, " \ufeff")) {
		case "distinct_id", "distinct id", "distinct_ids":
			return i
		}
	}
	return -1
}

func (h *HTTP) answerCohort(c *web.Call, cohort *Cohort) error {
	views, err := h.showCohorts(c, cohort)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, views[0])
}

func (h *HTTP) showCohorts(c *web.Call, list ...*Cohort) ([]cohortView, error) {
	ids := make([]int64, 0, len(list))
	for _, cohort := range list {
		ids = append(ids, cohort.CreatedBy)
	}
	users, err := h.service.users(c.UserContext(), ids)
	if err != nil {
		return nil, err
	}
	views := make([]cohortView, 0, len(list))
	for _, cohort := range list {
		views = append(views, cohort.show(users[cohort.CreatedBy]))
	}
	return views, nil
}
