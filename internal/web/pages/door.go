package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"sessiond/internal/session"
)

// loginForm is the page that asks for the token.
type loginForm struct {
	To    string // the page that was asked for
	Wrong string
}

func (p *Pages) showLogin(w http.ResponseWriter, r *http.Request) error {
	return p.show(w, r, "login", frame{Title: "Log in", Body: loginForm{To: ownPage(r.FormValue("to"))}})
}

func (p *Pages) login(w http.ResponseWriter, r *http.Request) error {
	to := ownPage(r.PostFormValue("to"))
	if err := p.Guard.Login(w, strings.TrimSpace(r.PostFormValue("token"))); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return p.show(w, r, "login", frame{Title: "Log in", Body: loginForm{To: to, Wrong: err.Error()}})
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

func (p *Pages) logout(w http.ResponseWriter, r *http.Request) error {
	p.Guard.Logout(w, r)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
	return nil
}

// link answers `sessiond open` with a link that logs one browser in.
func (p *Pages) link(w http.ResponseWriter, r *http.Request) error {
	address := p.address.Load()
	if address == nil || *address == "" {
		return session.Errorf(session.Unavailable,
			"the daemon listens on its socket alone: set `listen` to an address for the page")
	}
	link := "http://" + *address + "/open/" + p.Guard.Link() + "?to=" + url.QueryEscape(ownPage(r.FormValue("to")))
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]string{"url": link})
}

func (p *Pages) redeem(w http.ResponseWriter, r *http.Request) error {
	if err := p.Guard.Redeem(w, r.PathValue("code")); err != nil {
		return err
	}
	http.Redirect(w, r, ownPage(r.FormValue("to")), http.StatusSeeOther)
	return nil
}

// ownPage returns the address of a page of this daemon: home, if it is none.
func ownPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\n\r") {
		return "/"
	}
	return to
}
