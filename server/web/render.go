package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

//go:embed templates/*.html
var templates embed.FS

// loadPages parses the layout and the parts, and returns the template of each page with these.
func (s *Site) loadPages() (map[string]pageTemplate, error) {
	shared, err := template.New("layout.html").Funcs(s.functions()).ParseFS(templates, "templates/layout.html",
		"templates/parts*.html")
	if err != nil {
		return nil, fmt.Errorf("parse layout: %w", err)
	}
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}

	pages := make(map[string]pageTemplate)
	for _, file := range files {
		pages[strings.TrimSuffix(path.Base(file), ".html")] = sync.OnceValues(func() (*template.Template, error) {
			p, err := shared.Clone()
			if err == nil {
				p, err = p.ParseFS(templates, file)
			}
			if err != nil {
				return nil, fmt.Errorf("parse %s: %w", file, err)
			}
			return p, nil
		})
	}
	return pages, nil
}

// A view is the data of layout.html: a page's own Data, and the frame around it.
type view struct {
	Title   string
	Session *visitor // nil if the page does not show whose session it is
	// CanAdmin reports whether the visitor has the scope admin.
	CanAdmin bool
	// CanMaintain reports whether the visitor has the scope maintain.
	CanMaintain bool
	// Org and Repo are the page's org and repo; empty for none.
	Org, Repo string
	// OrgTabs, RepoTabs and SettingsTabs are empty if the page does not show them.
	OrgTabs, RepoTabs, SettingsTabs []tab
	Live, LiveCommit, LiveSince     string
	Wide                            bool
	// Query is the text in the search box.
	Query string
	Data  any
}

// A visitor is the owner of a session, as pages show it.
type visitor struct {
	Name, Title string // Title is the whole name, or which token it is
	May         string // a scope or a role
}

// visitorOf returns whose session a token is: that of a member, or the token's own.
func visitorOf(t *ledger.Token) *visitor {
	if t == nil {
		return nil
	}
	if t.IsSignIn {
		return &visitor{Name: format.PlainName(t.DN), Title: t.DN, May: member.Role(t.Scope).String()}
	}
	return &visitor{Name: t.Name, Title: "API token " + t.ID, May: t.Scope.String()}
}

// view returns the data of a response's page, with its frame.
func (s *Site) view(v *page.Visit, resp *page.Response) view {
	session := visitorOf(v.Session)
	if v.Anonymous {
		session = nil
	}
	query := ""
	if v.Route.Pattern == page.SearchPattern {
		query = v.Query("q")
	}
	return view{
		Query: query,
		Title: resp.Title, Session: session, CanAdmin: v.May(ledger.Admin), CanMaintain: v.May(ledger.Maintain),
		Org: v.Org, Repo: v.Repo, Live: resp.Live, LiveCommit: resp.LiveCommit, LiveSince: resp.LiveSince,
		Wide: resp.Wide, Data: resp.Data,
		OrgTabs: orgTabs(v), RepoTabs: repoTabs(v), SettingsTabs: settingsTabs(v),
	}
}

// render executes the template of a response that is a page.
func (s *Site) render(v *page.Visit, resp *page.Response) error {
	if resp.Page == "" {
		return nil
	}
	parsed, err := s.pages[resp.Page]()
	if err != nil {
		return err
	}
	var p bytes.Buffer
	if err := parsed.Execute(&p, s.view(v, resp)); err != nil {
		return fmt.Errorf("render page %s: %w", resp.Page, err)
	}
	resp.Page, resp.Body, resp.MediaType = "", p.Bytes(), "text/html; charset=utf-8"
	return nil
}

// write renders and writes a response. If it returns an error, it has written
// nothing.
func (s *Site) write(v *page.Visit, w http.ResponseWriter, resp *page.Response) error {
	if err := s.render(v, resp); err != nil {
		return err
	}
	for _, c := range resp.Cookies {
		http.SetCookie(w, c)
	}

	switch {
	case resp.Stream != nil:
		resp.Stream(w, v.Request)
		return nil
	case resp.Location != "":
		linger := wire.AbandonBody(w, v.Request)
		http.Redirect(w, v.Request, resp.Location, http.StatusSeeOther)
		linger()
		return nil
	}

	h := w.Header()
	if resp.Filename != "" {
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": resp.Filename}))
	}
	if resp.Immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	wire.WriteBody(w, v.Request, cmp.Or(resp.Status, http.StatusOK), resp.MediaType, resp.Body)
	return nil
}

// functions returns the functions of the templates.
func (s *Site) functions() template.FuncMap {
	return template.FuncMap{
		"asset":    s.assets.path,
		"path":     func(segments ...string) string { return s.base + page.PathTo(segments...) },
		"ends":     func(until ledger.Time) bool { return format.EndsSoon(until, s.now()) },
		"short":    format.Short,
		"slot":     ledger.ShortSlot,
		"time":     timeTag,
		"due":      func(t ledger.Time) bool { return t <= s.now() },
		"next":     nextTag,
		"duration": format.Duration,
		"plural":   format.Plural,
		"dn":       format.PlainName,
		"line":     format.FirstLine,
		"name":     format.CommitName,
		"clip":     format.Clip,
		"ordered":  format.Ordered,
		"number":   format.Number,
		"maxPairs": func() int { return radar.MaxPairs },
		"lower":    func(v any) string { return strings.ToLower(fmt.Sprint(v)) },
		"label":    format.State,
		"lapsed":   ledger.Lapsed,
		"states":   ledger.States,
		"field":    page.NewField,
		"choice":   func(value, label string) page.Choice { return page.Choice{Value: value, Label: label} },
		"choices":  func(c ...page.Choice) []page.Choice { return c },
		"dict":     format.Dict,
		"value":    ledger.AuditText,
	}
}

// timeTag returns a time element in UTC. The script makes it local and relative.
func timeTag(t ledger.Time) template.HTML {
	if t == 0 {
		return "–"
	}
	return template.HTML(`<time datetime="` + t.String() + `" title="` + t.String() + `">` +
		t.Std().Format("2 Jan 2006 15:04") + ` UTC</time>`)
}

// nextTag is timeTag for the time of a next attempt: once it has passed, the
// script shows "now".
func nextTag(t ledger.Time) template.HTML {
	return template.HTML(strings.Replace(string(timeTag(t)), "<time ", "<time data-next ", 1))
}

// serveAsset responds with a static file.
func (s *Site) serveAsset(v *page.Visit) (*page.Response, error) {
	a, ok := s.assets.files[v.Value("file")]
	if !ok {
		return nil, ledger.Errorf(ledger.CodeNotFound, "file %s not found: reload the page, the server may have "+
			"been upgraded", v.Value("file"))
	}
	return &page.Response{Body: a.body, MediaType: a.mediaType, Immutable: true}, nil
}
