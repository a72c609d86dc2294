package signin

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/guidonhq/guidon/core/auth/apikey"
	"github.com/guidonhq/guidon/core/fault"
	"github.com/guidonhq/guidon/core/sessions"
	"github.com/guidonhq/guidon/core/text"
	"github.com/guidonhq/guidon/core/web"
	"github.com/guidonhq/guidon/core/web/browser"
)

// HTTP serves signing in, and the sessions of users.
type HTTP struct {
	service *Service
	router  *web.Router
}

var _ web.Routes = (*HTTP)(nil)

// NewHTTP returns the routes of s.
func NewHTTP(s *Service) *HTTP { return &HTTP{service: s} }

const sessionPath = "/api/session"

// Routes implements web.Routes.
func (h *HTTP) Routes(g *web.Router) {
	h.router = g
	g.Anonymous(fiber.MethodGet, sessionPath+"/methods", g.OnlyConsole(h.methods))
	g.Anonymous(fiber.MethodPost, sessionPath, g.OnlyConsole(h.withPassword))
	g.Anonymous(fiber.MethodPost, sessionPath+"/link", g.OnlyConsole(h.withLink))
	g.Anonymous(fiber.MethodPost, sessionPath+"/invitation", g.OnlyConsole(h.withInvitation))
	g.Anonymous(fiber.MethodPost, sessionPath+"/password", g.OnlyConsole(h.withReset))
	g.Anonymous(fiber.MethodPost, sessionPath+"/password_reset", g.OnlyConsole(h.requestReset))
	g.Anonymous(fiber.MethodGet, oidcStartPath, g.OnlyConsole(h.startOIDC))
	g.Anonymous(fiber.MethodGet, oidcCallbackPath, g.OnlyConsole(h.finishOIDC))
	g.Manage(fiber.MethodGet, sessionPath, "", h.read)
	g.Manage(fiber.MethodPatch, sessionPath, "", h.changeOrganization)
	g.Manage(fiber.MethodDelete, sessionPath, "", h.signOut)
	g.Manage(fiber.MethodPut, "/api/users/@me/password", "user:write", h.changePassword)
	h.sessionRoutes(g)
}

// client returns the origin of an attempt.
func (h *HTTP) client(c *fiber.Ctx) Client {
	agent := text.Truncate(strings.ToValidUTF8(c.Get(fiber.HeaderUserAgent), "?"), 200)
	out := Client{Address: h.router.IP(c), UserAgent: strings.Clone(strings.ReplaceAll(agent, "\x00", "?"))}
	if token := browser.Session(c.Request(), h.router.IsSecure(c)); token != "" {
		out.Former = apikey.DigestOf(token).String()
	}
	return out
}

// maxBody bounds the body of a request.
const maxBody = 16 << 10

// readBody reads the body of a request into v, which is a struct of texts. It refuses the
// character NUL, which Postgres does not store.
func readBody(c *fiber.Ctx, v any) error {
	body, err := web.Plain(c, web.Limits{InflatedBytes: maxBody, Depth: 8})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fault.New(fault.Malformed, "parse_error", "The body must be a JSON object with texts.").Because(err)
	}
	if hasNUL(body) {
		return fault.New(fault.Malformed, "parse_error", "The body must not have the character NUL.")
	}
	return nil
}

// hasNUL reports whether a text of a JSON object has the character NUL.
func hasNUL(body []byte) bool {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return false // without the escape JSON has no NUL
	}
	var all map[string]any
	if json.Unmarshal(body, &all) != nil {
		return true
	}
	for _, v := range all {
		if text, ok := v.(string); ok && strings.ContainsRune(text, 0) {
			return true
		}
	}
	return false
}

// required fails with Invalid for the first empty value of pairs of name and value.
func required(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return fault.Field(pairs[i], "required", "This field is required.")
		}
	}
	return nil
}

type methodsView struct {
	Password      bool      `json:"password"`
	Link          bool      `json:"link"`
	PasswordReset string    `json:"password_reset"`
	OIDC          *oidcView `json:"oidc"`
}

type oidcView struct {
	Name     string `json:"name"`
	StartURL string `json:"start_url"`
}

func (h *HTTP) methods(c *fiber.Ctx) error {
	v := methodsView{Password: h.service.cfg.Password, Link: true, PasswordReset: "printed"}
	if h.service.mailsResets() {
		v.PasswordReset = "email"
	}
	if h.service.oidc != nil {
		_, prefix := h.router.Origin(c)
		v.OIDC = &oidcView{h.service.cfg.OIDC.Name, prefix + oidcStartPath}
	}
	return web.JSON(c, v)
}

func (h *HTTP) withPassword(c *fiber.Ctx) error {
	var in struct{ Email, Password string }
	if err := readBody(c, &in); err != nil {
		return err
	}
	if err := required("email", in.Email, "password", in.Password); err != nil {
		return err
	}
	out, err := h.service.WithPassword(c.UserContext(), in.Email, in.Password, h.client(c))
	return h.answer(c, out, err)
}

func (h *HTTP) withLink(c *fiber.Ctx) error {
	var in struct{ Token string }
	if err := readBody(c, &in); err != nil {
		return err
	}
	if err := required("token", in.Token); err != nil {
		return err
	}
	out, err := h.service.WithLink(c.UserContext(), in.Token, h.client(c))
	return h.answer(c, out, err)
}

func (h *HTTP) withInvitation(c *fiber.Ctx) error {
	var in struct {
		ID, Token, Password string
		FirstName           string `json:"first_name"`
	}
	if err := readBody(c, &in); err != nil {
		return err
	}
	if err := required("id", in.ID, "token", in.Token); err != nil {
		return err
	}
	out, err := h.service.WithInvitation(c.UserContext(), in.ID, in.Token, in.FirstName, in.Password, h.client(c))
	return h.answer(c, out, err)
}

func (h *HTTP) withReset(c *fiber.Ctx) error {
	var in struct{ Token, Password string }
	if err := readBody(c, &in); err != nil {
		return err
	}
	if err := required("token", in.Token, "password", in.Password); err != nil {
		return err
	}
	out, err := h.service.WithReset(c.UserContext(), in.Token, in.Password, h.client(c))
	return h.answer(c, out, err)
}

func (h *HTTP) requestReset(c *fiber.Ctx) error {
	var in struct{ Email string }
	if err := readBody(c, &in); err != nil {
		return err
	}
	if err := required("email", in.Email); err != nil {
		return err
	}
	if err := h.service.RequestReset(in.Email, h.client(c)); err != nil {
		return err
	}
	return web.Empty(c, fiber.StatusNoContent)
}

// answer sets the cookie of a new session and answers with the session.
func (h *HTTP) answer(c *fiber.Ctx, out SignedIn, err error) error {
	if err != nil {
		return err
	}
	v, err := h.show(c.UserContext(), out.Principal, &out.Session, out.Token)
	if err != nil {
		return err
	}
	browser.SetSession(&c.Response().Header, out.Token, h.router.IsSecure(c), out.Session.ExpiresAt)
	return web.JSON(c, v)
}

// read answers with the session of the request, or with the user of its key.
func (h *HTTP) read(c *web.Call) error {
	v, err := h.current(c)
	if err != nil {
		return err
	}
	return web.JSON(c.Ctx, v)
}

func (h *HTTP) current(c *web.Call) (sessionAnswer, error) {
	var s *sessions.Session
	token := ""
	if c.Principal.SessionID != 0 {
		token = browser.Session(c.Request(), h.router.IsSecure(c.Ctx))
		found, err := h.service.sessions.Find(c.UserContext(), token)
		if err != nil {
			return sessionAnswer{}, err
		}
		s, c.Principal = &found.Session, found.Principal
	}
	return h.show(c.UserContext(), c.Principal, s, token)
}

func (h *HTTP) changeOrganization(c *web.Call) error {
	var in struct {
		ID string `json:"organization_id"`
	}
	if err := readBody(c.Ctx, &in); err != nil {
		return err
	}
	if err := required("organization_id", in.ID); err != nil {
		return err
	}
	if c.Principal.SessionID == 0 {
		return errSession
	}
	web.MarkLogged(c.UserContext()) // only the view of this session changes
	if err := h.service.sessions.SetOrganization(c.UserContext(), c.Principal.SessionID, in.ID); err != nil {
		return err
	}
	return h.read(c)
}

func (h *HTTP) signOut(c *web.Call) error {
	if err := h.service.SignOut(c.UserContext(), c.Principal); err != nil {
		return err
	}
	browser.ClearSession(&c.Response().Header, h.router.IsSecure(c.Ctx))
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}

func (h *HTTP) changePassword(c *web.Call) error {
	var in struct {
		Password string
		Current  string `json:"current_password"`
	}
	if err := readBody(c.Ctx, &in); err != nil {
		return err
	}
	if err := required("password", in.Password); err != nil {
		return err
	}
	if err := h.service.ChangePassword(c.UserContext(), c.Principal, in.Current, in.Password, h.client(c.Ctx)); err != nil {
		return err
	}
	return web.Empty(c.Ctx, fiber.StatusNoContent)
}
